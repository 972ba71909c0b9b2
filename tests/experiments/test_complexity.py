"""Complexity: what is counted is right, and both ways of decoding are one. Nothing here looks at a clock."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from regard.experiments.claims.complexity import (
    ANEW,
    CACHED,
    FUSED,
    GRU,
    KINDS,
    TEXTS,
    WIDTH,
    WRITTEN_OUT,
    decoded,
    make_layer,
    make_model,
    products,
)
from regard.experiments.experiment import run_experiment
from regard.experiments.registry import find_experiment
from regard.experiments.small_models import kept_bytes

FLOAT = 4


def counted(work):
    with FlopCounterMode(display=False) as counter:
        work()
    return counter.get_total_flops() // 2


def test_products_are_those_that_torch_counts():
    n = 23
    attention, recurrence = products(n, WIDTH)
    assert counted(lambda: make_layer(WRITTEN_OUT)(torch.randn(1, n, WIDTH))) == attention
    cell, x, state = torch.nn.GRUCell(WIDTH, WIDTH), torch.randn(1, WIDTH), torch.zeros(1, WIDTH)
    assert n * counted(lambda: cell(x, state)) == recurrence


def test_products_are_equally_many_where_a_text_is_as_long_as_the_model_is_wide():
    one, other = products(WIDTH, WIDTH)
    assert one == other
    for n in (WIDTH - 1, WIDTH + 1):
        one, other = products(n, WIDTH)
        assert (one < other) == (n < WIDTH)


def test_written_out_the_weights_are_kept_and_nothing_else_grows_with_the_square():
    kept = {
        kind: [kept_bytes(make_layer(kind), torch.randn(TEXTS, n, WIDTH)) for n in (300, 600, 900)]
        for kind in KINDS
    }
    for kind, (first, second, third) in kept.items():
        bend = (third - second) - (second - first)
        squares = 900**2 - 2 * 600**2 + 300**2
        heads = 4 if kind == WRITTEN_OUT else 0
        assert bend == pytest.approx(TEXTS * heads * squares * FLOAT, abs=0.002 * third), kind
    assert kept[FUSED][-1] < kept[WRITTEN_OUT][-1]
    assert kept[GRU][-1] > 900 * TEXTS * WIDTH * FLOAT


def test_a_cache_changes_nothing_but_the_time():
    model = make_model(7)
    torch.testing.assert_close(decoded(model, 7, CACHED), decoded(model, 7, ANEW), rtol=1e-4, atol=1e-5)


def test_every_length_has_its_numbers():
    findings = run_experiment(find_experiment("complexity"), "short", 1).findings
    for table in findings.tables:
        assert all(number > 0 for _, *numbers in table.rows for number in numbers)
    assert [len(chart.lines) for chart in findings.charts] == [2, 3, 3, 2]
