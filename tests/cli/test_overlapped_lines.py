"""Parts of a block are translated in threads, in order; a block that is small, in one piece."""

from __future__ import annotations

import threading
import time

import pytest

import regard
from regard.cli.shared import writing
from regard.data.numerals import sample
from regard.engine.translator import OutputLine
from regard.errors import RequestError
from regard.text.files.lines import InputLine


def lines(count, start=0):
    return [InputLine(i + 1, f"line {i}") for i in range(start, start + count)]


def echoed(part):
    # Later parts are done first.
    time.sleep(0.05 / part[0].number)
    return [OutputLine(line.text.upper()) for line in part]


def test_parts_come_in_the_order_of_the_input(monkeypatch):
    monkeypatch.setattr(writing, "PART", 7)
    found = [line.text for part in writing._overlapped(echoed, [lines(50), lines(3, 50)]) for line in part]
    assert found == [f"LINE {i}" for i in range(53)]


def test_parts_are_in_work_at_the_same_time(monkeypatch):
    """Each part waits until as many are in work as may be: in turn, none would ever end."""
    monkeypatch.setattr(writing, "PART", 2)
    together = threading.Barrier(writing.SIDE_BY_SIDE, timeout=20)

    def write(part):
        together.wait()
        return echoed(part)

    assert len([*writing._overlapped(write, [lines(2 * writing.SIDE_BY_SIDE)])]) == writing.SIDE_BY_SIDE


def test_the_next_block_is_requested_when_a_block_is_written(monkeypatch):
    """Somebody who types gets an answer before the next line."""
    monkeypatch.setattr(writing, "PART", 2)
    events = []

    def blocks():
        for n in (1, 5):
            events.append("requested")
            yield lines(n)

    for part in writing._overlapped(echoed, blocks()):
        events += [len(part)]
    assert events[:2] == ["requested", 1]
    assert sum(events[3:]) == 5


def test_an_error_in_a_part_is_raised(monkeypatch):
    monkeypatch.setattr(writing, "PART", 2)

    def write(part):
        if any(line.number == 5 for line in part):
            raise RequestError("cannot", code="bad_option")
        return echoed(part)

    with pytest.raises(RequestError, match="cannot"):
        list(writing._overlapped(write, [lines(9)]))


def test_overlapped_translations_are_those_in_one_piece(monkeypatch):
    """At float32, as at int8 rounding depends on the batch."""
    loaded = regard.load(quantisation="float32", engine="ctranslate2")
    given = [InputLine(i, pair.chinese) for i, pair in enumerate(sample("test", 24, 1), start=1)]
    options = {"to": "en", "beam_size": 2, "shortlist": False}
    whole = [*writing.written(loaded, [given], options)]
    monkeypatch.setattr(writing, "PART", 5)
    parts = [*writing.written(loaded, [given], options)]
    assert (len(whole), len(parts)) == (1, 5)
    assert [line.text for part in parts for line in part] == [line.text for line in whole[0]]
