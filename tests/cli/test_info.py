"""`regard info` as a user meets it."""

import json
import subprocess
import sys

import pytest

from regard.bundle import save_bundle, weights_hash
from regard.config import ModelConfig
from regard.model.build import build
from tests.programs import run_regard

SMALL = ModelConfig(vocab_size=19, d_model=12, n_heads=3, d_ff=17, encoder_layers=2, decoder_layers=1)


def run(*words):
    return run_regard("info", *words)


@pytest.fixture
def model():
    return build(SMALL)


@pytest.fixture
def folder(tmp_path, model):
    metrics = {"bleu": 31.5, "note": "\x1b[2J"}
    return save_bundle(tmp_path / "zh-en", model, subwords=b"pieces", metrics=metrics)


def test_a_run_means_its_best_model(folder):
    folder.rename(folder.parent / "best")
    assert run(folder.parent).stdout == run(folder.parent / "best").stdout


def test_it_tells_what_the_folder_holds(folder, model):
    done = run(folder)
    assert (done.returncode, done.stderr) == (0, "")
    first, *others = done.stdout.splitlines()
    assert first == f"{folder}: encoder-decoder, {model.n_parameters:,} parameters, float32"
    assert f"weights {weights_hash(model)}" in others
    told = {line.split()[0]: line.split(maxsplit=1)[1] for line in others if len(line.split()) > 1}
    size = (folder / "model.safetensors").stat().st_size
    assert told["model.safetensors"] == f"{size:,} bytes"
    assert (told["d_model"], told["d_k"], told["beam_size"], told["bleu"]) == ("12", "none", "4", "31.5")
    assert told["note"] == r'"\u001b[2J"', "text from a file must not reach the terminal as it is"


def test_a_run_stands_for_its_best_model(tmp_path, model):
    save_bundle(tmp_path / "run" / "best", model)
    assert run(tmp_path / "run").stdout.startswith(f"{tmp_path / 'run' / 'best'}: encoder-decoder")


def test_json_is_one_object_on_one_line(folder, model):
    done = run(folder, "--json")
    (line,) = done.stdout.splitlines()
    told = json.loads(line)
    assert told["config"]["d_ff"] == 17
    assert told["n_parameters"] == model.n_parameters
    assert told["weights_hash"] == weights_hash(model)
    assert told["metrics"]["bleu"] == 31.5
    assert told["files"]["subwords.model"] == 6


def test_torch_is_not_imported_to_describe_a_model(folder):
    code = (
        "import sys\nfrom regard.cli import main\n"
        f"try: main(['info', {str(folder)!r}])\n"
        "except SystemExit as end: print(end.code, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1] == "0 False", done.stderr


def test_what_is_wrong_is_told_without_a_traceback(folder):
    (folder / "card.md").unlink()
    (folder / "config.toml").write_text("")
    done = run(folder)
    assert (done.returncode, done.stdout) == (2, "")
    heading, *problems = done.stderr.splitlines()
    assert heading == f"regard: error[damaged_model_folder]: 2 problems in {folder}"
    assert sorted(problem.split()[0] for problem in problems) == ["card.md", "config.toml"]
