"""The built-in corpus `rooms`: people who find things in a house, as summaries, answers and conversations.

    >>> from regard.data.rooms import rows
    >>> next(iter(rows("answer", "train", 1, seed=1)))["question"] in QUESTIONS
    True

It needs no file, and a small model learns it in less than a minute: to try a command, not to judge a model. A
hash of the facts assigns a row to a split, for every seed, so that the splits never overlap.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, Literal, NamedTuple
from zlib import crc32

from regard.durable import write_atomically

SplitName = Literal["train", "valid", "test"]
SIZES: dict[SplitName, int] = {"train": 6000, "valid": 200, "test": 200}
"""Rows of each split; of conversations half, since each gives several examples."""
BUCKETS = 32
"""One fact in so many belongs to the test set, and one to the validation set."""

_WORDS = """
Anna Ben Clara David Emma Finn Grace Hugo Iris Jack Karen Leo Mary Noah Olga Paul
red blue green white black golden
cup book key lamp ball bag map hat clock box coat ring
kitchen garden hall attic cellar study bathroom garage library office workshop yard
Monday Tuesday Wednesday Thursday Friday Saturday Sunday
"""
PEOPLE, COLOURS, THINGS, PLACES, DAYS = (tuple(line.split()) for line in _WORDS.strip().splitlines())
STORIES = (
    ("{who} went to the {where} on {day}.", "The {what} was there."),
    ("On {day} {who} was looking for the {what}.", "It was in the {where}."),
    ("{who} found the {what} on {day}.", "It had been in the {where} all the time."),
)
ASIDES = (
    *("It was a rainy day.", "Nobody said a word.", "The house was quiet.", "The sun was shining."),
    *("Then the telephone rang.", "Everybody was at home."),
)
SUMMARY = "On {day}, {who} found the {what} in the {where}."
QUESTIONS = {
    "Where was it?": "in the {where}",
    "Who found it?": "{who}",
    "What was found?": "the {what}",
    "When was it found?": "on {day}",
}
REPLIES = {
    "Where was it?": "It was in the {where}.",
    "Who found it?": "{who} found it.",
    "What was found?": "The {what} was found.",
    "When was it found?": "It was found on {day}.",
}
LATER = "Who am I?"
"""The second question of a talk: its reply needs the first turn."""


class Fact(NamedTuple):
    """Who found what, where and when."""

    who: str
    what: str
    where: str
    day: str

    @classmethod
    def draw(cls, random: Random) -> Fact:
        """A fact by chance."""
        what = f"{random.choice(COLOURS)} {random.choice(THINGS)}"
        return cls(random.choice(PEOPLE), what, random.choice(PLACES), random.choice(DAYS))

    @property
    def split(self) -> SplitName:
        """The split it belongs to."""
        bucket = crc32("\t".join(self).encode()) % BUCKETS
        return "test" if bucket == 0 else "valid" if bucket == 1 else "train"

    def filled(self, sentence: str) -> str:
        """A sentence about it."""
        return sentence.format(**self._asdict())

    def story(self, random: Random) -> str:
        """It as a story, with one or two sentences about other things."""
        first, second = map(self.filled, random.choice(STORIES))
        aside, *more = random.sample(ASIDES, random.choice((1, 2)))
        return " ".join((first, aside, second, *more))


def _summary(fact: Fact, random: Random) -> dict[str, Any]:
    return {"document": fact.story(random), "summary": fact.filled(SUMMARY)}


def _answer(fact: Fact, random: Random) -> dict[str, Any]:
    question = random.choice(list(QUESTIONS))
    return {"question": question, "context": fact.story(random), "answer": fact.filled(QUESTIONS[question])}


def _conversation(fact: Fact, random: Random) -> dict[str, Any]:
    name, question = random.choice(PEOPLE), random.choice(list(REPLIES))
    # The first turn is never learned, so what nobody could foresee is there.
    first = f"I am {name}. {fact.story(random)} {question}"
    return {"turns": [first, fact.filled(REPLIES[question]), LATER, f"You are {name}."]}


MAKERS: dict[str, Callable[[Fact, Random], dict[str, Any]]] = {
    "summarise": _summary,
    "answer": _answer,
    "converse": _conversation,
}
"""What makes the rows of each task."""


def rows(task: str, split: SplitName, n: int, *, seed: int) -> Iterator[dict[str, Any]]:
    """So many rows of a task and a split, the same for the same seed everywhere."""
    random = Random(f"{task} {split} {seed}")  # a text, because Python would seed -3 like 3
    while n:
        fact = Fact.draw(random)
        if fact.split == split:
            yield MAKERS[task](fact, random)
            n -= 1


def write_rooms(folder: Path, task: str, seed: int) -> dict[str, tuple[Path, ...]]:
    """Write the rows of a task as JSONL files into a folder; returns the file of each split."""
    folder.mkdir(parents=True, exist_ok=True)
    files: dict[str, tuple[Path, ...]] = {}
    for split, size in SIZES.items():
        made = rows(task, split, size // 2 if task == "converse" else size, seed=seed)
        files[split] = (folder / f"{split}.jsonl",)
        write_atomically(files[split][0], "".join(json.dumps(row) + "\n" for row in made))
    return files
