"""The interface of all vocabularies: `Subwords` are our own, `imported` ones come with imported models."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from regard.errors import RequestError, ShapeError


class Vocabulary(ABC):
    """Texts to ids and back. Safe to use from several threads."""

    model: bytes
    """The vocabulary in its saved form."""
    vocab_size: int
    bos_id: int
    """The first id of an output."""
    eos_id: int
    """The last id of an output, and of the input of an encoder with a decoder."""
    closing: tuple[int, ...] = ()
    """The last ids of a text that an encoder alone reads."""
    begins_texts: bool = True
    """Whether `bos_id` precedes a text that a decoder alone continues."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(vocab_size={self.vocab_size})"

    def __reduce__(self) -> tuple[type[Vocabulary], tuple[Any, ...]]:
        # Pickled as its saved form.
        return type(self), (self.model,)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The smallest type that holds every id."""
        return np.dtype(np.uint16 if self.vocab_size <= 1 << 16 else np.int32)

    @property
    def outputs(self) -> Vocabulary:
        """The vocabulary of outputs: the same ids, though texts may be split differently."""
        return self

    @property
    def cls_id(self) -> int:
        """The id of `[CLS]`, from which an encoder alone classifies.

        Raises:
            RequestError: there is none.
        """
        raise RequestError("the vocabulary has no [CLS], which classification needs", code="missing_token")

    @property
    def languages(self) -> list[str]:
        """The languages that have a tag, in the order of their ids."""
        return []

    def tag_id(self, language: str) -> int:
        """The id of a language's tag: `<2en>` requests English.

        Raises:
            RequestError: there is no such tag.
        """
        raise RequestError(f"the vocabulary has no tag for {language!r}; it has none", code="missing_token")

    @abstractmethod
    def encode(self, texts: list[str], *, threads: int = 1) -> list[np.ndarray]:
        """The ids of each text, without those that begin and end it."""

    def encode_one(self, text: str) -> np.ndarray:
        """The ids of one text, without those that begin and end it."""
        return self.encode([text])[0]

    @abstractmethod
    def decode(self, ids: Sequence[int] | np.ndarray) -> str:
        """The text of ids; special tokens have none.

        Raises:
            ShapeError: an id is not in the vocabulary.
        """

    @abstractmethod
    def pieces(self, ids: Sequence[int] | np.ndarray) -> list[str]:
        """The pieces of ids: `▁` is a space, `<0xE7>` a byte.

        Raises:
            ShapeError: an id is not in the vocabulary.
        """

    def begun(self, ids: Sequence[int]) -> list[int]:
        """A prompt for a decoder alone: preceded by `bos_id` if needed, and never empty."""
        return [self.bos_id, *ids] if self.begins_texts or not ids else [*ids]

    def closed(self, ids: np.ndarray, room: int) -> np.ndarray:
        """A text for an encoder alone: truncated so that it has at most `room` ids with the last ones."""
        return np.concatenate([ids[: room - len(self.closing)], np.array(self.closing, ids.dtype)])

    def _checked(self, ids: Sequence[int] | np.ndarray) -> list[int]:
        numbers = [int(i) for i in ids]
        if wrong := [i for i in numbers if not 0 <= i < self.vocab_size]:
            raise ShapeError("ids", f"numbers from 0 to {self.vocab_size - 1}", wrong[0], code="unknown_id")
        return numbers


def whole_characters(vocabulary: Vocabulary, tokens: Iterable[int]) -> Iterator[str]:
    """The text of a stream of tokens, in pieces of whole characters: one may be spelt by several tokens."""
    ids: list[int] = []
    n_given = 0
    for token in tokens:
        ids.append(token)
        settled = vocabulary.decode(ids).rstrip(
            "\ufffd"
        )  # U+FFFD replaces bytes that are not a character (yet)
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
