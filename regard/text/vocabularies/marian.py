"""The vocabulary of an OPUS-MT model: two SentencePiece models that cut, and one table that numbers.

Inputs and outputs are cut by models of their own; the ids of their pieces are those of `vocab.json`, which
both share. A text may begin with the language that is wanted, `>>fra<<`.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
from sentencepiece import SentencePieceProcessor

from regard.errors import BundleError
from regard.text.vocabularies.vocabulary import Vocabulary

KIND = "marian"
UNK, EOS = "<unk>", "</s>"


def marian_model(source: bytes, target: bytes, numbers: Mapping[str, int], start: int) -> bytes:
    """The model for `MarianVocabulary`: `source.spm`, `target.spm`, `vocab.json`, and where outputs start."""
    pieces = sorted(numbers, key=numbers.__getitem__)
    if [numbers[piece] for piece in pieces] != list(range(len(pieces))):
        raise BundleError("vocab.json does not number its pieces from 0 on, each once")
    if missing := [piece for piece in (UNK, EOS) if piece not in numbers]:
        raise BundleError([f"vocab.json has no {piece}" for piece in missing])
    table = {
        "kind": KIND,
        "start": start,
        "pieces": pieces,
        "source": b64encode(source).decode(),
        "target": b64encode(target).decode(),
    }
    return json.dumps(table, ensure_ascii=False).encode()


class MarianVocabulary(Vocabulary):
    """Texts to the ids of an OPUS-MT model and back, as Hugging Face's `MarianTokenizer` has them."""

    def __init__(self, model: bytes, side: str = "source") -> None:
        """Take a vocabulary from what `marian_model` returned, to read inputs, or outputs (`target`).

        Raises:
            BundleError: this is no such model.
        """
        try:
            table = json.loads(model)
            self._pieces: list[str] = table["pieces"]
            self._processor = SentencePieceProcessor(model_proto=b64decode(table[side]))
            self.bos_id: int = table["start"]
        except (ValueError, KeyError, TypeError, RuntimeError, OSError) as error:
            raise BundleError(f"the vocabulary of Marian is damaged: {error!r}") from error
        self.model, self._side = bytes(model), side
        self._numbers = {piece: i for i, piece in enumerate(self._pieces)}
        self.vocab_size = len(self._pieces)
        self.eos_id: int = self._numbers[EOS]
        self._silent = {self.bos_id, self.eos_id}

    def __reduce__(self) -> tuple[type[MarianVocabulary], tuple[bytes, str]]:
        return MarianVocabulary, (self.model, self._side)

    @cached_property
    def outputs(self) -> MarianVocabulary:
        """The same ids, for texts that are cut as outputs are."""
        return self if self._side == "target" else MarianVocabulary(self.model, "target")

    @property
    def spm(self) -> bytes:
        """The SentencePiece model of this side."""
        return b64decode(json.loads(self.model)[self._side])

    def encode(self, texts: list[str], *, threads: int = 1) -> list[np.ndarray]:
        """The ids of each text, without the `</s>` that ends it."""
        parted = [_parted(text) for text in texts]
        cut = self._processor.encode([text for _, text in parted], out_type=str, num_threads=threads)
        unknown = self._numbers[UNK]
        return [
            np.array([self._numbers.get(piece, unknown) for piece in (*code, *pieces)], self.dtype)
            for (code, _), pieces in zip(parted, cut, strict=True)
        ]

    def decode(self, ids: Sequence[int] | np.ndarray) -> str:
        """The text of some ids; what begins and ends an output has none."""
        spelt = [self._pieces[i] for i in self._checked(ids) if i not in self._silent]
        text: str = self._processor.decode_pieces(spelt)
        # A piece of the other side's model comes back as it is written.
        return text.replace("▁", " ").strip()

    def pieces(self, ids: Sequence[int] | np.ndarray) -> list[str]:
        """The pieces as `vocab.json` writes them: `▁` is a space."""
        return [self._pieces[i] for i in self._checked(ids)]


def _parted(text: str) -> tuple[list[str], str]:
    """The language that a text asks for, `>>fra<<`, and the rest."""
    if text.startswith(">>") and (end := text.find("<<")) != -1:
        return [text[: end + 2]], text[end + 2 :]
    return [], text
