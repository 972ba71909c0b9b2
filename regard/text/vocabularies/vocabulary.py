"""What every vocabulary can do, whoever made it: texts to ids and back, and the ids that no text gives.

`Subwords` are our own. Models that come from elsewhere bring theirs (`marian_vocabulary.py`,
`tokenizer_vocabulary.py`); `vocabularies.py` tells them apart.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from regard.errors import RequestError, ShapeError


class Vocabulary(ABC):
    """Texts to ids and back. May be used by several threads at once."""

    model: bytes
    """The vocabulary as it is saved."""
    vocab_size: int
    bos_id: int
    """What an output starts from."""
    eos_id: int
    """What ends an output, and an input that one is made from."""
    closing: tuple[int, ...] = ()
    """What ends a text that the encoder alone reads."""
    begins_texts: bool = True
    """Whether a text that the decoder alone continues stands behind `bos_id`."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(vocab_size={self.vocab_size})"

    def __reduce__(self) -> tuple[type[Vocabulary], tuple[Any, ...]]:
        # To another process it travels as its bytes.
        return type(self), (self.model,)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The smallest type that holds every id."""
        return np.dtype(np.uint16 if self.vocab_size <= 1 << 16 else np.int32)

    @property
    def outputs(self) -> Vocabulary:
        """The vocabulary that outputs are written in: the same ids, though texts may be cut otherwise."""
        return self

    @property
    def cls_id(self) -> int:
        """The id of `[CLS]`, from which the encoder alone classifies."""
        raise RequestError("the vocabulary has no [CLS], which classification needs")

    @property
    def languages(self) -> list[str]:
        """The languages that there are tags for, in the order of their ids."""
        return []

    def tag_id(self, language: str) -> int:
        """The id of a language's tag: `<2en>` says that English is wanted.

        Raises:
            RequestError: there is no such tag.
        """
        raise RequestError(f"the vocabulary has no tag for {language!r}; it has none")

    @abstractmethod
    def encode(self, texts: list[str], *, threads: int = 1) -> list[np.ndarray]:
        """The ids of each text, without what begins and ends it."""

    def encode_one(self, text: str) -> np.ndarray:
        """The ids of one text, without what begins and ends it."""
        return self.encode([text])[0]

    @abstractmethod
    def decode(self, ids: Sequence[int] | np.ndarray) -> str:
        """The text of some ids; special ones have none.

        Raises:
            ShapeError: an id is not in the vocabulary.
        """

    @abstractmethod
    def pieces(self, ids: Sequence[int] | np.ndarray) -> list[str]:
        """How each id is written: `▁` is a space, `<0xE7>` a byte.

        Raises:
            ShapeError: an id is not in the vocabulary.
        """

    def begun(self, ids: Sequence[int]) -> list[int]:
        """A text that the decoder alone goes on from, behind what begins it; never nothing at all."""
        return [self.bos_id, *ids] if self.begins_texts or not ids else [*ids]

    def closed(self, ids: np.ndarray, room: int) -> np.ndarray:
        """The first ids of a text that the encoder alone reads, with what ends it: `room` at most."""
        return np.concatenate([ids[: room - len(self.closing)], np.array(self.closing, ids.dtype)])

    def _checked(self, ids: Sequence[int] | np.ndarray) -> list[int]:
        numbers = [int(i) for i in ids]
        if wrong := [i for i in numbers if not 0 <= i < self.vocab_size]:
            raise ShapeError("ids", f"numbers from 0 to {self.vocab_size - 1}", wrong[0])
        return numbers


def whole_characters(vocabulary: Vocabulary, tokens: Iterable[int]) -> Iterator[str]:
    """The text of a stream of tokens, in pieces of whole characters: one may be spelt by several tokens."""
    ids: list[int] = []
    n_given = 0
    for token in tokens:
        ids.append(token)
        settled = vocabulary.decode(ids).rstrip("\ufffd")  # stands for bytes that are no character (yet)
        if len(settled) > n_given:
            yield settled[n_given:]
            n_given = len(settled)
    if rest := vocabulary.decode(ids)[n_given:]:
        yield rest


def unseen_characters(vocabulary: Vocabulary, text: str) -> tuple[str, ...]:
    """The characters of a text that are in no subword, so that they are spelt in bytes; no duplicates."""
    characters = dict.fromkeys(character for character in text if not character.isspace())
    pieces = (vocabulary.pieces(ids.tolist()) for ids in vocabulary.encode(list(characters)))
    return tuple(
        character
        for character, spelt in zip(characters, pieces, strict=True)
        if any(piece.startswith("<0x") and len(piece) == len("<0x00>") for piece in spelt)
    )
