import errno
import gzip
import io
import os
import resource
import sys

import pytest

from regard.data.reading import keep_stdin
from tests.refusals import refused


@pytest.fixture
def pipe(monkeypatch):
    def pipe(content):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    return pipe


@pytest.fixture
def place(tmp_path):
    return tmp_path / "text" / "stdin.gz"


def test_what_comes_is_kept_packed_and_found_when_nothing_comes(place, pipe):
    pipe("猫\tcat\n".encode())
    assert keep_stdin(place, fixed=False) == place
    assert gzip.decompress(place.read_bytes()).decode() == "猫\tcat\n"
    pipe(b"")
    assert keep_stdin(place, fixed=True) == place
    assert [path.name for path in place.parent.iterdir()] == ["stdin.gz"]


def test_what_comes_packed_is_the_same(place, pipe):
    place.parent.mkdir()
    place.write_bytes(gzip.compress(b"x\n", 9, mtime=7))  # as another zlib might have packed it
    pipe(gzip.compress(b"x\n"))
    assert keep_stdin(place, fixed=True) == place


def test_something_else_takes_its_place_until_a_run_has_begun_with_it(place, pipe):
    for content in (b"x\n", b"y\n"):
        pipe(content)
        keep_stdin(place, fixed=False)
    assert gzip.decompress(place.read_bytes()) == b"y\n"
    pipe(b"z\n")
    with refused("data_changed", "standard input: ", "--out"):
        keep_stdin(place, fixed=True)
    assert gzip.decompress(place.read_bytes()) == b"y\n"
    assert [path.name for path in place.parent.iterdir()] == ["stdin.gz"]


@pytest.mark.parametrize("stdin", [None, "terminal", "empty"])
def test_nothing_at_all_is_refused(place, pipe, monkeypatch, stdin):
    pipe(b"" if stdin == "empty" else b"typed")
    if stdin == "terminal":
        monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    if stdin is None:
        monkeypatch.setattr(sys, "stdin", None)
    with refused("empty_file", "standard input: "):
        keep_stdin(place, fixed=False)
    assert not place.exists()


def test_a_full_disk_is_reported_and_what_was_kept_stays(place, pipe):
    pipe(b"x\n")
    keep_stdin(place, fixed=False)
    pipe(os.urandom(1 << 16).hex().encode() + b"\n")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 12, limits[1]))
    try:
        with refused("unwritable_folder", "standard input: ", os.strerror(errno.EFBIG)):
            keep_stdin(place, fixed=False)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert gzip.decompress(place.read_bytes()) == b"x\n"
    assert [path.name for path in place.parent.iterdir()] == [place.name]


def test_damaged_input_is_told_and_not_kept(place, pipe):
    pipe(gzip.compress(b"x\n" * 10_000)[:-20])
    with refused("damaged_file", "standard input: "):
        keep_stdin(place, fixed=False)
    assert not list(place.parent.iterdir())
