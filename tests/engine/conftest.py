"""A model that has learned to write backwards, and its engine at float32; models that read text."""

import pytest
import torch

from regard.bundle import save_bundle
from regard.config import DecodingConfig
from regard.data.numerals import sample
from regard.data.store_writing import write_store
from regard.engine.ctranslate2_engine import CTranslate2Engine
from regard.engine.engines import Engines
from regard.engine.model import Model
from regard.model.build import build
from regard.text.subwords import Subwords, learn_subwords
from regard.train.loop import PairsData, Run
from tests.engine.echo import Echo
from tests.model.small import stirred
from tests.train.copying import BOS, EOS, config, data


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
    Run(folder / "run", config("training.max_steps=150", *never), data(folder / "data")).train()
    return folder / "run" / "last"


@pytest.fixture(scope="session")
def engine(reverser):
    return CTranslate2Engine(reverser, bos=BOS, eos=EOS, quantisation="float32", threads=2)


@pytest.fixture(scope="session")
def sources():
    return [pair.chinese for pair in sample("train", 300, 1)]


@pytest.fixture(scope="session")
def subwords():
    texts = [text for pair in sample("train", 300, 1) for text in (pair.chinese, pair.english)]
    return Subwords(learn_subwords(texts, vocab_size=600, seed=1))


@pytest.fixture(scope="session")
def talkers(tmp_path_factory, subwords):
    """Two model folders: one has learned a little of numbers in words, one nothing at all."""
    folder = tmp_path_factory.mktemp("talkers")
    settings = (f"model.vocab_size={subwords.vocab_size}", "model.max_length=61", "training.max_steps=200")
    never = ("training.validate_every=1000", "training.checkpoint_every=1000")
    run = Run(folder / "run", config(*settings, *never), _numerals(folder, subwords))
    run.train()
    torch.manual_seed(7)
    models = {"trained": run.model, "random": stirred(build(run.config.model))}
    decoding = DecodingConfig(extra_length=7)
    return [
        save_bundle(folder / name, model, subwords=subwords.model, decoding=decoding)
        for name, model in models.items()
    ]


def _numerals(folder, subwords):
    def store(split, n):
        pairs = [(pair.chinese, pair.english) for pair in sample(split, n, 1)]
        sides = zip(*(subwords.encode(list(side)) for side in zip(*pairs, strict=True)), strict=True)
        names, size = ("inputs", "outputs"), subwords.vocab_size
        return write_store(folder / split, sides, sides=names, key=split, vocab_size=size)

    return PairsData(store("train", 300), store("valid", 20), bos=subwords.bos_id, eos=subwords.eos_id)


@pytest.fixture(scope="session")
def echo(subwords):
    """A model that gives back what it reads, twenty tokens at a time."""
    return Model(Engines([Echo]), subwords, max_length=21)
