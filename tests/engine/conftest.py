"""A model that has learned to write backwards, and its engine at float32; models that read text."""

import pytest
import torch

from regard.bundle import load_bundle, save_bundle
from regard.engine.engines.ctranslate2_engine import CTranslate2Engine
from regard.model.build import build
from regard.training.loop import TrainingLoop
from tests.engine.echo import Echo, translator_with
from tests.engine.talking import DECODING, PAIRS, learned, talker
from tests.model.small import stirred
from tests.training.copying import BOS, EOS, config, data


@pytest.fixture(scope="session", autouse=True)
def _conversions_are_kept_elsewhere(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REGARD_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def reverser(tmp_path_factory):
    """The model folder: trained enough to end its outputs, and too little to be sure of them."""
    folder = tmp_path_factory.mktemp("reverser")
    never = ("training.validate_every=1000", "training.checkpoint_every=1000")
    TrainingLoop(folder / "run", config("training.max_steps=150", *never), data(folder / "data")).train()
    return folder / "run" / "last"


@pytest.fixture(scope="session")
def engine(reverser):
    return CTranslate2Engine(reverser, bos=BOS, eos=EOS, quantisation="float32", threads=2)


@pytest.fixture(scope="session")
def sources():
    return [chinese for chinese, _ in PAIRS["train"]]


@pytest.fixture(scope="session")
def subwords():
    return learned()


@pytest.fixture(scope="session")
def talkers(tmp_path_factory, subwords):
    """Two model folders: one has learned a little of numbers in words, one nothing at all."""
    folder = tmp_path_factory.mktemp("talkers")
    model = load_bundle(talker(folder / "talker")).model
    save_bundle(folder / "trained", model, subwords=subwords.model, decoding=DECODING)
    torch.manual_seed(7)
    mumbling = stirred(build(model.config))
    save_bundle(folder / "random", mumbling, subwords=subwords.model, decoding=DECODING)
    return [folder / "trained", folder / "random"]


@pytest.fixture(scope="session")
def echo(subwords):
    """A model that gives back what it reads, twenty tokens at a time."""
    return translator_with(Echo, subwords)
