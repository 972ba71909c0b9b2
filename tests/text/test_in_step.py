import random
import re

import pytest

from regard.errors import CorpusError
from regard.text import Tally, read_parallel
from regard.text.files import lines
from regard.text.files.parallel import MOST_EXTRA, find_parting, likeness


@pytest.fixture
def write(tmp_path):
    def write(name, texts):
        (tmp_path / name).write_text("".join(f"{text}\n" for text in texts))
        return tmp_path / name

    return write


def made_up(count, seed=1):
    """Parallel lines whose lengths, and now and then numbers, go together as in real text."""
    draw = random.Random(seed)
    for _ in range(count):
        words = draw.randint(3, 30)
        number = f" {draw.randint(10, 9999)}" if draw.random() < 0.2 else ""
        yield "字" * (2 * words) + number, "word " * (words + draw.randint(-1, 1)) + number


def test_lines_stay_together_however_the_files_are_cut(write, monkeypatch):
    monkeypatch.setattr(lines, "_CHUNK", 50)
    pairs = list(made_up(100))
    paths = write("a.zh", (a for a, _ in pairs)), write("a.en", (b for _, b in pairs))
    got = []
    for block in read_parallel(paths):
        assert (block.first, block.name) == (len(got) + 1, str(paths[0]))
        got += zip(*block.columns, strict=True)
    assert got == pairs


def test_what_is_spoilt_on_either_side_spoils_the_pair(write, monkeypatch):
    monkeypatch.setattr(lines, "LONGEST_LINE", 8)
    paths = write("a", ["x", "longer than eight", "z"]), write("b", ["x", "y", "much longer than eight"])
    (block,) = read_parallel(paths)
    assert list(block.spoilt) == [1, 2]
    assert [column[0] for column in block.columns] == ["x", "x"]


def test_repairs_of_both_files_are_counted_together(write):
    paths = write("a", ["x\r", "y"]), write("b", ["x", "\0y"])
    repairs = Tally()
    list(read_parallel(paths, repairs, names=["a", "b"]))
    assert repairs.examples == {"carriage return": ["a:1"], "NUL": ["b:2"]}


@pytest.mark.parametrize("at", [0, 77, 250, 480])
@pytest.mark.parametrize("extra", [1, 3])
@pytest.mark.parametrize("shorter", [0, 1])
def test_files_of_different_length_are_refused_and_where_they_part_is_told(write, at, extra, shorter):
    columns = [list(column) for column in zip(*made_up(500), strict=True)]
    del columns[shorter][at : at + extra]
    paths = write("a.zh", columns[0]), write("a.en", columns[1])
    with pytest.raises(CorpusError) as caught:
        list(read_parallel(paths, names=["a.zh", "a.en"]))
    short, long = ("a.zh", "a.en") if shorter == 0 else ("a.en", "a.zh")
    told = str(caught.value)
    assert told.startswith(f"{short}:{500 - extra}: the file ends here, while {long} goes on to line 500")
    assert abs(int(re.search(r"part near line (\d+)", told)[1]) - (at + 1)) <= 3


def test_a_file_that_only_ends_early_is_told_so(write):
    pairs = list(made_up(300))
    paths = write("a", (a for a, _ in pairs)), write("b", (b for _, b in pairs[:280]))
    with pytest.raises(CorpusError, match="up to there they seem to be in step"):
        list(read_parallel(paths))


def test_where_nothing_can_be_told_nothing_is_claimed(write):
    paths = write("a", ["same"] * 50), write("b", ["same"] * 49)
    with pytest.raises(CorpusError, match="where they part cannot be told"):
        list(read_parallel(paths))


def test_an_empty_file_beside_a_full_one_is_named(write):
    paths = write("a", []), write("b", ["x", "y"])
    with pytest.raises(CorpusError, match=r"a: the file is empty, while .*b has 2 lines"):
        list(read_parallel(paths))


def test_noise_is_not_taken_for_a_parting():
    draw = random.Random(3)
    short = ["x" * draw.randint(5, 90) for _ in range(400)]
    long = ["x" * draw.randint(5, 90) for _ in range(401)]
    assert find_parting(lambda: short, lambda: long, 1) is None


def test_too_many_extra_lines_are_not_held_in_memory():
    assert find_parting(list, list, MOST_EXTRA + 1) is None


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        (("ten signs.", "ten signs."), ("ten signs.", "ten signs and many more of them")),
        (("in 1984", "in 1984"), ("in 1984", "in 2001")),
        (("Who?", "谁？"), ("Who?", "他。")),
        (("", ""), ("", "text")),
    ],
)
def test_lines_that_fit_are_more_alike(better, worse):
    assert likeness(*better, 0) > likeness(*worse, 0)
