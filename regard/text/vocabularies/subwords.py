"""Subwords: a vocabulary of pieces that SentencePiece learns from text (a unigram model).

Decoding returns exactly the encoded text, in NFC: full-width punctuation, ligatures and capitals are kept.
The one exception is U+2581, which SentencePiece uses for a space: it is decoded as a space. No text is
unknown: characters without a piece are spelt in bytes. Every digit is a piece of its own, so that unseen
numbers can be read and written.

The first ids are `<unk>` 0, `<s>` 1 and `</s>` 2; then `[CLS]` and the language tags, such as `<2en>`. No
text is encoded to these, not even one that spells them. There is no padding id.
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
"""Most text to learn from; a larger text is sampled. SentencePiece needs about 25 bytes per character."""

LARGEST = 32_000
"""Most subwords, when the size is chosen from the data."""

LEAST_TIMES, MOST_SINGLE = 2, 8_000
"""Characters that occur so often get subwords of their own, at most so many, when the data decides; others
are spelt in bytes."""

LOWEST = 0.98
"""Least share that gets subwords; SentencePiece fails where there would be none."""

_BYTES, _FIRST_IDS = 256, 3
_LONGEST_LINE = 2_000
_THREADS = 16


def tag(language: str) -> str:
    """The tag of a language: the token that requests it as the target."""
    return f"<2{language}>"


def learn_subwords(
    lines: Iterable[str],
    vocab_size: int | None = None,
    *,
    tags: Iterable[str] = (),
    coverage: float | None = None,
    continues: bool = False,
    seed: int = 1,
    threads: int = _THREADS,
) -> bytes:
    """Learn a vocabulary from raw text; returns the model of `Subwords`.

    Args:
        lines: the text, of all languages: inputs and outputs share a vocabulary. Read once, as a stream.
        vocab_size: the number of subwords, with special tokens; by default `fitting_size` chooses it. A text
            with fewer distinct pieces gives fewer.
        tags: languages that get a tag, such as `en`.
        coverage: the share of the text whose characters get subwords of their own; by default characters that
            occur twice, at most 8,000.
        continues: whether a model is to continue the text. It reads less than a translator, and learns few
            subwords better; and it should write no character in bytes, as it may write half of one.
        seed: which part of a large text is sampled.
        threads: threads of SentencePiece. It adds sums thread by thread, so another number can give slightly
            different pieces; the default is the same on every machine.

    Raises:
        CorpusError: there is no text.
        ConfigError: `vocab_size` is too small for the characters of the text.
    """
    special = [CLS, *(tag(language) for language in tags)]
    sample = sample_text(lines, seed)
    if not sample.texts:
        raise CorpusError("there is no text to learn subwords from: every line is empty", code="no_text")
    if coverage is None:
        coverage = usual_coverage(sample.texts, times=1 if continues else LEAST_TIMES)
    least = _BYTES + _FIRST_IDS + len(special) + len(common_characters(sample.texts, coverage)) + 1
    if (size := vocab_size) is None:
        size = fitting_size(sample.characters, least, *((10, 100) if continues else ()))
    model = io.BytesIO()
    try:
        SentencePieceTrainer.train(
            sentence_iterator=_cut(sample.texts),
            model_writer=model,
            model_type="unigram",
            vocab_size=size,
            hard_vocab_limit=False,  # fewer pieces if the text has no more
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
        raise ConfigError(_too_small(error, size), code="vocabulary_too_small") from error
    return model.getvalue()


def fitting_size(characters: int, least: int, growth: int = 50, unit: int = 1000) -> int:
    """The number of subwords for a text: `growth` times the cube root of its length, plus its characters.

    For 3.6 million characters (Multi30k) this is 8,000; for 100 million of Chinese and English, 28,000. More
    text has more words that are frequent enough to learn, but their number grows slowly. It is rounded to
    a multiple of `unit`, which suits the hardware; at most 32,000 unless the characters need more.
    """
    size = least + growth * characters ** (1 / 3)
    return max(unit, min(LARGEST, round(size / unit) * unit), ceil(least / unit) * unit)


@dataclass(frozen=True, slots=True)
class TextSample:
    """A random sample of the lines of a text."""

    texts: list[str]
    characters: int
    """Characters of the whole text."""


def sample_text(
    lines: Iterable[str], seed: int, most_lines: int = MOST_LINES, most_characters: int = MOST_CHARACTERS
) -> TextSample:
    """A random sample of at most this size: the whole text, or a half, a quarter, an eighth of it…

    Each line draws a random number and stays while it is below the share; the share is halved whenever the
    sample becomes too large. So one pass suffices, and memory is bounded by the sample. Lines are sorted by
    their random number: SentencePiece takes hours if many consecutive lines occur twice.
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


