"""Pages in paragraphs: what reads as one text is one text."""

from hypothesis import given

from regard.serve.html.paragraphs import paragraphs
from tests.serve.test_html_text import SIGNS


def texts(page):
    return [each.text for each in paragraphs(page) if each.text]


@given(SIGNS)
def test_joined_paragraphs_are_the_page(page):
    assert "".join(each.raw for each in paragraphs(page)) == page


def test_a_sentence_goes_on_through_tags_inside_of_it_and_ends_at_others():
    page = "<div>View <em><span>the whole</span></em>\n range <!-- x --> here!<br>Now<p>or never</div>"
    assert texts(page) == ["View the whole range here!", "Now", "or never"]


def test_breaks_of_lines_are_spaces_but_where_a_page_is_laid_out():
    page = "<p>\n\tIf a line\n\thas no <b> verb</b>\n</p><pre>two\n lines</pre>"
    assert texts(page) == ["If a line has no verb"]
    first = next(each for each in paragraphs(page) if each.text)
    assert first.outside == ("\n\t", "\n")
    assert [mark.place for mark in first.tags] == [17, 21]


def test_preformatted_text_and_formulas_are_not_read():
    page = "one<pre class='x'>x = 1  # <b>two</b>\n\n\ty</pre>three <math><mi>x</mi></math>"
    assert texts(page) == ["one", "three"]
    assert "".join(each.raw for each in paragraphs(page)) == page


def test_code_is_a_word_that_is_not_read():
    (paragraph,) = paragraphs("use <code>pip <b>x</b></code> or <Code class='a'>y</Code> now")
    assert (paragraph.text, paragraph.tags) == ("use {c0} or {c1} now", ())
    assert paragraph.with_code("{c1} USE {c0}") == "<Code class='a'>y</Code> USE <code>pip <b>x</b></code>"
    assert paragraph.with_code("USE {c1}") == "USE <Code class='a'>y</Code><code>pip <b>x</b></code>"


def test_code_stays_a_tag_where_its_name_is_taken():
    (paragraph,) = paragraphs("{c0} and <code>x</code>")
    assert (paragraph.text, [mark.raw for mark in paragraph.tags]) == ("{c0} and", ["<code>x</code>"])
