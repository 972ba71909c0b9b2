"""The table of benchmarks: what each hands over, and how it is printed."""

import subprocess
import sys

import pytest

from benchmarks import decode, train_step
from benchmarks.result import Result, read_results, write_results
from benchmarks.table import Benchmark, number, table
from tests.architecture.sources import ROOT

SCRIPT = """\
import sys
from pathlib import Path
from benchmarks.result import Result, write_results

word, option, path = sys.argv[1:]
assert option == "--results"
print("on the way")
if word == "good":
    write_results(Path(path), [Result("work", "s", 1.0, "other", 3.0, 3.0)])
"""


def test_more_is_better_for_rates_and_less_for_costs():
    rates = Result.of_rates("x", "tokens/s", [10.0, 30.0, 20.0], "peer", [5.0, 10.0, 40.0])
    assert (rates.ours, rates.theirs, rates.ratio) == (20.0, 10.0, 2.0)
    costs = Result.of_costs("x", "s", [1.0, 2.0, 4.0], "peer", [4.0, 4.0, 4.0])
    assert (costs.ours, costs.theirs, costs.ratio) == (2.0, 4.0, 2.0)


def test_results_travel_as_json(tmp_path):
    results = [Result("a", "s", 1.5, "b", 3.0, 2.0)]
    write_results(tmp_path / "new" / "found.json", results)
    assert read_results(tmp_path / "new" / "found.json") == results
    write_results(None, results)  # nobody asked


def test_a_row_is_markdown():
    lines = table([Result("train", "tokens/s", 6268.4, "marian", 4385.0, 1.4312)]).splitlines()
    assert lines[2] == "| train | 6,268 tokens/s | 4,385 | marian | 1.43 |"
    assert len({line.count("|") for line in lines}) == 1


@pytest.mark.parametrize(
    ("value", "shown"), [(6268.4, "6,268"), (99.96, "100"), (0.18234, "0.182"), (4.0, "4")]
)
def test_numbers_have_three_digits(value, shown):
    assert number(value) == shown


def test_a_benchmark_that_fails_has_no_result_of_an_earlier_run(tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.table.CACHE", tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    (good,) = Benchmark("same", str(script), ("good",)).run()
    assert good.ratio == 3.0
    assert Benchmark("same", str(script), ("bad",)).run() == []


def test_a_training_step_is_compared_with_the_fastest_peer():
    def worker(name, *seconds):
        turns = [train_step.Turn(each, 60, 40, 1.0, 0.0, 0.0) for each in seconds]
        return train_step.Worker(name, "plain", process=None, turns=turns)

    (found,) = train_step.results(
        "fp32", [worker("regard", 1, 2), worker("slow", 4, 8), worker("fast", 2, 4)]
    )
    assert found == Result("a training step, fp32", "tokens/s", 75.0, "fast plain, the fastest", 37.5, 2.0)
    assert list(train_step.results("fp32", [worker("regard", 1)])) == []


def test_an_engine_is_compared_with_its_peer_and_with_the_reference():
    def row(name, *rates):
        return {"model": "m", "beam": 5, "batch": 64, "contender": name, "sentences_per_second": rates}

    rows = [
        row("regard ctranslate2 int8", 90.0),
        row("ctranslate2 int8", 100.0),
        row("hugging face fp32", 10.0),
    ]
    rows.append({"model": "m", "contender": "regard torch fp32", "start_seconds": [1.0]})
    rows.append({"model": "m", "contender": "hugging face fp32", "start_seconds": [4.0]})
    found = list(decode.results(rows))
    assert [(each.peer, each.ratio) for each in found] == [
        ("ctranslate2 int8", 0.9),
        ("hugging face fp32", 9.0),
        ("hugging face fp32", 4.0),
    ]
    assert found[0].what == "decode, beam 5, batch 64, ctranslate2 int8"
    assert found[2].what == "start to first output, torch fp32"


def test_a_gpu_table_says_what_it_needs():
    script = str(ROOT / "benchmarks" / "table.py")
    done = subprocess.run(
        [sys.executable, script, "--gpu"], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 2
    assert "--pairs DIR and --text FILE" in done.stderr
