"""Tags put back into translations: each once, nested as they were, around the words they held."""

import re
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from regard.engine.results import WordLink
from regard.serve.html.pages import with_tags
from regard.serve.html.paragraphs import InlineTag, escaped, paragraphs


def linked(source: str, target: str, order: list[int]) -> list[WordLink]:
    """Links from each word of the target to a word of the source, by its number."""
    read = [match.span() for match in re.finditer(r"\S+", source)]
    written = [match.span() for match in re.finditer(r"\S+", target)]
    return [
        WordLink(
            source=source[slice(*read[i])],
            target=target[slice(*span)],
            source_start=read[i][0],
            source_end=read[i][1],
            target_start=span[0],
            target_end=span[1],
            strength=0.8,
        )
        for i, span in zip(order, written, strict=True)
    ]


def translated(page: str, target: str, order: list[int]) -> str:
    (paragraph,) = paragraphs(page)
    links = linked(paragraph.text, target, order)
    return with_tags(target, links, paragraph.tags, len(paragraph.text))


def test_elements_go_where_their_words_go():
    page = 'a <b>very <i>big</i></b> gift for <a href="x">our friends</a>'
    assert translated(page, "FRIENDS OUR GIFT BIG VERY", [6, 5, 3, 2, 1]) == (
        '<a href="x">FRIENDS OUR</a> GIFT <b><i>BIG</i> VERY</b>'
    )


def test_a_stray_word_does_not_tear_an_element_apart():
    page, order = "<b>one two three four</b> five", [0, 1, 4, 2, 3]
    assert translated(page, "ONE TWO FIVE THREE FOUR", order) == "<b>ONE TWO FIVE THREE FOUR</b>"
    assert translated("<b>one</b> two three", "TWO ONE THREE ONE", [1, 0, 2, 0]) == "TWO <b>ONE</b> THREE ONE"


def test_what_holds_no_word_stands_behind_the_word_before_it():
    assert translated("see <img src=a> the <i></i>cat", "CAT SEE", [2, 0]) == "CAT SEE<img src=a><i></i>"
    assert translated("<wbr>see <b>the</b> cat", "CAT", [2]) == "<wbr><b></b>CAT"


def test_no_tag_parts_a_name_in_braces():
    page, target = "<b>open <code>x</code></b> now", "{c0} OPEN NOW"
    (paragraph,) = paragraphs(page)
    whole = linked(paragraph.text, target, [1, 0, 2])
    torn = [replace(whole[0], target_end=1, strength=0.01), replace(whole[0], target_start=1), *whole[1:]]
    found = with_tags(target, torn, paragraph.tags, len(paragraph.text))
    assert paragraph.with_code(found) == "<b><code>x</code> OPEN</b> NOW"


def test_signs_of_the_text_are_written_as_html():
    assert translated("a &lt; <b>b &amp; c</b>", "A < B & C", [0, 1, 2, 3, 4]) == "A &lt; <b>B &amp; C</b>"


TAGS = ["<b>", "</b>", "<i>", "</i>", "<img>", "<a x='1'>", "</a>", "<!-- c -->", "<code>1</code>"]


@given(st.data())
def test_every_tag_is_there_once_and_the_text_is_unharmed(data):
    source = " ".join("abcdef"[: data.draw(st.integers(1, 6))])
    places = sorted(data.draw(st.lists(st.integers(0, len(source)), max_size=8)))
    marks = [InlineTag(place, data.draw(st.sampled_from(TAGS))) for place in places]
    n = len(source.split())
    order = data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=7))
    target = " ".join(["x<y", "&", "Z", "w", "v", "u", "t"][: len(order)])
    found = with_tags(target, linked(source, target, order), marks, len(source))
    for tag in {mark.raw for mark in marks}:
        assert found.count(tag) == [mark.raw for mark in marks].count(tag)
    for tag in TAGS:
        found = found.replace(tag, "")
    assert found == escaped(target)


def test_a_page_of_tags_and_little_else_takes_a_moment():
    for page in ("<b>" * 9000 + "x" + "</b>" * 9000, "x<i></i>" * 9000, "<b>" * 200 + "x" + "</b>" * 50):
        for each in paragraphs(page):
            assert len(each.tags) <= 256
            words = linked(each.text, each.text, [*range(len(each.text.split()))])
            assert with_tags(each.text, words, each.tags, len(each.text)).count("<") == len(each.tags)
