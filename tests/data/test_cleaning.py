import random
import tempfile
import tracemalloc
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from regard.config import DataConfig
from regard.data.cleaning import clean, holding_out
from regard.data.cleaning.holding_out import Fate, Fingerprints, HeldOutSizes, hashes_of, mark_duplicates
from regard.data.reading import parallel_corpus, table_corpus, text_corpus
from regard.text import comparison_forms
from regard.text.files import lines
from tests.refusals import refused


@pytest.fixture
def corpus(tmp_path):
    def corpus(pairs, name="train"):
        for side, suffix in enumerate(("zh", "en")):
            text = "".join(pair[side] + "\n" for pair in pairs)
            (tmp_path / f"{name}.{suffix}").write_bytes(text.encode())
        return parallel_corpus(tmp_path / f"{name}.zh", tmp_path / f"{name}.en")

    return corpus


def many(count, start=0):
    return [(f"第{i}号猫坐在垫子上", f"cat number {i} sat on the mat") for i in range(start, start + count)]


def fates(cleaned):
    return [Fate(fate).name for fate in cleaned.fates]


GOOD = ("猫坐在垫子上", "the cat sat on the mat")


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (("", "text"), "empty"),
        (("文", "  \u3000"), "empty"),
        (("", ""), "empty"),
        (("文" * 2001, "t" * 6000), "too long"),
        (("文" * 100, "hello"), "length ratio"),
        (("你好", "h" * 300), "length ratio"),
        (("坏\ufffd了", "it is broken"), "wrong encoding"),
        (GOOD, "duplicate"),
        (("猫 坐在垫子上！", "it sat"), "in validation or test"),
        (("文", "x" * 1_000_000), "line of a megabyte"),
    ],
)
def test_what_is_dropped_is_counted_with_its_reason_and_line(corpus, bad, reason):
    given = [corpus([("猫坐在垫子上", "!")], "valid")] if "validation" in reason else []
    first = many(10) if given else [GOOD, *many(9)]
    cleaned = clean(corpus([*first, bad, *many(5, 20)]), given=given)
    assert cleaned.dropped.as_dict() == {reason: {"lines": 1, "first": [f"{cleaned.corpus.names[0]}:11"]}}
    assert list(cleaned.rows()) == [*first, *many(5, 20)]
    assert cleaned.n_lines == 16


def test_a_line_counts_once_and_all_lines_are_accounted_for(corpus):
    pairs = [GOOD, ("", "x" * 5000), ("", ""), ("", ""), GOOD, *many(20)]
    cleaned = clean(corpus(pairs), split=HeldOutSizes(validation=3, test=2))
    assert cleaned.dropped.counts == {"empty": 3, "duplicate": 1}
    kept = cleaned.count(Fate.TRAINING)
    assert kept + 3 + 2 + cleaned.dropped.total == cleaned.n_lines == 25
    assert len(list(cleaned.rows())) == kept == 16


def test_lines_that_are_not_utf_8_are_counted_where_they_are_dropped(corpus):
    made = corpus(many(20))
    content = made.paths[1].read_bytes().split(b"\n")
    content[6] += b"\xff"
    made.paths[1].write_bytes(b"\n".join(content))
    with refused("not_utf_8", "train.en:7: "):
        clean(made)
    cleaned = clean(parallel_corpus(*made.paths, on_invalid="drop"))
    assert cleaned.dropped.as_dict()["wrong encoding"] == {"lines": 1, "first": [f"{made.names[0]}:7"]}


def test_repairs_are_kept_apart_from_what_is_dropped(corpus):
    cleaned = clean(corpus([("\ufeff猫坐在垫子上", "the cat\u2028sat on the mat"), *many(3)]))
    assert not cleaned.dropped.counts
    assert cleaned.repairs.counts == {"byte order mark": 1, "line separator": 1}
    assert next(cleaned.rows()) == GOOD


def test_the_usual_ratio_of_lengths_is_the_corpus_own(corpus):
    """Chinese to English grows threefold: no reason to drop. One that stays the same length is odd there."""
    draw = random.Random(1)
    sizes = [draw.randint(20, 60) for _ in range(200)]
    pairs = [("字" * n + str(i), "w" * (6 * n) + str(i)) for i, n in enumerate(sizes)]
    cleaned = clean(corpus([*pairs, ("字" * 60, "w" * 60)]))
    assert cleaned.dropped.as_dict() == {
        "length ratio": {"lines": 1, "first": [f"{cleaned.corpus.names[0]}:201"]}
    }
    assert not clean(corpus([*pairs, ("字" * 60, "w" * 60)]), DataConfig(max_ratio=None)).dropped.counts


