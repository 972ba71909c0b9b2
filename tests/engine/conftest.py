"""A model that has learned to write backwards, and its engine at float32."""

import pytest

from regard.engine.ctranslate2_engine import CTranslate2Engine
from regard.train.loop import Run
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
