"""Recordings of a loaded model reach the copies and batches that its engines run, or are refused."""

import threading

import pytest
import torch

import regard
from regard.engine.engines.captured import CapturedSearches
from regard.engine.engines.protocol import Request, Search
from regard.engine.engines.torch_engine import TorchEngine
from regard.model.taps import recording
from tests.model.small import small_model
from tests.parity.tolerances import differ
from tests.refusals import refused

TEXTS = ["一百", "二百三十", "九千", "四十二", "七百零一", "五十"] * 3
FEED_FORWARD = "decoder.layers.*.feed_forward.output"
WAYS = {
    "one": lambda model: [model.translate("一百").score],
    "batch": lambda model: [each.score for each in model.translate(TEXTS)],
    "greedy": lambda model: [each.score for each in model.translate(TEXTS, beam_size=1)],
    "sample": lambda model: [each.score for each in model.translate(TEXTS, sample=True)],
    "iterator": lambda model: [each.score for each in model.translate(iter(TEXTS))],
    "score": lambda model: [each.log_prob for each in model.score(TEXTS, ["one hundred"] * len(TEXTS))],
}


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
def test_batches_of_several_threads_can_be_changed(talkers):
    model = regard.load(talkers[0], engine="torch")
    before = WAYS["batch"](model)
    with recording(model.module, {FEED_FORWARD: torch.neg}, keep=()):
        during = WAYS["batch"](model)
    assert all(abs(new - old) > 1e-3 for new, old in zip(during, before, strict=True))


@pytest.mark.parametrize("engine", ["auto", "torch"])
@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_translate_can_be_changed(talkers, engine, way):
    model, run = regard.load(talkers[0], engine=engine), WAYS[way]
    before = run(model)
    with recording(model.module, {FEED_FORWARD: torch.neg}, keep=()):
        during = run(model)
        assert model.translate("一百").engine == "torch"
    assert all(abs(new - old) > 1e-3 for new, old in zip(during, before, strict=True))
    assert run(model) == before
    assert model.translate("一百").engine == ("ctranslate2" if engine == "auto" else "torch")


def test_a_stream_can_be_changed(talkers):
    model = regard.load(talkers[0])
    calls = []
    with recording(model.module, {FEED_FORWARD: lambda value: calls.append(1) or 0 * value}, keep=()):
        changed = "".join(model.stream("九千"))
    assert calls
    assert changed != "".join(model.stream("九千"))


def test_the_bundled_model_is_changed_in_every_sentence():
    model = regard.load("zh-en")
    texts = ["猫坐在垫子上。", "今天天气很好。", "Where is the nearest station?"]
    before = [each.score for each in model.translate(texts)]
    with recording(model.module, {"encoder.layers.0.*.heads": lambda heads: 0.5 * heads}, keep=()):
        during = model.translate(texts)
    assert all(abs(new.score - old) > 1e-3 for new, old in zip(during, before, strict=True))


def test_what_is_seen_is_what_the_engine_ran(talkers):
    model = regard.load(talkers[0])
    module = model.module
    assert module is model.bundle.model
    with recording(module, keep=["encoder.output", "*.w*"]) as seen:
        model.translate("一百")
    ids = [*model.read("一百"), model.subwords.eos_id]
    with torch.no_grad():
        assert not differ(seen["encoder.output"], module.encode(regard.pack([ids])).states_SD)
    (running,) = model.engines.choose(Request(ids=tuple(ids)), Search(sample=True)).models
    assert running is not module
    own = dict(module.named_parameters())
    assert all(each.data_ptr() == own[name].data_ptr() for name, each in running.named_parameters())


def test_hooks_of_the_module_are_called_by_the_copy_that_runs(talkers):
    model = regard.load(talkers[0], engine="torch")
    model.translate("一百")  # the copy exists before the hook
    calls = []
    hook = model.module.encoder.register_forward_hook(lambda *_: calls.append(1))
    model.translate("一百")
    assert calls
    hook.remove()
    n_calls = len(calls)
    model.translate("一百")
    assert len(calls) == n_calls


def test_an_engine_without_taps_refuses(talkers):
    model = regard.load(talkers[0], engine="ctranslate2")
    with recording(model.module):
        for run in WAYS.values():
            with refused("unrecordable_engine", "CTranslate2", "torch"):
                run(model)
        with refused("unrecordable_engine", "CTranslate2"):
            list(model.stream("一百"))
    assert model.translate("一百").engine == "ctranslate2"


def test_another_model_or_another_thread_is_not_affected(talkers):
    model, other = (regard.load(folder) for folder in talkers[:2])
    with recording(model.module, {FEED_FORWARD: torch.zeros_like}):
        assert other.translate("一百").engine == "ctranslate2"
        elsewhere = []
        thread = threading.Thread(target=lambda: elsewhere.append(model.translate("一百").engine))
        thread.start()
        thread.join()
        assert elsewhere == ["ctranslate2"]
        assert model.translate("一百").engine == "torch"


def test_steps_are_not_captured_while_the_model_is_recorded():
    torch.manual_seed(3)
    model = small_model(dtype=torch.float32)
    engine = TorchEngine([model], bos=1, eos=0)
    engine._captured = CapturedSearches(engine.models[0], 0)  # as on a GPU
    requests, search = [Request(ids=(3, 4, 5)), Request(ids=(6, 7))], Search(beam_size=2, extra_length=3)
    with recording(model, {FEED_FORWARD: torch.zeros_like}, keep=()):
        changed = engine.decode(requests, search)
    assert not engine._captured._steps
    plain = engine.decode(requests, search)
    assert engine._captured._steps
    assert [one.score for (one,) in changed] != [one.score for (one,) in plain]


def test_an_ensemble_has_no_single_module(talkers):
    with refused("ensemble", "2 models"):
        _ = regard.load(talkers[:2]).module


def test_a_bundle_is_loaded_by_the_name_of_a_bundled_model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert regard.load_bundle("zh-en").folder == regard.describe_bundle("zh-en").folder
    for load in (regard.load, regard.load_bundle, regard.describe_bundle):
        with refused("missing_model", "zh-fr", "included here are", "zh-en"):
            load("zh-fr")
