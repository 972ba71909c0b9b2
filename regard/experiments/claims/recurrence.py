"""What attention adds to recurrent networks, and what leaving out recurrence gains (1, 4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from regard.experiments.experiment import (
    PARAMETERS,
    Both,
    Chart,
    Experiment,
    Findings,
    Judgement,
    Label,
    Line,
    PerSeed,
    ResultTable,
    Size,
)
from regard.experiments.small_models import (
    Pair,
    ToyLearner,
    ToyTask,
    copying,
    core_seconds,
    make_batch,
    plan,
    small_model,
    train,
)
from regard.loss import is_most_probable
from regard.model.embedding import Embedding
from regard.model.linear import Linear
from regard.model.output_probabilities import OutputProbabilities
from regard.model.scaled_dot_product_attention import scaled_dot_product_attention
from regard.model.transformer import Transformer
from regard.packing import Boundaries, Packed


@dataclass(frozen=True, eq=False)
class RecurrentMemory:
    """The encoder's states: one after each token, and the last one of each sequence."""

    states_BSD: Tensor
    last_BD: Tensor
    boundaries: Boundaries


class Recurrent(nn.Module):
    """A GRU encoder, and a GRU decoder that starts from its last state (Cho et al., 2014).

    With `attention`, every decoder state also attends to all encoder states (Luong et al., 2015).
    """

    def __init__(self, vocab_size: int, d_model: int, *, attention: bool) -> None:
        super().__init__()
        self.embedding = Embedding(vocab_size, d_model)
        self.encoder = nn.GRU(d_model, d_model, batch_first=True)
        self.decoder = nn.GRU(d_model, d_model, batch_first=True)
        self.w_q = Linear(d_model, d_model) if attention else None
        self.joined = Linear(2 * d_model, d_model) if attention else None
        self.output_probabilities = OutputProbabilities(d_model, vocab_size)

    def forward(self, inputs: Packed, outputs: Packed) -> Tensor:
        """Logits of the token after each output token, (T, V)."""
        logits_TV: Tensor = self.output_probabilities(self.decode(outputs, self.encode(inputs)))
        return logits_TV

    def encode(self, inputs: Packed) -> RecurrentMemory:
        """Inputs to memory, one token after another."""
        (x_BSD,) = inputs.boundaries.padded.pad(self.embedding(inputs.ids_N))
        # torch's own packing, so that the last state is that of a sequence's last token.
        lengths = torch.tensor(inputs.boundaries.known_lengths)
        found: PackedSequence
        found, last_1BD = self.encoder(
            pack_padded_sequence(x_BSD, lengths, batch_first=True, enforce_sorted=False)
        )
        states_BSD, _ = pad_packed_sequence(found, batch_first=True)
        return RecurrentMemory(states_BSD, last_1BD[0], inputs.boundaries)

    def decode(self, outputs: Packed, memory: RecurrentMemory) -> Tensor:
        """Outputs, shifted right, to the decoder's states, (T, d_model)."""
        view = outputs.boundaries.padded
        (x_BTD,) = view.pad(self.embedding(outputs.ids_N))
        states_BTD, _ = self.decoder(x_BTD, memory.last_BD[None])
        if self.w_q is not None and self.joined is not None:
            keys_BSD, may_attend = memory.states_BSD, memory.boundaries.exists_BL[:, None, :]
            seen_BTD = scaled_dot_product_attention(self.w_q(states_BTD), keys_BSD, keys_BSD, may_attend)
            states_BTD = torch.tanh(self.joined(torch.cat([states_BTD, seen_BTD], dim=-1)))
        return view.unpad([states_BTD])


CLAIM = Both(
    "A recurrent network forgets as distances grow and trains slowly on long sequences; attention reaches "
    "every token in one step, and needs no recurrence.",
    "循环网络随距离增大而遗忘，在长序列上训练缓慢；注意力一步即可到达任何词元，并不需要循环。",
)

GRU, WITH_ATTENTION, TRANSFORMER = KINDS = (
    "GRU",
    Both("GRU with attention", "带注意力的 GRU"),
    "Transformer",
)
LENGTH = Both("length", "长度")
D_MODEL, SYMBOLS, KEYS, VALUES = 64, 32, 16, 4

ByKind = dict[Label, list[PerSeed]]
"""For each kind of model, one number per distance."""


