"""Tasks whose rows have named fields: summarise, converse, answer."""

from __future__ import annotations

from regard.config import registries
from regard.tasks.task import Task


class FieldsTask(Task):
    """Writing one field of a row from others."""

    settings = ("data.max_ratio=none", "data.max_characters=1000000", "data.cut_inputs=true")


@registries.tasks.register("summarise")
class Summarise(FieldsTask):
    """A summary of a document."""

    name = "summarise"


@registries.tasks.register("converse")
class Converse(FieldsTask):
    """The next turn of a conversation."""

    name = "converse"


@registries.tasks.register("answer")
class Answer(FieldsTask):
    """The answer to a question about a text."""

    name = "answer"
