"""Training step on one GPU: the paper's base model, 32,768 subwords, bf16, real sentence lengths.

    python benchmarks/gpu/train_step.py DATA.npz [--tokens 51200] [--rounds 4] [--log FILE]
    python benchmarks/gpu/train_step.py DATA.npz --config models/zh-en/small.toml --only regard

DATA.npz comes from `prepare.py`. With --config it is the model of that file, all contenders having its shape.
Contenders alternate, round by round, in one process:

* regard: packed, one compiled shape, FlexAttention over the sequences' blocks;
* regard with the variable-length flash kernel in place of FlexAttention;
* Hugging Face Marian on length-sorted padded batches: compiled for two shapes alone, its best case; compiled
  as it comes for the many shapes of a sorted epoch; and not compiled.

Before that, the compiled CUDA road is checked against the CPU's: same weights, same batch, loss and
gradients. Tokens are real ones: no filler and no padding counts. The share of the peak is of 790 TFLOP/s,
what large bf16 products reach on an H200.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.result import Result, write_results  # noqa: E402
from regard.config import ModelConfig, read_config  # noqa: E402
from regard.loss import label_smoothed_cross_entropy  # noqa: E402
from regard.model import multi_head_attention  # noqa: E402
from regard.model.fast.layouts import TILE  # noqa: E402
from regard.model.masks import SameSequence  # noqa: E402
from regard.model.transformer import Transformer  # noqa: E402
from regard.packing import Boundaries, Packed, pack  # noqa: E402

PEAK = 790e12
COMPILER = {"triton.mix_order_reduction": False}
"""Fusing the norm's two reductions into one kernel was 8% slower here than two kernels."""
VOCABULARY = 32_768
BOS, EOS = 1, 2
Pair = tuple[list[int], list[int]]


def read_pairs(path: Path) -> list[Pair]:
    """Sentence pairs as ids."""
    stored = np.load(path)
    sides = []
    for name in ("source", "target"):
        ends = np.cumsum(stored[f"{name}_lengths"].astype(np.int64))[:-1]
        sides.append([part.tolist() for part in np.split(stored[f"{name}_ids"], ends)])
    return [(s, t) for s, t in zip(*sides, strict=True) if 1 <= len(s) <= 150 and 1 <= len(t) <= 150]


# --- regard -----------------------------------------------------------------------------------------------


@dataclass
class PackedBatch:
    """Tensors of one fixed shape."""

    tensors: tuple[Tensor, ...]
    source_tokens: int
    target_tokens: int


def packed_batches(pairs: list[Pair], n_tokens: int, device: str) -> list[PackedBatch]:
    """Pairs in their order, as many as fit a pack of `n_tokens` a side."""
    batches: list[PackedBatch] = []
    batch: list[Pair] = []
    n_source = n_target = 0
    for source, target in pairs:
        if max(n_source + len(source), n_target + len(target)) + 1 >= n_tokens:
            batches.append(fixed_pack(batch, n_tokens, device))
            batch, n_source, n_target = [], 0, 0
        batch.append((source, target))
        n_source, n_target = n_source + len(source) + 1, n_target + len(target) + 1
    return batches


def fixed_pack(batch: list[Pair], n_tokens: int, device: str) -> PackedBatch:
    """Inputs, outputs and targets, made up to exactly `n_tokens`."""
    inputs = pack([[*source, EOS] for source, _ in batch])
    outputs = pack([[BOS, *target] for _, target in batch])
    targets = torch.tensor([i for _, target in batch for i in (*target, EOS)])
    n_source, n_target = inputs.boundaries.n_tokens, outputs.boundaries.n_tokens
    tensors = []
    for side in (inputs.filled(n_tokens), outputs.filled(n_tokens)):
        tensors += [side.ids_N, side.boundaries.sequence_N, side.boundaries.positions_N]
    counted = torch.arange(n_tokens) < n_target
    tensors += [F.pad(targets, (0, n_tokens - n_target)), counted]
    tensors = [t.to(torch.int32) if t.dtype == torch.int64 else t for t in tensors]
    tensors[6] = tensors[6].long()  # gather wants 64-bit indices
    return PackedBatch(tuple(t.to(device) for t in tensors), n_source, n_target)


def packed_loss(model: Transformer, tensors: tuple[Tensor, ...]) -> Tensor:
    """Mean loss of one fixed pack: what gets compiled."""
    source, source_seq, source_pos, target, target_seq, target_pos, targets, counted = tensors
    inputs = Packed(source, Boundaries(source_seq, source_pos, None, None))
    outputs = Packed(target, Boundaries(target_seq, target_pos, None, None))
    states_ND = model.decode(outputs, model.encode(inputs))
    weight_VD = model.output_probabilities.weight
    loss = label_smoothed_cross_entropy(states_ND, weight_VD, targets, 0.1, counted_N=counted)
    return loss.smoothed / counted.sum()


