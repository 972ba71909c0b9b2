"""Pictures and screens are laid out as on record: nothing moves, grows or goes missing by accident."""

import json

import pytest

from tests.look.layouts import RECORD, layouts, summed_up


def test_every_view_is_laid_out_as_on_record():
    record, now = json.loads(RECORD.read_text(encoding="utf-8")), dict(layouts())
    assert record.keys() == now.keys()
    changed = [name for name, layout in now.items() if layout != pytest.approx(record[name], abs=0.5)]
    assert changed == [], "if this is meant: python -m tests.look.layouts, and look at the pictures"


@pytest.mark.parametrize(("before", "after"), [('x="4"', 'x="5"'), ("M1 2", "M2 1"), ("words", "word")])
def test_a_small_move_changes_the_sums(before, after):
    drawn = '<svg xmlns="http://www.w3.org/2000/svg"><text x="4" y="2">words</text><path d="M1 2"/></svg>'
    assert summed_up(drawn) != pytest.approx(summed_up(drawn.replace(before, after)), abs=0.5)
