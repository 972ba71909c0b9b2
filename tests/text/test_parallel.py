import random
import re

import pytest

from regard.text import Tally, read_parallel
from regard.text.files import lines
from regard.text.files.parallel import MOST_EXTRA, find_mismatch, similarity
from tests.refusals import refused


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


def test_lines_stay_together_however_the_files_are_chunked(write, monkeypatch):
    monkeypatch.setattr(lines, "_CHUNK", 50)
    pairs = list(made_up(100))
    paths = write("a.zh", (a for a, _ in pairs)), write("a.en", (b for _, b in pairs))
    got = []
    for block in read_parallel(paths):
        assert (block.first, block.name) == (len(got) + 1, str(paths[0]))
        got += zip(*block.columns, strict=True)
    assert got == pairs


def test_an_unusable_line_on_either_side_makes_the_pair_unusable(write, monkeypatch):
    monkeypatch.setattr(lines, "LONGEST_LINE", 8)
    paths = write("a", ["x", "longer than eight", "z"]), write("b", ["x", "y", "much longer than eight"])
    (block,) = read_parallel(paths)
    assert list(block.unusable) == [1, 2]
    assert [column[0] for column in block.columns] == ["x", "x"]


def test_repairs_of_both_files_are_counted_together(write):
    paths = write("a", ["x\r", "y"]), write("b", ["x", "\0y"])
    repairs = Tally()
    list(read_parallel(paths, repairs, names=["a", "b"]))
    assert repairs.examples == {"carriage return": ["a:1"], "NUL": ["b:2"]}


@pytest.mark.parametrize("at", [0, 77, 250, 480])
@pytest.mark.parametrize("extra", [1, 3])
@pytest.mark.parametrize("shorter", [0, 1])
def test_files_of_different_length_are_refused_with_the_place_where_they_stop_matching(
    write, at, extra, shorter
):
    columns = [list(column) for column in zip(*made_up(500), strict=True)]
    del columns[shorter][at : at + extra]
    paths = write("a.zh", columns[0]), write("a.en", columns[1])
    short, long = ("a.zh", "a.en") if shorter == 0 else ("a.en", "a.zh")
    with refused("line_count_mismatch", f"{short}:{500 - extra}: ", f"{long} has 500 lines") as caught:
        list(read_parallel(paths, names=["a.zh", "a.en"]))
    first, second = re.findall(r"^  (.*?):(\d+): ", str(caught.value), re.MULTILINE)
    assert (first[0], second[0]) == (short, long)
    assert first[1] == second[1]
    assert abs(int(first[1]) - (at + 1)) <= 3


def test_a_file_that_only_ends_early_is_reported_so(write):
    pairs = list(made_up(300))
    paths = write("a", (a for a, _ in pairs)), write("b", (b for _, b in pairs[:280]))
    with refused("line_count_mismatch", "b:280: ", "up to there they seem to match"):
        list(read_parallel(paths))


def test_without_evidence_no_place_is_claimed(write):
    paths = write("a", ["same"] * 50), write("b", ["same"] * 49)
    with refused("line_count_mismatch", "b:49: ") as caught:
        list(read_parallel(paths))
    assert "\n" not in str(caught.value)


def test_an_empty_file_beside_a_full_one_is_named(write):
    paths = write("a", []), write("b", ["x", "y"])
    with refused("line_count_mismatch", "a: the file is empty", "b has 2 lines"):
        list(read_parallel(paths))


def test_noise_is_not_taken_for_a_mismatch():
    draw = random.Random(3)
    short = ["x" * draw.randint(5, 90) for _ in range(400)]
    long = ["x" * draw.randint(5, 90) for _ in range(401)]
    assert find_mismatch(lambda: short, lambda: long, 1) is None


def test_too_many_extra_lines_are_not_held_in_memory():
    assert find_mismatch(list, list, MOST_EXTRA + 1) is None


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        (("ten signs.", "ten signs."), ("ten signs.", "ten signs and many more of them")),
        (("in 1984", "in 1984"), ("in 1984", "in 2001")),
        (("Who?", "谁？"), ("Who?", "他。")),
        (("", ""), ("", "text")),
    ],
)
def test_matching_lines_are_more_similar(better, worse):
    assert similarity(*better, 0) > similarity(*worse, 0)
