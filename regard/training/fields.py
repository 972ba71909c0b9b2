"""A model of inputs and outputs from rows with named fields: summaries, conversations, answers.

What `regard train --task summarise` does, and converse, and answer. The fields are put into templates; the
pairs are kept in RUN/data/text, and go the way of all pairs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from regard.config import RunConfig
from regard.data.reading import Corpus, derived_corpus
from regard.data.reading.templates import LINE, write_pairs
from regard.durable import write_atomically
from regard.scores.answers import AnswerScore, score_answers
from regard.scores.summaries import SummaryScore, score_summaries
from regard.text.normalisation import composed
from regard.training.checkpoints.folder import DATA
from regard.training.preparation import PairsSource
from regard.training.translation import TranslatorRun

COLUMNS = ("input", "output")
SIDES = ("inputs", "outputs")


def fields_source(
    run: Path,
    sets: Mapping[str, Sequence[Path]],
    config: RunConfig,
    *,
    vocab_size: int | None,
    subwords: bytes | None,
) -> PairsSource:
    """The pairs that the files of each set give: train, and perhaps valid and test.

    Raises:
        CorpusError: a file cannot be read, or a row has not the fields of the templates.
    """
    sets_made: dict[str, Corpus] = {}
    for name, files in sets.items():
        places = [run / DATA / "text" / f"{name}-{i}.jsonl" for i in range(len(files))]
        for place, file in zip(places, files, strict=True):
            write_pairs(place, file, config.task.templates)
        if places:
            sets_made[name] = derived_corpus(dict(zip(places, files, strict=True)), COLUMNS, LINE)
    return PairsSource(
        train=sets_made["train"],
        valid=sets_made.get("valid"),
        test=sets_made.get("test"),
        languages=SIDES,
        compared=(0,),
        vocab_size=vocab_size,
        subwords=subwords,
        max_tokens=config.model.max_length,
        seed=config.training.seed,
        data=config.data,
    )


class FieldsRun(TranslatorRun):
    """A run from rows with named fields to a tested model."""

    def score(self) -> tuple[SummaryScore | AnswerScore, list[tuple[str, str]]]:
        """Write outputs for the test set with the best model and keep the scores; and some of the outputs."""
        (tested,) = self.outputs()
        right = self._right()
        references = [right[read] for read in tested.sources]
        score_of = score_answers if self.config.task.name == "answer" else score_summaries
        score = score_of(tested.outputs, references)
        described = {"decoding": asdict(self.config.decoding), **asdict(score)}
        write_atomically(self.folder / "scores.json", json.dumps(described, indent=1))
        return score, list(zip(tested.sources, tested.outputs, strict=True))

    def _right(self) -> dict[str, list[str]]:
        """All that would be right to write, by what is read."""
        right: dict[str, list[str]] = {}
        for place in sorted((self.folder / DATA / "text").glob("*.jsonl")):
            with place.open(encoding="utf-8") as lines:
                for row in map(json.loads, lines):
                    right.setdefault(composed(row["input"]), []).extend(map(composed, row["right"]))
        return right
