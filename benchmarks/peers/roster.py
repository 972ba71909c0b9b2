"""Who takes part, and how each can be set. Knows no torch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """A contender's class, and its settings at each precision, the fastest first."""

    class_path: str
    fp32: tuple[str, ...]
    bf16: tuple[str, ...]

    def settings(self, precision: str) -> tuple[str, ...]:
        return self.fp32 if precision == "fp32" else self.bf16


OURS = "regard"
ROSTER = {
    OURS: Entry("benchmarks.peers.ours:Ours", fp32=("fp32",), bf16=("bf16",)),
    "marian": Entry(
        "benchmarks.peers.marian:Marian",
        fp32=("sdpa", "eager"),
        bf16=("master+eager", "autocast+eager", "autocast+sdpa", "weights+eager"),
    ),
    "torch.nn": Entry(
        "benchmarks.peers.torch_transformer:TorchTransformer",
        fp32=("fused", "math"),
        bf16=("master+math", "autocast+math", "autocast+fused", "weights+math"),
    ),
    "eole": Entry(
        "benchmarks.peers.eole:Eole",
        fp32=("plain",),
        bf16=("master", "autocast", "weights"),
    ),
}
"""At bf16, `autocast` keeps weights in fp32 and lets torch choose what runs in bf16; `master` runs the model
in bf16 and lets the optimizer work on an fp32 copy of the weights; `weights` has no fp32 copy of anything
(it is the fastest and learns less: for comparison). After the plus: how attention is computed."""
