"""JSON files: which strings are translated, and that everything else stays."""

import json

import pytest

from regard.documents.json_values import read
from regard.text.marked import Marked
from tests.documents.translators import in_capitals, raws, texts, unchanged, with_texts
from tests.refusals import refused

FILE = r"""{
    "$schema": "https://json.schemastore.org/x",
  "title" : "Save \"all\" files\u2026",
	"list":[ "first one", 1.50, 1e5, true,null,{"deep": ["Yes", "#ff00aa", "2024-05-06"]}, "last one"],
  "url": "https:\/\/a.org\/b", "id": "user_name", "type": "button", "label": "button",
  "greeting": "Hello {{name}}, you have <b>{count}</b> new %s & more",
  "dup": "once", "dup": "twice",
  "empty": "", "spaces": "  padded  "
}
"""


def test_only_values_that_are_language_are_translated():
    assert texts(read(FILE.encode())) == [
        'Save "all" files…',
        "first one",
        "Yes",
        "last one",
        "button",
        "Hello , you have  new  & more",
        "once",
        "twice",
        "padded",
    ]


def test_only_the_characters_of_translated_strings_change():
    expected = FILE
    for text in ["first one", "Yes", "last one", "once", "twice", "padded"]:
        expected = expected.replace(f'"{text}"', f'"{text.upper()}"')
    expected = expected.replace(r"Save \"all\" files", r"SAVE \"ALL\" FILES").replace(
        "  padded ", "  PADDED "
    )
    expected = expected.replace('"label": "button"', '"label": "BUTTON"')
    expected = expected.replace("Hello {{name}}, you have <b>", "HELLO {{name}}, YOU HAVE <b>")
    expected = expected.replace("</b> new %s & more", "</b> NEW %s & MORE")
    assert in_capitals(read(FILE.encode())).decode() == expected


@pytest.mark.parametrize(
    "content",
    [
        FILE.encode(),
        b"\xef\xbb\xbf" + FILE.replace("\n", "\r\n").encode(),
        b"\xff\xfe" + FILE.encode("utf-16-le"),
        b'"one text"',
        b"[]",
        b" 12.50\n",
    ],
)
def test_its_own_texts_give_the_same_bytes(content):
    assert unchanged(read(content)) == content


def test_placeholders_are_words_and_tags_are_tags():
    (segment,) = read(b'["Hi {0}, <a href=\\"x\\">see {{n}}</a><br/> $t(key) ${x} now"]').segments
    assert raws(segment) == ["{0}", '<a href="x">', "{{n}}", "</a>", "<br/>", "$t(key)", "${x}"]
    assert [tag.raw for tag in segment.tags if tag.is_word] == ["{0}", "{{n}}", "$t(key)", "${x}"]


@pytest.mark.parametrize(
    ("file", "written"),
    [
        (r'["caf\u00e9"]', r'["\u4e2d /"]'),
        ('["café"]', '["中 /"]'),
        ('["cafe"]', '["中 /"]'),
        (r'["cafe", "http:\/\/a.org"]', r'["中 \/", "http:\/\/a.org"]'),
    ],
)
def test_escapes_are_those_of_the_file(file, written):
    document = read(file.encode())
    assert with_texts(document, ["中 /"]).decode() == written


ICU = "You have {n, plural, =0 {no files} one {# file} other {# files}} in {place}."


def test_branches_are_translated_as_whole_sentences():
    document = read(json.dumps([ICU]).encode())
    assert texts(document) == ["You have no files in .", "You have  file in .", "You have  files in ."]
    (written,) = json.loads(in_capitals(document))
    assert written == (
        "{n, plural, =0 {YOU HAVE NO FILES IN {place}.} one {YOU HAVE # FILE IN {place}.} "
        "other {YOU HAVE # FILES IN {place}.}}"
    )
    assert json.loads(unchanged(document)) == [ICU]


