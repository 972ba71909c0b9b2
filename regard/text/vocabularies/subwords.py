"""Subwords: the pieces that a text is cut into, learned by SentencePiece (a unigram model) and kept as bytes.

Decoding gives back what was encoded, letter for letter and space for space: nothing is normalised but
canonically equivalent spellings, which become one (NFC), so full-width punctuation, ligatures and capitals
stay as they are. The one exception is U+2581, the sign by which SentencePiece writes a space: it comes back
as a space. There is no unknown text: what no piece covers is spelt in bytes. Digits stand alone, so that 1984
is four pieces, and numbers never seen can be read and written.

The first ids are `<unk>` 0, which no text gives, `<s>` 1 and `</s>` 2; then `[CLS]` and the tags, `<2en>` for
English. No text gives those either, not even one that spells them: they are put in by id. There is no id for
padding.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sentencepiece import SentencePieceProcessor

from regard.errors import BundleError, RequestError
from regard.text.normalisation import composed
from regard.text.vocabularies.learning import CLS, learn_subwords, tag
from regard.text.vocabularies.vocabulary import Vocabulary

__all__ = ["Subwords", "learn_subwords"]

FEW = 32
"""Texts that are encoded one by one: for a list SentencePiece starts a thread, which takes longer."""


class Subwords(Vocabulary):
    """A learned vocabulary: texts to ids and back. May be used by several threads at once."""

    def __init__(self, model: bytes) -> None:
        """Take a vocabulary from what `learn_subwords` returned, or a model folder's `subwords.model` holds.

        Raises:
            BundleError: this is no SentencePiece model.
        """
        problem = "the subword model is damaged: it is no model of SentencePiece"
        if not model:
            raise BundleError(problem)
        try:
            self._processor = SentencePieceProcessor(model_proto=model)
        except (RuntimeError, OSError) as error:
            raise BundleError(problem) from error
        self.model = bytes(model)
        self.vocab_size: int = self._processor.vocab_size()
        self.bos_id: int = self._processor.bos_id()
        self.eos_id: int = self._processor.eos_id()

    @property
    def cls_id(self) -> int:
        """The id of `[CLS]`, from which the encoder alone classifies."""
        return self._control_id(CLS, "was learned without [CLS]; learn it again for classification")

    @property
    def languages(self) -> list[str]:
        """The languages that there are tags for, in the order of their ids."""
        named = (self._processor.id_to_piece(i) for i in range(self.vocab_size) if self._is_control(i))
        return [piece[2:-1] for piece in named if piece.startswith("<2") and piece.endswith(">")]

    def tag_id(self, language: str) -> int:
        """The id of a language's tag: `<2en>` says that English is wanted.

        Raises:
            RequestError: there is no such tag.
        """
        known = self.languages
        which = f"it has {', '.join(known)}" if known else "it has none"
        return self._control_id(tag(language), f"has no tag for {language!r}; {which}")

    def encode(self, texts: list[str], *, threads: int = 1) -> list[np.ndarray]:
        """The ids of each text, without `<s>` and `</s>`."""
        if len(texts) <= FEW:
            return [self.encode_one(text) for text in texts]
        lists = self._processor.encode([composed(text) for text in texts], num_threads=threads)
        dtype = self.dtype
        return [np.array(ids, dtype) for ids in lists]

    def encode_one(self, text: str) -> np.ndarray:
        """The ids of one text, without `<s>` and `</s>`."""
        return np.array(self._processor.encode(composed(text)), self.dtype)

    def decode(self, ids: Sequence[int] | np.ndarray) -> str:
        """The text of some ids; `<s>`, `</s>`, `[CLS]` and tags have none.

        Bytes that do not make up a letter, as a model may write them, become U+FFFD.

        Raises:
            ShapeError: an id is not in the vocabulary.
        """
        text: str = self._processor.decode(self._checked(ids))
        return text

    def pieces(self, ids: Sequence[int] | np.ndarray) -> list[str]:
        """The pieces as the vocabulary writes them: `▁` is a space, `<0xE7>` a byte.

        Raises:
            ShapeError: an id is not in the vocabulary.
        """
        return [self._processor.id_to_piece(i) for i in self._checked(ids)]

    def _is_control(self, i: int) -> bool:
        return bool(self._processor.is_control(i))

    def _control_id(self, piece: str, problem: str) -> int:
        found: int = self._processor.piece_to_id(piece)
        if not self._is_control(found):
            raise RequestError(f"the subword model {problem}")
        return found
