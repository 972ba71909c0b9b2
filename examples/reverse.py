"""A small Transformer learns to write digits backwards, and shows where it looks while it does.

    python examples/reverse.py [--steps 600] [--seed 1]

The blocks of the package used by hand: packed batches, the loss, a plain loop, greedy decoding with the
cache, and the attention of the last decoder layer, recorded. It takes about half a minute on two cores.
"""

from __future__ import annotations

import argparse
import random
import time

import torch
from rich.console import Console
from rich.table import Table
from rich.text import Text
from torch import Tensor, nn

import regard
from regard.host import keep_freed_memory
from regard.loss import label_smoothed_cross_entropy

BOS, EOS = 10, 11
SHADES = " ░▒▓█"
Digits = list[int]


def draw(random_: random.Random, n: int) -> list[Digits]:
    """Sequences of 3 to 9 digits."""
    return [[random_.randrange(10) for _ in range(random_.randint(3, 9))] for _ in range(n)]


def train(
    model: regard.Transformer, steps: int, random_: random.Random, held_out: set[tuple[int, ...]]
) -> None:
    """Adam, a warm-up and a fall to nothing; what is held out is never trained on."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, betas=(0.9, 0.98), eps=1e-9)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / 100, 1 - step / steps)
    )
    start = time.perf_counter()
    for step in range(1, steps + 1):
        sources = [digits for digits in draw(random_, 256) if tuple(digits) not in held_out]
        inputs = regard.pack(sources)
        outputs = regard.pack([[BOS, *digits[::-1]] for digits in sources])
        targets_N = torch.tensor([token for digits in sources for token in (*digits[::-1], EOS)])
        states_ND = model.decode(outputs, model.encode(inputs))
        loss = label_smoothed_cross_entropy(states_ND, model.output_probabilities.weight, targets_N)
        (loss.smoothed / len(targets_N)).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        if step % max(1, steps // 10) == 0:
            nll, hits = loss.nll.item() / len(targets_N), loss.correct.item() / len(targets_N)
            seconds = time.perf_counter() - start
            print(
                f"step {step:5d}   loss {nll:.4f}   tokens right {hits:6.1%}   {seconds:5.1f} s", flush=True
            )


@torch.no_grad()
def decode(model: regard.Transformer, sources: list[Digits]) -> list[Digits]:
    """Greedy: the likeliest token, again and again, until each row has ended."""
    cache = model.start(model.encode(regard.pack(sources)), capacity=12)
    last_R, rows = torch.full((len(sources),), BOS), []
    for _ in range(11):
        log_probs_RV, cache = model.step(last_R, cache)
        last_R = log_probs_RV.argmax(dim=-1)
        rows.append(last_R)
    written = torch.stack(rows, dim=1).tolist()
    return [row[: row.index(EOS)] if EOS in row else row for row in written]


@torch.no_grad()
def attention(model: regard.Transformer, source: Digits) -> Tensor:
    """Of the last decoder layer on the encoder, mean of the heads: (outputs, inputs)."""
    last = len(model.decoder.layers) - 1
    with regard.recording(model) as seen:
        model(regard.pack([source]), regard.pack([[BOS, *source[::-1]]]))
    return seen[f"decoder.layers.{last}.multi_head_attention.weights"][0].mean(dim=0)


def show(console: Console, source: Digits, weights_TS: Tensor) -> None:
    """A heat map: a row for each digit written, a column for each digit read."""
    console.print("where the decoder looks (a row: a digit written; a column: a digit read)")
    table = Table(box=None, padding=(0, 0))
    table.add_column("")
    for digit in source:
        table.add_column(f"{digit} ", justify="center")
    for token, row in zip([*source[::-1], "end"], weights_TS.tolist(), strict=True):
        cells = [Text(SHADES[min(4, int(5 * weight))] * 2) for weight in row]
        table.add_row(f"{token:>3} ", *cells)
    console.print(table)


def main() -> None:
    """Train, score on held-out sequences, show one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    keep_freed_memory()
    torch.manual_seed(args.seed)
    random_ = random.Random(args.seed)
    config = regard.ModelConfig(
        vocab_size=12, d_model=64, n_heads=4, d_ff=256, encoder_layers=2, decoder_layers=2, dropout=0.0
    )
    model = regard.Transformer(config)
    print(f"{model.n_parameters:,} parameters, torch with {torch.get_num_threads()} threads")
    tests = [digits for digits in draw(random.Random("held out"), 1200) if len(digits) > 4][:1000]
    train(model, args.steps, random_, {tuple(digits) for digits in tests})
    model.eval()
    right = sum(written == digits[::-1] for written, digits in zip(decode(model, tests), tests, strict=True))
    print(f"exact matches: {right / len(tests):.1%} of {len(tests)} held-out sequences")
    example = tests[0]
    print("reads", *example, "and writes", *decode(model, [example])[0])
    show(Console(), example, attention(model, example))


if __name__ == "__main__":
    main()
