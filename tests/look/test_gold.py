import pytest

from regard.look.alignment.alignment import Gold, align, alignment_error_rate
from tests.look.test_alignment import pinned
from tests.refusals import refused


def test_sure_and_possible_links_are_read():
    gold = Gold.read(" 0-0 1-2  2p1 10?3\n")
    assert gold.sure == {(0, 0), (1, 2)}
    assert gold.possible == gold.sure | {(2, 1), (10, 3)}
    assert Gold.read("").possible == frozenset()


@pytest.mark.parametrize("line", ["0-", "a-b", "0-0,1-1", "0--1", "-1-0"])
def test_what_is_no_link_is_refused(line):
    with refused("bad_link"):
        Gold.read(line)


def test_the_error_rate_is_what_one_works_out_by_hand():
    # Four were found: two are sure, one is only possible, one is wrong; three are sure in all.
    found = [(0, 0), (1, 1), (2, 2), (3, 0)]
    score = alignment_error_rate([(found, Gold.read("0-0 1-1 4-4 2p2 5p5"))])
    assert score.precision == pytest.approx(3 / 4)
    assert score.recall == pytest.approx(2 / 3)
    assert score.error_rate == pytest.approx(1 - (2 + 3) / (4 + 3))


def test_with_sure_links_alone_it_is_one_minus_f1():
    score = alignment_error_rate([([(0, 0), (1, 0)], Gold.read("0-0 2-2 3-3"))])
    f1 = 2 * score.precision * score.recall / (score.precision + score.recall)
    assert score.error_rate == pytest.approx(1 - f1)


def test_pairs_are_counted_together_and_not_averaged():
    right, wrong = ([(0, 0)], Gold.read("0-0")), ([(i, i) for i in range(3)], Gold.read("0-1 1-2 2-0"))
    assert alignment_error_rate([right]).error_rate == 0
    assert alignment_error_rate([wrong]).error_rate == 1
    assert alignment_error_rate([right, wrong]).error_rate == pytest.approx(1 - 2 / 8)


def test_a_score_of_nothing_is_refused():
    with refused("no_links"):
        alignment_error_rate([])
    with refused("no_links"):
        alignment_error_rate([([(0, 0)], Gold.read("0p0"))])


def test_an_alignment_is_scored_by_its_words():
    aligned = align(pinned(2), [(1, 2)], "own")  # cat is from 猫, sat from 坐; the is from nothing
    score = aligned.score(Gold.read("0-1 1-2"))
    assert score.recall == 1
    assert score.precision == pytest.approx(2 / 3)
    with refused("bad_link", "7-1", "7 words of the inputs and 3 of the outputs"):
        aligned.score(Gold.read("0-1 7-1"))
