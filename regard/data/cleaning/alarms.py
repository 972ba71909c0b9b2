"""Warnings about data that training accepts, but that is probably not what was meant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import sqrt

from regard.config.checking import counted
from regard.data.reading import Row
from regard.text.detection import language_among, other_language
from regard.text.files.lines import (
    MEGABYTE,
    NO_TEXT,
    NOT_AN_OBJECT,
    NOT_FINAL,
    WRONG_ENCODING,
    WRONG_FIELDS,
    Tally,
)
from regard.text.languages import language_name

SAMPLED = 10_000
"""Rows to sample from a corpus for `pair_warnings`."""
DETECTED = 1000
"""Texts of each side whose language is detected."""
TOO_FEW = 100
"""Rows of a held-out set below which its scores mean little."""
TOO_MANY_TOKENS = "too many tokens"
_FEWEST_LINES = 20
"""Lines of a corpus below which a share says nothing."""
_FEWEST_TEXTS = 20
"""Texts in another language below which there is no warning."""
_DROPPED = 0.5
"""Share of dropped lines from which on to warn."""
_REVERSED = 0.02
"""Share of reversed pairs from which on to warn; a few are names and titles in the other script."""
_OTHER_LANGUAGE = 0.2
"""Share of texts in one other language from which on to warn; short texts in it are often not recognised."""
_SHOWN = 60

_ADVICE = {
    "duplicate": "is a file joined with itself? data.drop_duplicates=false keeps them",
    "empty": "is a column the wrong one, or one side not translated yet?",
    "length ratio": "do lines still match their translations there? data.max_ratio=none keeps them",
    "too long": "data.max_characters is the limit",
    "in validation or test": "the validation and test sets repeat the training data; give others",
    TOO_MANY_TOKENS: "model.max_length is the limit; are the lines whole paragraphs?",
    WRONG_ENCODING: "convert the file to UTF-8 with iconv",
    WRONG_FIELDS: "is it the right delimiter, .tsv for tabs and .csv for commas?",
    NOT_AN_OBJECT: "each line of JSONL is an object",
    NO_TEXT: "are the columns the right ones?",
    NOT_FINAL: "units with another state than translated, reviewed, signed-off or final are left out",
    MEGABYTE: "are line breaks missing?",
}


def dropped_warning(dropped: Tally, n_lines: int, examples: Mapping[str, str] | None = None) -> Iterator[str]:
    """A warning if most of the lines were dropped, with the most frequent reason.

    Args:
        dropped: the dropped lines, by reason.
        n_lines: the number of all lines.
        examples: a text for each reason.
    """
    if n_lines < _FEWEST_LINES or dropped.total <= _DROPPED * n_lines:
        return
    reason, entry = next(iter(dropped.as_dict().items()))
    example = (examples or {}).get(reason, "")
    text = f" ({_shortened(example)!r})" if example else ""
    lines = f"{dropped.total:,} of {counted(n_lines, 'line')} ({dropped.total / n_lines:.0%})"
    advice = f"; {_ADVICE[reason]}" if reason in _ADVICE else ""
    most = "all" if entry["lines"] == dropped.total else f"most of them ({entry['lines']:,})"
    yield f"{lines} were dropped, {most} as {reason!r}, such as {entry['first'][0]}{text}{advice}"


def small_set_warning(
    sizes: Mapping[str, int], n_training: int, uncertainty: Callable[[int], str]
) -> Iterator[str]:
    """A warning about held-out sets with few rows.

    Args:
        sizes: the rows of each set, by its name.
        n_training: the rows that are trained on.
        uncertainty: how uncertain a score on a number of rows is, in words.
    """
    small = {name: size for name, size in sizes.items() if size < TOO_FEW}
    if not small:
        return
    least = max(1, min(small.values()))
    sets = " and ".join(f"the {name} set has {counted(size, 'row')}" for name, size in small.items())
    held_out = " ".join(f"--set data.{SETTINGS[name]}={TOO_FEW}" for name in small)
    enough = n_training + sum(small.values()) >= 4 * TOO_FEW
    yield (
        f"{sets}: a score on {counted(least, 'row')} means little, {uncertainty(least)}; "
        "give larger sets with --valid and --test, best of 1,000 rows"
        + (f", or hold out more, as with {held_out}" if enough else "")
    )


SETTINGS = {"validation": "valid_lines", "test": "test_lines"}
"""The settings with the sizes of held-out sets."""


def bleu_uncertainty(n_rows: int) -> str:
    """The 95% interval of BLEU on some sentences: about ±6 points on 100 (measured)."""
    return f"since BLEU is uncertain by about ±{60 / sqrt(n_rows):.0f} points"


def share_uncertainty(n_rows: int) -> str:
    """The 95% interval of a share, such as accuracy, at its widest."""
    return f"since a percentage is uncertain by up to ±{98 / sqrt(n_rows):.0f} points"


def pair_warnings(
    rows: Sequence[Row], languages: tuple[str, str], names: Sequence[str] = ()
) -> Iterator[str]:
    """Warnings about a sample of pairs that seem to be copies, or to be in other languages than they should.

    Args:
        rows: the pairs.
        languages: the languages that they should be in.
        names: the file of each side.
    """
    same = sum(source == target for source, target in rows)
    if 2 * same > len(rows):
        yield (
            f"{same:,} of {len(rows):,} sampled pairs have the same text on both sides: "
            "is one a copy of the other?"
        )
    here, there = languages
    reversed_ = sum(
        language_among(source, languages) == there and language_among(target, languages) == here
        for source, target in rows
    )
    if reversed_ > _REVERSED * len(rows):
        yield (
            f"{reversed_:,} of {len(rows):,} sampled pairs seem to go from {there} to {here}, "
            f"not from {here} to {there}: are files, columns or languages swapped?"
        )
        if 2 * reversed_ > len(rows):
            return
    yield from _language_warnings(rows, languages, names)


def _language_warnings(
    rows: Sequence[Row], languages: tuple[str, str], names: Sequence[str]
) -> Iterator[str]:
    found = [_foreign([row[side] for row in rows], language) for side, language in enumerate(languages)]
    codes = [each and each[0].partition("-")[0] for each in found]
    here, there = (language.partition("-")[0] for language in languages)
    if codes == [there, here] and here != there:
        yield (
            f"the languages seem to be swapped: on the {languages[0]} side {_share(found[0])}, such as "
            f"{found[0][2]!r}; swap files or columns, or --source and --target"  # type: ignore[index]
        )
        return
    for side, foreign in enumerate(found):
        if foreign is None:
            continue
        code, _, example = foreign
        named = f"{names[side]}: " if len(names) == len(languages) else ""
        other = ", the language of the other side" if codes[side] == (there, here)[side] else ""
        option = ("source", "target")[side]
        advice = (
            "is it the right file?" if other else f"is it the right file, or should it be --{option} {code}?"
        )
        yield (
            f"{named}{_share(foreign)}{other}, not in {_named(languages[side])}, "
            f"such as {_shortened(example)!r}; {advice}"
        )


def language_warning(texts: Sequence[str], language: str, name: str) -> Iterator[str]:
    """A warning if the texts of a file are in another language than its name says."""
    if (foreign := _foreign(texts, language)) is not None:
        yield (
            f"{name}: {_share(foreign)}, not in {_named(language)} as the name says, "
            f"such as {_shortened(foreign[2])!r}"
        )


_Foreign = tuple[str, tuple[int, int], str]
"""A language; how many texts are in it, of how many; one of them."""


def _foreign(texts: Sequence[str], language: str) -> _Foreign | None:
    """The language that many of the texts are in, instead of the one that is expected."""
    step = max(1, len(texts) // DETECTED)
    sample = [text for text in texts[::step] if text]
    counts: Counter[str] = Counter()
    examples: dict[str, str] = {}
    for text in sample:
        if (other := other_language(text, [language])) is not None:
            counts[other.language] += 1
            if len(text) > len(examples.get(other.language, "")) or other.language not in examples:
                examples[other.language] = text[:_SHOWN]
    for code, count in counts.most_common(1):
        if count >= _FEWEST_TEXTS and count > _OTHER_LANGUAGE * len(sample):
            return code, (count, len(sample)), examples[code]
    return None


def _share(foreign: _Foreign | None) -> str:
    assert foreign is not None, "only a side in another language has a share"
    code, (count, of), _ = foreign
    return f"{count:,} of {of:,} sampled texts seem to be in {_named(code)}"


def _named(code: str) -> str:
    name = language_name(code)
    return code if name == code else f"{name} ({code})"


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
