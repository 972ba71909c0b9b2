import gzip
import importlib
import io
import lzma
import sys

import pytest

from regard.text import files as opening
from regard.text import read_lines
from tests.refusals import refused

TEXT = "猫坐在垫子上。\nThe cat sat on the mat.\n" * 200


def zstd():
    for name in ("compression.zstd", "backports.zstd"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    return pytest.skip("neither compression.zstd nor backports.zstd is there")


def lines_of(path):
    return [text for block in read_lines(path) for text in block.columns[0]]


@pytest.mark.parametrize(
    ("start", "kind"),
    [
        (b"PK\x03\x04\x14", "a zip archive"),
        (b"\xd0\xcf\x11\xe0\xa1", "an old Office document"),
        (b"%PDF-1.7\n", "a PDF"),
        (b"{\\rtf1\\ansi", "an RTF document"),
    ],
)
def test_documents_that_are_not_text_are_recognised(tmp_path, start, kind):
    path = tmp_path / "train.zh"
    path.write_bytes(start + bytes(range(256)))
    with refused("not_text", "train.zh: ", kind):
        lines_of(path)


COMPRESSORS = {
    "plain": lambda: lambda data: data,
    "gz": lambda: gzip.compress,
    "xz": lambda: lzma.compress,
    "zst": lambda: zstd().compress,
}


@pytest.mark.parametrize("kind", COMPRESSORS)
@pytest.mark.parametrize("name", ["train.zh", "train.zh.gz", "train.zh.zst"])
def test_compressed_files_are_read_under_any_name(tmp_path, kind, name):
    path = tmp_path / name
    path.write_bytes(COMPRESSORS[kind]()(TEXT.encode()))
    assert lines_of(path) == TEXT.split("\n")[:-1]


@pytest.mark.parametrize("kind", ["plain", "gz", "zst"])
def test_standard_input_is_a_dash(monkeypatch, kind):
    packed = io.BytesIO(COMPRESSORS[kind]()(TEXT.encode()))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(packed))
    assert lines_of("-") == TEXT.split("\n")[:-1]


@pytest.mark.parametrize("kind", ["gz", "xz", "zst"])
def test_a_truncated_file_is_refused(tmp_path, kind):
    path = tmp_path / "train.zh"
    path.write_bytes(COMPRESSORS[kind]()(TEXT.encode())[:-9])
    with refused("damaged_file", "train.zh: "):
        lines_of(path)


@pytest.mark.parametrize("kind", ["gz", "xz", "zst"])
def test_a_damaged_file_is_refused(tmp_path, kind):
    packed = bytearray(COMPRESSORS[kind]()(TEXT.encode()))
    packed[len(packed) // 2] ^= 0xFF
    packed[-6] ^= 0xFF
    path = tmp_path / "train.zh"
    path.write_bytes(packed)
    with refused("damaged_file", "train.zh: "):
        lines_of(path)


def test_without_a_library_for_zstd_the_error_says_what_to_do(tmp_path, monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(opening, "import_module", missing)
    path = tmp_path / "train.zh.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd and so on")
    with refused("missing_library", "train.zh.zst: ", "pip install backports.zstd"):
        lines_of(path)


def test_a_missing_file_is_named_with_one_that_may_be_meant(tmp_path):
    (tmp_path / "train.zh").write_text("a\n")
    with refused("missing_file", "trian.zh: ", f"did you mean {tmp_path / 'train.zh'}?"):
        lines_of(tmp_path / "trian.zh")
    with refused("missing_file", "x/y: there is no such file"):
        lines_of(tmp_path / "x" / "y")


def test_a_directory_is_refused(tmp_path):
    with refused("missing_file", str(tmp_path), "is a directory"):
        lines_of(tmp_path)


def test_a_file_that_may_not_be_read_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "train.zh"
    path.write_text("a\n")

    def forbidden(*_, **__):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(opening.Path, "open", forbidden)
    with refused("unreadable_file", "train.zh: ", "Permission denied"):
        lines_of(path)
