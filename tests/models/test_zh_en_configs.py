"""Both models of the bundled translator are configurations that exist, and read one prepared corpus."""

import pytest

from regard.bundle.weights import empty_model
from regard.config import read_config
from tests.architecture.sources import ROOT

CONFIGS = {
    name: read_config(file=ROOT / "models" / "zh-en" / f"{name}.toml") for name in ("small", "teacher")
}


@pytest.mark.parametrize(("name", "millions"), [("small", 31.7), ("teacher", 66.9)])
def test_a_model_is_as_large_as_it_says(name, millions):
    assert empty_model(CONFIGS[name].model).n_parameters / 1e6 == pytest.approx(millions, abs=0.1)


def test_what_was_prepared_for_one_serves_the_other():
    small, teacher = CONFIGS.values()
    assert (small.task, small.data, small.training.seed) == (
        teacher.task,
        teacher.data,
        teacher.training.seed,
    )
    assert small.model.vocab_size == teacher.model.vocab_size
    assert small.model.max_length == teacher.model.max_length
    assert small.task.both_directions
    assert not small.data.drop_duplicates, "a weight above 1 is copies"