def test_branches_inside_of_branches():
    text = "{g, select, male {He has {n, plural, one {# dog} other {# dogs}}} other {They sleep}}, it's {x}"
    document = read(json.dumps([text]).encode())
    assert texts(document) == ["He has  dog, it's ", "He has  dogs, it's ", "They sleep, it's "]
    assert json.loads(in_capitals(document)) == [
        "{g, select, male {{n, plural, one {HE HAS # DOG, IT''S {x}} other {HE HAS # DOGS, IT''S {x}}}} "
        "other {THEY SLEEP, IT''S {x}}}"
    ]


def test_the_number_of_an_outer_choice_is_written_out():
    text = "{n, plural, other {# cats and {m, plural, other {# dogs}}}}"
    assert json.loads(in_capitals(read(json.dumps([text]).encode()))) == [
        "{n, plural, other {{m, plural, other {{n, number} CATS AND # DOGS}}}}"
    ]


@pytest.mark.parametrize(
    "text",
    [
        "{n, plural, offset:1 other {# more guests}}",
        "{n, plural, other {broken",
        " ".join(f"{{{name}, plural, one {{a}} two {{b}} other {{c}}}}" for name in "xyz"),
    ],
)
def test_branches_that_cannot_be_written_stay_and_are_noted(text):
    document = read(json.dumps([text, "Some text"]).encode())
    assert texts(document) == ["Some text"]
    assert len(document.notes) == 1
    assert json.loads(in_capitals(document)) == [text, "SOME TEXT"]


def test_a_string_that_lost_a_placeholder_stays_untranslated():
    document = read(b'["Hello {name}", "Bye"]')
    assert json.loads(with_texts(document, ["Hallo", "Ade"])) == ["Hello {name}", "Ade"]
    assert len(document.notes) == 1


def test_arb_metadata_stay_and_the_locale_is_set():
    file = {
        "@@locale": "en",
        "hello": "Hello {name}",
        "@hello": {"description": "A greeting", "placeholders": {"name": {"example": "Some Body"}}},
    }
    written = json.loads(in_capitals(read(json.dumps(file).encode()), "zh-CN"))
    assert written == {**file, "@@locale": "zh_CN", "hello": "HELLO {name}"}


def test_descriptions_of_browser_extensions_stay():
    file = {
        "hi": {
            "message": "Hello $USER$",
            "description": "A greeting",
            "placeholders": {"user": {"content": "$1"}},
        },
        "bye": {"message": "Good bye"},
    }
    assert texts(read(json.dumps(file).encode())) == ["Hello ", "Good bye"]
    ordinary = {"card": {"message": "Hello", "description": "A greeting"}, "page": {"description": "A text"}}
    assert len(texts(read(json.dumps(ordinary).encode()))) == 3


@pytest.mark.parametrize(
    ("content", "code", "place"),
    [
        (b'{"a": "b",\n}', "damaged_file", "line 2"),
        (b"", "damaged_file", "line 1"),
        (b'{\n"a": "b"', "damaged_file", "line 2"),
        (b'["a"] // comment', "damaged_file", "column 7"),
        (b"[" * 100_000, "damaged_file", "deep"),
        (b"9" * 10_000, "damaged_file", "JSON"),
        (b'["\xff"]', "not_utf_8", "1"),
    ],
)
def test_damaged_files_are_refused(content, code, place):
    with refused(code, place):
        read(content)


def test_a_translation_may_have_its_tags_elsewhere():
    document = read(b'["Press {key} <b>now</b>"]')
    (segment,) = document.segments
    by_raw = {tag.raw: tag for tag in segment.tags}
    moved = Marked(
        "Jetzt  drücken",
        tuple(by_raw[raw]._replace(place=place) for raw, place in [("<b>", 0), ("</b>", 5), ("{key}", 6)]),
    )
    assert json.loads(document.written([moved])) == ["<b>Jetzt</b> {key} drücken"]