def varlen_attention(q: Tensor, k: Tensor, v: Tensor, may_attend: SameSequence, scale: float) -> Tensor:
    """The same attention by the variable-length flash kernel."""
    from torch.nn.attention.varlen import varlen_attn

    def starts(sequence_N: Tensor) -> Tensor:
        numbers = torch.arange(4097, device=sequence_N.device, dtype=torch.int32)
        return torch.searchsorted(sequence_N, numbers, out_int32=True)

    window = (-1, 0) if may_attend.causal else (-1, -1)
    q_starts, k_starts = starts(may_attend.queries.sequence_N), starts(may_attend.keys.sequence_N)
    # The filler may be longer than any sentence.
    longest = 512
    out = varlen_attn(
        q.contiguous(), k.contiguous(), v.contiguous(), q_starts, k_starts, longest, longest,
        window_size=window, scale=scale,
    )  # fmt: skip
    assert isinstance(out, Tensor)
    return out


class Regard:
    """The packed, compiled step."""

    def __init__(self, shape: ModelConfig, batches: list[PackedBatch]) -> None:
        torch.manual_seed(1)
        self.model = Transformer(shape).cuda().train()
        self.model.compute_dtype = torch.bfloat16
        self.loss = torch.compile(packed_loss, dynamic=False, fullgraph=True, options=COMPILER)
        self.optimizer = new_optimizer(self.model)
        self.batches = batches

    def step(self, i: int) -> tuple[Tensor, int, int]:
        """Forward, loss, backward, clip, update."""
        batch = self.batches[i % len(self.batches)]
        loss = self.loss(self.model, batch.tensors)
        update(loss, self.model, self.optimizer)
        return loss.detach(), batch.source_tokens, batch.target_tokens

    n_shapes = 1


class RegardVarlen(Regard):
    """The same with the variable-length kernel."""

    def step(self, i: int) -> tuple[Tensor, int, int]:
        multi_head_attention.packed_attention = varlen_attention
        try:
            return super().step(i)
        finally:
            multi_head_attention.packed_attention = original_attention


original_attention = multi_head_attention.packed_attention


def new_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    """The paper's Adam, fused."""
    return torch.optim.AdamW(
        model.parameters(), lr=3e-4, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0, fused=True
    )


