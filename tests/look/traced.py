"""A small vocabulary, models that fit it, and their traces."""

import random
from functools import cache

import torch

from regard.look.influence.attribution import influence_by
from regard.look.influence.methods import store_influence
from regard.look.trace.recorder import look
from regard.text import Subwords, learn_subwords
from tests.model.small import small_model

TEXT = "the cat sat on a mat while two dogs ran after 12 birds 猫 坐 在 垫子 上 。 ， 鸟 两 只 狗"
SOURCE, TARGET = "猫坐在垫子上。", "the cat sat"

PAPER = {}
DEPARTURES = [
    PAPER,
    {
        "positions": "rotary", "norm_position": "pre", "norm": "rms", "feed_forward": "swiglu",
        "similarity": "cosine",
    },
    {"positions": "learned", "similarity": "additive", "feed_forward": "gelu", "attention_bias": True},
    {
        "positions": "learned", "embedding_norm": True, "feed_forward": "swish", "scale_embeddings": False,
        "output_bias": True, "norm_epsilon": 1e-3,
    },
    {"positions": "none", "similarity": "bilinear", "feed_forward": "geglu", "norm_position": "pre"},
    {"positions": "rotary", "similarity": "bilinear", "norm": "rms", "scale_embeddings": False},
    {"similarity": "dot", "shared_embeddings": "none"},
    {"positions": "alibi"},
    {"positions": "t5-relative", "similarity": "dot", "norm_position": "pre"},
]  # fmt: skip
ARCHITECTURES = ["encoder-decoder", "decoder", "encoder"]


@cache
def subwords():
    draw = random.Random(1)
    lines = [" ".join(draw.choices(TEXT.split(), k=draw.randint(3, 9))) for _ in range(400)]
    return Subwords(learn_subwords(lines, 340, tags=["zh", "en"], threads=1))


def model_of(dtype=torch.float64, **settings):
    """A stirred model that reads the vocabulary; the same one for the same settings."""
    torch.manual_seed(3)
    return small_model(dtype=dtype, vocab_size=subwords().vocab_size, max_length=64, **settings)


def with_influences(model, trace):
    """The trace, with what the view of influence shows: by two methods, on the last token."""
    row = len(trace.targets) - 1
    found = {
        each: influence_by(each, model, trace, row, prefix=True) for each in ("rollout", "leave-one-out")
    }
    return store_influence(trace, row, found)


def trace_of(model, **options):
    """The usual texts, as many of them as the model takes."""
    target = None if model.config.architecture == "encoder" else TARGET
    return look(model, subwords(), SOURCE, target, **options)
