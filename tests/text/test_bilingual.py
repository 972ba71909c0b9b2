"""Translation memories and XLIFF: languages, inline elements, states; and XML that is damaged or hostile."""

import gzip
import tracemalloc

import pytest

from regard.text import read_table
from regard.text.files.tables import table_head
from tests.refusals import refused

TMX = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header srclang="en"><note>no <seg>text</seg></note></header><body>
<tu tuid="1"><prop type="x">y</prop><tuv xml:lang="EN-us"><seg>Press <bpt>&lt;b></bpt>OK<ept/>
 &amp; <hi>wait</hi>.</seg></tuv><tuv xml:lang="de_DE"><seg>OK <ph>1<sub>x</sub></ph>drücken</seg></tuv></tu>
<tu><tuv lang="en-GB"><seg>colour</seg></tuv><tuv xml:lang="fr"><seg>couleur</seg></tuv></tu>
</body></tmx>
"""
XLIFF_1 = """<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
<file source-language="en" target-language="de-AT"><body><group>
<trans-unit id="1"><source>a <g id="1">b</g><x id="2"/></source><target>c <g id="1">d</g></target>
<alt-trans><source>no</source><target>nein</target></alt-trans></trans-unit>
<trans-unit id="2"><source>e</source><target state="needs-translation">f</target></trans-unit>
<trans-unit id="3" approved="no"><source>g</source><target>h</target></trans-unit>
<trans-unit id="4"><source>i</source></trans-unit>
<trans-unit id="5"><source>j</source><seg-source><mrk mtype="seg">j</mrk></seg-source>
<target state="signed-off"><mrk mtype="seg">k</mrk></target></trans-unit>
</group></body></file></xliff>
"""
XLIFF_2 = """<xliff version="2.1" xmlns="urn:x" srcLang="en" trgLang="de"><file id="f">
<unit id="1"><m:matches xmlns:m="u:m"><m:match><source>no</source><target>nein</target></m:match></m:matches>
<segment state="final"><source>a <pc id="1">b</pc><ph/></source><target>c <pc id="1">d</pc></target></segment>
<ignorable><source> </source><target> </target></ignorable>
<segment state="initial"><source>e</source><target>f</target></segment>
<segment><source>g</source><target>h</target></segment></unit></file></xliff>
"""


def read(path, columns, **options):
    blocks = list(read_table(path, columns, **options))
    rows = [row for block in blocks for row in zip(*block.columns, strict=True)]
    lines = [block.line(i) for block in blocks for i in range(len(block))]
    return rows, lines, {lines[i]: why for block in blocks for i, why in block.unusable.items()}


@pytest.fixture
def write(tmp_path):
    def write(name, content, encoding="utf-8"):
        (tmp_path / name).write_bytes(content.encode(encoding))
        return tmp_path / name

    return write


def test_units_of_a_memory_are_taken_by_language_without_inline_codes(write):
    path = write("m.tmx", TMX)
    rows, lines, _ = read(path, ["en", "de"])
    assert rows == [("Press OK  & wait.", "OK drücken"), ("colour", "")]
    assert lines == [4, 6]
    assert read(path, ["en-GB", "fr"])[0] == [("", ""), ("colour", "couleur")]
    head = table_head(path)
    assert (head.names, head.by_language) == (["en-US", "de-DE", "en-GB", "fr"], True)


def test_a_memory_may_be_in_another_encoding_and_compressed(write, tmp_path):
    (tmp_path / "m.tmx.gz").write_bytes(gzip.compress(TMX.encode()))
    assert read(tmp_path / "m.tmx.gz", ["de"])[0][0] == ("OK drücken",)
    sixteen = write("n.tmx", TMX.replace('encoding="utf-8"', 'encoding="utf-16"'), "utf-16")
    assert read(sixteen, ["de"])[0][0] == ("OK drücken",)


def test_a_language_that_no_unit_has_is_refused_with_those_there_are(write):
    with refused("unknown_column", "m.tmx: there is no column es", "en-US, de-DE, en-GB, fr"):
        read(write("m.tmx", TMX), ["en", "es"])


@pytest.mark.parametrize(
    ("content", "columns", "rows", "unfinished"),
    [
        (XLIFF_1, ["en", "de-AT"], [("a b", "c d"), ("j", "k")], {5, 6, 7}),
        (XLIFF_2, ["en", "de"], [("a b", "c d"), ("g", "h")], {5}),
    ],
)
def test_final_translations_of_xliff_are_taken(write, content, columns, rows, unfinished):
    path = write("x.xlf", content)
    assert table_head(path).names[:2] == columns
    read_rows, lines, unusable = read(path, columns)
    assert [row for row, line in zip(read_rows, lines, strict=True) if line not in unusable] == rows
    assert unusable == dict.fromkeys(unfinished, "translation not final")


def test_a_file_that_names_no_target_language_has_the_column_target(write):
    path = write("x.xlf", XLIFF_1.replace(' target-language="de-AT"', ""))
    assert table_head(path).names == ["en", "target"]
    assert read(path, ["en", "target"])[0][0] == ("a b", "c d")


@pytest.mark.parametrize(
    ("name", "content", "code", "place"),
    [
        ("m.tmx", "", "not_xml", "m.tmx:1: "),
        ("m.tmx", "a\tb\n", "not_xml", "m.tmx:1: "),
        ("m.tmx", TMX[:-30], "not_xml", "m.tmx:6: "),
        ("m.tmx", XLIFF_1, "not_xml", "m.tmx:1: is XML, but not TMX"),
        ("x.xliff", TMX, "not_xml", "x.xliff:1: is XML, but not XLIFF"),
        (
            "m.tmx",
            '<!DOCTYPE tmx [<!ENTITY a "b">]>\n<tmx>&a;</tmx>',
            "xml_entity",
            "m.tmx:1: ",
        ),
        ("m.tmx", '<!DOCTYPE t [<!ENTITY a SYSTEM "file:///etc/passwd">]><tmx/>', "xml_entity", "entity a"),
        ("m.tmx", '<!DOCTYPE t [<!ENTITY % a "b"> %a;]><tmx/>', "xml_entity", "entity a"),
        (
            "m.tmx",
            '<tmx><body><tu><tuv xml:lang="en"><seg>&other;</seg></tuv></tu></body></tmx>',
            "not_xml",
            ":1: ",
        ),
    ],
)
def test_damaged_and_hostile_files_are_refused(write, name, content, code, place):
    with refused(code, place):
        read(write(name, content), ["en", "de"])
    with refused(code, place):
        read(write(name, content), ["en", "de"], on_invalid="drop")


def test_a_memory_is_read_as_a_stream(tmp_path):
    unit = '<tu><tuv xml:lang="en"><seg>{}</seg></tuv><tuv xml:lang="de"><seg>x</seg></tuv></tu>\n'
    path = tmp_path / "m.tmx"
    with path.open("w") as file:
        file.write("<tmx><body>")
        file.writelines(unit.format(f"{i} " + 397 * "y") for i in range(7919))
        file.write("</body></tmx>")
    tracemalloc.start()
    try:
        assert sum(len(block) for block in read_table(path, ["en"])) == 7919
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < path.stat().st_size
