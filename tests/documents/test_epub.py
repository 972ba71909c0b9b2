"""E-books: chapters, contents and titles are translated; the package stays an EPUB."""

import io
import zipfile

import pytest

from regard.documents.epub import read
from regard.text.marked import Marked
from tests.documents.translators import in_capitals, texts, unchanged
from tests.documents.word_files import file_of
from tests.refusals import refused

PAGE = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE html>
<html xmlns="http://www.w3.org/1999/xhtml" xml:lang="en" lang="en">
<head><title>{0}</title><link rel="stylesheet" href="s.css"/></head>
<body><p>{0} <b>bold</b> &amp; more<br/>line</p><img src="i.png" alt=""/></body></html>
"""
FILES = {
    "mimetype": "application/epub+zip",
    "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container">'
    '<rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>',
    "OEBPS/book.opf": """<?xml version='1.0'?>
<package xmlns="http://www.idpf.org/2007/opf" version="3.0" xml:lang="en">
  <metadata xmlns:dc="http://purl.org/dc/elements/1.1/">
    <dc:title id="t">My book</dc:title><dc:creator>A. Person</dc:creator><dc:language>en-GB</dc:language>
  </metadata>
  <manifest>
    <item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>
    <item id="c2" href="text/chapter%202.xhtml" media-type="application/xhtml+xml"/>
    <item id="c1" href="text/one.xhtml" media-type="application/xhtml+xml"/>
    <item id="toc" href="toc.ncx" media-type="application/x-dtbncx+xml"/>
    <item id="img" href="text/i.png" media-type="image/png"/>
  </manifest>
  <spine toc="toc"><itemref idref="c1"/><itemref idref="c2"/></spine>
</package>
""",
    "OEBPS/toc.ncx": """<?xml version="1.0"?>
<!DOCTYPE ncx PUBLIC "-//NISO//DTD ncx 2005-1//EN" "http://www.daisy.org/z3986/2005/ncx-2005-1.dtd">
<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/" version="2005-1"><docTitle><text>My book</text></docTitle>
<navMap><navPoint id="p1"><navLabel><text> Chapter &lt;1&gt; </text></navLabel>
<content src="text/one.xhtml"/></navPoint></navMap></ncx>
""",
    "OEBPS/nav.xhtml": PAGE.format("Contents"),
    "OEBPS/text/chapter 2.xhtml": PAGE.format("Second"),
    "OEBPS/text/one.xhtml": PAGE.format("First"),
    "OEBPS/text/i.png": "picture",
}


def book(changed: dict[str, str | None] | None = None, *, mimetype_first: bool = True) -> bytes:
    """A book; None leaves a file out."""
    files = {name: text for name, text in {**FILES, **(changed or {})}.items() if text is not None}
    if not mimetype_first:
        files["mimetype"] = files.pop("mimetype")
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for name, text in files.items():
            info = zipfile.ZipInfo(name, (2020, 1, 2, 3, 4, 6))
            stored = name == "mimetype" and mimetype_first
            info.compress_type = zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED
            archive.writestr(info, text)
    return written.getvalue()


def test_chapters_are_read_in_the_order_of_the_book():
    assert [text for text in texts(read(book())) if "bold" not in text and text != "line"] == [
        "My book",
        "First",
        "Second",
        "Contents",
        "My book",
        "Chapter <1>",
    ]


def test_titles_contents_and_language_are_written():
    after = in_capitals(read(book()), "zh")
    description = file_of(after, "OEBPS/book.opf")
    changed = FILES["OEBPS/book.opf"].replace("My book", "MY BOOK").replace("en-GB", "zh")
    assert description == changed.replace('xml:lang="en"', 'xml:lang="zh"')
    contents = file_of(after, "OEBPS/toc.ncx")
    assert contents == FILES["OEBPS/toc.ncx"].replace("My book", "MY BOOK").replace(
        " Chapter &lt;1&gt; ", "CHAPTER &lt;1&gt;"
    )
    chapter = file_of(after, "OEBPS/text/one.xhtml")
    assert "<p>FIRST <b>BOLD</b> &amp; MORE<br/>LINE</p>" in chapter
    assert 'xml:lang="zh" lang="zh"' in chapter


@pytest.mark.parametrize("mimetype_first", [True, False])
def test_the_package_is_an_epub_and_other_files_stay(mimetype_first):
    before = book(mimetype_first=mimetype_first)
    after = in_capitals(read(before))
    assert after[30:58] == b"mimetypeapplication/epub+zip"
    with zipfile.ZipFile(io.BytesIO(before)) as old, zipfile.ZipFile(io.BytesIO(after)) as new:
        assert new.testzip() is None
        assert sorted(new.namelist()) == sorted(old.namelist())
        assert new.read("OEBPS/text/i.png") == old.read("OEBPS/text/i.png")
        assert new.infolist()[0].compress_type == zipfile.ZIP_STORED
        assert {each.compress_type for each in new.infolist()[1:]} == {zipfile.ZIP_DEFLATED}


def test_its_own_texts_give_the_same_bytes():
    content = book()
    assert unchanged(read(content)) == content
    assert unchanged(read(content), "en") == content


def test_a_chapter_whose_tags_would_break_stays():
    document = read(book())
    translations = [Marked("x", each.tags[:1]) for each in document.segments]
    after = document.written(translations)
    assert file_of(after, "OEBPS/text/one.xhtml") == FILES["OEBPS/text/one.xhtml"]
    assert "<text>x</text>" in file_of(after, "OEBPS/toc.ncx")
    assert len(document.notes) == 3


def test_missing_chapters_are_noted():
    document = read(book({"OEBPS/text/one.xhtml": None}))
    assert "First" not in texts(document)
    assert len(document.notes) == 1


CIPHER = '<encryption xmlns="x"><CipherReference URI="{}"/></encryption>'


def test_encrypted_fonts_are_no_obstacle():
    assert texts(read(book({"META-INF/encryption.xml": CIPHER.format("OEBPS/fonts/a.otf")})))


@pytest.mark.parametrize(
    ("changed", "code", "place"),
    [
        ({"META-INF/container.xml": None}, "damaged_file", "META-INF/container.xml"),
        ({"META-INF/container.xml": "<container/>"}, "damaged_file", "META-INF/container.xml"),
        ({"OEBPS/book.opf": None}, "damaged_file", "OEBPS/book.opf"),
        ({"OEBPS/toc.ncx": "<ncx>"}, "damaged_file", "OEBPS/toc.ncx: line 1"),
        ({"OEBPS/toc.ncx": '<!DOCTYPE n [<!ENTITY a "a">]><n/>'}, "entities", "OEBPS/toc.ncx"),
        ({"META-INF/encryption.xml": CIPHER.format("OEBPS/text/one.xhtml")}, "encrypted_file", "one.xhtml"),
    ],
)
def test_damaged_books_are_refused(changed, code, place):
    with refused(code, place):
        read(book(changed))
