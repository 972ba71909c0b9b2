"""Folders written by earlier versions load, and give the numbers that they gave then.

This is the promise that opens CHANGELOG.md. A folder here is never written again: where a test fails, it is
the code that has to learn to read it. `tools/golden.py` writes new ones.
"""

import json
from pathlib import Path

import pytest
import torch

from regard.bundle import describe_bundle, load_bundle, weights_hash
from regard.config import DecodingConfig
from regard.packing import pack

FOLDERS = sorted(path.parent for path in Path(__file__).parent.glob("*/manifest.json"))


def test_there_is_one_of_each_architecture_for_every_format():
    assert {folder.name for folder in FOLDERS} >= {"v1-encoder-decoder", "v1-decoder", "v1-encoder"}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_stored_folder_gives_the_numbers_that_it_gave(folder):
    bundle = load_bundle(folder)
    expected = json.loads(folder.with_suffix(".json").read_text(encoding="utf-8"))
    with torch.no_grad():
        log_probs = torch.log_softmax(bundle.model(*map(pack, expected["reads"])), dim=-1)
    torch.testing.assert_close(log_probs, torch.tensor(expected["log_probs"]), rtol=0, atol=1e-5)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_stored_folder_keeps_all_that_it_holds(folder):
    bundle = load_bundle(folder)
    assert bundle.subwords == b"not a real subword model\n"
    assert bundle.metrics == {"bleu": 31.5}
    assert bundle.decoding == DecodingConfig(beam_size=3)
    assert describe_bundle(folder).weights_hash == weights_hash(folder) == weights_hash(bundle.model)