@dataclass(frozen=True, slots=True)
class _Setup:
    copying_steps: int
    recalling_steps: int
    """A GRU with attention learns to recall late: after 500 steps it is no better than one without."""
    copied: tuple[int, ...] = (3, 6, 12, 24)
    recalled: tuple[int, ...] = (2, 4, 8, 16)
    timed: tuple[int, ...] = (16, 64, 256, 1024)
    tested: int = 250
    step_tokens: int = 4096
    """Input tokens per timed step."""


SETUP: dict[Size, _Setup] = {
    "short": _Setup(
        copying_steps=30,
        recalling_steps=30,
        copied=(2, 5),
        recalled=(2, 3),
        timed=(4, 16),
        tested=20,
        step_tokens=64,
    ),
    "normal": _Setup(copying_steps=500, recalling_steps=800),
    "long": _Setup(copying_steps=4000, recalling_steps=4000, copied=(4, 8, 16, 32), tested=1000),
}


def recalling(pairs: tuple[int, int]) -> ToyTask:
    """The task of reading keys with their values, then one of the keys again, and writing its value."""
    asked = 2 + KEYS * VALUES
    values = asked + KEYS

    def draw(random: Random, n: int) -> list[Pair]:
        found = []
        for _ in range(n):
            told = {
                key: random.randrange(VALUES) for key in random.sample(range(KEYS), random.randint(*pairs))
            }
            key = random.choice([*told])
            read = [2 + key * VALUES + value for key, value in told.items()]
            found.append(([*read, asked + key], [values + told[key]]))
        return found

    return ToyTask("recalling", values + VALUES, draw, lambda n: draw(Random(f"held out {pairs}"), n))


def make_model(kind: Label, task: ToyTask, seed: int) -> Recurrent | Transformer:
    """One of the three models, all of about the same size."""
    if kind == TRANSFORMER:
        sizes = {"d_model": D_MODEL, "d_ff": D_MODEL, "encoder_layers": 1, "decoder_layers": 1}
        return small_model(task, seed, shared_embeddings="none", **sizes)
    torch.manual_seed(seed)
    return Recurrent(task.vocab_size, D_MODEL, attention=kind == WITH_ATTENTION)


def run(size: Size, seeds: Sequence[int]) -> Findings:
    """Train the three models to copy and to recall, test them by distance, and time their steps."""
    setup = SETUP[size]

    def copies(low: int, high: int) -> ToyTask:
        return copying((low, high), SYMBOLS)

    def recalls(low: int, high: int) -> ToyTask:
        return recalling((low, high))

    copied = _by_distance(copies, setup.copied, setup.copying_steps, setup.tested, seeds)
    recalled = _by_distance(recalls, setup.recalled, setup.recalling_steps, setup.tested, seeds)
    speeds = {kind: [_speed(kind, n, setup) for n in setup.timed] for kind in KINDS}
    return _findings(setup, copied, recalled, speeds)


def _findings(setup: _Setup, copied: ByKind, recalled: ByKind, speeds: ByKind) -> Findings:
    parts = (
        (
            Both("copying, share of symbols right", "复制，正确符号的比例"),
            LENGTH,
            setup.copied,
            copied,
        ),
        (
            Both("recalling one of many, share right", "从多个中取回一个，正确的比例"),
            Both("pairs read", "读入的对数"),
            setup.recalled,
            recalled,
        ),
        (
            Both("training, thousand tokens a second on one core", "训练，一个核上每秒千词元"),
            LENGTH,
            setup.timed,
            speeds,
        ),
    )
    tables = [
        ResultTable(name, (x_name, *map(str, places)), tuple((kind, *found[kind]) for kind in KINDS))
        for name, x_name, places, found in parts
    ]
    charts = [
        Chart(name, x_name, tuple(Line(kind, places, found[kind]) for kind in KINDS), log_x=True)
        for name, x_name, places, found in parts
    ]
    task = copying((1, 1), SYMBOLS)
    sizes = [(kind, sum(p.numel() for p in make_model(kind, task, seed=1).parameters())) for kind in KINDS]
    of_sizes = ResultTable(
        Both(f"size, with {SYMBOLS} symbols", f"大小，{SYMBOLS} 个符号"),
        (Both("model", "模型"), PARAMETERS),
        tuple(sizes),
    )
    verdict = (_on_copying(setup, copied), _on_recall(setup, recalled), _on_speed(setup, speeds))
    return Findings((of_sizes, *tables), tuple(charts), verdict)


