"""The terms that the page explains: from one glossary, which both languages share row by row."""

import json
import re

import pytest

from regard import page
from tools.glossary import DOCS, entries, page_glossary, rows


def test_the_page_has_the_entries_of_the_documents():
    assert page.read("words/glossary.json") == page_glossary(), "run `make docs`"


def test_both_glossaries_have_the_same_terms_and_letters():
    english, chinese = rows(DOCS / "glossary.md", 2), rows(DOCS / "glossary.zh.md", 3)
    assert [row[0] for row in english] == [row[1] for row in chinese]
    assert [row[0].casefold() for row in english] == sorted(row[0].casefold() for row in english)
    letters = [
        re.findall(r"^\| (`.*?) \|", (DOCS / name).read_text(encoding="utf-8"), re.MULTILINE)
        for name in ("glossary.md", "glossary.zh.md")
    ]
    assert letters[0] == [each.replace("、", ", ") for each in letters[1]]


def test_every_entry_has_words_and_a_meaning_in_both_languages():
    for entry in entries():
        assert entry["en"]
        assert len(entry["en"]) == len(entry["zh"])
        assert re.search("[\u4e00-\u9fff]", entry["meaning"]["zh"])
        assert not re.search("[\u4e00-\u9fff`]", entry["meaning"]["en"])
    words = [word for entry in entries() for word in entry["en"]]
    assert len(words) == len({*words})


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("| head |", "| heads |"),
        lambda text: text.replace("| 预热 | warm-up |", "预热 | warm-up |"),
    ],
)
def test_a_term_in_one_language_only_is_found(tmp_path, change):
    for name in ("glossary.md", "glossary.zh.md"):
        text = (DOCS / name).read_text(encoding="utf-8")
        (tmp_path / name).write_text(change(text) if "zh" in name else text, encoding="utf-8")
    with pytest.raises((ValueError, AssertionError)):
        entries(tmp_path)


def test_what_the_tour_and_the_exercises_say_has_explained_terms():
    """The page's own lesson uses the words of the glossary."""
    words = json.loads(page.read("words/en.json"))
    lesson = " ".join(text for key, text in words.items() if key.startswith(("tour.", "practice.")))
    used = [entry for entry in entries() if any(word in lesson.casefold() for word in entry["en"])]
    assert len(used) >= 15
