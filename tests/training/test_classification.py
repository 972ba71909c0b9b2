"""A classifier from tables: it learns, goes on as if never stopped, and says what is wrong with its data."""

import json
import math
from contextlib import nullcontext

import pytest
import torch

import regard
from regard.bundle import weights_hash
from regard.config import DataConfig, read_config
from regard.data.reading.labelled import labelled_corpus, unlabelled_corpus
from regard.errors import CorpusError, RequestError
from regard.look.export.document import steps
from regard.look.interventions.interventions import HeadOff
from regard.look.trace.probes import probes
from regard.look.trace.trace import Trace
from regard.look.views.view import title_of
from regard.text.vocabularies.subwords import learn_subwords
from regard.training.checkpoints.folder import claim
from regard.training.classification import ClassifierRun
from regard.training.distributed.world import World
from regard.training.starting import Start
from regard.training.tables import TableSource, prepare_tables, prepared_tables
from tests.training.copying import stop_at

SETTINGS = (
    "task.name=classify",
    "model.architecture=encoder",
    "model.n_labels=2",
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
CPU = World(torch.device("cpu"))
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


def classifier_run(folder, table, *settings, pretrain=False):
    config = read_config(preset="tiny", settings=[*SETTINGS, *settings])
    source = TableSource(
        train=labelled_corpus(table),
        plain=unlabelled_corpus(table) if pretrain else None,
        separator=config.task.label_separator,
        vocab_size=300,
        max_tokens=config.model.max_length,
        data=config.data,
    )
    claim(folder, config)
    return ClassifierRun(folder, config, lambda: source, CPU)


def trained(task, listeners=()):
    return task.train(lambda _: nullcontext(listeners))


@pytest.fixture(scope="module")
def whole(tmp_path_factory, table):
    task = classifier_run(tmp_path_factory.mktemp("whole") / "run", table, "data.test_lines=20")
    trained(task)
    return task


def test_it_learns_which_words_make_a_label(whole):
    score = whole.test()
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
    with pytest.raises(
        RequestError, match=r"has \d+ tokens, and the model reads 12 at most.*`too_long='cut'`"
    ):
        model.classify("the cat is fine " * 9)
    cut = model.classify("the cat is fine " * 9, too_long="cut")
    assert cut.cut > 0
    assert cut.label == "good"
    assert model.classify("龘").unseen == ("龘",)


@pytest.mark.parametrize("pretrain", [False, True])
def test_a_run_that_was_asked_to_stop_ends_like_one_that_was_not(tmp_path, table, pretrain):
    settings = ("training.max_steps=9", "training.hidden_tokens=0.2", "training.agreement=1")
    once = classifier_run(tmp_path / "once", table, *settings, pretrain=pretrain)
    trained(once)
    for step in (5, 3, 7) if pretrain else (3, 7):  # the first falls into the pretraining
        task = classifier_run(tmp_path / "parts", table, *settings, pretrain=pretrain)
        assert trained(task, stop_at(step)) == "asked to stop"
    again = classifier_run(tmp_path / "parts", table, *settings, pretrain=pretrain)
    trained(again)
    assert weights_hash(again.run.model) == weights_hash(once.run.model)


def test_a_start_with_other_labels_is_told(tmp_path, whole):
    other = write(tmp_path / "other.tsv", [(label.upper(), text) for label, text in ROWS])
    told = []
    task = classifier_run(tmp_path / "run", other, "training.max_steps=1")
    task.start, task.tell = Start.of(whole.folder), told.append
    trained(task)
    assert told == ["the labels were bad, good, worst: what tells them apart is learned anew"]


def test_what_was_guessed_first_is_where_labels_are_learned_from(tmp_path, table):
    task = classifier_run(tmp_path / "run", table, "training.learning_rate=1e-9", pretrain=True)
    trained(task)
    guessed = regard.load_bundle(tmp_path / "run" / "pretraining" / "best").model
    torch.testing.assert_close(guessed.input_embedding.weight, task.run.model.input_embedding.weight)
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
    task = classifier_run(folder / "run", write(folder / "tags.tsv", TAGGED), *settings)
    trained(task)
    return task


def test_a_text_may_have_several_labels(tagging):
    score = tagging.test()
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
    told = told_of(tmp_path, rows, separator="|")
    assert "1 row has no label" in told
    assert "label 'odd' is on one text" in told
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
    told = told_of(tmp_path, rows)
    assert "train: 104 texts, valid: 12 texts, test: 12 texts" in told
    assert told.count("is on one text of the training set only") == 20
    with pytest.raises(CorpusError, match="5 texts are to be held out, and 0 have labels that others have"):
        told_of(
            tmp_path / "strange", [row for row in rows if "odd" in row[0]], valid=[rows[-1]], test_lines=5
        )


def test_labels_behind_their_texts_are_told_from_too_few(tmp_path):
    with pytest.raises(CorpusError, match="is the label in the first column"):
        told_of(tmp_path, [(text, label) for label, text in ROWS])


def test_characters_that_the_subwords_of_a_start_lack_are_named(tmp_path):
    subwords = learn_subwords([text for _, text in ROWS], 300)
    told = told_of(tmp_path, [*ROWS, *(("good", f"龘 猫 {i}") for i in range(9))], subwords=subwords)
    assert "characters are in no subword of the model to start from, and are read as bytes: 猫 龘" in told


def told_of(tmp_path, rows, *, valid=None, separator=None, subwords=None, test_lines=None):
    told = []
    tmp_path.mkdir(exist_ok=True)
    source = TableSource(
        subwords=subwords,
        data=DataConfig(test_lines=test_lines),
        separator=separator,
        train=labelled_corpus(write(tmp_path / "rows.tsv", rows)),
        valid=None if valid is None else labelled_corpus(write(tmp_path / "valid.tsv", valid)),
        vocab_size=300,
        max_tokens=13,
    )
    prepare_tables(tmp_path / "data", source, told.append)
    return "\n".join(told)


def test_empty_texts_missing_labels_and_doubles_are_counted(tmp_path):
    told = told_of(tmp_path, [*ROWS, ("good", " "), ("", "no label"), ROWS[0]])
    assert f"1 row has an empty text and is left out, such as {tmp_path}/rows.tsv:{len(ROWS) + 1}" in told
    assert "1 row has no label" in told
    assert "1 row is there again" in told


def test_texts_with_different_labels_are_told_and_learned_rather_than_scored(tmp_path):
    told = told_of(
        tmp_path, [*ROWS, *((label, f"thing {i}") for i in range(90) for label in ("good", "bad"))]
    )
    assert "90 texts are there with different labels, such as 'thing 0' (good, bad): is that meant?" in told
    found = prepared_tables(tmp_path / "data")
    held_out = [
        found.subwords.decode(store[i][0])
        for store in (found.lesson.valid, found.test)
        for i in range(len(store))
    ]
    assert held_out
    assert not any(text.startswith("thing") for text in held_out)


def test_a_label_seen_once_and_one_that_validation_has_not_are_named(tmp_path):
    valid = [("good", "something fine"), ("bad", "something poor")]
    told = told_of(tmp_path, [*ROWS, ("odd", "a strange thing")], valid=valid)
    assert "label 'odd' is on one text of the training set only" in told
    assert "the valid set has no text labelled odd, worst" in told


def test_a_label_that_is_not_trained_on_and_a_single_one_are_refused(tmp_path):
    with pytest.raises(CorpusError, match="valid set has 'new', which the training set has not"):
        told_of(tmp_path, ROWS, valid=[("new", "something")])
    with pytest.raises(CorpusError, match="every text is labelled 'good'"):
        told_of(tmp_path, [row for row in ROWS if row[0] == "good"])


def test_texts_that_are_held_out_are_not_trained_on_and_long_ones_are_cut(tmp_path):
    told = told_of(tmp_path, [*ROWS, ("bad", "poor " * 40)], valid=[ROWS[0], ("bad", "so poor")])
    assert "1 row is there again, or held out" in told
    assert "1 of 98 texts of the train set is longer than the model reads, and cut after 12 tokens" in told


def test_where_its_heads_look_is_stored_at_each_validation(whole):
    first, *_, last = probes(whole.folder)
    assert (first.step, last.step) == (0, 40)
    for probe in last.probes:
        assert probe.outputs is None
        assert probe.inputs.ids[0] == whole.prepared.subwords.cls_id
        assert set(probe.weights) == {"encoder"}
        assert set(probe.likeliest) <= {"good", "bad", "worst"}
    better = zip(first.probes, last.probes, strict=True)
    assert all(before.log_probs[0] < after.log_probs[0] < 0 for before, after in better)  # of the right label
