"""Text from tokens as they come, in whole characters: one may be spelt in several bytes, a token each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from regard.text.vocabularies.vocabulary import Vocabulary

_UNREADABLE = "\ufffd"
"""What bytes that do not make up a character are decoded to, for now or for good."""


def characters(subwords: Vocabulary, tokens: Iterable[int]) -> Iterator[str]:
    """The text of some tokens, piece by piece, as soon as nothing in it can change any more."""
    ids: list[int] = []
    given = 0
    for token in tokens:
        ids.append(token)
        settled = subwords.decode(ids).rstrip(_UNREADABLE)
        if len(settled) > given:
            yield settled[given:]
            given = len(settled)
    if rest := subwords.decode(ids)[given:]:
        yield rest
