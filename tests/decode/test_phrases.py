"""Phrases are always there, where the model likes them best."""

from functools import reduce

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.decode.beam import beam_search
from regard.decode.phrases import PhraseGuide, PhraseProgress, Phrases
from regard.errors import RequestError
from tests.decode.rigged import EOS, constraints, log, random_rig, start, stepping
from tests.refusals import refused

tokens = st.integers(1, 5)
spellings = st.lists(st.lists(tokens, min_size=1, max_size=4).map(tuple), min_size=1, max_size=2).map(tuple)
phrases_of_one = (
    st.lists(spellings, max_size=3)
    .flatmap(lambda some: st.lists(st.sampled_from(some), max_size=4) if some else st.just([]))
    .map(tuple)
)
prefixes = st.lists(tokens, max_size=3).map(tuple)


def search(rig, phrases, limits, width=4, **others):
    here = constraints(*limits, **others)
    guide = PhraseGuide([Phrases(each) for each in phrases], here)
    state = start(len(limits), width)
    return beam_search(stepping(rig), state, here, width=width, alpha=0.6, guide=guide)


def progress_after(phrases: Phrases, ids) -> PhraseProgress:
    return reduce(phrases.after, ids, phrases.start)


def count(ids, ways) -> int:
    """Occurrences of any spelling, without overlaps."""
    n = free_from = 0
    for end in range(1, len(ids) + 1):
        if any(ids[max(free_from, end - len(way)) : end] == way for way in ways):
            n, free_from = n + 1, end
    return n


@settings(max_examples=60)
@given(
    st.integers(0, 2**32),
    st.lists(st.tuples(phrases_of_one, prefixes, st.integers(0, 9)), min_size=1, max_size=3),
    st.integers(2, 6),
)
def test_all_phrases_are_there_even_if_they_only_just_fit(seed, sources, width):
    limits = [len(prefix) + Phrases(phrases).n_tokens + 1 + room for phrases, prefix, room in sources]
    phrases, begun = [each[0] for each in sources], tuple(each[1] for each in sources)
    found = search(random_rig(seed, n_tokens=7), phrases, limits, width, prefixes=begun)
    for (best,), wanted, prefix in zip(found, phrases, begun, strict=True):
        assert best.ids[: len(prefix)] == prefix
        for ways in wanted:
            assert count(best.ids, ways) >= wanted.count(ways)


@given(phrases_of_one, st.lists(tokens, max_size=12))
def test_progress_knows_how_often_each_phrase_is_there(wanted, ids):
    phrases = Phrases(wanted)
    needed = [wanted.count(ways) for ways in phrases.phrases]
    found = [count(tuple(ids), ways) for ways in phrases.phrases]
    lacking = progress_after(phrases, ids).lacking
    assert lacking == tuple(max(0, n - there) for n, there in zip(needed, found, strict=True))


@given(phrases_of_one, st.lists(tokens, max_size=12))
def test_what_is_missing_can_be_made_up_with_so_many_tokens(wanted, ids):
    """Some token always brings it one nearer, and at 0 everything is there."""
    phrases = Phrases(wanted)
    progress = progress_after(phrases, ids)
    while missing := phrases.missing(progress):
        nearer = [phrases.after(progress, token) for token in phrases.next_tokens(progress)]
        progress = min(nearer, key=phrases.missing)
        assert phrases.missing(progress) < missing
    assert not any(progress.lacking)
    assert progress.n_tokens == 0


def test_occurrences_of_one_phrase_do_not_overlap():
    """In 2 3 2 there is one "2 3 2" or "2 3", and 2 in its two spellings occurs twice."""
    ids = (2, 3, 2)
    assert progress_after(Phrases([((2, 3, 2), (2, 3))] * 3), ids).lacking == (2,)
    assert progress_after(Phrases([((2,), (3, 2))] * 3), ids).lacking == (1,)


def test_a_phrase_goes_where_the_model_likes_it_best():
    """Left alone it says 2 3 4. 5 fits best after 3, though 25 other tokens fit better there."""

    def rig(_source, ids):
        rest = {(): 2, (2,): 3, (2, 3): 4, (2, 3, 5): 4}.get(ids, EOS)
        chance = 1e-3 if ids == (2, 3) else 1e-6
        return [log(0.7 if token == rest else chance if token == 5 else 0.01) for token in range(29)]

    assert search(rig, [()], [9])[0][0].ids == (2, 3, 4)
    assert search(rig, [(((5,),),)], [9])[0][0].ids == (2, 3, 5, 4)


def test_there_is_always_room_left_to_end():
    """2 5 is far likelier than 5 alone, but would be cut off there."""

    def rig(_source, ids):
        likeliest = {(): 2, (2,): 5}.get(ids, EOS)
        return [log(0.9 if token == likeliest else 0.02) for token in range(6)]

    (found,) = search(rig, [(((5,),),)], [2])
    assert (found[0].ids, found[0].finished) == ((5,), True)


def test_a_prefix_may_take_its_time_where_it_has_the_phrases_at_its_end():
    (found,) = search(random_rig(2, 11), [(((2,),), ((2, 7), (2,)))], [3], prefixes=((9, 2),))
    assert found[0].ids == (9, 2)


def test_of_several_spellings_the_model_has_its_choice():
    def rig(_source, ids):
        return [log(p) for p in ([0.1, 0.0, 0.5, 0.1, 0.3] if not ids else [0.5, 0.0, 0.1, 0.3, 0.1])]

    assert search(rig, [(((3,), (4,)),)], [3])[0][0].ids == (4,)


def test_sources_without_phrases_find_what_they_would_find_anyhow():
    rig = random_rig(seed=3, n_tokens=7)
    freely = beam_search(stepping(rig), start(2, 4), constraints(7, 9), width=4, alpha=0.6)
    beside = search(rig, [(), (((3, 4),),)], [7, 9])
    assert beside[0] == freely[0]


@pytest.mark.parametrize(
    ("phrases", "limit", "code", "place"),
    [
        ((((2, 3, 4),), ((5, 6),)), 5, "phrases_too_long", "at least 6 tokens with the end, the limit is 5"),
        ((((2, EOS),),), 9, "bad_phrase", "contains 0"),
        (((),), 9, "bad_phrase", "phrase 0"),
        ((((),),), 9, "bad_phrase", "phrase 0"),
    ],
)
def test_phrases_that_cannot_be_there_are_refused(phrases, limit, code, place):
    with refused(code, place, error=RequestError):
        search(random_rig(1, 7), [phrases], [limit])


def test_what_the_prefix_has_begun_need_not_be_said_again():
    (found,) = search(random_rig(2, 7), [(((2, 3, 4),),)], [4], prefixes=((2, 3),))
    assert found[0].ids[:3] == (2, 3, 4)
