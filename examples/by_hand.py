"""Attention with a pencil: plain Python and no library, then the same by `regard`, to the last digit.

    python examples/by_hand.py

Three tokens, d_k = 2. The query asks; the keys answer how well they match; the values are what is taken home.
"""

from __future__ import annotations

from math import exp, sqrt

import torch

import regard

Vector = list[float]

TOKENS = ["the", "cat", "sleeps"]
QUERIES: list[Vector] = [[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]]
KEYS: list[Vector] = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
VALUES: list[Vector] = [[10.0, 0.0], [0.0, 10.0], [5.0, 5.0]]


def dot(a: Vector, b: Vector) -> float:
    """How alike two vectors are."""
    return sum(x * y for x, y in zip(a, b, strict=True))


def softmax(scores: Vector) -> Vector:
    """Shares of 1, larger for larger scores."""
    exponentials = [exp(score) for score in scores]
    return [each / sum(exponentials) for each in exponentials]


def attention(query: Vector, keys: list[Vector], values: list[Vector]) -> tuple[Vector, Vector]:
    """Equation 1 of the paper for one query: the weights, and the average of the values by them."""
    scores = [dot(query, key) / sqrt(len(key)) for key in keys]
    weights = softmax(scores)
    return weights, [dot(weights, list(column)) for column in zip(*values, strict=True)]


def main() -> None:
    """Each token looks back at those before it and at itself; then all of it once more, by tensors."""
    rows = []
    for i, token in enumerate(TOKENS):
        weights, output = attention(QUERIES[i], KEYS[: i + 1], VALUES[: i + 1])
        shares = "  ".join(f"{seen} {weight:.3f}" for seen, weight in zip(TOKENS, weights, strict=False))
        print(f"{token:8} looks at  {shares:42} and takes home ({output[0]:.3f}, {output[1]:.3f})")
        rows.append(output)
    q, k, v = (torch.tensor(each) for each in (QUERIES, KEYS, VALUES))
    causal = torch.ones(3, 3, dtype=torch.bool).tril()  # True: may attend
    by_regard = regard.scaled_dot_product_attention(q, k, v, may_attend=causal)
    assert torch.allclose(by_regard, torch.tensor(rows))
    print("regard.scaled_dot_product_attention says the same")


if __name__ == "__main__":
    main()
