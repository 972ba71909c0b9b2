"""XLIFF: which units are translated, and how targets are written."""

import re

import pytest

from regard.documents.xliff import read
from regard.text.marked import Marked
from tests.documents.translators import in_capitals, raws, texts, with_texts
from tests.refusals import refused

V1 = """<?xml version='1.0' encoding="UTF-8"?>
<!-- keep -->
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
  <file source-language="en" datatype='plaintext' original="a.txt">
    <body>
      <trans-unit id="1">
        <source>Save <g id="1">all</g> &amp; close<x id="2"/></source>
        <note>A hint</note>
      </trans-unit>
      <trans-unit id="2" xml:space="preserve"><source>Old  text</source>
        <target state="translated">Alt</target></trans-unit>
      <trans-unit id="3"><source>New text</source>
        <target state="new" xml:lang="de">New text</target></trans-unit>
      <trans-unit id="4"><source>Empty</source><target/></trans-unit>
      <trans-unit id="5" translate="no"><source>Stays</source></trans-unit>
      <group translate="no">
        <trans-unit id="6"><source>Stays too</source></trans-unit>
        <trans-unit id="7" translate="yes"><source>Goes %1$s and {name}</source></trans-unit>
      </group>
      <trans-unit id="8" approved="yes"><source>Same</source><target>Same</target></trans-unit>
      <trans-unit id="9"><source>Same</source><target>Same</target></trans-unit>
      <trans-unit id="10"><source>A</source>
        <alt-trans><source>B</source><target>C</target></alt-trans></trans-unit>
      <trans-unit id="11"><source>12.5</source></trans-unit>
      <trans-unit id="12">
        <source>One. Two.</source>
        <seg-source><mrk mtype="seg" mid="1">One.</mrk> <mrk mtype="seg" mid="2">Two.</mrk></seg-source>
      </trans-unit>
      <trans-unit id="13"><source>{n, plural, other {# files}}</source></trans-unit>
    </body>
  </file>
</xliff>
"""

V2 = """<?xml version="1.0"?>
<xliff version="2.1" xmlns="urn:oasis:names:tc:xliff:document:2.0" srcLang="en" trgLang="zh-CN"
       xmlns:mtc="urn:oasis:names:tc:xliff:matches:2.0">
  <file id="f1">
    <unit id="u1">
      <mtc:matches><mtc:match ref="#1"><source>No</source><target>Nein</target></mtc:match></mtc:matches>
      <originalData><data id="d1">%s</data><data id="d2">&lt;br/&gt;</data></originalData>
      <segment id="1">
        <source>Hi <pc id="1">dear <ph id="2" dataRef="d1"/></pc>,<ph id="3" dataRef="d2"/> are you?</source>
      </segment>
      <ignorable><source> </source></ignorable>
      <segment id="2" state="final"><source>Bye</source><target>再见</target></segment>
      <segment id="3" state="initial">
        <source>Later <sc id="4"/>then<ec startRef="4"/></source><target>x</target>
      </segment>
      <segment id="4">
        <source>Press <mrk id="m1" translate="no">OK</mrk> <mrk id="m2" type="term">now</mrk></source>
      </segment>
    </unit>
    <unit id="u2" translate="no"><segment><source>Stays</source></segment></unit>
  </file>
</xliff>
"""


def units(content: str) -> dict[str, str]:
    """Units of version 1 by their id."""
    return dict(re.findall(r'<trans-unit id="(\d+)"[^>]*>(.*?)</trans-unit>', content, re.DOTALL))


def test_units_without_a_translation_are_translated():
    document = read(V1.encode())
    assert texts(document) == [
        "Save all & close",
        "New text",
        "Empty",
        "Goes  and ",
        "Same",
        "A",
        "One.",
        "Two.",
    ]
    assert raws(document.segments[0]) == ['<g id="1">', "</g>"]
    assert raws(document.segments[3]) == ["%1$s", "{name}"]
    assert len(document.notes) == 1


def test_targets_are_written_with_state_and_inline_elements():
    after = in_capitals(read(V1.encode()), "de").decode()
    state = 'state="needs-review-translation" state-qualifier="mt-suggestion"'
    found = units(after)
    assert f"""</source>
        <target {state}>SAVE <g id="1">ALL</g> &amp; CLOSE<x id="2"/></target>
        <note>""" in found["1"]
    both = state.replace(" ", ' xml:lang="de" ')
    assert found["3"].endswith(f"<target {both}>NEW TEXT</target>")
    assert found["4"].endswith(f"<target {state}>EMPTY</target>")
    assert found["7"].endswith(f"<target {state}>GOES %1$s AND {{name}}</target>")
    assert f"<target {state}>A</target>\n        <alt-trans>" in found["10"]
    assert (
        f'</seg-source>\n        <target {state}><mrk mtype="seg" mid="1">ONE.</mrk> '
        '<mrk mtype="seg" mid="2">TWO.</mrk></target>'
    ) in found["12"]
    assert 'original="a.txt" target-language="de">' in after
    for kept in ("2", "5", "6", "8", "11", "13"):
        assert found[kept] == units(V1)[kept]


