"""Strings of programs: accelerators, and which strings are language."""

import pytest

from regard.documents.strings import (
    is_language,
    with_accelerator,
    with_placeholders,
    without_accelerator,
)


@pytest.mark.parametrize(
    ("text", "bare", "accelerator"),
    [
        ("&File", "File", "&F"),
        ("E&xit", "Exit", "&x"),
        ("Save _As…", "Save As…", "_A"),
        ("文件(&F)...", "文件...", "&F"),
        ("打开 (_O)", "打开", "_O"),
    ],
)
def test_accelerators_are_found(text, bare, accelerator):
    assert without_accelerator(text) == (bare, accelerator)


@pytest.mark.parametrize(
    "text",
    [
        "Black & White",
        "Q&A",
        "AT&T today",
        "salt&pepper",
        "file_name",
        "__init__",
        "Use the _name of it",
        "a?b=1&c=2",
        "one&nbsp;two",
        "&One &Two",
        "Tom &amp; Jerry",
    ],
)
def test_other_signs_are_no_accelerators(text):
    assert without_accelerator(text) == (text, "")


@pytest.mark.parametrize(
    ("text", "accelerator", "language", "written"),
    [
        ("文件", "&F", "zh", "文件(&F)"),
        ("另存为...", "_A", "zh-CN", "另存为(_A)..."),
        ("Speichern", "&E", "de", "Sp&eichern"),
        ("Save as", "&A", "en", "Save &as"),
        ("Ausgang", "&x", "de", "Ausgang(&X)"),
    ],
)
def test_accelerators_are_put_where_the_language_has_them(text, accelerator, language, written):
    assert with_accelerator(text, accelerator, language) == written


NAMES = """
https://a.org/b?c=d mail@a.org /usr/lib ./a.png img/a.png text/html #ff0044 2024-01-02T10:00:00Z 12px
1.2.0-beta user.name user_name userName zh-CN --option 123e4567-e89b-12d3-a456-426614174000 {name}
d2hhdCBpcyB0aGlzPyBpdCBpcyBiYXNlNjQgdGV4dCE=
""".split()  # noqa: SIM905


@pytest.mark.parametrize("text", [*NAMES, "rgb(1, 2, 3)", "12 px", "a" * 300, ""])
def test_names_for_programs_are_no_language(text):
    assert not is_language(text)


@pytest.mark.parametrize(
    "text",
    ["Save", "OK", "and/or", "Yes/No", "3 files", "e.g. this", "保存", "Don't", "a " * 200, "字" * 300],
)
def test_texts_for_people_are_language(text):
    assert is_language(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("100% sure of 50%discount, 5 % off", []),
        ("%d of %5.2f%% at %1$s, 删除%s吗", ["%d", "%5.2f", "%1$s", "%s"]),
        ("{0} and {{c}} in %1 &nbsp; %@", ["{0}", "{{c}}", "%1", "&nbsp;", "%@"]),
        ("%(a)s %(b)d: ${d} %{e}, #{f} $G$", ["%(a)s", "%(b)d", "${d}", "%{e}", "#{f}", "$G$"]),
    ],
)
def test_placeholders_are_found(text, words):
    assert [tag.raw for tag in with_placeholders(text).tags] == words


def test_names_take_time_in_proportion_to_their_length():
    assert not is_language("a-" * 50_000)
    assert with_placeholders("{" * 50_000 + "<a " * 50_000).tags == ()
