"""What a model is for. The docstrings are the help text."""

import re
from dataclasses import dataclass
from typing import Annotated, ClassVar

from regard.config import registries
from regard.config.checking import refuse_problems, shown

TaskName = Annotated[str, registries.tasks]
TEMPLATES: dict[str, tuple[str, str]] = {
    "summarise": ("{document}", "{summary}"),
    "converse": ("{turns}", "{turns}"),
    "answer": ("{question} {context}", "{answer}"),
}
"""What is read and written in the tasks whose data has named fields."""

FIELD = re.compile(r"\{([^{}]+)\}")
"""The name of a field, in a template."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskConfig:
    """What a model is for: what it does with texts, and in which languages they are."""

    SECTION: ClassVar[str] = "task"

    name: TaskName = "translate"
    """What is learned; `regard train --task` says it."""

    input: str | None = None
    """What is read, with names of fields in braces, like {question} {context}; none as the task has it."""

    output: str | None = None
    """What is to be written, in the same way, like {answer}; none as the task has it."""

    source: str | None = None
    """Code of the language of inputs, like zh; `regard train` takes it from the names of the files."""

    target: str | None = None
    """Code of the language of outputs, like en."""

    label_separator: str | None = None
    """What parts the labels of a text that may have several, such as a comma; none where each has one."""

    both_directions: bool = False
    """Whether the model translates the other way, too; a tag before each input tells which way."""

    language_tag: bool = False
    """Whether a tag before each input tells the language of the output also where there is but one way."""

    def __post_init__(self) -> None:
        refuse_problems(self)

    def problems(self) -> list[str]:
        """Every setting that is out of range, as sentences."""
        named = {"task.source": self.source, "task.target": self.target}
        found = [
            f"{name} is empty; it is the code of a language, like en"
            for name, code in named.items()
            if code == ""
        ]
        if self.label_separator == "":
            found.append("task.label_separator is empty; it stands between labels, as in a|b")
        for name, template in {"task.input": self.input, "task.output": self.output}.items():
            if template and not FIELD.search(template):
                found.append(f"{name} = {shown(template)} names no field; put one in braces, like {{text}}")
        if self.both_directions and self.source is not None and self.source == self.target:
            found.append(f"task.both_directions needs two languages, and both are {self.source}")
        return found

    @property
    def templates(self) -> tuple[str, str]:
        """What is read, and what is written."""
        read, written = TEMPLATES.get(self.name, ("", ""))
        return self.input or read, self.output or written

    @property
    def has_tags(self) -> bool:
        """Whether a tag before each input tells which language is wanted."""
        return self.both_directions or self.language_tag

    @property
    def directions(self) -> tuple[tuple[str | None, str | None], ...]:
        """Every way that the model translates, as languages of inputs and of outputs."""
        forth, back = (self.source, self.target), (self.target, self.source)
        return (forth, back) if self.both_directions else (forth,)
