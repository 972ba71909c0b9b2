"""`regard.train` and `regard.evaluate`, as a Python program calls them."""

import json
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import regard
from regard import registries
from regard.bundle import weights_hash
from regard.tasks.pairs import PairsLesson, PairsTask
from regard.tasks.translate import Translate
from regard.training.arguments import configured
from tests.refusals import refused

SETTINGS = {
    "model.vocab_size": 300,
    "model.d_model": 24,
    "model.n_heads": 3,
    "model.d_ff": 32,
    "model.encoder_layers": 1,
    "model.decoder_layers": 1,
    "training.batch_tokens": 400,
    "training.max_steps": 2,
    "training.validate_every": 2,
    "training.warmup_steps": 1,
    "training.max_epochs": None,
    "training.compile": False,
    "decoding.beam_size": 1,
    "decoding.extra_length": 2,
}
WORDS = [f"{a}{b}{c}" for a in "abcd" for b in "efgh" for c in "ijklm"]


def train(*data, **options):
    return regard.train(*data, **{"preset": "tiny", "settings": SETTINGS, "device": "cpu"} | options)


class LoudLesson(PairsLesson):
    """A lesson that counts its batches."""

    batches = 0

    def batch(self, store, indices, fill_to=None):
        LoudLesson.batches += 1
        return super().batch(store, indices, fill_to)


@registries.tasks.register("spell-backwards")
class Backwards(PairsTask):
    """Words, written backwards."""

    settings = ("training.label_smoothing=0.0",)
    lesson = LoudLesson

    def rows(self, path):
        for line in path.read_text().split():
            yield " ".join(line), " ".join(reversed(line))


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    file = tmp_path_factory.mktemp("words") / "words.txt"
    file.write_text("\n".join(WORDS))
    return file


@pytest.fixture(scope="module")
def run(tmp_path_factory, words):
    return train(words, task=Backwards, out=tmp_path_factory.mktemp("own") / "run")


def test_a_task_of_ones_own_is_trained_scored_loaded_and_looked_at(run):
    assert (run.reason, run.interrupted) == ("2 steps are done", False)
    assert LoudLesson.batches > 2
    assert run.config.training.label_smoothing == 0.0
    kept = json.loads((run.folder / "scores.json").read_text())
    assert kept["bleu"] == run.scores.bleu
    assert run.model.task.name == "spell-backwards"
    assert isinstance(run.model.translate("a e i").text, str)
    assert run.model.look("a e i").attention("cross", layer=0, head=0).sum(-1) == pytest.approx(1.0)
    assert [event["step"] for event in run.events if "loss" in event] == [1, 2]


def test_it_is_evaluated_by_its_own_rows(run, words):
    score = regard.evaluate(run.folder, words)
    assert score.n_lines == len(WORDS)
    with refused("wrong_number_of_files", "spell-backwards"):
        regard.evaluate(run.folder, words, words)


def test_a_task_may_be_an_instance_and_the_same_call_finds_the_run_done(run, words):
    again = train(words, task=Backwards(), out=run.folder)
    assert (again.scores, again.events) == (run.scores, run.events)


def test_a_task_that_is_not_registered_is_refused(words, tmp_path):
    class Unknown(PairsTask):
        """Not registered."""

    for task, name in ((Unknown, "Unknown"), ("sumarise", "summarise")):
        with refused("unknown_choice", name):
            train(words, task=task, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_folder_whose_task_is_not_registered_is_refused(run, words, monkeypatch):
    monkeypatch.delitem(registries.tasks._chosen, "spell-backwards")
    for opened in (lambda: regard.load(run.folder), lambda: regard.evaluate(run.folder, words)):
        with refused("unknown_choice", "spell-backwards"):
            opened()


ROWS = {
    "translate": [(word, word.upper()) for word in WORDS],
    "generate": [f"{word} {word}" for word in WORDS],
    "classify": [(str(i % 2), word) for i, word in enumerate(WORDS)],
    "summarise": [{"document": f"{word} {word}", "summary": word} for word in WORDS],
}


@pytest.mark.parametrize("task", ROWS)
def test_rows_of_python_are_trained_on_like_files(tmp_path, task):
    events = []
    languages = {"source": "xx", "target": "yy"} if task == "translate" else {}
    run = train(ROWS[task], task=task, out=tmp_path / "run", listeners=[events.append], **languages)
    assert run.scores is not None
    (started,) = (event for event in events if "started" in event)
    assert started["max_steps"] == 2
    assert [event["step"] for event in events if "loss" in event] == [1, 2]
    assert events[-1].keys() == {"message"}
    assert run.messages == [event["message"] for event in events if "message" in event]


@pytest.mark.usefixtures("run")
def test_a_run_in_a_thread_is_stopped_by_an_event_and_resumed(tmp_path, words):
    """Only the main thread can handle signals."""
    stop, settings = threading.Event(), {**SETTINGS, "training.max_steps": 6}
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]

    def stop_at_third(event):
        if event.get("step") == 3 and "loss" in event:
            stop.set()

    options = {"task": "spell-backwards", "out": tmp_path / "run", "settings": settings}
    with ThreadPoolExecutor(1) as thread:
        first = thread.submit(train, words, **options, stop=stop, listeners=[stop_at_third]).result()
        assert (first.interrupted, first.scores) == (True, None)
        assert [event["step"] for event in first.events if "loss" in event] == [1, 2, 3]
        stop.clear()
        second = thread.submit(train, words, **options, stop=stop).result()
    assert (second.interrupted, second.reason) == (False, "6 steps are done")
    assert [event["step"] for event in second.events if "loss" in event] == [1, 2, 3, 4, 5, 6]
    assert second.scores is not None
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
    whole = train(words, **options | {"out": tmp_path / "whole"})  # here, in the main thread
    assert weights_hash(whole.folder / "best") == weights_hash(second.folder / "best")


@pytest.mark.usefixtures("run")
def test_an_event_stops_a_run_in_the_main_thread_too(tmp_path, words):
    stop = threading.Event()
    stop.set()
    assert train(words, task="spell-backwards", out=tmp_path / "run", stop=stop).interrupted


@pytest.mark.usefixtures("run")
def test_nothing_is_printed_unless_it_is_wanted(tmp_path, words, capfd):
    train(words, task="spell-backwards", out=tmp_path / "quiet")
    assert capfd.readouterr() == ("", "")
    train(words, task="spell-backwards", out=tmp_path / "shown", display=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert "step 2 of 2" in err


@pytest.mark.parametrize(
    ("preset", "settings", "size"),
    [
        ("paper-base", [], 37_000),
        ("paper-base-heads-4", [], 37_000),
        ("paper-base", ["model.vocab_size=900"], 900),
        ("base", [], None),
        (None, [], None),
    ],
)
def test_the_vocabulary_of_the_papers_presets_is_the_papers(tmp_path, preset, settings, size):
    """Of the others, it follows from the data; a preset may be named in a file, too."""
    chosen = Translate()
    assert configured(chosen, preset, None, settings, None)["vocab_size"] == size
    file = tmp_path / "settings.toml"
    file.write_text(f'preset = "{preset}"\n' if preset else "")
    assert configured(chosen, None, file, settings, None)["vocab_size"] == size


def test_options_of_other_tasks_are_refused(words, tmp_path):
    options = {"columns": ["a", "b"], "source": "zh", "pretrain": [words], "builtin": "numerals"}
    for name, value in options.items():
        with refused("option_not_for_task", f"`{name}`", "spell-backwards"):
            train(words, task=Backwards, out=tmp_path / "run", **{name: value})
