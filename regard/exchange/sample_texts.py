"""Texts with which an exported model is compared with the original: real ones where there are any.

The texts are the lines of a file that the user names; else validation texts of the run that the model is in;
else sentences of random words from the vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from regard.bundle.bundle import Description
from regard.data.store import open_store
from regard.errors import CorpusError, RequestError
from regard.text.vocabularies import read_vocabulary
from regard.text.vocabularies.vocabulary import Vocabulary

RUN_DATA = Path("data", "valid")
"""The validation set of a run, beside its model folders."""
FEWEST_WORDS, MOST_WORDS = 4, 20
SPACE = "▁"
UNSPACED = ("zh", "yue", "ja")
"""Languages whose words are written without spaces between them."""
PROMPT = 8
"""Tokens of a prompt that is to be continued."""


@dataclass(frozen=True, slots=True)
class SampleText:
    """A text, and its languages where the model knows any."""

    text: str
    source: str | None = None
    target: str | None = None


@dataclass(frozen=True, slots=True)
class SampleTexts:
    """Texts of one origin."""

    texts: tuple[SampleText, ...]
    origin: str
    """What they are, for a message."""


def sample_texts(
    described: Description, subwords: bytes, count: int, file: Path | None = None
) -> SampleTexts:
    """Up to `count` texts for a model.

    Args:
        described: the model folder.
        subwords: its vocabulary.
        count: the most texts.
        file: a file of texts, one per line, to be used instead.

    Raises:
        RequestError: the file has no text, or cannot be read.
    """
    vocabulary = read_vocabulary(subwords)
    if file is not None:
        return SampleTexts(tuple(_lines(file, described, count)), f"lines of {file}")
    if texts := tuple(_validation(described, vocabulary, subwords, count)):
        return SampleTexts(texts, "validation texts of the run")
    texts = tuple(_sentences(described, vocabulary, count))
    return SampleTexts(texts, "sentences of random words from the vocabulary")


def _directions(described: Description) -> Sequence[tuple[str | None, str | None]]:
    # A model without a language tag reads whatever it is given.
    return described.task.directions if described.task.name == "translate" else ((None, None),)


def _lines(file: Path, described: Description, count: int) -> Iterator[SampleText]:
    from regard.text.detection import language_among

    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeError) as error:
        raise RequestError(f"{file} cannot be read: {error}", code="unreadable_file") from error
    texts = [line.strip() for line in lines if line.strip()][:count]
    if not texts:
        raise RequestError(f"{file} has no text: give a file of one text per line", code="no_text")
    directions = _directions(described)
    for text in texts:
        source = language_among(text, [code or "" for code, _ in directions]) if len(directions) > 1 else None
        yield SampleText(text, *next((each for each in directions if each[0] == source), directions[0]))


def _validation(
    described: Description, vocabulary: Vocabulary, subwords: bytes, count: int
) -> Iterator[SampleText]:
    """Validation texts, if the model folder is in a run whose data has the same vocabulary."""
    folder = described.folder.resolve().parent / RUN_DATA
    with suppress(CorpusError, OSError):
        if (folder.parent / "subwords.model").read_bytes() != subwords:
            return
        store = open_store(folder)
        directions = _directions(described)
        tags = {
            vocabulary.tag_id(to): (source, to) for source, to in directions if to and _has_tags(described)
        }
        for i in np.linspace(0, len(store) - 1, min(count, len(store))).astype(int).tolist():
            ids = store[i][0].tolist()
            direction = tags.get(ids[0], directions[0]) if ids else directions[0]
            read = [token for token in ids if not vocabulary.is_special(token)]
            if described.config.architecture == "decoder":
                read = read[:PROMPT]
            if text := vocabulary.decode(read).strip():
                yield SampleText(text, *direction)


def _has_tags(described: Description) -> bool:
    return described.task.has_tags


def _sentences(described: Description, vocabulary: Vocabulary, count: int) -> Iterator[SampleText]:
    """Random words, from a fixed seed, with a capital and a full stop."""
    random = np.random.default_rng(count)
    most = max(1, min(MOST_WORDS, (described.config.max_length - 4) // 4))
    words = {spaced: _words(vocabulary, spaced=spaced) for spaced in (True, False)}
    directions = _directions(described)
    for i in range(count):
        source, target = directions[i % len(directions)]
        spaced = (source or "").split("-")[0] not in UNSPACED or not words[False]
        known = words[spaced] or words[not spaced]
        if not known:
            return
        n_words = int(random.integers(min(FEWEST_WORDS, most), most + 1))
        if described.config.architecture == "decoder":
            n_words = min(PROMPT, n_words)
        drawn = [known[int(j)] for j in random.integers(0, len(known), n_words)]
        sentence = " ".join(drawn) if spaced else "".join(drawn)
        end = "" if described.config.architecture == "decoder" else "." if spaced else "。"
        yield SampleText(sentence[:1].upper() + sentence[1:] + end, source, target)


def _words(vocabulary: Vocabulary, *, spaced: bool) -> list[str]:
    """The pieces that are words: with a space before them, or of characters that need none."""
    special = vocabulary.is_special
    pieces = [
        piece for i, piece in enumerate(vocabulary.pieces(range(vocabulary.vocab_size))) if not special(i)
    ]
    if spaced:
        begun = [piece.removeprefix(SPACE) for piece in pieces if piece.startswith(SPACE)]
        return [word for word in begun if word.isalpha() and not _is_unspaced(word)]
    return [piece for piece in pieces if piece.isalpha() and _is_unspaced(piece)]


def _is_unspaced(word: str) -> bool:
    """Whether a word consists of Chinese characters or kana."""
    return all("぀" <= letter <= "ヿ" or "一" <= letter <= "鿿" for letter in word)
