"""Pages in parts: joined, they are the page, whatever it holds."""

from hypothesis import given
from hypothesis import strategies as st

from regard.serve.html.paragraphs import escaped, parts, plain

SIGNS = st.text(st.sampled_from("<>\"'/!-ab &;\n") | st.characters(codec="utf-8"), max_size=60)


@given(SIGNS)
def test_joined_parts_are_the_page(page):
    assert "".join(part.raw for part in parts(page)) == page


@given(st.text(st.characters(codec="utf-8")))
def test_a_text_that_is_escaped_has_no_tags_and_comes_back(text):
    assert plain(escaped(text)) == text or "&" in text
    assert not any(part.raw.startswith("<") for part in parts(escaped(text)))


def test_what_is_text():
    page = '<a title="x > y">one</a> 3 < 4 <!-- two > --><CODE>three</code>&lt;b&gt;<style>p{}</style><i'
    assert [part.raw for part in parts(page) if part.is_text] == ["one", " 3 < 4 ", "&lt;b&gt;", "<i"]


def test_a_long_page_of_open_tags_takes_a_moment_not_an_hour():
    for page in ("<a " * 50_000, '<"' * 50_000, "<!--" * 50_000, "<a '" * 50_000):
        assert "".join(part.raw for part in parts(page)) == page
