"""A conversion is made once, whole, and again when anything that decides it changes."""

import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

import ctranslate2
import pytest

from regard.bundle.manifest import MANIFEST
from regard.durable import ABANDONED
from regard.exchange.ctranslate2 import cache as conversions
from regard.exchange.ctranslate2.cache import cache_folder, converted, damaged_conversions, remembered_sha256
from tests.architecture.sources import ROOT
from tests.exchange.folders import BOS, EOS, small_folder
from tests.refusals import refused

MARKS = {"bos": BOS, "eos": EOS}
NAMES = ["config.json", "digest.json", "model.bin", "shared_vocabulary.json"]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "ctranslate2"


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_conversion_is_kept_and_used_again(tmp_path, cache, monkeypatch):
    model = small_folder(tmp_path)
    folder = converted(model, **MARKS)
    assert folder.parent == cache
    assert names_in(folder) == NAMES
    monkeypatch.setattr(conversions, "ctranslate2_files", None)  # a second conversion would fail
    assert converted(model, **MARKS) == folder


def test_it_is_made_again_when_anything_that_decides_it_changes(tmp_path):
    model = small_folder(tmp_path)
    found = [converted(model, **MARKS), converted(model, "float32", **MARKS)]
    found += [converted(model, bos=BOS, eos=3), converted(model, bos=3, eos=EOS)]
    found.append(converted(small_folder(tmp_path, seed=2), **MARKS))
    # The same weights, but not the same model.
    found.append(converted(small_folder(tmp_path, seed=2, scale_embeddings=False), **MARKS))
    found.append(converted(small_folder(tmp_path, seed=2, n_heads=2), **MARKS))
    assert len(set(found)) == len(found)
    weights = [(folder / "model.bin").read_bytes() for folder in found]
    assert weights[0] == weights[2] == weights[3]
    assert len({*weights}) == len(weights) - 2


def test_a_converter_of_another_version_converts_again(tmp_path, monkeypatch):
    model = small_folder(tmp_path)
    before = converted(model, **MARKS)
    monkeypatch.setattr(conversions, "CONVERTER", conversions.CONVERTER + 1)
    assert converted(model, **MARKS) != before


def test_several_processes_may_convert_at_once(tmp_path, cache):
    model = small_folder(tmp_path, d_ff=4001)
    program = (
        "import sys, regard.exchange.ctranslate2.cache as c; print(c.converted(sys.argv[1], bos=1, eos=2))"
    )
    command = [sys.executable, "-W", "error", "-c", program, str(model)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) for _ in range(3)]
    outputs = [process.communicate()[0] for process in running]
    assert [process.returncode for process in running] == [0, 0, 0]
    (folder,) = {Path(output.strip()) for output in outputs}
    assert [path.name for path in cache.iterdir()] == [folder.name]
    assert names_in(folder) == NAMES


def test_one_that_another_process_finished_first_is_taken(tmp_path, monkeypatch):
    model = small_folder(tmp_path)
    convert = conversions.ctranslate2_files

    def slow(*arguments, **marks):
        monkeypatch.setattr(conversions, "ctranslate2_files", convert)
        converted(model, **MARKS)
        return convert(*arguments, **marks)

    monkeypatch.setattr(conversions, "ctranslate2_files", slow)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        folder = converted(model, **MARKS)
    assert names_in(folder) == NAMES
    assert names_in(folder.parent) == [folder.name]


def test_what_killed_processes_left_is_swept_when_it_is_old(tmp_path, cache):
    old, young = cache / ".one.abc.new", cache / ".two.abc.new"
    for path in (old, young):
        path.mkdir(parents=True)
        (path / "model.bin").write_bytes(b"half")
    long_ago = time.time() - ABANDONED - 60
    os.utime(old, (long_ago, long_ago))
    folder = converted(small_folder(tmp_path), **MARKS)
    assert sorted(cache.iterdir()) == sorted([young, folder])


