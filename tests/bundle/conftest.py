"""A small model, and the folder that it is saved in."""

import pytest

from regard.bundle import save_bundle
from regard.model.build import build
from tests.bundle.folders import SMALL


@pytest.fixture
def model():
    return build(SMALL)


@pytest.fixture
def folder(tmp_path, model):
    return save_bundle(tmp_path / "model", model, subwords=b"\x00pieces", metrics={"bleu": 31.5})
