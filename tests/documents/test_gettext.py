"""Catalogues of gettext: what is translated in them, and what stays."""

import polib
import pytest

from regard.documents.gettext import read
from tests.documents.translators import in_capitals, raws, texts, unchanged, with_texts
from tests.refusals import refused

HEADER = (
    'msgid ""\nmsgstr ""\n"Project-Id-Version: shop 1.0\\n"\n"Language: \\n"\n'
    '"Content-Type: text/plain; charset=UTF-8\\n"\n'
)
CATALOGUE = (
    "# Translators: nobody\n#, fuzzy\n"
    + HEADER
    + r"""
#. A comment of the developer
#: src/a.c:12 src/b.c:7
#, c-format
msgctxt "menu"
msgid "Open %s, 100%% done\n"
msgstr ""

#, fuzzy, python-format
#| msgid "Delete %(old)s"
msgid ""
"Delete %(name)s, or "
"keep <b>{count}</b> files"
msgstr "Alt"

msgid "Done"
msgstr "Fertig"
msgid "&File"
msgstr ""

msgid "%d file"
msgid_plural "%d files"
msgstr[0] ""
msgstr[1] ""

msgid "%s: %d"
msgstr ""

#~ msgid "gone"
#~ msgstr "weg"
"""
)


def entries(content: bytes) -> dict[str, polib.POEntry]:
    return {entry.msgid: entry for entry in polib.pofile(content.decode())}


def test_only_new_and_fuzzy_messages_are_translated():
    document = read(CATALOGUE.encode())
    assert texts(document) == [
        "Open , 100% done",
        "Delete , or keep  files",
        "File",
        " file",
        " files",
    ]
    assert raws(document.segments[0]) == ["%s"]
    assert raws(document.segments[1]) == ["%(name)s", "<b>", "{count}", "</b>"]


def test_translations_are_marked_as_fuzzy_and_keep_their_placeholders():
    found = entries(in_capitals(read(CATALOGUE.encode()), "zh"))
    opened = found["Open %s, 100%% done\n"]
    assert opened.msgstr == "OPEN %s, 100%% DONE\n"
    assert opened.flags == ["fuzzy", "c-format"]
    assert (opened.msgctxt, opened.comment) == ("menu", "A comment of the developer")
    deleted = found["Delete %(name)s, or keep <b>{count}</b> files"]
    assert deleted.msgstr == "DELETE %(name)s, OR KEEP <b>{count}</b> FILES"
    assert deleted.flags.count("fuzzy") == 1
    assert deleted.previous_msgid is None
    assert found["Done"].msgstr == "Fertig"
    assert found["Done"].flags == []
    assert found["&File"].msgstr == "FILE(&F)"
    assert found["%s: %d"].msgstr == ""
    assert found["gone"].msgstr == "weg"


def test_only_lines_of_changed_messages_change():
    before = CATALOGUE.replace("\n", "\r\n").encode()
    after = in_capitals(read(before), "de")
    assert after.count(b"\n") == after.count(b"\r\n")
    lost = [line for line in before.splitlines() if line not in after.splitlines()]
    assert lost == [
        b'"Language: \\n"',
        b"#, c-format",
        b'#| msgid "Delete %(old)s"',
        b'msgstr "Alt"',
        b'msgstr[0] ""',
        b'msgstr[1] ""',
    ]


@pytest.mark.parametrize(
    ("language", "forms", "rule"),
    [
        ("zh", {0: "%d FILES"}, "nplurals=1; plural=0;"),
        ("en", {0: "%d FILE", 1: "%d FILES"}, "nplurals=2; plural=(n != 1);"),
    ],
)
def test_plural_forms_and_header_are_those_of_the_language(language, forms, rule):
    content = in_capitals(read(CATALOGUE.encode()), language)
    assert entries(content)["%d file"].msgstr_plural == forms
    metadata = polib.pofile(content.decode()).metadata
    assert (metadata["Language"], metadata["Plural-Forms"]) == (language, rule)


