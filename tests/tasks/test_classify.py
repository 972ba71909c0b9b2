"""The task `classify`: it learns, resumes to the bit, and reports what is wrong with its data."""

import json
import math

import pytest
import torch

import regard
from regard.bundle import weights_hash
from regard.config import DataConfig, RunConfig
from regard.data.reading.labelled import labelled_corpus
from regard.errors import RequestError
from regard.look.export.document import steps
from regard.look.interventions.interventions import HeadOff
from regard.look.trace.probes import probes
from regard.look.trace.trace import Trace
from regard.look.views.view import title_of
from regard.tasks.classify import Classify
from regard.tasks.label_preparation import LabelledSource, prepare_labelled
from regard.tasks.task import Reporter
from regard.text.vocabularies.subwords import learn_subwords
from regard.training.run import train
from tests.refusals import refused
from tests.training.copying import stop_at

SETTINGS = (
    "model.vocab_size=300",
    "model.d_model=24",
    "model.n_heads=3",
    "model.d_ff=32",
    "model.encoder_layers=1",
    "model.max_length=13",
    "model.dropout=0.1",
    "training.batch_tokens=150",
    "training.schedule=cosine",
    "training.learning_rate=0.01",
    "training.warmup_steps=5",
    "training.max_steps=40",
    "training.pretrain_steps=6",
    "training.validate_every=20",
    "training.checkpoint_every=4",
    "training.precision=float32",
    "training.average_checkpoints=1",
)
ROWS = [
    (label, f"the {animal} is {word} {i}")
    for i in range(9)
    for animal in ("cat", "dog", "hen")
    for label, word in (("good", "fine"), ("good", "nice"), ("bad", "poor"), ("worst", "vile"))
]


def write(file, rows):
    file.write_text("".join(f"{label}\t{text}\n" for label, text in rows))
    return file


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return write(tmp_path_factory.mktemp("table") / "animals.tsv", ROWS)


def trained(folder, table, *settings, pretrain=False, **others):
    return train(
        table,
        task="classify",
        out=folder,
        preset="tiny",
        settings=[*SETTINGS, *settings],
        pretrain=[table] if pretrain else (),
        device="cpu",
        **others,
    )


def last_weights(run):
    return weights_hash(regard.load_bundle(run.folder / "last").model)


@pytest.fixture(scope="module")
def whole(tmp_path_factory, table):
    return trained(tmp_path_factory.mktemp("whole") / "run", table, "data.test_lines=20")


def test_it_learns_which_words_make_a_label(whole):
    score = whole.scores
    assert score.accuracy > 0.9
    kept = json.loads((whole.folder / "scores.json").read_text())
    assert kept["accuracy"] == score.accuracy
    assert kept["labels"] == ["bad", "good", "worst"]
    assert (whole.folder / "confusion.svg").read_text().count("worst") >= 2
    events = [json.loads(line) for line in (whole.folder / "journal.jsonl").read_text().splitlines()]
    assert [event["valid_macro_f1"] > 0 for event in events if "valid_loss" in event] == [True, True]


def test_the_model_folder_labels_texts_and_can_be_looked_into(whole):
    model = regard.load(whole.folder)
    one, other = model.classify(["the cat is fine 3", "the hen is vile 4"])
    assert (one.label, other.label) == ("good", "worst")
    assert sum(one.probabilities.values()) == pytest.approx(1.0)
    assert next(iter(one.probabilities)) == one.label
    assert one.probability == one.probabilities["good"]
    assert model.classify("the cat is fine 3").probability == pytest.approx(one.probability, abs=1e-5)
    trace = model.look("the cat is fine 3")
    assert set(trace.pieces.values()) <= {"good", "bad", "worst"}
    assert trace.pieces[trace.targets[0]] == "good"


def test_a_text_that_is_empty_too_long_or_never_seen(whole):
    model = regard.load(whole.folder)
    with pytest.raises(RequestError, match="text 2 is empty"):
        model.classify(["fine", "  "])
    with refused("too_long", "at most 12", "`too_long='cut'`"):
        model.classify("the cat is fine " * 9)
    cut = model.classify("the cat is fine " * 9, too_long="cut")
    assert cut.cut > 0
    assert cut.label == "good"
    assert model.classify("龘").unseen == ("龘",)


@pytest.mark.parametrize("pretrain", [False, True])
def test_an_interrupted_run_ends_like_one_that_was_not(tmp_path, table, pretrain):
    settings = ("training.max_steps=9", "training.hidden_tokens=0.2", "training.agreement=1")
    once = trained(tmp_path / "once", table, *settings, pretrain=pretrain)
    for step in (5, 3, 7) if pretrain else (3, 7):  # the first falls into the pretraining
        stopped = trained(tmp_path / "parts", table, *settings, pretrain=pretrain, listeners=stop_at(step))
        assert stopped.interrupted
        assert stopped.scores is None
    again = trained(tmp_path / "parts", table, *settings, pretrain=pretrain)
    assert last_weights(again) == last_weights(once)


