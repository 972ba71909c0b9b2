"""Word documents: formatting, links, fields and pictures survive at the right words; all else stays."""

import io
import zipfile

import docx
import pytest

from regard.documents.word import read
from regard.text.marked import Marked
from tests.documents.translators import in_capitals, texts, unchanged, with_texts
from tests.documents.word_files import file_of, paragraph, part, run, word_file
from tests.refusals import refused

BOLD, ITALIC = "<w:b/>", "<w:i/>"
FIELD = '<w:r><w:fldChar w:fldCharType="{}"/></w:r>'
INSTRUCTION = '<w:r><w:instrText xml:space="preserve"> {} </w:instrText></w:r>'
PICTURE = '<w:r><w:drawing><a xmlns="u" id="7"/></w:drawing></w:r>'
FOOTNOTE = '<w:r><w:rPr><w:rStyle w:val="Mark"/></w:rPr><w:footnoteReference w:id="2"/></w:r>'


def field(instruction: str, *result: str) -> str:
    parts = [FIELD.format("begin"), INSTRUCTION.format(instruction), FIELD.format("separate")]
    return "".join([*parts, *result, FIELD.format("end")])


def body(content: bytes) -> str:
    """The paragraphs of a document."""
    return file_of(content).partition("<w:body>")[2].partition("<w:sectPr/>")[0]


def capitals(*parts: str) -> str:
    return body(in_capitals(read(word_file(paragraph(*parts)))))


def plain(text: str, properties: str = "") -> str:
    """A run as it is written."""
    return run(text, properties).replace(' w:rsidR="00AA"', "")


def test_formatting_is_a_tag_and_runs_that_look_alike_are_joined():
    runs = [
        run("A "),
        '<w:proofErr w:type="spellStart"/>',
        run("pla", '<w:lang w:val="en-US"/>'),
        run("in text, "),
        run("bold", BOLD),
        run(" ", BOLD + ITALIC),
        run("words", BOLD + "<w:noProof/>"),
        run(" at the end."),
    ]
    document = read(word_file(paragraph(*runs, properties='<w:jc w:val="center"/>')))
    assert texts(document) == ["A plain text, bold words at the end."]
    assert [(tag.place, tag.opens, tag.closes) for tag in document.segments[0].tags] == [
        (14, "format1", ""),
        (24, "", "format1"),
    ]
    assert body(in_capitals(document)) == paragraph(
        plain("A PLAIN TEXT, "),
        plain("BOLD WORDS", BOLD),
        plain(" AT THE END."),
        properties='<w:jc w:val="center"/>',
    )


def test_formatting_moves_with_its_words():
    document = read(word_file(paragraph(run("a "), run("red", '<w:color w:val="FF0000"/>'), run(" house"))))
    opened, closed = document.segments[0].tags
    moved = Marked("ein Haus in Rot", (opened._replace(place=12), closed._replace(place=15)))
    assert body(document.written([moved])) == paragraph(
        plain("ein Haus in "), plain("Rot", '<w:color w:val="FF0000"/>')
    )


def test_the_commonest_formatting_has_no_tag():
    document = read(
        word_file(paragraph(run("All of it bold, "), run("all of it", BOLD), run(" plain", ITALIC)))
    )
    assert len(document.segments[0].tags) == 4
    (only,) = read(word_file(paragraph(run("Bold", BOLD), run(" title", BOLD)))).segments
    assert only == Marked("Bold title")


def test_links_pictures_notes_and_bookmarks_stay():
    link = '<w:hyperlink r:id="rId9" w:history="1">{}</w:hyperlink>'
    style = '<w:rStyle w:val="Hyperlink"/>'
    start, end = '<w:bookmarkStart w:id="3" w:name="here"/>', '<w:bookmarkEnd w:id="3"/>'
    found = capitals(
        start,
        run("See "),
        link.format(run("this page", style)),
        run(" now"),
        PICTURE,
        run("!"),
        FOOTNOTE,
        end,
    )
    expected = [plain("SEE "), link.format(plain("THIS PAGE", style)), plain(" NOW"), PICTURE, plain("!")]
    assert found == paragraph(start, *expected, FOOTNOTE, end)


def test_fields_are_words_and_links_as_fields_keep_their_text():
    number = field("REF _Ref1 \\h", run("Table 3", BOLD))
    link = field('HYPERLINK "https://a.org"', run("the page", ITALIC))
    document = read(word_file(paragraph(run("In "), number, run(" and on "), link, run(" it stands."))))
    assert texts(document) == ["In  and on the page it stands."]
    assert sum(tag.is_word for tag in document.segments[0].tags) == 1
    kept = number.replace(' w:rsidR="00AA"', "")
    written = field('HYPERLINK "https://a.org"', plain("THE PAGE", ITALIC))
    assert body(in_capitals(document)) == paragraph(
        plain("IN "), kept, plain(" AND ON "), written, plain(" IT STANDS.")
    )


