"""How required phrases may be written in tokens."""

from __future__ import annotations

from functools import cached_property
from itertools import islice

from regard.engine.phrases.glossary import Phrase, begins_with_letter, ends_with_letter
from regard.text.vocabularies.vocabulary import Vocabulary

Spellings = tuple[tuple[int, ...], ...]

_SIGNS = ".,;:!?)"
_COMMON_WORDS = 64
"""Beginnings of words that may follow a phrase where something must: the most common ones."""


class Speller:
    """Spells phrases in the tokens of one vocabulary."""

    def __init__(self, subwords: Vocabulary, *, without_spaces: bool) -> None:
        """`without_spaces`: whether outputs are in a language that has none, and words follow on words."""
        self._subwords, self._without_spaces = subwords, without_spaces

    def usual(self, phrase: Phrase) -> Spellings:
        """As phrases stand in running text; a search might still make one a part of a longer word."""
        found = list(map(self._apart, phrase.forms))
        if self._without_spaces or not begins_with_letter(phrase.text):
            found += map(self._glued, phrase.forms)
        return tuple(dict.fromkeys(found))

    def firm(self, phrase: Phrase) -> Spellings:
        """With what keeps it apart from the letters around it: a space before, a sign or a new word after."""
        found = list(map(self._apart, phrase.forms))
        if not begins_with_letter(phrase.text):
            found += map(self._glued, phrase.forms)
        if ends_with_letter(phrase.text):
            found = [(*ids, follower) for ids in found for follower in self._what_may_follow]
        return tuple(dict.fromkeys(found))

    @cached_property
    def _what_may_follow(self) -> list[int]:
        """A sign, or the beginning of a word. It reads the whole vocabulary, and few requests need it."""
        pieces = enumerate(self._subwords.pieces(range(self._subwords.vocab_size)))  # the most common first
        words = (i for i, piece in pieces if piece[0] == "▁" and piece.strip("▁"))
        signs = [ids[0] for sign in _SIGNS if len(ids := self._glued(sign)) == 1]
        return [*signs, *islice(words, _COMMON_WORDS)]

    def _apart(self, text: str) -> tuple[int, ...]:
        """After a space."""
        return tuple(self._subwords.encode_one(text).tolist())

    def _glued(self, text: str) -> tuple[int, ...]:
        """Right after another sign."""
        # No piece holds a line break, so what follows one is cut for itself, and has no space before it.
        before = len(self._subwords.encode_one("\n"))
        return tuple(self._subwords.encode_one("\n" + text).tolist()[before:])
