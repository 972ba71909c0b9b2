"""The objective of models that write: the loss of a batch, as one function to be compiled and sharded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from regard.data.batches.examples import PairsBatch, TextBatch
from regard.loss import label_smoothed_cross_entropy
from regard.model.language_model import LanguageModel
from regard.model.transformer import Transformer
from regard.packing import Boundaries, Packed

if TYPE_CHECKING:
    from regard.bundle.weights import Model

COMPILER: dict[str, Any] = {"triton.mix_order_reduction": False}
"""Fusing the norm's two reductions into one kernel was 8% slower on an H200 than two kernels."""


class Objective(nn.Module):
    """A model and how wrong it is, summed over the target tokens of a batch."""

    def __init__(self, model: Model, smoothing: float, *, compiled: bool = False) -> None:
        super().__init__()
        assert isinstance(model, Transformer | LanguageModel), "a model that writes has a decoder"
        self.model, self.smoothing, self.compiled = model, smoothing, compiled
        if compiled:  # only to name the compiler takes a second
            self._fixed = torch.compile(self._of_tensors, dynamic=False, fullgraph=True, options=COMPILER)

    def forward(self, batch: PairsBatch | TextBatch) -> tuple[Tensor, Tensor]:
        """What is minimised; and with it, to be told, the likelihood and the hits: (3,), without a gradient.

        The batch lies on the model's device. Compiled, it must have been filled to a fixed size.
        """
        if not self.compiled or not self.training:
            return self._of_batch(batch.packs, batch.targets_T, batch.counted_T)
        assert batch.counted_T is not None, "a batch of fixed size has a filler, which does not count"
        tensors = [tensor for pack in batch.packs for tensor in tensors_of(pack)]
        return self._fixed(*tensors, batch.targets_T, batch.counted_T)

    def _of_batch(
        self, packs: Sequence[Packed], targets_T: Tensor, counted_T: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        states_TD = self._states(*packs)
        output = self.model.output_probabilities
        smoothing = self.smoothing if self.training else 0.0
        loss = label_smoothed_cross_entropy(
            states_TD, output.weight, targets_T, smoothing, bias_V=output.bias, counted_N=counted_T
        )
        # torch 2.11 loses the gradient of a compiled function whose other outputs are not differentiable.
        # Sharded modules warn where they return a view, and the loss is one.
        return loss.smoothed.clone(), torch.stack([part.detach() for part in loss])

    def _of_tensors(self, *tensors: Tensor) -> tuple[Tensor, Tensor]:
        """The same of tensors alone: what only the host knows, lengths, must not decide what is compiled."""
        *packed, targets_T, counted_T = tensors
        packs = [
            Packed(ids, Boundaries(sequence, positions, None, None))
            for ids, sequence, positions in zip(packed[::3], packed[1::3], packed[2::3], strict=True)
        ]
        return self._of_batch(packs, targets_T, counted_T)

    def _states(self, *packs: Packed) -> Tensor:
        """The states behind the output layer, from inputs and outputs, or from outputs alone."""
        if isinstance(self.model, LanguageModel):
            return self.model.decode(*packs)
        inputs, outputs = packs
        return self.model.decode(outputs, self.model.encode(inputs))


def tensors_of(packed: Packed) -> tuple[Tensor, Tensor, Tensor]:
    """What a compiled step sees of a pack, half as wide as it comes: kernels read it again and again."""
    b = packed.boundaries
    return packed.ids_N.int(), b.sequence_N.int(), b.positions_N.int()