def test_a_start_with_other_labels_is_reported(tmp_path, whole):
    other = write(tmp_path / "other.tsv", [(label.upper(), text) for label, text in ROWS])
    run = trained(tmp_path / "run", other, "training.max_steps=1", start_from=whole.folder)
    assert any("bad, good, worst" in message for message in run.messages)


def test_training_on_labels_starts_from_the_pretraining(tmp_path, table):
    run = trained(tmp_path / "run", table, "training.learning_rate=1e-9", pretrain=True)
    guessed = regard.load_bundle(tmp_path / "run" / "pretraining" / "best").model
    last = regard.load_bundle(run.folder / "last").model
    torch.testing.assert_close(guessed.input_embedding.weight, last.input_embedding.weight)
    assert guessed.config.n_labels == guessed.config.vocab_size


TAGGED = [
    ("|".join([animal, *labels]), f"the {animal} is {word} {i}")
    for i in range(9)
    for animal in ("cat", "dog")
    for labels, word in ((["good"], "fine"), (["good"], "nice"), ([], "poor"))
]


@pytest.fixture(scope="module")
def tagging(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tags")
    settings = ("task.label_separator=|", "training.class_weights=true", "training.max_steps=60")
    return trained(folder / "run", write(folder / "tags.tsv", TAGGED), *settings)


def test_a_text_may_have_several_labels(tagging):
    score = tagging.scores
    assert score.labels == ("cat", "dog", "good")
    assert score.micro_f1 > 0.9
    assert json.loads((tagging.folder / "scores.json").read_text())["exact"] == score.exact
    assert (tagging.folder / "confusion.svg").read_text().count("good") >= 2
    fine, poor = regard.load(tagging.folder).classify(["the cat is fine 2", "the dog is poor 3"])
    assert set(fine.labels) == {"cat", "good"}
    assert poor.labels == (poor.label,) == ("dog",)
    assert sum(fine.probabilities.values()) > 1.5  # they do not shut each other out
    assert regard.load(tagging.folder).classify("the cat is fine 2", threshold=0.999999).labels == ()


def test_what_is_looked_at_are_the_probabilities_that_are_given(tagging):
    model, text = regard.load(tagging.folder), "the cat is fine 2"
    found, trace = model.classify(text), model.look(text)
    looked = {each.text: each.probability for each in trace.candidates(0)}
    assert looked == pytest.approx(found.probabilities, abs=1e-5)
    assert title_of(trace).endswith(", ".join(found.labels))
    for label in found.labels:  # a label that is sure takes nothing from another
        named = model.look(text, label)
        assert math.exp(named.log_probs[0]) == pytest.approx(found.probabilities[label], abs=1e-5)
    off = HeadOff(kind="encoder", layer=0, head=1)
    change = model.look(text, found.label, interventions=[off]).log_probs[0] - trace.log_probs[0]
    assert model.head_effects(trace)["encoder"][0, 1] == pytest.approx(change, abs=1e-5)
    (step,) = steps(trace)
    assert (step["entropy"], step["rest"]) == (None, None)
    assert [each.name for each in trace.walk("encoder", 0, 0, 0)][-2:] == ["logits", "probabilities"]
    assert Trace.from_bytes(trace.to_bytes()) == trace


def test_labels_of_a_text_are_cleaned_and_counted_one_by_one(tmp_path):
    rows = [*TAGGED, ("cat| good|cat|", "the cat is so fine"), (" | ", "nothing"), ("odd|cat", "a cat")]
    reported = report_on(tmp_path, rows, separator="|")
    assert "1 row has no label" in reported
    assert "'odd' has only one text" in reported
    assert json.loads((tmp_path / "data" / "labels.json").read_text())["labels"] == [
        "cat",
        "dog",
        "good",
        "odd",
    ]


def test_every_label_that_is_given_to_the_shown_text_is_shown(tagging):
    events = map(json.loads, (tagging.folder / "journal.jsonl").read_text().splitlines())
    *_, sample = (event["sample"] for event in events if "sample" in event)
    given = {label.partition(" (")[0] for label in sample["output"].split(", ")}
    assert given == set(regard.load(tagging.folder).classify(sample["source"]).labels)
    assert given == set(sample["reference"].split(", "))


def test_speed_is_told_by_the_tokens_that_are_read(whole):
    events = map(json.loads, (whole.folder / "journal.jsonl").read_text().splitlines())
    read = [event["tokens"] for event in events if "loss" in event]
    assert 100 < max(read) <= 150  # training.batch_tokens


def test_a_tenth_is_held_out_and_the_last_text_of_a_label_stays(tmp_path):
    rows = [*ROWS, *((f"odd {i}", f"a strange thing {i}") for i in range(20))]
    reported = report_on(tmp_path, rows)
    assert "train: 104 texts, valid: 12 texts, test: 12 texts" in reported
    assert reported.count("has only one text in the training set") == 20
    odd = [row for row in rows if "odd" in row[0]]
    with refused("too_few_rows", "5 texts", "only 0"):
        report_on(tmp_path / "strange", odd, valid=[rows[-1]], test_lines=5)


def test_labels_behind_their_texts_are_told_from_too_few(tmp_path):
    with refused("too_few_rows", "`columns=2,1`"):
        report_on(tmp_path, [(text, label) for label, text in ROWS])


def test_characters_that_the_subwords_of_a_start_lack_are_named(tmp_path):
    subwords = learn_subwords([text for _, text in ROWS], 300)
    reported = report_on(tmp_path, [*ROWS, *(("good", f"龘 猫 {i}") for i in range(9))], subwords=subwords)
    assert "read as bytes: 猫 龘" in reported


def report_on(tmp_path, rows, *, valid=None, separator=None, subwords=None, test_lines=None):
    messages = []
    tmp_path.mkdir(exist_ok=True)
    source = LabelledSource(
        subwords=subwords,
        data=DataConfig(test_lines=test_lines),
        separator=separator,
        train=labelled_corpus(write(tmp_path / "rows.tsv", rows)),
        valid=None if valid is None else labelled_corpus(write(tmp_path / "valid.tsv", valid)),
        vocab_size=300,
        max_tokens=13,
    )
    prepare_labelled(tmp_path / "data", source, Reporter([lambda event: messages.append(event["message"])]))
    return "\n".join(messages)


def test_empty_texts_missing_labels_and_doubles_are_counted(tmp_path):
    reported = report_on(tmp_path, [*ROWS, ("good", " "), ("", "no label"), ROWS[0]])
    assert f"1 row has an empty text, left out; the first is {tmp_path}/rows.tsv:{len(ROWS) + 1}" in reported
    assert "1 row has no label" in reported
    assert "1 row is a duplicate" in reported


def test_texts_with_different_labels_are_told_and_learned_rather_than_scored(tmp_path):
    reported = report_on(
        tmp_path, [*ROWS, *((label, f"thing {i}") for i in range(90) for label in ("good", "bad"))]
    )
    assert "90 texts appear with different labels, such as 'thing 0' (good, bad)" in reported
    found = Classify().prepared(tmp_path / "data", RunConfig())
    held_out = [
        found.subwords.decode(store[i][0])
        for store in (found.lesson.valid, found.test)
        for i in range(len(store))
    ]
    assert held_out
    assert not any(text.startswith("thing") for text in held_out)


def test_a_label_seen_once_and_one_that_validation_has_not_are_named(tmp_path):
    valid = [("good", "something fine"), ("bad", "something poor")]
    reported = report_on(tmp_path, [*ROWS, ("odd", "a strange thing")], valid=valid)
    assert "'odd' has only one text" in reported
    assert "the valid set has no text with the label odd, worst" in reported


def test_a_label_that_is_not_trained_on_and_a_single_one_are_refused(tmp_path):
    with refused("unknown_label", "the valid set", "'new'"):
        report_on(tmp_path, ROWS, valid=[("new", "something")])
    with refused("one_label", "'good'"):
        report_on(tmp_path, [row for row in ROWS if row[0] == "good"])


def test_texts_that_are_held_out_are_not_trained_on_and_long_ones_are_cut(tmp_path):
    reported = report_on(tmp_path, [*ROWS, ("bad", "poor " * 40)], valid=[ROWS[0], ("bad", "so poor")])
    assert "1 row is a duplicate or held out" in reported
    assert "1 of 98 texts of the train set is cut after 12 tokens" in reported


def test_where_its_heads_look_is_stored_at_each_validation(whole):
    first, *_, last = probes(whole.folder)
    assert (first.step, last.step) == (0, 40)
    for probe in last.probes:
        assert probe.outputs is None
        assert probe.inputs.ids[0] == regard.load(whole.folder).subwords.cls_id
        assert set(probe.weights) == {"encoder"}
        assert set(probe.likeliest) <= {"good", "bad", "worst"}
    better = zip(first.probes, last.probes, strict=True)
    assert all(before.log_probs[0] < after.log_probs[0] < 0 for before, after in better)  # of the right label
