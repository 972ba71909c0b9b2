"""Tasks whose rows are JSON objects with named fields: summarise, converse, answer.

Templates say what is read and what is written: `{question} {context}` and `{answer}`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from regard.config import TaskConfig, registries
from regard.data.reading.templates import read_numbered_examples
from regard.tasks.pairs import PairsTask, Right


class FieldsTask(PairsTask):
    """Writing one field of a row from others; scored by ROUGE."""

    # A summary may be much shorter than its document, and a long document is read as far as it fits.
    settings = ("data.max_ratio=none", "data.max_characters=1000000", "data.cut_inputs=true")

    def numbered_rows(self, path: Path, task: TaskConfig) -> Iterator[tuple[int, tuple[str, Sequence[str]]]]:
        """The templates, filled with the fields of each row."""
        return read_numbered_examples(path, task.templates)

    def score(self, outputs: Sequence[str], references: Sequence[Right]) -> Any:
        """ROUGE."""
        from regard.scores.texts import score_summaries

        return score_summaries(outputs, references)


@registries.tasks.register("summarise")
class Summarise(FieldsTask):
    """The summary of a document."""

    name = "summarise"


@registries.tasks.register("converse")
class Converse(FieldsTask):
    """The next turn of a conversation."""

    name = "converse"


@registries.tasks.register("answer")
class Answer(FieldsTask):
    """The answer to a question about a text; scored by exact match and F1."""

    name = "answer"

    def score(self, outputs: Sequence[str], references: Sequence[Right]) -> Any:
        """Exact match and F1."""
        from regard.scores.texts import score_answers

        return score_answers(outputs, references)
