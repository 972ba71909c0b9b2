"""A compiled step of one fixed shape, which sees no lengths, against the plain step that does."""

import pytest
import torch
from torch import Tensor

from regard.loss import label_smoothed_cross_entropy
from regard.model.fast.layouts import TILE
from regard.packing import Boundaries, Packed
from tests.model.small import V, random_pack, small_model
from tests.parity.tolerances import assert_close

INPUT_LENGTHS = (7, 257, 31, 13)
OUTPUT_LENGTHS = (3, 263, 5, 11)
"""Tiles with several sequences, a sequence over several tiles, and a tile that is all one sequence."""
N_TOKENS = 3 * TILE
SMOOTHING = 0.1


def tensors_of(packed: Packed) -> tuple[Tensor, Tensor, Tensor]:
    return packed.ids_N, packed.boundaries.sequence_N, packed.boundaries.positions_N


def compiled_loss(
    model, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...], targets: Tensor, counted: Tensor
):
    """What gets compiled: only tensors of fixed shape come in."""
    (in_ids, in_sequence, in_positions), (out_ids, out_sequence, out_positions) = inputs, outputs
    source = Packed(in_ids, Boundaries(in_sequence, in_positions, None, None))
    so_far = Packed(out_ids, Boundaries(out_sequence, out_positions, None, None))
    states = model.decode(so_far, model.encode(source))
    weight = model.output_probabilities.weight
    return label_smoothed_cross_entropy(states, weight, targets, SMOOTHING, counted_N=counted)


@pytest.mark.slow
# torch's own tracer does what torch warns of.
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"positions": "rotary", "norm_position": "pre"},
        {"positions": "alibi"},
        {"positions": "t5-relative"},
    ],
    ids=["post", "pre", "alibi", "t5-relative"],
)
def test_a_compiled_step_on_a_filled_pack_gives_the_loss_of_the_plain_step(settings):
    torch.compiler.reset()
    # FlexAttention wants widths of 16 and more, and tiles of 128 tokens.
    sizes = {"d_k": 2 * 11, "d_v": 17, "encoder_layers": 1, "decoder_layers": 2, "max_length": 269}
    model = small_model(dtype=torch.float32, **sizes, **settings).requires_grad_(False)
    inputs, outputs = random_pack(INPUT_LENGTHS), random_pack(OUTPUT_LENGTHS)
    targets = torch.randint(V, (outputs.boundaries.n_tokens,))
    states = model.decode(outputs, model.encode(inputs))
    plain = label_smoothed_cross_entropy(states, model.output_probabilities.weight, targets, SMOOTHING)

    filled = [tensors_of(side.filled(N_TOKENS)) for side in (inputs, outputs)]
    missing = N_TOKENS - len(targets)
    counted = torch.arange(N_TOKENS) < len(targets)
    step = torch.compile(compiled_loss, backend="aot_eager", dynamic=False, fullgraph=True)
    compiled = step(model, *filled, torch.nn.functional.pad(targets, (0, missing)), counted)

    for one, other in zip(compiled, plain, strict=True):
        assert one.isfinite()
        assert_close(one / len(targets), other / len(targets))


def test_a_filled_pack_gives_the_loss_of_the_unfilled_one():
    model = small_model()
    inputs, outputs = random_pack((7, 2, 13)), random_pack((3, 11, 5))
    targets = torch.randint(V, (outputs.boundaries.n_tokens,))
    weight = model.output_probabilities.weight

    def loss(inputs: Packed, outputs: Packed, targets: Tensor, counted: Tensor | None):
        states = model.decode(outputs, model.encode(inputs))
        return label_smoothed_cross_entropy(states, weight, targets, SMOOTHING, counted_N=counted)

    n = 53
    counted = torch.arange(n) < len(targets)
    padded_targets = torch.nn.functional.pad(targets, (0, n - len(targets)))
    plain, filled = (
        loss(inputs, outputs, targets, None),
        loss(inputs.filled(47), outputs.filled(n), padded_targets, counted),
    )
    for one, other in zip(filled, plain, strict=True):
        assert_close(one, other)
    wanted = list(model.parameters())
    of_plain, of_filled = (torch.autograd.grad(each.smoothed, wanted) for each in (plain, filled))
    for one, other in zip(of_filled, of_plain, strict=True):
        assert_close(one, other)