def usual_coverage(texts: Iterable[str], times: int = LEAST_TIMES) -> float:
    """The share of a text whose characters get subwords, if the data decides: those that occur so often."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(text)
    covered = sum(n for _, n in counts.most_common(MOST_SINGLE) if n >= times)
    return max(LOWEST, covered / counts.total())


def common_characters(texts: Iterable[str], coverage: float) -> set[str]:
    """The most frequent characters that together cover a share of a text, as SentencePiece counts them."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(text)
    target, covered = coverage * counts.total(), 0
    common = set()
    for character, count in counts.most_common():
        if covered >= target:
            break
        common.add(character)
        covered += count
    return common


def _cut(texts: Iterable[str]) -> Iterator[str]:
    """The texts in NFC; long ones in parts, because SentencePiece skips long lines."""
    for text in texts:
        for start in range(0, len(text), _LONGEST_LINE):
            yield composed(text[start : start + _LONGEST_LINE])


def _too_small(error: RuntimeError, size: int) -> str:
    """The message about a setting that SentencePiece refused."""
    match = re.search(r"smaller than required_chars\. (\d+) vs (\d+)", str(error))
    if match is None:
        raise error
    needs = "the bytes, the special tokens and the characters of the text"
    return f"model.vocab_size = {size} is too small: {needs} need at least {match[2]}"


__all__ = ["Subwords", "learn_subwords"]

FEW = 32
"""Up to this many texts are encoded one by one: for a list, SentencePiece starts a thread."""


class Subwords(Vocabulary):
    """A learned vocabulary: texts to ids and back. Safe to use from several threads."""

    def __init__(self, model: bytes) -> None:
        """Read what `learn_subwords` returned, or the content of a model folder's `subwords.model`.

        Raises:
            BundleError: it is not a SentencePiece model.
        """
        damage = BundleError("the subword model is not a SentencePiece model", code="damaged_vocabulary")
        if not model:
            raise damage
        try:
            self._processor = SentencePieceProcessor(model_proto=model)
        except (RuntimeError, OSError) as error:
            raise damage from error
        self.model = bytes(model)
        self.vocab_size: int = self._processor.vocab_size()
        self.bos_id: int = self._processor.bos_id()
        self.eos_id: int = self._processor.eos_id()

    @property
    def cls_id(self) -> int:
        """The id of `[CLS]`, from which an encoder alone classifies."""
        return self._control_id(CLS, "was learned without [CLS]; learn it again for classification")

    @property
    def languages(self) -> list[str]:
        """The languages that have a tag, in the order of their ids."""
        named = (self._processor.id_to_piece(i) for i in range(self.vocab_size) if self._is_control(i))
        return [piece[2:-1] for piece in named if piece.startswith("<2") and piece.endswith(">")]

    def tag_id(self, language: str) -> int:
        """The id of a language's tag: `<2en>` requests English.

        Raises:
            RequestError: there is no such tag.
        """
        if self._is_control(token := self._processor.piece_to_id(tag(language))):
            return int(token)
        known = self.languages  # goes through the whole vocabulary, so only for the message
        which = f"it has {', '.join(known)}" if known else "it has none"
        raise RequestError(f"the subword model has no tag for {language!r}; {which}", code="missing_token")

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
        """The text of ids; `<s>`, `</s>`, `[CLS]` and tags have none.

        Bytes that are not a character, which a model may write, become U+FFFD.

        Raises:
            ShapeError: an id is not in the vocabulary.
        """
        text: str = self._processor.decode(self._checked(ids))
        return text

    def pieces(self, ids: Sequence[int] | np.ndarray) -> list[str]:
        """The pieces of ids: `▁` is a space, `<0xE7>` a byte.

        Raises:
            ShapeError: an id is not in the vocabulary.
        """
        return [self._processor.id_to_piece(i) for i in self._checked(ids)]

    def is_special(self, token: int) -> bool:
        """Whether a token is `<s>`, `</s>`, `[CLS]` or a tag."""
        return self._is_control(token)

    def _is_control(self, i: int) -> bool:
        return bool(self._processor.is_control(i))

    def _control_id(self, piece: str, problem: str) -> int:
        id_: int = self._processor.piece_to_id(piece)
        if not self._is_control(id_):
            raise RequestError(f"the subword model {problem}", code="missing_token")
        return id_
