"""Vocabularies of imported models: OPUS-MT (Marian), and those that the library `tokenizers` runs.

A Marian vocabulary has two SentencePiece models, one for inputs and one for outputs, and one table of ids,
`vocab.json`. A text may begin with the target language, `>>fra<<`.

The vocabulary of a BERT, GPT-2, BART or Pegasus is a `tokenizer.json`, as Hugging Face stores it, and the
special tokens that the model's code adds. Pieces are written in our way, `▁` for a space and `<0xE7>` for a
byte; WordPiece marks the continuation of a word (`##ing`), and byte-level BPE has letters for bytes (`Ġthe`).
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from sentencepiece import SentencePieceProcessor

from regard.errors import BundleError, ConfigError
from regard.text.vocabularies.vocabulary import Vocabulary

if TYPE_CHECKING:
    from tokenizers import Tokenizer


MARIAN = "marian"
UNK, EOS = "<unk>", "</s>"


def marian_model(source: bytes, target: bytes, numbers: Mapping[str, int], start: int) -> bytes:
    """The model of a `MarianVocabulary`: `source.spm`, `target.spm`, `vocab.json`, the first output id."""
    pieces = sorted(numbers, key=numbers.__getitem__)
    if [numbers[piece] for piece in pieces] != list(range(len(pieces))):
        raise BundleError("vocab.json does not number its pieces 0, 1, 2, …", code="damaged_vocabulary")
    if missing := [piece for piece in (UNK, EOS) if piece not in numbers]:
        raise BundleError([f"vocab.json has no {piece}" for piece in missing], code="damaged_vocabulary")
    table = {
        "kind": MARIAN,
        "start": start,
        "pieces": pieces,
        "source": b64encode(source).decode(),
        "target": b64encode(target).decode(),
    }
    return json.dumps(table, ensure_ascii=False).encode()


class MarianVocabulary(Vocabulary):
    """The vocabulary of an OPUS-MT model, with the same ids as Hugging Face's `MarianTokenizer`."""

    def __init__(self, model: bytes, side: str = "source") -> None:
        """Read what `marian_model` returned; `side` is "source" for inputs, "target" for outputs.

        Raises:
            BundleError: it is damaged.
        """
        try:
            table = json.loads(model)
            self._pieces: list[str] = table["pieces"]
            self._processor = SentencePieceProcessor(model_proto=b64decode(table[side]))
            self.bos_id: int = table["start"]
        except (ValueError, KeyError, TypeError, RuntimeError, OSError) as error:
            raise BundleError(f"the vocabulary is damaged: {error!r}", code="damaged_vocabulary") from error
        self.model, self._side = bytes(model), side
        self._numbers = {piece: i for i, piece in enumerate(self._pieces)}
        self.vocab_size = len(self._pieces)
        self.eos_id: int = self._numbers[EOS]
        self._silent = {self.bos_id, self.eos_id}

    def __reduce__(self) -> tuple[type[MarianVocabulary], tuple[bytes, str]]:
        return MarianVocabulary, (self.model, self._side)

    @cached_property
    def outputs(self) -> MarianVocabulary:
        """The same ids, for texts that are split like outputs."""
        return self if self._side == "target" else MarianVocabulary(self.model, "target")

    @property
    def spm(self) -> bytes:
        """The SentencePiece model of this side."""
        return b64decode(json.loads(self.model)[self._side])

    def encode(self, texts: list[str], *, threads: int = 1) -> list[np.ndarray]:
        """The ids of each text, without the final `</s>`."""
        parts = [_split_language(text) for text in texts]
        split = self._processor.encode([text for _, text in parts], out_type=str, num_threads=threads)
        unknown = self._numbers[UNK]
        return [
            np.array([self._numbers.get(piece, unknown) for piece in (*code, *pieces)], self.dtype)
            for (code, _), pieces in zip(parts, split, strict=True)
        ]

    def decode(self, ids: Sequence[int] | np.ndarray) -> str:
        """The text of ids; the first and the last token of an output have none."""
        spelt = [self._pieces[i] for i in self._checked(ids) if i not in self._silent]
        text: str = self._processor.decode_pieces(spelt)
        # Pieces of the other side's model are decoded as they are written.
        return text.replace("▁", " ").strip()

    def pieces(self, ids: Sequence[int] | np.ndarray) -> list[str]:
        """The pieces as `vocab.json` writes them: `▁` is a space."""
        return [self._pieces[i] for i in self._checked(ids)]

    def is_special(self, token: int) -> bool:
        """Whether a token begins or ends an output."""
        return token in self._silent


def _split_language(text: str) -> tuple[list[str], str]:
    """The target language at the beginning of a text, `>>fra<<`, and the rest."""
    if text.startswith(">>") and (end := text.find("<<")) != -1:
        return [text[: end + 2]], text[end + 2 :]
    return [], text


Kind = Literal["wordpiece", "byte-level", "unigram"]
KINDS: tuple[Kind, ...] = get_args(Kind)
SPACE, CONTINUES = "▁", "##"


