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

import io
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

from regard.errors import BundleError, ConfigError, CorpusError, RequestError
from regard.text.normalisation import composed
from regard.text.vocabularies.vocabulary import Vocabulary

CLS = "[CLS]"

MOST_LINES, MOST_CHARACTERS = 1_000_000, 20_000_000
"""How much is learned from at most; of more, a random part. SentencePiece takes some 25 bytes a character."""

LARGEST = 32_000
"""Subwords at most, when the size is chosen from the data."""

COVERAGE = 0.9995
"""The share of the text whose characters get a subword of their own; the rarest are spelt in bytes."""

_BYTES, _FIRST_IDS = 256, 3
_LONGEST_LINE = 2_000
_THREADS = 16


def tag(language: str) -> str:
    """The token that asks for a language."""
    return f"<2{language}>"


def learn_subwords(
    lines: Iterable[str],
    vocab_size: int | None = None,
    *,
    tags: Iterable[str] = (),
    coverage: float = COVERAGE,
    seed: int = 1,
    threads: int = _THREADS,
) -> bytes:
    """Learn a vocabulary from raw text; the result is the model for `Subwords`.

    Args:
        lines: the text, all languages together: one vocabulary serves inputs and outputs. Read once, and
            never held whole.
        vocab_size: how many subwords, special tokens included; by default `fitting_size` chooses. A text that
            has not that many different pieces gives fewer.
        tags: languages to have a tag for, such as `en`.
        coverage: the share of the text whose characters get a subword of their own.
        seed: which part of a large text is learned from.
        threads: how many SentencePiece starts. The sums of a round are added up thread by thread, so another
            number can give slightly other pieces; the default is the same on every machine.

    Raises:
        CorpusError: there is no text.
        ConfigError: `vocab_size` is too small to hold the characters of the text.
    """
    special = [CLS, *(tag(language) for language in tags)]
    sample = sample_text(lines, seed)
    if not sample.texts:
        raise CorpusError("there is no text to learn subwords from: every line is empty")
    least = _BYTES + _FIRST_IDS + len(special) + len(common_characters(sample.texts, coverage)) + 1
    size = fitting_size(sample.characters, least) if vocab_size is None else vocab_size
    model = io.BytesIO()
    try:
        SentencePieceTrainer.train(
            sentence_iterator=_cut(sample.texts),
            model_writer=model,
            model_type="unigram",
            vocab_size=size,
            hard_vocab_limit=False,  # fewer pieces where the text has no more
            byte_fallback=True,
            character_coverage=coverage,
            normalization_rule_name="identity",
            remove_extra_whitespaces=False,
            split_digits=True,
            control_symbols=special,
            max_sentence_length=8 * _LONGEST_LINE,
            num_threads=threads,
            minloglevel=2,
        )
    except RuntimeError as error:
        raise ConfigError(_too_small(error, size)) from error
    return model.getvalue()


def fitting_size(characters: int, least: int) -> int:
    """How many subwords fit a text: 50 times the cube root of its length, and the characters themselves.

    At 3.6 million characters (Multi30k) this gives 8,000, at 100 million of Chinese and English some 28,000.
    More text shows more rare words often enough to be learned whole, but ever more slowly. In thousands
    (which suits the hardware), 32,000 at most unless the characters alone need more.
    """
    size = least + 50 * characters ** (1 / 3)
    return max(1000, min(LARGEST, round(size / 1000) * 1000), ceil(least / 1000) * 1000)


@dataclass(frozen=True, slots=True)
class TextSample:
    """A random part of a text."""

    texts: list[str]
    characters: int
    """Of the whole text."""


def sample_text(
    lines: Iterable[str], seed: int, most_lines: int = MOST_LINES, most_characters: int = MOST_CHARACTERS
) -> TextSample:
    """A random part of a text that is no larger than asked for: all of it, or a half, a quarter, an eighth…

    Each line draws a number and stays while that is below the share; whenever too much has gathered, the
    share is halved. So one pass is enough, and memory is bounded by the sample. Lines come in the order of
    their numbers: SentencePiece takes hours over a stretch of many lines that is there twice.
    """
    draw = random.Random(seed).random
    share, total, held = 1.0, 0, 0
    drawn: list[tuple[float, str]] = []
    for line in lines:
        total += len(line)
        number = draw()
        if number >= share or not line:
            continue
        drawn.append((number, line))
        held += len(line)
        while held > most_characters or len(drawn) > most_lines:
            share /= 2
            drawn = [(number, text) for number, text in drawn if number < share]
            held = sum(len(text) for _, text in drawn)
    return TextSample([text for _, text in sorted(drawn)], total)


def common_characters(texts: Iterable[str], coverage: float = COVERAGE) -> set[str]:
    """The characters that make up a share of a text, as SentencePiece counts them."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(text)
    wanted, covered = coverage * counts.total(), 0
    common = set()
    for character, count in counts.most_common():
        if covered >= wanted:
            break
        common.add(character)
        covered += count
    return common


def _cut(texts: Iterable[str]) -> Iterator[str]:
    """The texts, composed; long ones in parts, because SentencePiece leaves out what is too long for it."""
    for text in texts:
        for start in range(0, len(text), _LONGEST_LINE):
            yield composed(text[start : start + _LONGEST_LINE])


def _too_small(error: RuntimeError, size: int) -> str:
    """What SentencePiece's refusal means for the setting."""
    found = re.search(r"smaller than required_chars\. (\d+) vs (\d+)", str(error))
    if found is None:
        raise error
    needs = "the bytes, the special tokens and the characters of the text"
    return f"model.vocab_size = {size} is too small: {needs} need at least {found[2]}"


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
