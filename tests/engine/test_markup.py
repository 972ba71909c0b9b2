"""Tags put back into translations: each once, nested as they were, around the words they held."""

import re
import time

from hypothesis import given
from hypothesis import strategies as st

from regard.documents.html import element_tags
from regard.engine.markup.placement import placed
from regard.engine.markup.preparation import prepared
from regard.engine.results import WordLink
from regard.text.marked import InlineTag, Marked


def marked(page: str) -> Marked:
    """A text with the tags that are written in it."""
    text, tags = "", []
    for i, piece in enumerate(re.split(r"(<[^>]*>)", page)):
        if i % 2:
            tags.append(InlineTag(len(text), piece, *element_tags(piece)))
        else:
            text += piece
    return Marked(text, tuple(tags))


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
    """The page with its words replaced by those of the target."""
    source = prepared(marked(page))
    links = linked(source.body.text, target, order)
    return source.restored(target, placed(source.body, target, links).tags).written()


def test_elements_go_where_their_words_go():
    page = 'a <b>very <i>big</i></b> gift for <a href="x">our friends</a>'
    assert translated(page, "FRIENDS OUR GIFT BIG VERY", [6, 5, 3, 2, 1]) == (
        '<a href="x">FRIENDS OUR</a> GIFT <b><i>BIG</i> VERY</b>'
    )


def test_a_stray_word_does_not_tear_an_element_apart():
    page, order = "<b>one two three four</b> five", [0, 1, 4, 2, 3]
    assert translated(page, "ONE TWO FIVE THREE FOUR", order) == "<b>ONE TWO FIVE THREE FOUR</b>"
    assert translated("<b>one</b> two three", "TWO ONE THREE ONE", [1, 0, 2, 0]) == "TWO <b>ONE</b> THREE ONE"


def test_a_tag_without_words_stands_beside_the_word_that_it_was_at():
    assert translated("see<img src=a> the cat", "CAT SEE", [2, 0]) == "CAT SEE<img src=a>"
    assert translated("see <img src=a>the cat", "SEE CAT", [0, 2]) == "SEE <img src=a>CAT"
    assert translated("<wbr>see the cat", "CAT", [2]) == "<wbr>CAT"


def test_an_element_without_aligned_words_has_a_word_and_is_reported():
    source = marked("see <b>the</b> cat")
    found = placed(source, "CAT SEE", linked(source.text, "CAT SEE", [2, 0]))
    assert found.unaligned == ("the",)
    assert found.tags[0].place < found.tags[1].place


def test_elements_around_a_whole_text_need_no_alignment():
    source = prepared(marked("<i></i><b><i>all of it</i></b><img>"))
    assert source.body.tags == ()
    assert source.restored("ALL", ()).written() == "<i></i><b><i>ALL</i></b><img>"


def test_a_word_that_is_copied_is_cut_where_it_was():
    assert translated("drink H<sub>2</sub>O now", "NOW H2O DRINK", [2, 1, 0]) == "NOW H<sub>2</sub>O DRINK"


def test_code_is_a_word_that_comes_back_or_is_appended():
    code = InlineTag(4, "<code>x</code>", is_word=True)
    source = prepared(Marked("use  now", (code,)))
    assert source.body.text == "use {c0} now"
    assert source.restored("NOW {c0} USE", ()).written() == "NOW <code>x</code> USE"
    assert source.restored("NOW", ()).written() == "NOW<code>x</code>"
    assert source.lost("NOW") == ["<code>x</code>"]


TAGS = ["<b>", "</b>", "<i>", "</i>", "<img>", "<a x='1'>", "</a>", "<!-- c -->"]


@given(st.data())
def test_every_tag_is_there_once_and_the_text_is_unharmed(data):
    source = " ".join("abcdef"[: data.draw(st.integers(1, 6))])
    places = sorted(data.draw(st.lists(st.integers(0, len(source)), max_size=8)))
    raws = [data.draw(st.sampled_from(TAGS)) for _ in places]
    tags = tuple(InlineTag(place, raw, *element_tags(raw)) for place, raw in zip(places, raws, strict=True))
    n = len(source.split())
    order = data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=7))
    target = " ".join(["x,y", "&", "Z", "w", "v", "u", "t"][: len(order)])
    whole = prepared(Marked(source, tags))
    found = placed(whole.body, target, linked(source, target, order))
    written = whole.restored(target, found.tags)
    assert written.text == target
    assert sorted(tag.raw for tag in written.tags) == sorted(raws)
    assert [tag.place for tag in written.tags] == sorted(tag.place for tag in written.tags)


def test_many_tags_take_time_in_proportion_to_their_number():
    for page in ("<b>{}</b>", "x<i></i> ", "<b>x</b> "):
        n = 7001
        source = marked(page.format("x") * n if "{" not in page else "<b>" * n + "x" + "</b>" * n)
        words = linked(source.text, source.text, [*range(len(source.text.split()))])
        started = time.process_time()
        whole = prepared(source)
        assert len(whole.restored(source.text, placed(whole.body, source.text, words).tags).tags) == 2 * n
        assert time.process_time() - started < 5
