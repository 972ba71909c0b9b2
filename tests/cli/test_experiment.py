"""`regard experiment` as a user meets it."""

import json

import pytest

from regard.cli import main
from regard.experiments.registry import NAMES


@pytest.fixture
def experiment(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def experiment(*words):
        with pytest.raises(SystemExit) as ended:
            main(["experiment", *words])
        return ended.value.code or 0, *capsys.readouterr()

    return experiment


def test_without_a_name_all_are_listed(experiment):
    status, out, _ = experiment()
    assert status == 0
    assert [line for line in out.splitlines() if not line.startswith(" ")] == list(NAMES)
    _, out, _ = experiment("--json")
    assert [json.loads(line)["name"] for line in out.splitlines()] == list(NAMES)


def test_numbers_are_printed_and_the_picture_is_drawn(experiment, tmp_path):
    status, out, _ = experiment("scale", "--short", "--seeds", "1")
    assert status == 0
    assert "softmax over 32 random keys" in out
    assert "√d_k 增大" in out
    folder = tmp_path / "runs" / "experiments"
    assert {file.name for file in folder.iterdir()} == {"scale.json", "scale.svg", "scale.png"}
    assert json.loads((folder / "scale.json").read_text(encoding="utf-8"))["seeds"] == [1]
    assert (folder / "scale.png").read_bytes().startswith(b"\x89PNG")


def test_json_is_the_only_thing_on_stdout(experiment, tmp_path):
    status, out, _ = experiment("scale", "--short", "--seeds", "1", "--json")
    assert status == 0
    assert json.loads(out)["verdict"][0]["holds"] is True
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["scael"], "error[unknown_experiment]: unknown experiment scael; did you mean scale?"),
        (["scale", "--long", "--short"], "error[conflicting_options]: --long and --short"),
        (["scale", "--model", "folder"], "error[conflicting_options]: scale trains its own models"),
    ],
)
def test_what_cannot_be_done_is_refused(experiment, words, complaint):
    status, _, err = experiment(*words)
    assert status == 2
    assert complaint in err
