"""`docs/glossary.md`: each word and each letter has one row, and what the code uses is there."""

import ast
import re

from regard.config import registries
from regard.look.influence.methods import METHODS
from tests.architecture.sources import ROOT
from tests.shapes import LEGEND, SUFFIX

PAGE = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
WORDS, LETTERS = (
    [cells[1] for line in part.splitlines() if len(cells := re.split(r" ?\| ?", line)) == 4][2:]
    for part in PAGE.split("\n## Letters\n")
)


def test_words_are_sorted_and_none_is_there_twice():
    assert [word.casefold() for word in WORDS] == sorted({word.casefold() for word in WORDS})


def test_the_choices_that_are_known_by_name_are_explained():
    known = {word for row in WORDS for word in re.split(r", | positions$", row.casefold())}
    ours = (registries.positions._builtin, registries.similarities._builtin)  # other tests register their own
    chosen = {*METHODS, *ours[0], *ours[1]} - {"none"}
    assert chosen - {"attention", *known} == set()


def test_a_letter_has_one_row_and_names_in_the_code_use_no_other():
    letters = [letter for row in LETTERS for letter in re.findall(r"`(\w)`", row)]
    rows = PAGE.split("\n## Letters\n")[1]
    of_tokens = re.findall(r"`([ST])` of the", rows)
    assert len(set(letters)) == len(letters)
    assert {*letters, *of_tokens} == LEGEND >= _letters_in_use()


def _letters_in_use() -> set[str]:
    """The letters of the shapes at the ends of names."""
    letters: set[str] = set()
    for file in (ROOT / "regard").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            name = node.id if isinstance(node, ast.Name) else node.arg if isinstance(node, ast.arg) else ""
            if (match := SUFFIX.match(name)) and len(match[1]) <= 5:
                letters |= set(match[1])
    return letters
