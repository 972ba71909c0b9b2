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

    def is_special(self, token: int) -> bool:  # noqa: ARG002 - a vocabulary without special tokens
        """Whether a token never has a text, such as the end token."""
        return False

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


UNDECIDED = "\ufffd"
"""Replaces bytes that are not a character, or not yet."""
_WINDOW = 32
"""Most tokens that are decoded again because the last of them ends inside a character."""


def whole_characters(
    vocabulary: Vocabulary, tokens: Iterable[int], before: Sequence[int] = ()
) -> Iterator[str]:
    """The text of a stream of tokens, in pieces of whole characters: one may be spelt by several tokens.

    The text of a token depends only on whether there is text before it, and on the other bytes of its
    characters. So new tokens are decoded after the last one that has a text, and the work per token does not
    grow with the stream.

    Args:
        vocabulary: decodes.
        tokens: the stream.
        before: the ids that the stream continues, such as a prompt's; they end with a whole character.
    """
    context = _last_with_text(vocabulary, before)
    shown = vocabulary.decode(context)
    new: list[int] = []  # tokens since the last one that ended with a whole character
    n_given = 0  # characters of their text that have been given
    text = ""
    for token in tokens:
        if vocabulary.is_special(token) and (not new or vocabulary.is_special(new[-1])):
            continue
        new.append(token)
        text = vocabulary.decode([*context, *new])[len(shown) :]
        settled = text.rstrip(UNDECIDED)
        if len(new) >= _WINDOW:  # a character has at most four bytes, so three may be undecided
            settled = max(settled, text[:-3], key=len)
        if len(settled) > n_given:
            yield settled[n_given:]
            n_given = len(settled)
        if text and text == settled:
            context = _last_with_text(vocabulary, [*context, *new])
            shown, new, n_given, text = vocabulary.decode(context), [], 0, ""
        elif len(new) >= _WINDOW:
            # Without the first tokens, which may end inside a character, the text ends in the same way.
            shorter, rest = new[len(new) // 2 :], text[n_given:]
            end = vocabulary.decode([*context, *shorter])[len(shown) :]
            if text and end.endswith(rest):
                new, n_given, text = shorter, len(end) - len(rest), end
    if rest := text[n_given:]:
        yield rest


def _last_with_text(vocabulary: Vocabulary, ids: Sequence[int]) -> list[int]:
    """The last ids that have a text together; all ids if they have none."""
    n = 1
    while n < len(ids) and not vocabulary.decode(ids[-n:]):
        n *= 2
    return list(ids[-n:])


def unseen_characters(vocabulary: Vocabulary, text: str) -> tuple[str, ...]:
    """The characters of a text that are in no subword, so that they are spelt in bytes; no duplicates."""
    characters = dict.fromkeys(character for character in text if not character.isspace())
    pieces = (vocabulary.pieces(ids.tolist()) for ids in vocabulary.encode(list(characters)))
    return tuple(
        character
        for character, spelt in zip(characters, pieces, strict=True)
        if any(piece.startswith("<0x") and len(piece) == len("<0x00>") for piece in spelt)
    )
