"""A task of one's own: numbers in Roman numerals, trained, scored and looked at. Takes some minutes on a CPU.

python examples/own_task.py [STEPS]
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import regard

NUMERALS = {"M": 1000, "CM": 900, "D": 500, "CD": 400, "C": 100, "XC": 90, "L": 50}
NUMERALS |= {"XL": 40, "X": 10, "IX": 9, "V": 5, "IV": 4, "I": 1}


@dataclass
class Score:
    right: float

    def __str__(self):
        return f"{self.right:.1%} of the numerals are right"


@regard.registries.tasks.register("roman")
class Roman(regard.PairsTask):
    """A line of a file is a number; its Roman numeral is the output."""

    settings = ("model.max_length=64", "training.batch_tokens=2000", "training.warmup_steps=100")

    def rows(self, path):
        for line in path.read_text().split():
            rest, numeral = int(line), ""
            for letters, value in NUMERALS.items():
                numeral += letters * (rest // value)
                rest %= value
            yield " ".join(line), " ".join(numeral)  # spaces: every digit and letter is a token

    def score(self, outputs, references):
        pairs = list(zip(outputs, references, strict=True))
        return Score(sum(output == right[0] for output, right in pairs) / len(pairs))


Path("numbers.txt").write_text("\n".join(map(str, range(1, 2000))))
steps = int(sys.argv[1]) if len(sys.argv) > 1 else 600
run = regard.train(
    "numbers.txt", task=Roman, preset="tiny", settings={"training.max_steps": steps}, display=True
)
print(run.scores)
print("1994:", run.model.translate("1 9 9 4").text)
print("on the whole file:", regard.evaluate(run.folder, "numbers.txt"))
print(run.model.look("1 9 9 4").attention("cross", layer=0, head=0).round(2))
