"""Tasks whose rows have named fields: summarise, converse, answer.

Templates say what is read and what is written: `{question} {context}` and `{answer}`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.config import TaskConfig, registries
from regard.data.reading.templates import read_numbered_examples
from regard.data.rooms import write_rooms
from regard.tasks.pairs import PairsTask, Right
from regard.tasks.task import Job
from regard.text.files.formats.format import Reading
from regard.text.files.lines import Tally

if TYPE_CHECKING:
    from regard.tasks.pair_preparation import PairsSource

ROOMS = "rooms"
"""The built-in corpus: people who find things in a house. Also its preset."""


class FieldsTask(PairsTask):
    """Writing one field of a row from others; scored by ROUGE."""

    # A summary may be much shorter than its document, and a long document is read as far as it fits.
    settings = ("data.max_ratio=none", "data.max_characters=1000000", "data.cut_inputs=true")
    builtins = (ROOMS,)

    def default_folder(self, job: Job) -> Path:
        """`runs/` and the name of the file, or of the task."""
        return Path("runs") / self.name if job.files.builtin else super().default_folder(job)

    def open_files(self, job: Job) -> dict[str, Any]:
        """One file or several for each set, unless the corpus is built in."""
        return {} if job.files.builtin else super().open_files(job)

    def source(self, job: Job, opened: dict[str, Any]) -> PairsSource:
        """The rows of every file, or of the built-in corpus, copied to the run's folder as pairs."""
        if job.files.builtin:
            opened = write_rooms(job.folder / "data" / ROOMS, self.name, job.config.training.seed)
        return super().source(job, opened)

    def numbered_rows(self, path: Path, task: TaskConfig) -> Iterator[tuple[int, tuple[str, Sequence[str]]]]:
        """The templates, filled with the fields of each row."""
        return read_numbered_examples(path, task.templates)

    def readable_rows(
        self, path: Path, task: TaskConfig, reading: Reading, bad: Tally
    ) -> Iterator[tuple[int, tuple[str, Sequence[str]]]]:
        """The same, perhaps without the rows that cannot be read."""
        return read_numbered_examples(path, task.templates, reading, bad)

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
