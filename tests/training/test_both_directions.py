"""One model learns numbers in words both ways, and writes the language that it is asked for."""

import json

import pytest

import regard
from regard.config import read_config
from regard.data.numerals import sample
from regard.data.reading import parallel_corpus
from regard.look.trace.recorder import look
from regard.training.checkpoints.folder import claim
from regard.training.distributed.world import join_world
from regard.training.preparation import PairsSource
from regard.training.translation import TranslatorRun

SETTINGS = (
    "task.source=zh",
    "task.target=en",
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
    config = read_config(preset="numerals", settings=list(SETTINGS))
    source = PairsSource(
        train=parallel_corpus(*paths),
        languages=("zh", "en"),
        both_directions=True,
        vocab_size=600,
        max_tokens=64,
    )
    with join_world("cpu") as world, pytest.MonkeyPatch.context() as patch:
        patch.setenv("REGARD_CACHE", str(folder / "cache"))
        claim(folder / "run", config)
        training = TranslatorRun(folder / "run", config, lambda: source, world)
        training.run.train()
        training.tested = training.test()
        yield training


@pytest.mark.slow
def test_both_directions_are_scored_apart(run):
    there, back = run.tested
    assert (there.direction, back.direction) == ("zh-en", "en-zh")
    assert list(there.sources) == [zh for zh, _ in run.prepared.test]
    assert list(back.sources) == [en for _, en in run.prepared.test]
    scores = json.loads((run.folder / "scores.json").read_text(encoding="utf-8"))
    assert (scores["zh-en"]["bleu"], scores["en-zh"]["bleu"]) == (there.score.bleu, back.score.bleu)
    assert "tok:13a" in there.score.bleu_signature
    assert "tok:zh" in back.score.bleu_signature
    validations = [e for e in run.run.journal if "valid_bleu" in e]
    assert len(validations) == 2
    for event in validations:
        assert event["valid_bleu"] == pytest.approx((event["valid_bleu_en"] + event["valid_bleu_zh"]) / 2)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_the_model_folder_writes_the_language_that_is_asked_for(run, engine):
    model = regard.load(run.folder, engine=engine, threads=1)
    assert model.task == run.config.task
    chinese, english = (list(column)[:12] for column in zip(*run.prepared.test, strict=True))
    assert all(result.text.isascii() for result in model.translate(chinese))
    assert not any(result.text.isascii() for result in model.translate(english))
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
