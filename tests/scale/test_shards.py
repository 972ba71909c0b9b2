"""Shards hold every line once, in order; a ledger keeps what was made of exactly these lines in one way."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.engine.line_by_line import Written
from regard.errors import ConfigError, CorpusError
from regard.scale import shards
from regard.scale.ledger import Ledger
from regard.scale.order import Order
from regard.scale.shards import Shard, cut, lines_of
from regard.text.files.lines import InputLine

ABOUT = {"models": ["a"], "options": {"beam_size": 4}}


@given(st.lists(st.lists(st.text(max_size=5), max_size=6), max_size=6), st.integers(1, 7))
def test_every_line_is_in_one_shard_and_in_its_place(texts, most):
    blocks = [[InputLine(i, text) for i, text in enumerate(block)] for block in texts]
    found = list(cut(blocks, most))
    assert [line for shard in found for line in shard.lines] == [line for block in blocks for line in block]
    assert [shard.number for shard in found] == list(range(1, len(found) + 1))
    assert all(len(shard.lines) == most for shard in found[:-1])


def test_long_lines_make_small_shards(monkeypatch):
    monkeypatch.setattr(shards, "SHARD_CHARACTERS", 10)
    found = cut([[InputLine(i, "x" * 4) for i in range(5)]])
    assert [len(shard.lines) for shard in found] == [3, 2]


def test_files_follow_each_other_and_are_told_by_name(tmp_path):
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
    assert both.ticket.where == f"{tmp_path}/a:1-{tmp_path}/b.gz:1"
    assert Shard(1, tuple(lines[:2])).ticket.where == f"{tmp_path}/a:1-2"


def test_a_shard_is_known_by_its_place_and_its_lines():
    lines = (InputLine(1, "one"), InputLine(2, "two"))
    name = Shard(1, lines).ticket.name
    assert Shard(1, tuple(lines)).ticket.name == name
    others = [Shard(2, lines), Shard(1, lines[:1]), Shard(1, (lines[0], InputLine(2, "", "spoilt")))]
    assert name not in {shard.ticket.name for shard in others}


def test_a_ledger_gives_back_what_it_keeps_also_to_the_next_run(tmp_path):
    written = [Written("a\r\u2028\x00\n", "torch", ("note",)), Written("", notes=("why",), spoilt=True)]
    ticket = Shard(1, (InputLine(1, "x"), InputLine(2, "y"))).ticket
    ledger = Ledger(tmp_path / "new" / "shards", ABOUT)
    assert ticket not in ledger
    ledger.keep(ticket, written)
    again = Ledger(tmp_path / "new" / "shards", ABOUT)
    assert ticket in again
    assert again.read(ticket) == written
    assert Shard(1, (InputLine(1, "z"), InputLine(2, "y"))).ticket not in again


@pytest.mark.parametrize("damage", [b"", b"{}\n{}\n", b"nonsense\n\n", b"\xff\n"])
def test_a_shard_that_somebody_changed_is_found_out(tmp_path, damage):
    ticket, ledger = Shard(1, (InputLine(1, "x"), InputLine(2, "y"))).ticket, Ledger(tmp_path, ABOUT)
    (tmp_path / f"{ticket.name}.jsonl").write_bytes(damage)
    with pytest.raises(CorpusError, match="remove it to have it made again"):
        ledger.read(ticket)


def test_shards_of_another_run_are_refused_with_all_that_differs(tmp_path):
    Ledger(tmp_path / "shards", ABOUT)
    with pytest.raises(ConfigError, match=r"(?s)models was \['a'\] and is \['b'\].*another run") as refused:
        Ledger(tmp_path / "shards", ABOUT | {"models": ["b"], "scores": True})
    assert len(refused.value.problems) == 3
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ConfigError, match=r"holds something else \(notes\.txt\)"):
        Ledger(tmp_path, ABOUT)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(ConfigError, match="is not JSON"):
        Ledger(tmp_path, ABOUT)


def test_an_order_carries_its_glossary_and_says_all_that_decides(tmp_path):
    (tmp_path / "terms.tsv").write_text("月\tmoon\n", encoding="utf-8")
    options = {"glossary": tmp_path / "terms.tsv", "keep": ["a"], "to": None, "n_best": 2}
    order = Order(options=options, quantisation="int8").carried()
    told = order.decides(["key"])
    assert told["options"] == {"glossary": {"月": "moon"}, "keep": ["a"], "n_best": 2, "whole_lines": True}
    assert (told["models"], told["quantisation"]) == (["key"], "int8")
    assert Order(options=options | {"n_best": 3}).carried().decides(["key"]) != told
