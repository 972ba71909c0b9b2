"""The program as a user meets it: arguments, output and an exit status."""

import os
import subprocess
import sys
import tomllib

import pytest

import regard
from regard.cli.shared.examples import EXAMPLES
from regard.config import PRESETS, settings
from tests.architecture.test_shown_commands import understand
from tests.programs import run_regard


@pytest.mark.parametrize("words", [[], ["--help"]])
def test_help_names_the_verbs(words):
    command = [sys.executable, "-m", "regard", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "config" in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["config"], ["config", "--help"]])
def test_torch_is_not_imported_to_answer(words):
    code = (
        "import sys\nfrom regard.cli import main\n"
        f"try: main({words})\n"
        "except SystemExit as end: print(end.code, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1] == "0 False", done.stderr


def test_help_tells_every_verb_in_a_whole_sentence():
    _, _, listed = run_regard("--help").stdout.partition("Commands:\n")
    verbs = [line.split()[0] for line in listed.splitlines()]
    assert verbs == [*EXAMPLES]
    assert all(line.endswith((".", "?")) and not line.endswith("...") for line in listed.splitlines())


@pytest.mark.parametrize("verb", EXAMPLES)
def test_examples_in_the_help_are_understood(verb):
    for example in EXAMPLES[verb]:
        words = example.partition(" < ")[0]
        assert words.startswith(f"regard {verb}")
        understand(words.removeprefix("regard "))


def test_version():
    assert run_regard("--version").stdout == f"regard {regard.__version__}\n"


def test_an_unknown_verb_is_refused():
    done = run_regard("tarnslate")
    assert done.returncode == 2
    assert "No such command 'tarnslate'" in done.stderr


def test_config_prints_what_it_read(tmp_path):
    file = tmp_path / "run.toml"
    file.write_text("[model]\nd_ff = 333\n")
    done = run_regard(
        "config",
        "--preset",
        "small",
        "--config",
        str(file),
        "--set",
        "model.d_k=5",
        "--set",
        "training.seed=3",
    )
    assert done.returncode == 0
    printed = tomllib.loads(done.stdout)
    assert (printed["model"]["d_model"], printed["model"]["d_ff"], printed["model"]["d_k"]) == (256, 333, 5)
    assert printed["training"]["seed"] == 3


def test_config_describes_its_settings():
    assert (
        "# Parallel attention heads, the paper's h (3.2.2).\nn_heads = 8\n"
        in run_regard("config", "--describe").stdout
    )


def test_config_help_lists_every_setting():
    printed = run_regard("config", "--help").stdout
    for name, text in settings().items():
        assert any(line.split(maxsplit=1) == [name, text] for line in printed.splitlines()), name


def test_config_lists_the_presets_a_line_each():
    lines = run_regard("config", "--list").stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(PRESETS)
    assert all(len(line.split()) > 1 for line in lines)


def test_a_mistake_is_told_without_a_traceback():
    done = run_regard("config", "--set", "model.n_head=4")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("regard: error[unknown_setting]: 1 problem in --set")
    assert "did you mean model.n_heads?" in done.stderr


def test_debug_shows_the_traceback():
    done = run_regard("--debug", "config", "--set", "model.n_head=4")
    assert done.returncode == 2
    assert done.stderr.startswith("Traceback")
    assert "regard.errors.ConfigError: 1 problem in --set" in done.stderr


@pytest.mark.parametrize("words", [["config"], ["--help"]])
def test_a_reader_that_goes_away_gets_no_traceback(words):
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "regard", *words],
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    finally:
        os.close(writing)
    assert done.returncode == 1
    assert done.stderr == ""


def test_a_plugin_registers_a_choice_and_a_missing_one_is_an_error(tmp_path):
    (tmp_path / "mine.py").write_text(
        "import regard\n@regard.registries.schedules.register('flat')\n"
        "def flat(config, d_model, step, done):\n    return config.learning_rate\n"
    )

    def run_in_folder(*words):
        command = [sys.executable, "-m", "regard", *words]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    chosen = ["config", "--set", "training.schedule=flat"]
    assert 'schedule = "flat"' in run_in_folder("--plugin", "mine", *chosen).stdout
    without = run_in_folder(*chosen)
    assert without.returncode == 2
    assert "training.schedule" in without.stderr
    missing = run_in_folder("--plugin", "nmie", *chosen)
    assert (missing.returncode, missing.stderr.split(":")[1]) == (2, " error[missing_module]")