def test_a_field_over_several_paragraphs_stays_open():
    first = FIELD.format("begin") + INSTRUCTION.format("TOC \\o") + FIELD.format("separate")
    inner = field("PAGEREF _Toc1", run("7"))
    content = paragraph(first, run("Chapter one"), "<w:r><w:tab/></w:r>", inner) + paragraph(
        run("Chapter two"), FIELD.format("end")
    )
    document = read(word_file(content))
    assert texts(document) == ["Chapter one", "Chapter two"]
    expected = content.replace(' w:rsidR="00AA"', "").replace("Chapter one", "CHAPTER ONE")
    assert body(in_capitals(document)) == expected.replace("Chapter two", "CHAPTER TWO")


def test_line_breaks_end_a_sentence():
    document = read(
        word_file(paragraph(run("Name:"), "<w:r><w:tab/><w:t>Tom</w:t><w:br/><w:t>Town</w:t></w:r>"))
    )
    (segment,) = document.segments
    assert [(segment.text[: tag.place], tag.is_break) for tag in segment.tags] == [
        ("Name:", True),
        ("Name:Tom", True),
    ]


def test_tracked_changes_and_content_controls():
    deleted = '<w:del w:id="1"><w:r><w:delText>old</w:delText></w:r></w:del>'
    inserted = '<w:ins w:id="2" w:author="A">{}</w:ins>'
    control = "<w:sdt><w:sdtPr><w:id/></w:sdtPr><w:sdtContent>{}</w:sdtContent></w:sdt>"
    choice = control.replace("<w:id/>", "<w:dropDownList/>").format(plain("Yes"))
    found = capitals(
        run("a "), deleted, inserted.format(run("new")), control.format(run(" one")), run(" is "), choice
    )
    assert found == paragraph(
        plain("A "),
        deleted,
        inserted.format(plain("NEW")),
        control.format(plain(" ONE")),
        plain(" IS "),
        choice,
    )


def test_text_boxes_tables_headers_and_notes_are_translated():
    box = (
        "<mc:AlternateContent><mc:Choice><w:txbxContent>{0}</w:txbxContent></mc:Choice></mc:AlternateContent>"
    )
    table = "<w:tbl><w:tr><w:tc>{0}</w:tc><w:tc>{1}</w:tc></w:tr></w:tbl>"
    content = paragraph(run("outer"), f"<w:r>{box.format(paragraph(run('inner')))}</w:r>", run(" text"))
    content += table.format(paragraph(run("cell")), paragraph(run("12")))
    parts = {
        "header1": part("hdr", paragraph(run("head"))),
        "footer1": part("ftr", paragraph(run("Page "), field("PAGE", run("1")))),
        "footnotes": part("footnotes", f'<w:footnote w:id="2">{paragraph(run("note"))}</w:footnote>'),
    }
    document = read(
        word_file(
            content, parts, {"word/comments.xml": b"<w:comments/>", "word/charts/chart1.xml": b"<a:t>x</a:t>"}
        )
    )
    assert texts(document) == ["outer text", "inner", "cell", "Page ", "note", "head"]
    assert len(document.notes) == 1
    after = in_capitals(document)
    assert body(after) == (
        paragraph(plain("OUTER"), f"<w:r>{box.format(paragraph(plain('INNER')))}</w:r>", plain(" TEXT"))
        + table.format(paragraph(plain("CELL")), paragraph(run("12")))
    )
    assert file_of(after, "word/footer1.xml") == part(
        "ftr", paragraph(plain("PAGE "), field("PAGE", plain("1")))
    )


def test_all_other_files_and_dates_stay():
    before = word_file(
        paragraph(run("Some <text>".replace("<", "&lt;"))),
        others={"customXml/x.xml": b"<a  b='c'/>", "media/p.png": bytes(999)},
    )
    after = in_capitals(read(before), "zh")
    with zipfile.ZipFile(io.BytesIO(before)) as old, zipfile.ZipFile(io.BytesIO(after)) as new:
        assert new.namelist() == old.namelist()
        changed = [name for name in old.namelist() if old.read(name) != new.read(name)]
        assert changed == ["word/document.xml"]
        assert {each.date_time for each in new.infolist()} == {(2021, 2, 3, 4, 6, 8)}
    assert [each.text for each in docx.Document(io.BytesIO(after)).paragraphs] == ["SOME <TEXT>"]


