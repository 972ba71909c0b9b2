"""The recurrent models: packed and one by one, what can reach what; and the task of recalling."""

from random import Random

import pytest
import torch

from regard.experiments.claims.recurrence import (
    GRU,
    KEYS,
    KINDS,
    TRANSFORMER,
    VALUES,
    WITH_ATTENTION,
    Recurrent,
    make_model,
    recalling,
    share_right,
)
from regard.experiments.experiment import run_experiment
from regard.experiments.registry import find_experiment
from regard.experiments.small_models import copying
from regard.packing import pack

INPUTS, OUTPUTS = [[5, 6, 7, 8, 9], [3, 4], [2]], [[0, 4], [0, 3, 3, 2], [0]]
both = pytest.mark.parametrize("attention", [False, True])


def recurrent(attention):
    torch.manual_seed(2)
    return Recurrent(11, 12, attention=attention).eval()


@both
@torch.no_grad()
def test_a_sequence_does_not_depend_on_its_neighbours(attention):
    model = recurrent(attention)
    together = model(pack(INPUTS), pack(OUTPUTS)).split([len(ids) for ids in OUTPUTS])
    for inputs, outputs, logits in zip(INPUTS, OUTPUTS, together, strict=True):
        torch.testing.assert_close(logits, model(pack([inputs]), pack([outputs])))


@both
@torch.no_grad()
def test_nothing_looks_ahead(attention):
    model = recurrent(attention)
    one, other = (model(pack([[5, 6, 7]]), pack([outputs])) for outputs in ([0, 4, 5], [0, 4, 9]))
    torch.testing.assert_close(one[:2], other[:2])
    assert not torch.allclose(one[2], other[2])


@both
@torch.no_grad()
def test_only_attention_sees_more_than_the_last_state(attention):
    model = recurrent(attention)
    memory, outputs = model.encode(pack([[5, 6, 7]])), pack([[0, 4]])
    before = model.decode(outputs, memory)
    memory.states_BSD[:, 0] += 1
    assert torch.equal(model.decode(outputs, memory), before) != attention


def test_the_three_are_of_about_the_same_size():
    task = copying((2, 3), symbols=32)
    sizes = [sum(p.numel() for p in make_model(kind, task, seed=1).parameters()) for kind in KINDS]
    assert sizes == sorted(sizes)
    assert sizes[-1] < 1.5 * sizes[0]


def test_what_is_recalled_was_told_once():
    task = recalling((3, 7))
    for source, (written,) in task.draw(Random(5), 200):
        *told, asked = source
        key = asked - 2 - KEYS * VALUES
        (pair,) = [each - 2 for each in told if (each - 2) // VALUES == key]
        assert written == 2 + KEYS * VALUES + KEYS + pair % VALUES
        assert len({each // VALUES for each in (id_ - 2 for id_ in told)}) == len(told)
        assert written < task.vocab_size


def test_ends_do_not_count_as_right():
    """A model that always says EOS has no symbol right."""
    task = copying((3, 4), symbols=5)
    model = make_model(TRANSFORMER, task, seed=1)
    with torch.no_grad():
        model.output_probabilities.weight.zero_()
    assert share_right(model, task.held_out(7)) == 0  # all are equally likely, and BOS is the first
    always = torch.nn.functional.one_hot(torch.tensor([1]), task.vocab_size).float()
    model.forward = lambda _, outputs: always.expand(len(outputs.ids_N), -1)
    assert share_right(model, task.held_out(7)) == 0


def test_attention_copies_better_for_every_seed():
    findings = run_experiment(find_experiment("recurrence"), "short", 2).findings
    sizes, copied, recalled, speeds = findings.tables
    rows = {kind: row for kind, *row in copied.rows}
    assert rows[GRU][0].below(rows[WITH_ATTENTION][0])
    assert rows[GRU][0].below(rows[TRANSFORMER][0])
    assert all(0 <= cell.low <= cell.high <= 1 for _, *cells in recalled.rows for cell in cells)
    assert [row[0] for row in sizes.rows] == [row[0] for row in speeds.rows] == list(KINDS)
