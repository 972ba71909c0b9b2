"""Pages: what is translated in them, and that all else stays byte for byte."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.documents.html import parts, read, read_text
from regard.text.marked import Marked
from tests.refusals import refused

SIGNS = st.lists(
    st.sampled_from(
        [
            *"<>\"'/!- &;\n",
            *("<b>", "</b>", "<!--", "-->", "<a href='x", "</", "&amp", "x", "<![x[", "<![if x]>", "<?p"),
            *(
                "<script>",
                "</script>",
                "<sup>1</sup>",
                "<code>",
                "<p translate=no>",
                "<img alt='d e'>",
                "</>",
            ),
        ]
    ),
    max_size=30,
).map("".join)

PAGE = """<!DOCTYPE html>\r
<html lang="en"><head><title>Tea &amp; more</title>
<meta name="description" content="All about 'tea'"><meta name="viewport" content="width">
<script>if (a<b) x = "</p>Not this";</script><style>p { color: red }</style></head>
<body class=x>
<p>View <em><span>the whole</span></em>\n range <!-- x --> here!<br>Now<sup><a href="#n">[1]</a></sup>
<p>Run <code>pip <b>x</b></code>, press <kbd>Enter</kbd>.</p>
<img src=a alt="A dog"> <input type=submit value=Go> <span translate="no">Brand X</span> &copy;2024
<pre class=x>one\n two</pre><p class="a notranslate">Not <b>this</b><p>3 < 4 is true
</body></html>
"""


def texts(page):
    return [each.text for each in read_text(page).segments]


def in_capitals(page, language=""):
    document = read_text(page)
    return document.written(
        [Marked(each.text.upper(), each.tags) for each in document.segments], language
    ).decode()


@given(SIGNS)
def test_the_parts_of_a_page_and_its_own_segments_are_the_page(page):
    assert "".join(part.raw for part in parts(page)) == page
    document = read_text(page)
    assert document.written(document.segments).decode() == page


def test_what_is_translated():
    assert texts(PAGE) == [
        "Tea & more",
        "All about 'tea'",
        "View the whole range here!",
        "Now",
        "Run , press .",
        "A dog",
        "Go",
        "3 < 4 is true",
    ]


def test_translations_are_written_between_tags_and_into_attributes():
    written = in_capitals(PAGE, "zh")
    assert '<html lang="zh">' in written
    assert """content="ALL ABOUT 'TEA'">""" in written
    assert "<p>VIEW <em><span>THE WHOLE</span></em> RANGE <!-- x -->HERE!<br>NOW<sup>" in written
    assert "RUN <code>pip <b>x</b></code>, PRESS <kbd>Enter</kbd>.</p>\n" in written
    assert (
        '<img src=a alt="A DOG"> <input type=submit value="GO"> <span translate="no">Brand X</span>'
        in written
    )
    assert "3 &lt; 4 IS TRUE\n</body>" in written
    for kept in (
        'Not this";</script>',
        "p { color: red }",
        "one\n two</pre>",
        "Not <b>this</b>",
        "&copy;2024",
    ):
        assert kept in written


def test_a_footnote_mark_is_no_word_but_an_index_is():
    first, second = read_text("<p>Tea<sup>[2]</sup> is hot.</p><p>H<sub>2</sub>O</p>").segments
    assert (first.text, [tag.raw for tag in first.tags]) == ("Tea is hot.", ["<sup>[2]</sup>"])
    assert (second.text, len(second.tags)) == ("H2O", 2)


def test_a_translation_keeps_the_encoding_of_a_page():
    page = '<meta charset="gb2312"><p>茶</p>'.encode("gb18030")
    assert read(page).written([Marked("咖啡")]) == '<meta charset="gb2312"><p>咖啡</p>'.encode("gb18030")
    page = '<meta charset="iso-8859-1"><p>caf\xe9</p>'.encode("latin1")
    assert b"<p>&#33590;</p>" in read(page).written([Marked("茶")])
    page = "\ufeff<p>tea</p>".encode("utf-16")
    assert read(page).written(read(page).segments) == page
    with refused("not_utf_8"):
        read("<p>caf\xe9</p>".encode("latin1"))


@pytest.mark.parametrize(
    "piece",
    [
        *(
            "<a ",
            '<a "',
            "<!-- >",
            "<!--",
            "<b>",
            "</b>",
            "<script>",
            "x<i></i>",
            "<p translate=no>",
            "<sup>",
        ),
        *("<![CDATA[", "<code>", "<", "&", "<img alt=x ", "<?x", "<b><i>x</b></i>", "<![if x]>"),
    ],
)
def test_a_hostile_page_takes_time_in_proportion_to_its_size(piece):
    def seconds(n):
        page = (piece * n)[:n]
        best = float("inf")
        for _ in range(3):
            started = time.process_time()
            document = read_text(page)
            assert document.written(document.segments).decode() == page
            best = min(best, time.process_time() - started)
        return best

    # Quadratic would be 64 times as long; on a busy machine, linear may be some 30 times.
    assert seconds(80_000) < 40 * seconds(10_000) + 0.1
