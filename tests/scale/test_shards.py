"""Shards hold every line once, in order; finished shards belong to exactly these lines and settings."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.engine.translator import OutputLine
from regard.errors import ConfigError, CorpusError
from regard.scale import workers
from regard.scale.corpus import FinishedShards, lines_of
from regard.scale.workers import Shard, WorkerSettings, cut
from regard.text.files.lines import InputLine
from tests.refusals import refused

FINGERPRINT = {"models": ["a"], "options": {"beam_size": 4}}


@given(st.lists(st.lists(st.text(max_size=5), max_size=6), max_size=6), st.integers(1, 7))
def test_every_line_is_in_one_shard_and_in_its_place(texts, most):
    blocks = [[InputLine(i, text) for i, text in enumerate(block)] for block in texts]
    found = list(cut(blocks, most))
    assert [line for shard in found for line in shard.lines] == [line for block in blocks for line in block]
    assert [shard.number for shard in found] == list(range(1, len(found) + 1))
    assert all(len(shard.lines) == most for shard in found[:-1])


def test_long_lines_make_small_shards(monkeypatch):
    monkeypatch.setattr(workers, "SHARD_CHARACTERS", 10)
    found = cut([[InputLine(i, "x" * 4) for i in range(5)]])
    assert [len(shard.lines) for shard in found] == [3, 2]


def test_files_follow_each_other_and_lines_know_their_file(tmp_path):
    (tmp_path / "a").write_bytes(b"one\ntwo")
    (tmp_path / "b.gz").write_bytes(gzip.compress(b"three\n"))
    lines = [line for block in lines_of([tmp_path / "a", tmp_path / "b.gz"]) for line in block]
    assert [line.text for line in lines] == ["one", "two", "three"]
    assert [line.where for line in lines] == [
        f"{tmp_path}/a:1: ",
        f"{tmp_path}/a:2: ",
        f"{tmp_path}/b.gz:1: ",
    ]
    (both,) = cut([lines])
    assert both.key.where == f"{tmp_path}/a:1-{tmp_path}/b.gz:1"
    assert Shard(1, tuple(lines[:2])).key.where == f"{tmp_path}/a:1-2"


def test_a_shard_is_known_by_its_place_and_its_lines():
    lines = (InputLine(1, "one"), InputLine(2, "two"))
    name = Shard(1, lines).key.name
    assert Shard(1, tuple(lines)).key.name == name
    others = [Shard(2, lines), Shard(1, lines[:1]), Shard(1, (lines[0], InputLine(2, "", "spoilt")))]
    assert name not in {shard.key.name for shard in others}


def test_finished_shards_are_read_by_the_next_run(tmp_path):
    written = [OutputLine("a\r\u2028\x00\n", "torch", ("note",)), OutputLine("", notes=("why",), failed=True)]
    key = Shard(1, (InputLine(1, "x"), InputLine(2, "y"))).key
    finished = FinishedShards(tmp_path / "new" / "shards", FINGERPRINT)
    assert key not in finished
    finished.keep(key, written)
    again = FinishedShards(tmp_path / "new" / "shards", FINGERPRINT)
    assert key in again
    assert again.read(key) == written
    assert Shard(1, (InputLine(1, "z"), InputLine(2, "y"))).key not in again


@pytest.mark.parametrize("damage", [b"", b"{}\n{}\n", b"nonsense\n\n", b"\xff\n"])
def test_a_damaged_shard_is_refused(tmp_path, damage):
    key, finished = (
        Shard(1, (InputLine(1, "x"), InputLine(2, "y"))).key,
        FinishedShards(tmp_path, FINGERPRINT),
    )
    (tmp_path / f"{key.name}.jsonl").write_bytes(damage)
    with refused("damaged_shard", str(tmp_path / key.name), error=CorpusError):
        finished.read(key)


def test_shards_of_another_run_are_refused_with_every_difference(tmp_path):
    FinishedShards(tmp_path / "shards", FINGERPRINT)
    with refused("other_run", "models was ['a'] and is ['b']", error=ConfigError) as caught:
        FinishedShards(tmp_path / "shards", FINGERPRINT | {"models": ["b"], "scores": True})
    assert len(caught.value.problems) == 3
    (tmp_path / "notes.txt").write_text("mine")
    with refused("folder_in_use", str(tmp_path), "notes.txt"):
        FinishedShards(tmp_path, FINGERPRINT)
    (tmp_path / "manifest.json").write_text("{")
    with refused("damaged_shard", "manifest.json"):
        FinishedShards(tmp_path, FINGERPRINT)


def test_settings_carry_their_glossary_and_have_a_fingerprint(tmp_path):
    (tmp_path / "terms.tsv").write_text("月\tmoon\n", encoding="utf-8")
    options = {"glossary": tmp_path / "terms.tsv", "keep": ["a"], "to": None, "n_best": 2}
    settings = WorkerSettings(options=options, quantisation="int8").portable()
    fingerprint = settings.fingerprint(["key"])
    assert fingerprint["options"] == {
        "glossary": {"月": "moon"},
        "keep": ["a"],
        "n_best": 2,
        "whole_lines": True,
    }
    assert (fingerprint["models"], fingerprint["quantisation"]) == (["key"], "int8")
    assert WorkerSettings(options=options | {"n_best": 3}).portable().fingerprint(["key"]) != fingerprint
