"""The padded graphs compute what the packed model does, whatever the settings, gaps and steps are."""

from typing import Any

import pytest
import torch
from torch import Tensor

from regard.exchange.onnx.graphs import ClassifierGraph, DecoderGraph, EncoderGraph
from regard.packing import pack, unpack
from tests.model.small import INPUT_LENGTHS, OUTPUT_LENGTHS, random_ids, small_model
from tests.parity.tolerances import ANGLES, assert_close

SETTINGS: list[dict[str, Any]] = [
    {"positions": "sinusoidal"},
    {"positions": "learned", "shared_embeddings": "none", "attention_bias": True},
    {"positions": "rotary", "norm_position": "pre", "norm": "rms", "feed_forward": "swiglu"},
    {"positions": "none", "similarity": "dot", "feed_forward": "gelu"},
    {
        "positions": "rotary",
        "similarity": "bilinear",
        "feed_forward": "geglu",
        "shared_embeddings": "two-way",
    },
    {"similarity": "additive", "scale_embeddings": False},
    {"similarity": "cosine", "norm_position": "pre", "embedding_norm": True, "output_bias": True},
    {"feed_forward": "gelu-tanh", "norm_epsilon": 0.1},
    {"feed_forward": "swish", "positions": "learned", "embedding_norm": True},
]


def rows(sequences: list[list[int]], gaps: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Ids and mask of sequences in rows, each with its gap behind the first `gap` tokens."""
    longest = max(map(len, sequences))
    ids, mask = torch.zeros(2, len(sequences), longest, dtype=torch.int64)
    for row, (sequence, gap) in enumerate(zip(sequences, gaps, strict=True)):
        places = [*range(gap), *range(longest - len(sequence) + gap, longest)]
        ids[row, places], mask[row, places] = torch.tensor(sequence), 1
    return ids, mask


def in_steps(graph: Any, ids_BT: Tensor, mask_BT: Tensor, cuts: list[int], *memory: Any) -> Tensor:
    """What a decoder's graph makes of rows that come piece by piece."""
    B, config, found = ids_BT.shape[0], graph.model.config, []
    widths = (config.key_width, config.value_width) * config.decoder_layers
    past = [torch.zeros(B, config.n_heads, 0, width, dtype=torch.float64) for width in widths]
    for start, stop in zip([0, *cuts], [*cuts, ids_BT.shape[1]], strict=True):
        logits, *past = graph(ids_BT[:, start:stop], mask_BT[:, :stop], past, *memory)
        found.append(logits)
    return torch.cat(found, dim=1)


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda each: " ".join(map(str, each.values())))
@torch.no_grad()
def test_encoder_and_decoder(settings):
    model = small_model(**settings)
    inputs, outputs = random_ids(INPUT_LENGTHS), random_ids(OUTPUT_LENGTHS)
    ids_BS, mask_BS = rows(inputs, (7, 0, 13))
    memory_BSD, *memory = EncoderGraph(model)(ids_BS, mask_BS)
    expected = model.encode(pack(inputs))
    assert_close(memory_BSD[mask_BS.bool()], expected.states_SD, ANGLES)
    ids_BT, mask_BT = rows(outputs, (0, 11, 2))
    logits_BTV = in_steps(DecoderGraph(model), ids_BT, mask_BT, [1, 4, 5], mask_BS, memory)
    assert_close(logits_BTV[mask_BT.bool()], model(pack(inputs), pack(outputs)), ANGLES)


@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
@torch.no_grad()
def test_decoder_alone_with_gaps_anywhere(positions):
    model = small_model(architecture="decoder", positions=positions)
    texts = random_ids(OUTPUT_LENGTHS)
    expected = unpack(model(pack(texts)), pack(texts).boundaries)
    for gaps in ((0, 0, 0), OUTPUT_LENGTHS, (1, 5, 2)):
        ids_BT, mask_BT = rows(texts, gaps)
        found = in_steps(DecoderGraph(model), ids_BT, mask_BT, [3, 4])
        for row, mask, rows_TV in zip(found, mask_BT, expected, strict=True):
            assert_close(row[mask.bool()], rows_TV)


@pytest.mark.parametrize("label_head", ["none", "tanh", "gelu-norm"])
@torch.no_grad()
def test_encoder_alone(label_head):
    model = small_model(
        architecture="encoder", positions="learned", embedding_norm=True, label_head=label_head
    )
    inputs = random_ids(INPUT_LENGTHS)
    assert_close(ClassifierGraph(model)(*rows(inputs, INPUT_LENGTHS)), model(pack(inputs)))
