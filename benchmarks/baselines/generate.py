"""The baselines of generation, in bits a byte: 5-grams of characters with Kneser-Ney smoothing, and xz -9.

    python -m benchmarks.baselines.generate TRAIN VALID [--columns 3]

Of xz, what the held-out text adds to the packed training text counts: it may look back at all of that. A
character that the n-grams have not seen costs what is left after all others, and 21 bits to say which it is.
"""

import argparse
import lzma
from collections import Counter, defaultdict
from math import log2

from regard.cli.shared.data_files import parse_columns
from regard.data.reading.documents import open_documents

ORDER, CODE_POINTS = 5, 21
START = "\x02"
"""What stands before a text."""


class KneserNey:
    """Interpolated, with a discount for each order, from how many n-grams are there once and twice."""

    def __init__(self, texts: list[str], order: int = ORDER) -> None:
        self.order = order
        whole: Counter[str] = Counter()
        for text in texts:
            padded = START * (order - 1) + text
            whole.update(padded[i : i + order] for i in range(len(text)))
        self.counts: list[Counter[str]] = [Counter() for _ in range(order)] + [whole]
        for n in range(order - 1, 0, -1):  # below the highest, in how many contexts counts
            self.counts[n] = Counter(gram[1:] for gram in self.counts[n + 1])
        self.totals: list[dict[str, int]] = [defaultdict(int) for _ in range(order + 1)]
        self.kinds: list[dict[str, int]] = [defaultdict(int) for _ in range(order + 1)]
        for n in range(1, order + 1):
            for gram, count in self.counts[n].items():
                self.totals[n][gram[:-1]] += count
                self.kinds[n][gram[:-1]] += 1
        self.discounts = [0.0, *(self._discount(n) for n in range(1, order + 1))]

    def _discount(self, n: int) -> float:
        ones, twos = (sum(count == k for count in self.counts[n].values()) for k in (1, 2))
        return ones / (ones + 2 * twos) if ones else 0.5

    def probability(self, context: str, character: str) -> float:
        """Of a character after a context of order - 1 characters."""
        known = len(self.counts[1])
        probability = 1 / (known + 1)  # one share for all that were never seen
        for n in range(1, self.order + 1):
            before = context[len(context) - n + 1 :]
            total = self.totals[n].get(before, 0)
            if total:
                count, discount = self.counts[n].get(before + character, 0), self.discounts[n]
                rest = discount * self.kinds[n][before] / total
                probability = max(count - discount, 0) / total + rest * probability
        return probability

    def bits(self, text: str) -> float:
        """What a text takes."""
        padded, total = START * (self.order - 1) + text, 0.0
        for i, character in enumerate(text):
            total -= log2(self.probability(padded[i : i + self.order - 1], character))
            total += CODE_POINTS * (character not in self.counts[1])
        return total


def packed(text: str) -> int:
    """Bits that `xz -9` makes of a text."""
    return 8 * len(lzma.compress(text.encode(), preset=9))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("train")
    parser.add_argument("valid")
    parser.add_argument("--columns")
    asked = parser.parse_args()
    train, valid = (
        list(open_documents(path, columns=parse_columns(asked.columns)).read())
        for path in (asked.train, asked.valid)
    )
    n_bytes = len("".join(valid).encode())
    model = KneserNey(train)
    print(f"{ORDER}-gram Kneser-Ney: {sum(map(model.bits, valid)) / n_bytes:.3f} bits a byte")
    before, after = "\n".join(train), "\n".join(valid)
    added = packed(before + after) - packed(before)
    print(f"xz -9, after the training text: {added / n_bytes:.3f} bits a byte")
    print(f"xz -9, the text alone: {packed(after) / n_bytes:.3f} bits a byte")


if __name__ == "__main__":
    main()
