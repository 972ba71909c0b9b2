"""The task `translate`: its files and languages; and one model that learns both directions."""

import json
from pathlib import Path

import pytest

import regard
from regard.config import RunConfig
from regard.data.numerals import sample
from regard.look.trace.recorder import look
from regard.tasks.pair_preparation import read_pairs
from regard.tasks.task import DataFiles, Job, Reporter
from regard.tasks.translate import _check_language_tokens, check_files, languages_of
from regard.training.run import train
from tests.refusals import refused
from tests.tasks.translators import translator

PAIR, TABLE = (Path("a.zh"), Path("a.en")), (Path("a.tsv"),)
COLUMNS = ("zh", "en")
SETTINGS = (
    "task.both_directions=true",
    "model.vocab_size=600",
    "model.d_model=48",
    "model.d_ff=96",
    "model.max_length=64",
    "training.max_steps=300",
    "training.validate_every=150",
    "training.checkpoint_every=1000",
    "decoding.extra_length=20",
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("both")
    pairs = sample("train", 2000, 1)
    paths = folder / "train.zh", folder / "train.en"
    for path, texts in zip(paths, ([p.chinese for p in pairs], [p.english for p in pairs]), strict=True):
        path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REGARD_CACHE", str(folder / "cache"))
        yield train(*paths, out=folder / "run", preset="numerals", settings=SETTINGS, device="cpu")


@pytest.fixture(scope="module")
def held_out(run):
    return read_pairs(run.folder / "data")[1]


@pytest.mark.slow
def test_both_directions_are_scored_apart(run):
    assert list(run.scores) == ["zh-en", "en-zh"]
    there, back = run.scores.values()
    scores = json.loads((run.folder / "scores.json").read_text(encoding="utf-8"))
    assert (scores["zh-en"]["bleu"], scores["en-zh"]["bleu"]) == (there.bleu, back.bleu)
    assert "tok:13a" in there.bleu_signature
    assert "tok:zh" in back.bleu_signature
    validations = [e for e in run.events if "valid_bleu" in e]
    assert len(validations) == 2
    for event in validations:
        assert event["valid_bleu"] == pytest.approx((event["valid_bleu_en"] + event["valid_bleu_zh"]) / 2)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_the_model_folder_writes_the_language_that_is_asked_for(run, held_out, engine):
    model = regard.load(run.folder, engine=engine, threads=1)
    assert model.task == run.config.task
    chinese, english = (list(column)[:12] for column in zip(*held_out, strict=True))
    assert all(result.text.isascii() for result in model.translate(chinese))
    # As the model writes them: a corrected number may be in digits alone.
    assert not any(result.text.isascii() for result in model.translate(english, check_numbers=False))
    results = model.translate([*chinese, *english])
    assert [r.text for r in results] == [
        *(r.text for r in model.translate(chinese, to="en")),
        *(r.text for r in model.translate(english, source="en")),
    ]
    # What is right is likelier with the tag of its language than with the other.
    asked, other = (model.score(chinese, english, to=to) for to in ("en", "zh"))
    assert sum(each.log_prob for each in asked) > sum(each.log_prob for each in other)


@pytest.mark.slow
def test_the_tag_is_a_token_that_one_sees(run):
    model = regard.load(run.folder, engine="torch")
    loaded = regard.load_bundle(run.folder / "best").model
    trace = look(loaded, model.subwords, model.read("三月五日"))
    assert trace.inputs.tokens[0].text == "<2en>"
    assert trace.inputs.tokens[0].special
    assert trace.inputs.text == "三月五日"


@pytest.mark.parametrize(
    "sets",
    [
        {"train": PAIR},
        {"train": TABLE, "columns": COLUMNS},
        {"train": (Path("-"),), "columns": (1, 2)},
        {"train": (Path("pairs"),), "columns": (1, 2)},
        {"train": TABLE, "valid": PAIR, "test": (Path("t.jsonl.xz"),), "columns": COLUMNS},
        {"train": PAIR, "valid": TABLE, "columns": COLUMNS},
        {"train": PAIR, "valid": TABLE},
        {"train": (*TABLE, Path("b.csv"), Path("c.tmx"))},
    ],
)
def test_sets_of_files_and_tables_go_together(sets):
    check_files(DataFiles(**sets))


@pytest.mark.parametrize(
    ("sets", "place"),
    [
        ({"train": ()}, "give two files"),
        ({"train": (Path("a.zh"),)}, "give two files"),
        ({"train": (*PAIR, *TABLE)}, "give two files"),
        ({"train": (Path("pairs"),)}, "give two files"),
        ({"train": (Path("-"),)}, "standard input: "),
        ({"train": (Path("-"), Path("a.en"))}, "standard input"),
        ({"train": PAIR, "columns": COLUMNS}, "`columns`"),
        ({"train": TABLE, "columns": ("zh",)}, "zh are not two"),
        ({"train": TABLE, "columns": ("zh", "zh")}, "zh,zh are not two"),
        ({"train": TABLE, "columns": ("zh", "")}, "zh, are not two"),
        ({"train": TABLE, "columns": (0, 1)}, "0,1 are not two"),
        ({"train": PAIR, "valid": (Path("b.zh"),)}, "`valid` takes two files"),
        ({"train": PAIR, "test": (*PAIR, *PAIR)}, "`test` takes two files"),
        ({"train": PAIR, "test": (Path("-"),)}, "`test` takes files"),
    ],
)
def test_sets_that_make_no_sense_are_refused(sets, place):
    with refused("bad_files", place) as caught:
        check_files(DataFiles(**sets))
    assert len(caught.value.problems) == 1


def test_every_problem_is_reported_at_once():
    with refused("bad_files") as caught:
        check_files(DataFiles(train=PAIR[:1], valid=(Path("v"),), test=(Path("-"),)))
    assert len(caught.value.problems) == 3


def languages(train=PAIR, source=None, target=None, columns=(), messages=None):
    hear = [] if messages is None else [lambda event: messages.append(event["message"])]
    files = DataFiles(train=train, columns=columns, languages=(source, target))
    return languages_of(Job(folder=Path(), config=RunConfig(), files=files, report=Reporter(hear)))


def test_a_name_that_contradicts_an_option_is_reported():
    messages = []
    languages(source="zh-TW", messages=messages)
    assert messages == []
    assert languages(source="xx", target="en", messages=messages) == ("xx", "en")
    (message,) = messages
    assert message.startswith("a.zh: ")


def test_languages_come_from_options_then_from_the_names_of_columns_or_files():
    assert languages() == ("zh", "en")
    assert languages(source="deu", target="tlh") == ("de", "tlh")
    assert languages(TABLE, columns=("translation.de", "source_en")) == ("de", "en")
    assert languages(TABLE, source="fr", columns=("source", "en")) == ("fr", "en")
    with refused("unknown_language", "`source=en`", "`target=en`") as caught:
        languages((Path("a.zh.tsv"),), columns=(1, 2))
    assert [problem.partition(":")[0] for problem in caught.value.problems] == ["column 1", "column 2"]


def test_a_start_whose_subwords_lack_the_token_of_a_language_is_refused(tmp_path, subwords):
    folder = translator(tmp_path / "model", subwords)
    with refused("missing_language_token", str(folder), "zh and en"):
        _check_language_tokens(folder, subwords, ("zh", "en"))