def flip_a_byte(path, at, *, keep_times=False):
    times = path.stat()
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)
    if keep_times:
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("damage", ["missing", "truncated", "one byte", "first byte, old times", "link"])
def test_a_damaged_conversion_is_made_again(tmp_path, name, damage):
    model = small_folder(tmp_path)
    folder = converted(model, **MARKS)
    whole = {each.name: each.read_bytes() for each in folder.iterdir()}
    match damage:
        case "missing":
            (folder / name).unlink()
        case "truncated":
            (folder / name).write_bytes(whole[name][:-1])
        case "one byte":
            flip_a_byte(folder / name, len(whole[name]) // 3)
        case "first byte, old times":
            flip_a_byte(folder / name, 0, keep_times=True)
        case "link":
            folder.rename(tmp_path / "elsewhere")
            folder.symlink_to(tmp_path / "elsewhere")
            (tmp_path / "elsewhere" / name).write_bytes(b"something else")
    with pytest.warns(UserWarning, match=str(folder)):
        assert converted(model, **MARKS) == folder
    assert {each.name: each.read_bytes() for each in folder.iterdir()} == whole


def test_a_deep_check_reads_every_byte_of_a_conversion(tmp_path):
    folder = converted(small_folder(tmp_path, d_ff=40_009), **MARKS)
    assert list(damaged_conversions()) == []
    flip_a_byte(folder / "model.bin", 5000, keep_times=True)  # between two blocks of a sample
    assert list(damaged_conversions()) == [folder.name]


def test_a_folder_that_claims_the_hashes_of_another_model_neither_uses_nor_replaces_its_conversion(tmp_path):
    honest = small_folder(tmp_path / "honest")
    forged = small_folder(tmp_path / "forged", seed=2)
    claims = json.loads((honest / MANIFEST).read_bytes())
    manifest = json.loads((forged / MANIFEST).read_bytes())
    # The weights' own hash is honest, the one that named conversions is not.
    manifest["weights_hash"] = claims["weights_hash"]
    (forged / MANIFEST).write_text(json.dumps(manifest))
    folder = converted(forged, **MARKS)
    assert converted(honest, **MARKS) != folder
    # Now all hashes are those of the honest model.
    manifest["files"]["model.safetensors"] = claims["files"]["model.safetensors"]
    (forged / MANIFEST).write_text(json.dumps(manifest))
    with refused("damaged_model_folder", "model.safetensors"):
        converted(forged, **MARKS)


@pytest.mark.parametrize("age", [0, 3600], ids=["new", "an hour old"])
def test_a_changed_byte_of_the_weights_is_noticed_although_there_is_a_conversion(tmp_path, age):
    model = small_folder(tmp_path, d_ff=40_009)
    weights = model / "model.safetensors"
    os.utime(weights, (time.time() - age, time.time() - age))
    converted(model, **MARKS)
    flip_a_byte(weights, weights.stat().st_size // 2 + 5000, keep_times=True)
    with refused("damaged_model_folder", "model.safetensors"):
        converted(model, **MARKS)


def test_the_hash_of_an_unchanged_file_is_computed_once(tmp_path, monkeypatch):
    file = tmp_path / "file"
    file.write_bytes(b"content")
    monkeypatch.setattr(conversions, "SETTLED_NS", -1)
    digest = remembered_sha256(file, tmp_path / "memory")
    monkeypatch.setattr(conversions, "sha256_of", lambda _: "computed again")
    assert remembered_sha256(file, tmp_path / "memory") == digest
    file.write_bytes(b"CONTENT")
    assert remembered_sha256(file, tmp_path / "memory") == "computed again"


def test_a_file_that_was_just_changed_is_hashed_every_time(tmp_path):
    (tmp_path / "file").write_bytes(b"content")
    remembered_sha256(tmp_path / "file", tmp_path / "memory")
    assert not (tmp_path / "memory").exists()


def test_a_cache_that_cannot_be_written_gives_a_warning_and_a_folder_all_the_same(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "file"))
    with pytest.warns(UserWarning, match=str(tmp_path / "file")):
        folder = converted(small_folder(tmp_path), "float32", **MARKS)
    assert ctranslate2.contains_model(str(folder))
    assert (tmp_path / "file").read_text() == "in the way"


def test_a_temporary_conversion_goes_with_its_process(tmp_path):
    (tmp_path / "file").write_text("in the way")
    program = (
        "import sys, regard.exchange.ctranslate2.cache as c; print(c.converted(sys.argv[1], bos=1, eos=2))"
    )
    command = [sys.executable, "-W", "ignore", "-c", program, str(small_folder(tmp_path))]
    environment = os.environ | {"REGARD_CACHE": str(tmp_path / "file"), "TMPDIR": str(tmp_path)}
    output = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout
    assert Path(output.strip()).parent.parent == tmp_path
    assert not Path(output.strip()).parent.exists()


def test_where_conversions_are_kept(monkeypatch):
    monkeypatch.delenv("REGARD_CACHE")
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache_folder() == Path("/home/somebody/.cache/regard/ctranslate2")
    monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
    assert cache_folder() == Path("/elsewhere/regard/ctranslate2")
    monkeypatch.setenv("REGARD_CACHE", "/chosen")
    assert cache_folder() == Path("/chosen/ctranslate2")