@pytest.mark.parametrize("line_break", ["\n", "\r\n"])
def test_without_the_targets_it_is_the_same_file(line_break):
    before = V1.replace("\n", line_break)
    after = in_capitals(read(before.encode())).decode()
    without = re.sub(r"\s*<target[^>]*?(?:/>|>.*?</target>)", "", after, flags=re.DOTALL)
    assert without == re.sub(r"\s*<target[^>]*?(?:/>|>.*?</target>)", "", before, flags=re.DOTALL)


def test_version_2_has_states_on_segments():
    document = read(V2.encode())
    assert texts(document) == ["Hi dear , are you?", "Later then", "Press  now"]
    first = document.segments[0]
    assert [tag.raw for tag in first.tags if tag.is_word] == ['<ph id="2" dataRef="d1"/>']
    assert [tag.raw for tag in document.segments[2].tags if tag.is_word] == [
        '<mrk id="m1" translate="no">OK</mrk>'
    ]
    after = in_capitals(document, "zh").decode()
    assert 'trgLang="zh-CN"' in after
    assert (
        """<segment id="1" state="translated">
        <source>Hi <pc id="1">dear <ph id="2" dataRef="d1"/></pc>,<ph id="3" dataRef="d2"/> are you?</source>
        <target>HI <pc id="1">DEAR <ph id="2" dataRef="d1"/></pc>,<ph id="3" dataRef="d2"/> ARE YOU?</target>
"""
        in after
    )
    assert '<target>LATER <sc id="4"/>THEN<ec startRef="4"/></target>' in after
    assert '<segment id="2" state="final"><source>Bye</source><target>再见</target>' in after


def test_another_language_is_declared_and_translations_into_the_old_one_are_noted():
    document = read(V2.encode())
    assert b'trgLang="de"' in in_capitals(document, "de")
    assert len(document.notes) == 1


def test_tags_may_move_and_a_lost_one_leaves_the_unit():
    document = read(V1.encode())
    first, *others = document.segments
    by_raw = {tag.raw: tag for tag in first.tags}
    moved = Marked("Alles <&> zu", (by_raw['<g id="1">']._replace(place=0), by_raw["</g>"]._replace(place=5)))
    after = document.written([moved, *others]).decode()
    assert '><g id="1">Alles</g> &lt;&amp;&gt; zu<x id="2"/></target>' in units(after)["1"]
    after = with_texts(document, ["A", "B", "C", "D", "E", "F", "G", "H"]).decode()
    assert "<target" not in units(after)["1"]
    assert len(document.notes) == 2


def test_a_file_of_another_encoding_keeps_it():
    before = V1.replace("UTF-8", "iso-8859-1").replace("Empty", "Café")
    document = read(before.encode("latin-1"))
    after = in_capitals(document)
    assert "CAFÉ".encode("latin-1") in after
    first, *others = document.segments
    assert b">&#20013;</target>" in document.written([first, *(Marked("中") for _ in others)])


def test_prefixes_and_spaces_are_kept():
    before = (
        '<x:xliff version="1.2" xmlns:x="urn:oasis:names:tc:xliff:document:1.2"><x:file><x:body>'
        '<x:trans-unit id="1">'
        "<x:source>\n   two\n   lines </x:source></x:trans-unit></x:body></x:file></x:xliff>"
    )
    document = read(before.encode())
    assert texts(document) == ["two lines"]
    assert b"> TWO LINES </x:target></x:trans-unit>" in in_capitals(document)


@pytest.mark.parametrize(
    ("content", "code", "place"),
    [
        (V1.replace("</body>", "").encode(), "damaged_file", "line 31"),
        (V1.replace("<source>Empty</source>", "").encode(), "damaged_file", "line 14"),
        (b"<html/>", "damaged_file", "html"),
        (b"", "damaged_file", "line 1"),
        (b'<!DOCTYPE x [<!ENTITY a "b">]>\n<xliff/>', "entities", "line 1"),
        (b"<xliff>" + b"<g>" * 300, "damaged_file", "line 1"),
        (b'<?xml version="1.0" encoding="klingon"?><xliff/>', "wrong_encoding", "klingon"),
        (V1.replace("Empty", "\xff").encode("latin-1"), "not_utf_8", "14"),
    ],
)
def test_damaged_files_are_refused(content, code, place):
    with refused(code, place):
        read(content)
