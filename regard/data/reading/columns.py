"""The usual names of columns: which ones a table most likely means, where that is not ambiguous.

A table of another shape is an error that lists its columns.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from regard.config.checking import counted
from regard.errors import CorpusError
from regard.text.files import display_name, path_problem
from regard.text.files.tables import Column, Head, table_head
from regard.text.languages import known_code, language_in

LABELS = ("label", "labels", "class", "category", "sentiment", "intent")
TEXTS = ("text", "sentence", "content", "document", "body")
SIDES = (("source", "target"), ("src", "tgt"), ("inputs", "outputs"), ("input", "output"))
"""Names of the two sides of a pair that show no language."""
NOT_LANGUAGES = {"id", "no"}
"""Languages whose codes are also the usual names of columns with numbers."""
_VARIETY = re.compile(r"([A-Za-z]{2,3})[-_](?:[A-Z][a-z]{3}[-_])?(?:[A-Z]{2}|\d{3})")
"""A language with its region, and perhaps its script, such as `de-AT` and `sr-Latn-RS`."""
Languages = tuple[str | None, str | None]


def label_columns(path: Path | str) -> tuple[Column, Column]:
    """The columns of label and text.

    Raises:
        CorpusError: the choice is unclear.
    """
    head = _head(path)
    if not head.line:
        return ("label", "text") if head.has_names else (1, 2)
    labels, texts = _among(LABELS, head.names), _among(TEXTS, head.names)
    if len(labels) == len(texts) == 1:
        return labels[0], texts[0]
    if len(head.names) == 2:
        if head.has_names and len(labels) == 1:
            return labels[0], next(name for name in head.names if name != labels[0])
        if not head.has_names:
            return 1, 2
    raise CorpusError(f"{display_name(path)}:{head.line}: {_unlabelled(head)}", code="unclear_columns")


def document_columns(path: Path | str) -> tuple[Column, ...]:
    """The column of the text.

    Raises:
        CorpusError: the choice is unclear.
    """
    head = _head(path)
    texts = _among(TEXTS, head.names)
    if len(texts) == 1:
        return (texts[0],)
    if len(head.names) == 1:
        return (head.names[0] if head.has_names else 1,)
    how = "choose columns by number, as in --columns 3, or by name, as in --columns title,text"
    listed = f"; {_listed(head)}" if head.names else ""
    raise CorpusError(f"{display_name(path)}: is a table; {how}{listed}", code="missing_columns")


def pair_columns(path: Path | str, languages: Languages = (None, None)) -> tuple[Column, Column]:
    """The columns of inputs and outputs: those that name the languages, or the only two that name one.

    Raises:
        CorpusError: the choice is unclear.
    """
    head = _head(path)
    found = {name: code for name in head.names if (code := language_of_column(name))}
    if head.by_language:  # `en` is read from `en-US` and `en-GB` alike
        found = _merged(found, languages)
    else:
        others = {name: code for name, code in found.items() if name not in NOT_LANGUAGES}
        given = {_primary(each) for each in languages if each}
        if len(others) > 1 and not given & NOT_LANGUAGES:
            found = others
    if len(found) == 2 and languages == (None, None):
        first, second = found
        return first, second
    sides = [_in_language(found, language) if language else [] for language in languages]
    for here, there in ((0, 1), (1, 0)):
        if len(sides[here]) == 1 and languages[there] is None and len(found) == 2:
            sides[there] = [name for name in found if name not in sides[here]]
    if [*map(len, sides)] == [1, 1] and sides[0] != sides[1]:
        return sides[0][0], sides[1][0]
    for one, other in SIDES:
        pair = _among((one,), head.names), _among((other,), head.names)
        if [*map(len, pair)] == [1, 1]:
            return pair[0][0], pair[1][0]
    if len(head.names) == 2 and not head.has_names:
        return 1, 2
    how = "name two with `columns`, by name as in zh,en or by number as in 1,2"
    if len(found) > 2:
        how = "choose two languages with `source` and `target`, or name two columns with `columns`"
    problem = f"which columns are inputs and outputs is unclear; {how}"
    listed = f"; {_listed(head)}" if head.names else "; it has no rows"
    raise CorpusError(f"{display_name(path)}: {problem}{listed}", code="missing_columns")


def _head(path: Path | str) -> Head:
    """What a table begins with; nothing for a pipe, which can be read only once."""
    if problem := path_problem(path):
        raise CorpusError(problem, code="missing_file")
    return table_head(path) if Path(path).is_file() else Head(0, [], has_names=False)


def _merged(found: dict[str, str], languages: Languages) -> dict[str, str]:
    """Columns by language, where several of one language are one, unless one of them is wanted."""
    wanted = {known_code(each) or each for each in languages if each}
    groups: dict[str, list[str]] = {}
    for name, code in found.items():
        groups.setdefault(name if code in wanted else _primary(code), []).append(name)
    return {
        (names[0] if len(names) == 1 else language): found[names[0]] if len(names) == 1 else language
        for language, names in groups.items()
    }


def _in_language(found: dict[str, str], language: str) -> list[str]:
    """The columns in exactly this language, or else in one of its varieties."""
    exact = [name for name, code in found.items() if code == (known_code(language) or language)]
    return exact or [name for name, code in found.items() if _primary(code) == _primary(language)]


def language_of_column(name: str) -> str | None:
    """The language that the name of a column shows, such as `zh`, `translation.zh`, `text_zh` or `de-AT`."""
    if code := language_in(name):
        return code
    variety = _VARIETY.fullmatch(name.rpartition(".")[2])
    return variety and known_code(variety[1])


def _primary(code: str) -> str:
    return (known_code(code) or code).partition("-")[0]


def _among(usual: Sequence[str], names: Sequence[str]) -> list[str]:
    """The names that are usual, in any case."""
    return [name for name in names if name.strip().lower() in usual]


def _listed(head: Head) -> str:
    shown = [name if len(name) <= 40 else f"{name[:40]}…" for name in head.names[:20]]
    return f"the {'columns are' if head.has_names else 'first row is'} {', '.join(shown)}"


def _unlabelled(head: Head) -> str:
    if head.has_names:
        problem = f"there are no fields label and text; the fields are {', '.join(head.names)}"
        return f"{problem}; choose two, the label first, as in --columns class,body"
    if len(head.names) == 1 and "," in head.names[0]:
        return "has no tab; tabs separate the fields of a TSV, not commas; .csv is read as CSV"
    problem = f"has {counted(len(head.names), 'field')} instead of a label and a text"
    return f"{problem}; choose columns by number or by name, as in --columns 1,3"
