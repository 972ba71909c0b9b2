"""Vocabularies: texts to token ids and back. `read_vocabulary` reads the one of a model folder."""

from __future__ import annotations

import json

from regard.errors import BundleError
from regard.text.vocabularies.imported import KINDS, MARIAN, MarianVocabulary, TokenizerVocabulary
from regard.text.vocabularies.subwords import Subwords
from regard.text.vocabularies.vocabulary import Vocabulary


def read_vocabulary(model: bytes) -> Vocabulary:
    """The vocabulary of a model folder's `subwords.model`: SentencePiece's own format, or a table in JSON.

    Raises:
        BundleError: it is damaged.
        ConfigError: a library that it needs is not installed.
    """
    if not model.startswith(b"{"):
        return Subwords(model)
    try:
        kind = json.loads(model).get("kind")
    except ValueError as error:
        raise BundleError(f"the vocabulary is damaged: {error}", code="damaged_vocabulary") from error
    if kind == MARIAN:
        return MarianVocabulary(model)
    if kind in KINDS:
        return TokenizerVocabulary(model)
    problem = f"this version does not know vocabularies of the kind {kind!r}; upgrade regard"
    raise BundleError(problem, code="unknown_vocabulary")