def _by_distance(
    task: Callable[[int, int], ToyTask], places: Sequence[int], steps: int, tested: int, seeds: Sequence[int]
) -> ByKind:
    """The share of correct symbols at each distance, after training on all distances together."""
    taught = task(places[0], places[-1])
    found: ByKind = {}
    for kind in KINDS:
        shares = []
        for seed in seeds:
            model = make_model(kind, taught, seed)
            train(model, taught, plan(steps, 4e-3), seed, batch=40)
            shares.append([share_right(model, task(n, n).held_out(tested)) for n in places])
        found[kind] = [PerSeed.of(column) for column in zip(*shares, strict=True)]
    return found


@torch.no_grad()
def share_right(model: Any, pairs: Sequence[Pair]) -> float:
    """Share of correct symbols, predicted from the correct prefix; the easy end token does not count."""
    batch = make_batch(pairs)
    right_T = is_most_probable(model(batch.inputs, batch.outputs), batch.targets_T)
    ends_B = batch.outputs.boundaries.ends_B
    is_symbol_T = torch.ones_like(right_T).index_fill_(0, ends_B, False)
    return right_T[is_symbol_T].float().mean().item()


def _speed(kind: Label, length: int, setup: _Setup) -> PerSeed:
    """Speed of a forward and backward pass over copies of this length, in thousand tokens per second."""
    task = copying((length, length), SYMBOLS)
    batch = make_batch(task.draw(Random(1), max(1, setup.step_tokens // length)))
    learner = ToyLearner(make_model(kind, task, seed=1))
    return PerSeed.of([batch.n_targets / 1e3 / core_seconds(lambda: learner(batch)[0].backward())])


def _on_copying(setup: _Setup, copied: ByKind) -> Judgement:
    near, far = setup.copied[0], setup.copied[-1]
    alone, helped, ours = (copied[kind] for kind in KINDS)
    holds = alone[-1].below(alone[0]) and alone[-1].below(helped[-1]) and alone[-1].below(ours[-1])
    return Judgement(
        holds,
        Both(
            f"Copying more, the recurrent state loses what attention keeps, with recurrence or without: of "
            f"{near} and of {far} symbols the GRU gets {alone[0].mean:.0%} and {alone[-1].mean:.0%} right, "
            f"with attention {helped[0].mean:.0%} and {helped[-1].mean:.0%}, the Transformer "
            f"{ours[0].mean:.0%} and {ours[-1].mean:.0%}.",
            f"要复制的越多，循环状态丢失的越多，而注意力（无论有无循环）能保住：{near} 个和 {far} 个符号，"
            f"GRU 的正确率为 {alone[0].mean:.0%} 和 {alone[-1].mean:.0%}，加上注意力为 "
            f"{helped[0].mean:.0%} 和 {helped[-1].mean:.0%}，Transformer 为 {ours[0].mean:.0%} 和 "
            f"{ours[-1].mean:.0%}。",
        ),
    )


def _on_recall(setup: _Setup, recalled: ByKind) -> Judgement:
    many = setup.recalled[-1]
    alone, helped, ours = (recalled[kind][-1] for kind in KINDS)
    return Judgement(
        alone.below(helped) and alone.below(ours),
        Both(
            f"Attention recalls one value of {many} pairs better than a recurrent state: the GRU gets "
            f"{alone.mean:.0%} right, with attention {helped.mean:.0%}, the Transformer {ours.mean:.0%}, and "
            f"guessing {1 / VALUES:.0%}.",
            f"从 {many} 对中取回一个值，注意力胜过循环状态：GRU 的正确率为 {alone.mean:.0%}，加上注意力为 "
            f"{helped.mean:.0%}，Transformer 为 {ours.mean:.0%}，随机猜测为 {1 / VALUES:.0%}。",
        ),
    )


def _on_speed(setup: _Setup, speeds: ByKind) -> Judgement:
    short, long = setup.timed[0], setup.timed[-1]
    ratios = [ours.mean / gru.mean for ours, gru in zip(speeds[TRANSFORMER], speeds[GRU], strict=True)]
    return Judgement(
        min(ratios) > 1 and ratios[-1] > ratios[0],
        Both(
            f"The Transformer trains faster than the GRU, the more so the longer the sequences: on one "
            f"core of this machine it reads {ratios[0]:.2f} times as many tokens a second at length {short}, "
            f"and {ratios[-1]:.2f} times at length {long}. One core cannot show parallelism.",
            f"Transformer 训练得比 GRU 快，序列越长越明显：在这台机器的一个核上，长度为 {short} 时"
            f"每秒词元数是其 {ratios[0]:.2f} 倍，长度为 {long} 时是 {ratios[-1]:.2f} 倍。单核看不出并行性。",
        ),
    )


EXPERIMENT = Experiment("recurrence", CLAIM, run)