def test_the_plural_rule_of_the_header_counts():
    rule = "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n==1 ? 1 : 2);"
    catalogue = CATALOGUE.replace('"Language: \\n"', f'"Language: xx_YY\\n"\n"Plural-Forms: {rule}\\n"')
    content = in_capitals(read(catalogue.encode()), "xx")
    assert entries(content)["%d file"].msgstr_plural == {0: "%d FILES", 1: "%d FILES", 2: "%d FILES"}
    assert polib.pofile(content.decode()).metadata["Language"] == "xx_YY"


def test_without_a_rule_plurals_stay_and_are_noted():
    document = read(CATALOGUE.encode())
    assert entries(in_capitals(document, "ru"))["%d file"].msgstr_plural == {0: "", 1: ""}
    assert len(document.notes) == 1


def test_forms_of_a_plural_that_exist_are_kept():
    catalogue = CATALOGUE.replace('msgstr[0] ""', 'msgstr[0] "%d Datei"')
    assert entries(in_capitals(read(catalogue.encode()), "de"))["%d file"].msgstr_plural == {
        0: "%d Datei",
        1: "%d FILES",
    }


def test_a_message_that_lost_a_placeholder_stays_untranslated():
    document = read(CATALOGUE.encode())
    found = entries(with_texts(document, ["A", "B", "C", "D", "E"], "de"))
    assert [found[key].msgstr for key in ("&File", "Open %s, 100%% done\n")] == ["C(&F)", ""]
    assert found["%d file"].msgstr_plural == {0: "", 1: ""}
    assert len(document.notes) == 1


def test_a_translated_catalogue_has_nothing_left_but_fuzzy_messages():
    once = unchanged(read(CATALOGUE.encode()), "de")
    assert unchanged(read(once), "de") == once
    confirmed = once.replace(b"#, fuzzy\n", b"").replace(b"fuzzy, ", b"")
    document = read(confirmed)
    assert texts(document) == []
    assert unchanged(document) == confirmed


@pytest.mark.parametrize("translation", ['Two "lines"\nof text', "word " * 30 + "end", "\\ and\ttab"])
def test_translations_are_escaped_and_wrapped(translation):
    content = with_texts(read((HEADER + '\nmsgid "a"\nmsgstr ""\n').encode()), [translation])
    assert polib.pofile(content.decode())[0].msgstr == translation
    assert max(map(len, content.splitlines())) <= 80


def test_the_charset_of_the_header_is_kept():
    catalogue = HEADER.replace("UTF-8", "ISO-8859-1") + '\nmsgid "Café"\nmsgstr ""\n'
    document = read(catalogue.encode("latin-1"))
    assert 'msgstr "CAFÉ"'.encode("latin-1") in in_capitals(document)
    assert document.notes == []


def test_a_charset_without_the_letters_of_the_translation_becomes_utf_8():
    catalogue = HEADER.replace("UTF-8", "ISO-8859-1") + '\n# é\nmsgid "coffee"\nmsgstr ""\n'
    document = read(catalogue.encode("latin-1"))
    content = with_texts(document, ["咖啡"]).decode()
    assert polib.pofile(content).metadata["Content-Type"] == "text/plain; charset=UTF-8"
    assert entries(content.encode())["coffee"].msgstr == "咖啡"
    assert "# é" in content
    assert len(document.notes) == 1


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_a_byte_order_mark_and_an_empty_file_are_kept(mark):
    assert unchanged(read(mark)) == mark
    content = mark + b'msgid "a"\nmsgstr "b"'
    assert unchanged(read(content)) == content


@pytest.mark.parametrize(
    ("content", "code", "place"),
    [
        (b'msgid "a"\nmsgstr "b\n', "damaged_file", "line 2"),
        (b'msgid "a"\nmsgstr "b"\ngarbage\n', "damaged_file", "line 3"),
        (b'msgid "a"\nmsgid "b"\n', "damaged_file", "line 2"),
        (b'msgid "a"\nmsgstr "\xff"\n', "not_utf_8", "2"),
        (HEADER.replace("UTF-8", "klingon").encode(), "wrong_encoding", "klingon"),
        (b"PK\x03\x04" + bytes(20), "not_text", "zip"),
    ],
)
def test_damaged_catalogues_are_refused(content, code, place):
    with refused(code, place):
        read(content)