def test_a_duplicate_is_the_whole_pair_and_the_first_one_stays(corpus):
    pairs = [("一样", "one"), ("一样", "two"), ("一样", "one"), ("一样", "One"), ("一样", "one")]
    cleaned = clean(corpus(pairs))
    assert fates(cleaned) == ["TRAINING", "TRAINING", "DUPLICATE", "TRAINING", "DUPLICATE"]
    assert list(clean(corpus(pairs), DataConfig(drop_duplicates=False)).rows()) == pairs


@pytest.mark.parametrize("at_once", [1, 7, 100, 1000])
def test_duplicates_are_found_part_by_part_as_all_at_once(monkeypatch, at_once):
    monkeypatch.setattr(holding_out, "_ROWS", 13)
    draw = random.Random(1)
    texts = [str(draw.randint(0, 60)) for _ in range(200)]
    whole = hashes_of(texts)
    prints = Fingerprints(1, None)
    prints.append(np.stack([whole, whole, whole], axis=1))
    got = np.zeros(200, np.uint8)
    got[5] = Fate.EMPTY
    mark_duplicates(got, prints, at_once)
    prints.close()
    seen = set()
    for i, text in enumerate(texts):
        expected = Fate.EMPTY if i == 5 else Fate.DUPLICATE if text in seen else Fate.TRAINING
        assert got[i] == expected, i
        if i != 5:
            seen.add(text)


def overlap(rows, others):
    """Sides that rows share with others, as texts are compared."""
    return sum(
        len(
            set(comparison_forms([row[side] for row in rows]))
            & set(comparison_forms([o[side] for o in others]))
        )
        for side in (0, 1)
    )


def test_held_out_rows_are_never_trained_on_whatever_their_spelling(corpus):
    draw = random.Random(1)
    pairs = []
    for i in range(600):
        zh, en = f"第{draw.randint(1, 150)}号猫", f"Cat number {draw.randint(1, 150)}"
        pairs.append(
            (zh + draw.choice(["", "。", "！"]), draw.choice([en, en.upper(), en + "."]) + " " * (i % 2))
        )
    cleaned = clean(corpus(pairs), split=HeldOutSizes(validation=15, test=10))
    validation, test = cleaned.held_out()
    assert (len(validation), len(test)) == (15, 10)
    training = list(cleaned.rows())
    assert len(training) > 100
    assert overlap(training, validation) == overlap(training, test) == overlap(validation, test) == 0
    assert cleaned.dropped.counts["in validation or test"] > 0


def test_given_sets_stay_as_they_are_and_training_gives_way(corpus):
    given = corpus(
        [("第3号猫坐在垫子上。", "something else"), ("其他", "CAT NUMBER 5 sat on the mat!")], "test"
    )
    cleaned = clean(corpus(many(10)), given=[given])
    assert [i for i, fate in enumerate(fates(cleaned)) if fate == "HELD_OUT"] == [3, 5]


def test_frequent_texts_are_not_held_out_while_there_are_others(corpus):
    common = [("谢谢", f"thanks {i}") for i in range(300)]
    cleaned = clean(corpus([*common, *many(100)]), split=HeldOutSizes(validation=20, test=20))
    assert "谢谢" not in {zh for rows in cleaned.held_out() for zh, _ in rows}
    assert not cleaned.dropped.counts


def test_the_same_seed_holds_out_the_same_rows_in_any_order(corpus, monkeypatch):
    pairs = many(500)
    first = clean(corpus(pairs), split=HeldOutSizes(), seed=1).held_out()
    assert [len(rows) for rows in first] == [50, 50]
    monkeypatch.setattr(holding_out, "_ROWS", 17)
    random.Random(1).shuffle(pairs)
    again = clean(corpus(pairs), split=HeldOutSizes(), seed=1).held_out()
    assert [sorted(rows) for rows in again] == [sorted(rows) for rows in first]
    assert [sorted(rows) for rows in clean(corpus(pairs), split=HeldOutSizes(), seed=2).held_out()] != [
        sorted(rows) for rows in first
    ]


