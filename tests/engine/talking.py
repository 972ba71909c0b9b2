"""A model that has learned a little of numbers in words, trained in a few seconds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from regard.bundle import save_bundle
from regard.config import DecodingConfig, TaskConfig
from regard.data.numerals import sample
from regard.data.store.writing import write_store
from regard.tasks.pairs import PairsLesson
from regard.text.vocabularies.subwords import Subwords, learn_subwords
from regard.training.loop import TrainingLoop
from tests.once import copy_of
from tests.training.copying import config

PAIRS = {
    split: [(pair.chinese, pair.english) for pair in sample(split, 300, 1)] for split in ("train", "valid")
}
DECODING = DecodingConfig(extra_length=20)


def learned() -> Subwords:
    return Subwords(learn_subwords((text for pair in PAIRS["train"] for text in pair), vocab_size=600))


def trained(folder: Path, subwords: Subwords, **about: Any) -> TrainingLoop:
    """The run; its model folder is `folder / "trained"`."""
    size = (
        f"model.vocab_size={subwords.vocab_size}",
        "model.d_model=48",
        "model.d_ff=48",
        "model.max_length=61",
    )
    length = ("training.max_steps=300", "training.batch_tokens=1000")
    never = ("training.validate_every=1000", "training.checkpoint_every=1000")
    stores = [_store(folder / split, subwords, split) for split in PAIRS]
    data = PairsLesson(*stores, bos=subwords.bos_id, eos=subwords.eos_id)
    run = TrainingLoop(folder / "run", config(*size, *length, *never), data)
    run.train()
    save_bundle(folder / "trained", run.model, subwords=subwords.model, decoding=DECODING, **about)
    return run


def talker(folder: Path) -> Path:
    """The model folder, which says that it is for Chinese and English; its run is beside it."""
    languages = TaskConfig(source="zh", target="en")
    copy_of("talker", lambda place: trained(place, learned(), task=languages), folder)
    return folder / "trained"


def _store(folder: Path, subwords: Subwords, split: str) -> Any:
    columns = (subwords.encode(list(column)) for column in zip(*PAIRS[split], strict=True))
    sides, size = ("inputs", "outputs"), subwords.vocab_size
    return write_store(folder, zip(*columns, strict=True), sides=sides, key=split, vocab_size=size)