def update(loss: Tensor, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Backward, clip, step."""
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()


# --- Hugging Face Marian ----------------------------------------------------------------------------------


@dataclass
class PaddedBatch:
    """One of a few shapes; labels are -100 where nothing is to be predicted."""

    source: Tensor
    mask: Tensor
    decoder: Tensor
    labels: Tensor
    source_tokens: int
    target_tokens: int


def padded_batches(pairs: list[Pair], n_tokens: int, n_shapes: int) -> list[PaddedBatch]:
    """Length-sorted batches from even places of the sorted corpus: shapes of a sorted epoch."""
    ordered = sorted(pairs, key=lambda pair: (len(pair[1]), len(pair[0])))
    batches, start = [], 0
    while start < len(ordered):
        batch: list[Pair] = []
        widest = [0, 0]
        for source, target in ordered[start:]:
            wider = [max(widest[0], len(source) + 1), max(widest[1], len(target) + 1)]
            if max(wider) * (len(batch) + 1) > n_tokens and batch:
                break
            batch.append((source, target))
            widest = wider
        start += len(batch)
        batches.append(batch)
    full = batches[:-1]
    middle = [full[int((i + 0.5) * len(full) / n_shapes)] for i in range(n_shapes)]
    return [pad_batch(batch) for batch in middle]


def pad_batch(batch: list[Pair]) -> PaddedBatch:
    """Padded to a multiple of 8, as tensor cores like it."""

    def rows(sequences: list[list[int]], fill: int) -> Tensor:
        width = -(-max(map(len, sequences)) // 8) * 8
        return torch.tensor([row + [fill] * (width - len(row)) for row in sequences]).cuda()

    source = rows([[*s, EOS] for s, _ in batch], 0)
    labels = rows([[*t, EOS] for _, t in batch], -100)
    mask = rows([[1] * (len(s) + 1) for s, _ in batch], 0)
    decoder = rows([[BOS, *t] for _, t in batch], 0)
    return PaddedBatch(source, mask, decoder, labels, int(mask.sum()), int((labels >= 0).sum()))


class Marian:
    """MarianMTModel of the same sizes, plain loop."""

    def __init__(
        self,
        shape: ModelConfig,
        batches: list[PaddedBatch],
        *,
        compiled: bool,
        weights_in_bf16: bool = False,
        dynamic: bool | None = False,
    ) -> None:
        from transformers import MarianConfig, MarianMTModel

        torch.manual_seed(1)
        config = MarianConfig(
            vocab_size=shape.vocab_size, d_model=shape.d_model,
            encoder_layers=shape.encoder_layers, decoder_layers=shape.decoder_layers,
            encoder_attention_heads=shape.n_heads, decoder_attention_heads=shape.n_heads,
            encoder_ffn_dim=shape.d_ff, decoder_ffn_dim=shape.d_ff, dropout=shape.dropout,
            attention_dropout=0.0, activation_dropout=0.0, activation_function="relu",
            scale_embedding=True, share_encoder_decoder_embeddings=True, max_position_embeddings=512,
            pad_token_id=0, eos_token_id=EOS, decoder_start_token_id=BOS, use_cache=False,
            attn_implementation="sdpa",
        )  # fmt: skip
        self.model = MarianMTModel(config).cuda().train()
        self.autocast = not weights_in_bf16
        if weights_in_bf16:
            self.model = self.model.to(torch.bfloat16)
        self.loss = torch.compile(self.plain_loss, dynamic=dynamic) if compiled else self.plain_loss
        self.optimizer = new_optimizer(self.model)
        self.batches = batches
        self.n_shapes = len(batches)

    def plain_loss(self, batch: PaddedBatch) -> Tensor:
        """Label-smoothed loss on its logits."""
        with torch.autocast("cuda", torch.bfloat16, enabled=self.autocast):
            logits = self.model(
                input_ids=batch.source,
                attention_mask=batch.mask,
                decoder_input_ids=batch.decoder,
                use_cache=False,
            ).logits
        flat = logits.flatten(0, 1).float()
        return F.cross_entropy(flat, batch.labels.flatten(), label_smoothing=0.1)

    def step(self, i: int) -> tuple[Tensor, int, int]:
        """Forward, loss, backward, clip, update."""
        batch = self.batches[i % len(self.batches)]
        loss = self.loss(batch)
        update(loss, self.model, self.optimizer)
        return loss.detach(), batch.source_tokens, batch.target_tokens


# --- the run ----------------------------------------------------------------------------------------------


def check_against_cpu() -> dict[str, float]:
    """The compiled CUDA road against the CPU's, float32: loss and gradients of a small model."""
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("highest")
    config = ModelConfig(
        vocab_size=101, d_model=64, n_heads=4, d_ff=128, encoder_layers=2, decoder_layers=2, dropout=0.0
    )
    model = Transformer(config)
    draw = np.random.default_rng(0)
    pairs = [
        (draw.integers(3, 101, n).tolist(), draw.integers(3, 101, m).tolist())
        for n, m in [*draw.integers(1, 60, (20, 2)), (300, 290)]
    ]
    batch = fixed_pack(pairs, 8 * TILE * 2, "cpu")
    inputs, outputs = pack([[*s, EOS] for s, _ in pairs]), pack([[BOS, *t] for _, t in pairs])
    targets = torch.tensor([i for _, t in pairs for i in (*t, EOS)])
    states = model.decode(outputs, model.encode(inputs))
    loss = label_smoothed_cross_entropy(states, model.output_probabilities.weight, targets, 0.1)
    (loss.smoothed / len(targets)).backward()
    expected_loss = loss.smoothed.item() / len(targets)
    expected = {name: p.grad.clone() for name, p in model.named_parameters()}
    model.zero_grad()
    model.cuda()
    on_gpu = torch.compile(packed_loss, dynamic=False, fullgraph=True)
    got = on_gpu(model, tuple(t.cuda() for t in batch.tensors))
    got.backward()
    worst = max(
        float((p.grad.cpu() - expected[name]).norm() / (expected[name].norm() + 1e-12))
        for name, p in model.named_parameters()
    )
    torch.set_float32_matmul_precision("high")
    return {"loss_cpu": expected_loss, "loss_cuda": got.item(), "worst_relative_gradient_error": worst}


def flops(c: ModelConfig, source_tokens: int, target_tokens: int) -> float:
    """Multiplications and additions of forward and backward in the matrices; attention's own are left out."""
    square, ffn = c.d_model * c.d_model, 2 * c.d_model * c.d_ff
    on_source = c.encoder_layers * (4 * square + ffn) + c.decoder_layers * 2 * square
    on_target = c.decoder_layers * (6 * square + ffn) + c.vocab_size * c.d_model
    return 6.0 * (on_source * source_tokens + on_target * target_tokens)


def timed(contender: Regard | Marian, start: int, n_steps: int) -> dict[str, float]:
    """Run steps and wait for the device."""
    torch.cuda.synchronize()
    before = time.perf_counter()
    source = target = 0
    for i in range(start, start + n_steps):
        loss, s, t = contender.step(i)
        source, target = source + s, target + t
    torch.cuda.synchronize()
    seconds = time.perf_counter() - before
    return {"seconds": seconds, "source": source, "target": target, "loss": float(loss)}


def build_all(
    args: argparse.Namespace, shape: ModelConfig, log: Callable[[str, object], None]
) -> dict[str, Regard | Marian]:
    """Every contender that starts, warmed up on all of its shapes."""
    pairs = read_pairs(args.data)
    packed = packed_batches(pairs, args.tokens, "cuda")[:16]
    padded, epoch = padded_batches(pairs, args.tokens, 2), padded_batches(pairs, args.tokens, 24)
    random.Random(1).shuffle(epoch)
    makers: dict[str, Callable[[], Regard | Marian]] = {
        "regard": lambda: Regard(shape, packed),
        "regard-varlen": lambda: RegardVarlen(shape, packed),
        "marian-compiled-epoch": lambda: Marian(shape, epoch, compiled=True, dynamic=None),
        "marian-compiled-autocast": lambda: Marian(shape, padded, compiled=True),
        "marian-compiled-bf16-weights": lambda: Marian(shape, padded, compiled=True, weights_in_bf16=True),
        "marian-eager-bf16-weights": lambda: Marian(shape, padded, compiled=False, weights_in_bf16=True),
    }
    chosen = args.only.split(",") if args.only else list(makers)
    built = {}
    for name in chosen:
        before = time.perf_counter()
        try:
            contender = makers[name]()
            for i in range(max(6, 2 * contender.n_shapes)):
                contender.step(i)
            torch.cuda.synchronize()
        except Exception:
            log(f"{name} failed", traceback.format_exc()[-3000:])
            torch._dynamo.reset()
            continue
        log(f"{name} ready after", round(time.perf_counter() - before, 1))
        built[name] = contender
    return built


def _shape(config: Path | None) -> ModelConfig:
    """The model of a file of settings; else the paper's base model."""
    if config is None:
        return read_config(preset="paper-base", settings=[f"model.vocab_size={VOCABULARY}"]).model
    return read_config(file=config).model


def main() -> None:
    """Check, build, alternate, print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--tokens", type=int, default=400 * TILE)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--only", default="", help="some of the contenders; no check then")
    parser.add_argument("--config", type=Path, help="a file of settings with another shape")
    parser.add_argument("--log", type=Path, default=Path("gpu_train_step.jsonl"))
    parser.add_argument("--results", type=Path, help="where comparisons are kept for benchmarks/table.py")
    args = parser.parse_args()

    def log(what: str, value: object) -> None:
        print(what, value, flush=True)
        with args.log.open("a") as lines:
            lines.write(json.dumps({what: value}) + "\n")

    log("device", f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    if not args.only:
        log("CUDA against CPU", check_against_cpu())
        torch._dynamo.reset()
    shape = _shape(args.config)
    contenders = build_all(args, shape, log)
    rates: dict[str, list[tuple[float, float, float]]] = {name: [] for name in contenders}
    losses: dict[str, float] = {}
    for round_ in range(-1, args.rounds):
        for name, contender in contenders.items():
            run = timed(contender, max(round_, 0) * args.steps, args.steps)
            if round_ < 0:  # while the others were compiled, something of the first may have been lost
                log(f"{name} again, not counted", f"{run['seconds']:.2f} s")
                continue
            share = flops(shape, int(run["source"]), int(run["target"])) / run["seconds"] / PEAK
            both = (run["source"] + run["target"]) / run["seconds"]
            rates[name].append((run["target"] / run["seconds"], both, share))
            losses[name] = run["loss"]
    log("peak memory GiB", round(torch.cuda.max_memory_allocated() / 2**30, 1))
    for name, rows in rates.items():
        target, both, share = (statistics.median(column) for column in zip(*rows, strict=True))
        log(name, {
            "target tokens/s": round(target), "source+target tokens/s": round(both),
            "share of peak": round(share, 3), "loss": round(losses[name], 3),
            "rounds": [round(row[0]) for row in rows],
        })  # fmt: skip
    both = {name: [row[1] for row in rows] for name, rows in rates.items()}
    peers = [name for name in both if not name.startswith("regard")]
    what = "a training step, base model, bf16"
    write_results(
        args.results,
        [Result.of_rates(what, "tokens/s", both["regard"], peer, both[peer]) for peer in peers],
    )


if __name__ == "__main__":
    main()