def tokenizer_model(
    kind: Kind,
    tokenizer: str,
    *,
    vocab_size: int,
    bos: int,
    eos: int,
    cls: int | None = None,
    opening: Sequence[int] = (),
    closing: Sequence[int] = (),
    begins_texts: bool = True,
) -> bytes:
    """The model of a `TokenizerVocabulary`.

    Args:
        kind: how pieces are written.
        tokenizer: the content of a `tokenizer.json`.
        vocab_size: ids that the model knows; a few may have no piece.
        bos: the first id of an output.
        eos: the last id of an output.
        cls: the id that an encoder alone classifies from.
        opening: ids before every text, of inputs and outputs.
        closing: ids after a text that an encoder alone reads.
        begins_texts: whether a prompt follows `bos`.
    """
    table = {
        "kind": kind,
        "vocab_size": vocab_size,
        "bos": bos,
        "eos": eos,
        "cls": cls,
        "opening": [*opening],
        "closing": [*closing],
        "begins_texts": begins_texts,
        "tokenizer": json.loads(tokenizer),
    }
    return json.dumps(table, ensure_ascii=False).encode()


class TokenizerVocabulary(Vocabulary):
    """A vocabulary that the library `tokenizers` runs."""

    def __init__(self, model: bytes) -> None:
        """Read what `tokenizer_model` returned.

        Raises:
            BundleError: it is damaged.
            ConfigError: the library `tokenizers` is not installed.
        """
        try:
            table = json.loads(model)
            self._kind: Kind = table["kind"]
            self.vocab_size, self.bos_id, self.eos_id = table["vocab_size"], table["bos"], table["eos"]
            self._cls: int | None = table["cls"]
            self.opening, self.closing = tuple(table["opening"]), tuple(table["closing"])
            self.begins_texts = table["begins_texts"]
            self._tokenizer = _opened(json.dumps(table["tokenizer"]))
        except (ValueError, KeyError, TypeError) as error:
            raise BundleError(f"the vocabulary is damaged: {error!r}", code="damaged_vocabulary") from error
        self.model = bytes(model)

    def id_of(self, token: str) -> int | None:
        """The id of a token, as the definition writes it."""
        return self._tokenizer.token_to_id(token)

    @property
    def tokenizer_json(self) -> str:
        """The content of `tokenizer.json`."""
        return json.dumps(json.loads(self.model)["tokenizer"], ensure_ascii=False)

    @property
    def cls_id(self) -> int:
        """The id of the token that an encoder alone classifies from."""
        if self._cls is None:
            return super().cls_id
        return self._cls

    def encode(self, texts: list[str], *, threads: int = 1) -> list[np.ndarray]:  # noqa: ARG002 - the library's own
        """The ids of each text, without the ids that end it."""
        encodings = self._tokenizer.encode_batch(texts, add_special_tokens=False)
        return [np.array([*self.opening, *encoding.ids], self.dtype) for encoding in encodings]

    def decode(self, ids: Sequence[int] | np.ndarray) -> str:
        """The text of ids; special tokens have none."""
        return self._tokenizer.decode(self._checked(ids), skip_special_tokens=True)

    def pieces(self, ids: Sequence[int] | np.ndarray) -> list[str]:
        """The pieces of ids: `▁` is a space, `<0xE7>` a byte."""
        return [self._piece(i) for i in self._checked(ids)]

    def is_special(self, token: int) -> bool:
        """Whether a token is special, or has no piece."""
        return token in self._special or self._tokenizer.id_to_token(token) is None

    def _piece(self, i: int) -> str:
        token = self._tokenizer.id_to_token(i)
        if token is None:
            return f"<{i}>"  # vocabularies are padded to round sizes
        if i in self._special:
            return token
        if self._kind == "unigram":
            return token
        if self._kind == "wordpiece":
            return token.removeprefix(CONTINUES) if token.startswith(CONTINUES) else SPACE + token
        return _spelt(bytes(_BYTES[letter] for letter in token))

    @cached_property
    def _special(self) -> set[int]:
        added = self._tokenizer.get_added_tokens_decoder()
        return {i for i, token in added.items() if token.special}


def _opened(definition: str) -> Tokenizer:
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        missing = "this model needs the library tokenizers, which is not installed"
        raise ConfigError(f"{missing}: pip install 'regard[exchange]'", code="missing_library") from error
    try:
        tokenizer = Tokenizer.from_str(definition)
    except Exception as error:  # the library raises nothing narrower
        raise ValueError(error) from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def _spelt(data: bytes) -> str:
    """Bytes as text, or by number if they are part of a character."""
    try:
        return data.decode().replace(" ", SPACE)
    except UnicodeDecodeError:
        return "".join(f"<0x{byte:02X}>" for byte in data)


def _letters_of_bytes() -> dict[str, int]:
    """The byte of each letter in byte-level BPE: printable bytes as they are, the others from U+0100 on."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in shown]
    letters = [*map(chr, shown), *(chr(0x100 + i) for i in range(len(hidden)))]
    return dict(zip(letters, [*shown, *hidden], strict=True))


_BYTES = _letters_of_bytes()