@pytest.mark.parametrize(
    "kind",
    [
        "vnd.openxmlformats-officedocument.wordprocessingml.template",
        "vnd.ms-word.document.macroEnabled",
        "vnd.ms-word.template.macroEnabledTemplate",
    ],
)
def test_templates_and_documents_with_macros_are_read(kind):
    content = word_file(paragraph(run("Text")))
    usual = "vnd.openxmlformats-officedocument.wordprocessingml.document"
    types = file_of(content, "[Content_Types].xml").replace(f"{usual}.main", f"{kind}.main")
    changed = word_file(paragraph(run("Text")), others={"[Content_Types].xml": types.encode()})
    assert texts(read(changed)) == ["Text"]


def test_its_own_texts_give_the_same_bytes():
    content = word_file(paragraph(run("Some "), run("text", BOLD), FOOTNOTE))
    assert unchanged(read(content), "de") == content


@pytest.mark.parametrize(
    ("language", "languages"),
    [("de", 'w:val="de" w:eastAsia="zh-CN"'), ("ja", 'w:val="en-US" w:eastAsia="ja"')],
)
def test_the_language_of_the_styles_is_set(language, languages):
    content = in_capitals(read(word_file(paragraph(run("Text")))), language)
    assert f"<w:lang {languages}/>" in file_of(content, "word/styles.xml")


def test_code_stays():
    code = '<w:rStyle w:val="VerbatimChar"/>'
    block = paragraph(run("print(text)"), properties='<w:pStyle w:val="SourceCode"/>')
    document = read(word_file(paragraph(run("Use "), run("regard", code), run(" now")) + block))
    assert texts(document) == ["Use  now"]
    expected = paragraph(plain("USE "), plain("regard", code), plain(" NOW"))
    assert body(in_capitals(document)) == expected + block


def test_a_paragraph_that_lost_a_picture_stays():
    document = read(word_file(paragraph(run("a "), PICTURE, run("b")) + paragraph(run("c"))))
    content = body(with_texts(document, ["x", "y"]))
    assert content == paragraph(run("a "), PICTURE, run("b")) + paragraph(plain("y"))
    assert len(document.notes) == 1


def test_a_document_of_python_docx_is_translated():
    made = docx.Document()
    made.add_heading("A title", 1)
    added = made.add_paragraph("Some plain and ")
    added.add_run("bold").bold = True
    added.add_run(" text.")
    made.add_table(1, 2).cell(0, 1).text = "a cell"
    made.sections[0].header.paragraphs[0].text = "the header"
    file = io.BytesIO()
    made.save(file)
    found = docx.Document(io.BytesIO(in_capitals(read(file.getvalue()), "de")))
    assert [each.text for each in found.paragraphs] == ["A TITLE", "SOME PLAIN AND BOLD TEXT."]
    assert [(each.text, each.bold) for each in found.paragraphs[1].runs] == [
        ("SOME PLAIN AND ", None),
        ("BOLD", True),
        (" TEXT.", None),
    ]
    assert found.tables[0].cell(0, 1).text == "A CELL"
    assert found.sections[0].header.paragraphs[0].text == "THE HEADER"


def broken(content: bytes, name: bytes = b"word/document.xml") -> bytes:
    place = content.index(name) + 60
    return content[:place] + bytes(8) + content[place + 8 :]


@pytest.mark.parametrize(
    ("content", "code", "place"),
    [
        (b"", "damaged_file", ""),
        (b"PK\x03\x04 cut", "damaged_file", ""),
        (b"\xd0\xcf\x11\xe0 old", "not_text", ".docx"),
        (broken(word_file(paragraph(run("a text")))), "damaged_file", "word/document.xml"),
        (
            broken(word_file("", others={"media/picture.png": bytes(range(256))}), b"media/picture.png"),
            "damaged_file",
            "media/picture.png",
        ),
        (word_file("", others={"word/styles.xml": b"<a>"}), "damaged_file", "word/styles.xml: line 1"),
        (word_file("<w:p>"), "damaged_file", "word/document.xml: line 2"),
        (word_file("", others={"[Content_Types].xml": b"<Types/>"}), "damaged_file", "main part"),
        (
            word_file("", others={"word/document.xml": b"<!DOCTYPE a [<!ENTITY b 'c'>]><a/>"}),
            "entities",
            "word/document",
        ),
    ],
)
def test_damaged_documents_are_refused(content, code, place):
    with refused(code, place):
        read(content)


def test_packages_that_unpack_to_too_much_are_refused(monkeypatch):
    content = word_file("", others={"bomb": bytes(7_000_000)})
    assert len(content) < 20_000
    monkeypatch.setattr("regard.documents.xml.packages.MAX_BYTES", 5_000_000)
    with refused("too_large", "MiB"):
        read(content)
