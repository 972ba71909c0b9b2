"""`regard train` in this process, in a folder of its own, and a corpus to bring to it; a small model."""

import io
import sys
from typing import NamedTuple

import pytest

from regard.cli import main
from regard.data.numerals import sample

SETTINGS = (
    "training.max_steps=6",
    "training.validate_every=3",
    "training.checkpoint_every=2",
    "training.warmup_steps=2",
    "model.d_model=32",
    "model.d_ff=32",
    "model.vocab_size=600",
    "decoding.extra_length=3",
)
QUICK = ["--preset", "numerals", *(word for setting in SETTINGS for word in ("--set", setting))]


class Answer(NamedTuple):
    status: int
    out: str
    err: str


@pytest.fixture
def pairs():
    return [(pair.chinese, pair.english) for pair in sample("train", 400, 1)]


@pytest.fixture
def train(tmp_path, monkeypatch, capsys):
    """Type `regard train` and some words in `tmp_path`; the model is tiny, and made in six steps."""
    monkeypatch.chdir(tmp_path)

    def train(*words, stdin=b""):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with pytest.raises(SystemExit) as ended:
            main(["train", *QUICK, *words])
        return Answer(ended.value.code or 0, *capsys.readouterr())

    return train


@pytest.fixture
def files(tmp_path, pairs):
    """The corpus in `train.zh` and `train.en`."""
    for side, language in enumerate(("zh", "en")):
        text = "".join(pair[side] + "\n" for pair in pairs)
        (tmp_path / f"train.{language}").write_text(text, encoding="utf-8")
    return tmp_path


@pytest.fixture(scope="session")
def talker(tmp_path_factory):
    """A model folder for Chinese and English, which has learned a little."""
    from tests.engine import talking

    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("talker")
        patch.setenv("REGARD_CACHE", str(folder / "cache"))
        yield talking.talker(folder)