def test_held_out_rows_come_from_all_over(corpus):
    validation, _ = clean(corpus(many(2000)), split=HeldOutSizes(validation=200, test=0)).held_out()
    numbers = [int(en.split()[2]) for _, en in validation]
    quarters = Counter(number // 500 for number in numbers)
    assert min(quarters[i] for i in range(4)) > 25


@pytest.mark.parametrize(
    ("split", "n_rows", "sizes"),
    [
        (HeldOutSizes(), 1_000_000, (2000, 2000)),
        (HeldOutSizes(), 50_000, (1000, 1000)),
        (HeldOutSizes(), 5000, (200, 200)),
        (HeldOutSizes(), 10, (1, 1)),
        (HeldOutSizes(validation=7, test=0), 100, (7, 0)),
        (HeldOutSizes(test=0), 100, (10, 0)),
    ],
)
def test_how_much_is_held_out(split, n_rows, sizes):
    assert split.sizes(n_rows) == sizes


def test_holding_out_everything_is_refused(corpus):
    with refused("too_little_data", "20 rows", "15"):
        clean(corpus(many(20)), split=HeldOutSizes(validation=15, test=5))
    with refused("too_little_data", "1 row", "--valid"):
        clean(corpus(many(1)), split=HeldOutSizes(test=0))


def test_rows_that_are_all_alike_cannot_be_held_out(corpus):
    alike = [("猫", f"{'!' * i}cat") for i in range(20)]
    with refused("too_little_data", "--valid and --test"):
        clean(corpus(alike), split=HeldOutSizes())


def test_nothing_left_is_refused_with_the_reasons(corpus):
    with refused("no_examples", "train.zh: ", "3 lines: empty 3"):
        clean(corpus([("", "")] * 3))
    given = corpus(many(5), "test")
    with refused("no_examples", "in validation or test 5"):
        clean(corpus(many(5)), given=[given], split=HeldOutSizes())


def test_labels_are_not_compared(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("".join(f"{i % 2}\ttext number {i}\n" for i in range(100)))
    rules, split = DataConfig(max_ratio=None), HeldOutSizes(validation=5, test=5)
    cleaned = clean(table_corpus(path, columns=[1, 2]), rules, compared=[1], split=split)
    assert not cleaned.dropped.counts
    assert list(cleaned.texts([1])) == [text for _, text in cleaned.rows()]


def test_single_texts_are_cleaned_too(tmp_path):
    for name in "ab":
        (tmp_path / name).write_text("".join(f"{name} {i}\n" for i in range(20)) + "\n")
    cleaned = clean(text_corpus(tmp_path / "a", tmp_path / "b"))
    assert cleaned.dropped.as_dict()["empty"]["first"] == [f"{tmp_path / 'a'}:21", f"{tmp_path / 'b'}:21"]
    assert len(list(cleaned.texts())) == 40
    assert cleaned.training_place(20) == (str(tmp_path / "b"), 1)
    with pytest.raises(IndexError):
        cleaned.training_place(40)


@pytest.mark.parametrize("change", [lambda rows: rows[:-1], lambda rows: [*rows, *many(1, 99)]])
def test_files_that_change_meanwhile_are_noticed(corpus, change):
    cleaned = clean(corpus(many(10)))
    corpus(change(many(10)))
    with refused("data_changed", "train.zh"):
        list(cleaned.rows())


def test_progress_is_in_lines(corpus, monkeypatch):
    monkeypatch.setattr(lines, "_CHUNK", 100)
    counts = []
    clean(corpus(many(50)), progress=counts.append)
    assert sum(counts) == 50
    assert len(counts) > 10


def test_a_full_scratch_folder_is_refused(corpus, monkeypatch):
    made = corpus(many(10))
    with Path("/dev/full").open("r+b", buffering=0) as full:
        monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: full)
        with refused("unwritable_folder", "No space left on device"):
            clean(made)


def test_a_missing_scratch_folder_is_refused(corpus, tmp_path):
    with refused("unwritable_folder", str(tmp_path / "none")):
        clean(corpus(many(10)), scratch=tmp_path / "none")


def test_memory_does_not_grow_with_the_corpus(corpus):
    """The texts of the larger corpus take 40 MiB. If they were kept, this test would see them."""
    peaks = []
    for count in (3_000, 30_000):
        made = corpus([(zh + "坐在垫子上" * 100, en + " on the mat" * 40) for zh, en in many(count)])
        tracemalloc.start()
        cleaned = clean(made, split=HeldOutSizes())
        sum(1 for _ in cleaned.rows())
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 10 * 2**20
