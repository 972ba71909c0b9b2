"""`MultiHeadAttention` in a model of your own, trained by a loop of your own.

    python examples/attention_alone.py [--steps 300]

Each sequence has letters, and a mark somewhere before one of them; which letter was marked? To answer, the
last token must find the mark and look one place further, which takes two layers. No part of `regard` but the
block is used, and it is asked for its weights at the end.
"""

from __future__ import annotations

import argparse

import torch
from torch import Tensor, nn

import regard

LETTERS, MARK, ASK = 8, 8, 9
LENGTH, WIDTH = 9, 32


class Finder(nn.Module):
    """Embeddings, two layers of attention with a shortcut each, and an answer from the last token."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(LETTERS + 2, WIDTH)
        self.places = nn.Embedding(LENGTH + 2, WIDTH)
        self.layers = nn.ModuleList([regard.MultiHeadAttention(WIDTH, n_heads=2) for _ in range(2)])
        self.answer = nn.Linear(WIDTH, LETTERS)
        self.register_buffer("causal", torch.ones(LENGTH + 2, LENGTH + 2, dtype=torch.bool).tril())

    def forward(self, ids_BL: Tensor) -> Tensor:
        """Scores of the letters, (B, LETTERS)."""
        x_BLD = self.tokens(ids_BL) + self.places.weight
        for layer in self.layers:
            x_BLD = x_BLD + layer(x_BLD, may_attend=self.causal)
        return self.answer(x_BLD[:, -1])


def draw(n: int) -> tuple[Tensor, Tensor]:
    """Sequences with one mark, and the letter behind it."""
    letters_BL = torch.randint(LETTERS, (n, LENGTH))
    place_B = torch.randint(LENGTH, (n,))
    rows = [
        torch.cat([row[:place], torch.tensor([MARK]), row[place:], torch.tensor([ASK])])
        for row, place in zip(letters_BL, place_B.tolist(), strict=True)
    ]
    return torch.stack(rows), letters_BL[torch.arange(n), place_B]


def main() -> None:
    """Train, score on new sequences, show where the last token looks in each layer."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--steps", type=int, default=300)
    steps = parser.parse_args().steps
    torch.manual_seed(1)
    model = Finder()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for step in range(1, steps + 1):
        ids_BL, wanted_B = draw(128)
        loss = nn.functional.cross_entropy(model(ids_BL), wanted_B)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % max(1, steps // 5) == 0:
            print(f"step {step}  loss {loss.item():.3f}", flush=True)
    ids_BL, wanted_B = draw(1000)
    with torch.no_grad():
        print(f"right: {(model(ids_BL).argmax(-1) == wanted_B).float().mean():.1%} of 1,000 new sequences")
        with regard.recording(model) as seen:
            model(ids_BL[:1])
    print(" ", *("abcdefgh>?"[i].rjust(4) for i in ids_BL[0].tolist()))
    for layer in range(2):
        for head, row in enumerate(seen[f"layers.{layer}.weights"][0, :, -1]):
            print(f"layer {layer} head {head}:", *(f"{weight:.2f}" for weight in row.tolist()))


if __name__ == "__main__":
    main()
