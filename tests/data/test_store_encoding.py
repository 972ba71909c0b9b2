"""Lines are encoded by several threads, in their order and few at a time; a key says what went in."""

import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.store.writing import content_key, encode_in_threads, row_encoder
from regard.errors import CorpusError
from tests.refusals import refused


def encode(lines: list[str]) -> list[np.ndarray]:
    return [np.array([len(word) for word in line.split()]) for line in lines]


@given(st.integers(0, 101), st.integers(1, 5), st.integers(1, 13))
def test_what_comes_out_has_the_order_of_what_went_in(n, threads, chunk):
    def uneven(numbers: list[int]) -> list[int]:
        time.sleep(0.001 * (numbers[0] % 3))
        return [10 * number for number in numbers]

    done: list[int] = []
    encoded = encode_in_threads(range(n), uneven, threads=threads, chunk=chunk, progress=done.append)
    assert list(encoded) == [10 * i for i in range(n)]
    assert sum(done) == n
    assert len(done) == -(-n // chunk)


def test_each_side_has_its_own_encoder():
    labels = {"good": 1, "bad": 0}
    encode_rows = row_encoder(encode, lambda names: [np.array([labels[name]]) for name in names])
    rows = [("a bc def", "good"), ("", "bad")]
    encoded = list(encode_in_threads(rows, encode_rows, threads=2))
    assert [[side.tolist() for side in row] for row in encoded] == [[[1, 2, 3], [1]], [[], [0]]]


def test_several_threads_encode_at_once():
    both = threading.Barrier(2, timeout=10)

    def meet(items: list[int]) -> list[int]:
        both.wait()
        return items

    assert list(encode_in_threads(range(8), meet, threads=2, chunk=1)) == list(range(8))


def test_reading_is_never_far_ahead():
    read = 0

    def lines():
        nonlocal read
        for i in range(10_000):
            read += 1
            yield i

    for i, _ in enumerate(encode_in_threads(lines(), list, threads=3, chunk=7)):
        assert read <= i + 7 * (2 * 3 + 1)


def test_an_error_in_encoding_or_in_reading_comes_out_and_leaves_no_thread():
    def fail(lines: list[int]) -> list[int]:
        if 30 in lines:
            raise ValueError("a line that cannot be encoded")
        return lines

    def unreadable():
        yield from range(30)
        raise CorpusError("corpus.en:31: cannot be read")

    found = []
    with pytest.raises(ValueError, match="a line that cannot be encoded"):
        found.extend(encode_in_threads(range(100), fail, threads=2, chunk=5))
    with pytest.raises(CorpusError, match=r"corpus\.en:31"):
        list(encode_in_threads(unreadable(), fail, threads=2, chunk=5))
    left_early = encode_in_threads(range(100), list, threads=2, chunk=5)
    next(left_early)
    left_early.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("encode")]


def test_an_encoder_that_loses_a_line_is_our_mistake():
    with pytest.raises(AssertionError, match="3 items were encoded into 2"):
        list(encode_in_threads("abc", lambda lines: lines[1:], threads=1))


# --- the key ----------------------------------------------------------------------------------------------


def test_the_key_depends_on_contents_order_and_settings_and_on_nothing_else(tmp_path):
    a, b, again = (tmp_path / name for name in "abc")
    a.write_text("a line\n")
    b.write_text("another line\n")
    again.write_text("a line\n")
    key = content_key([a, b], {"vocabulary": 8000, "seed": 1})
    assert content_key([str(again), b], {"seed": 1, "vocabulary": 8000}) == key
    others = [
        content_key([b, a], {"vocabulary": 8000, "seed": 1}),
        content_key([a], {"vocabulary": 8000, "seed": 1}),
        content_key([a, b], {"vocabulary": 8001, "seed": 1}),
        content_key([], {"vocabulary": 8000, "seed": 1}),
    ]
    assert len({key, *others}) == 5
    b.write_text("another lime\n")
    assert content_key([a, b], {"vocabulary": 8000, "seed": 1}) != key


def test_where_one_file_ends_counts(tmp_path):
    for name, text in {"a": "x\ny\n", "b": "", "c": "x\n", "d": "y\n"}.items():
        (tmp_path / name).write_text(text)
    assert content_key([tmp_path / "a", tmp_path / "b"], {}) != content_key(
        [tmp_path / "c", tmp_path / "d"], {}
    )


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    for path in (tmp_path, tmp_path / "missing"):
        with refused("unreadable_file", str(path)):
            content_key([path], {})
