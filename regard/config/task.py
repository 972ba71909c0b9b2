"""The task of a model. The docstrings are the help text."""

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
"""Default templates (input, output) of the tasks whose rows have named fields."""
COMMANDS = {"summarise": "summarise", "converse": "chat", "answer": "answer"}
"""The commands that run models of these tasks; other models have that of their architecture."""

FIELD = re.compile(r"\{([^{}]+)\}")
"""A field in a template."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskConfig:
    """The task of a model, and the languages of its texts."""

    SECTION: ClassVar[str] = "task"

    name: TaskName = "translate"
    """Name of the task; `regard train --task` sets it."""
    input: str | None = None
    """Template of the inputs, with fields in braces, like {question} {context}; none for the task's own."""
    output: str | None = None
    """Template of the outputs, like {answer}; none for the task's own."""
    source: str | None = None
    """Language code of the inputs, like zh; `regard train` takes it from the file names."""
    target: str | None = None
    """Language code of the outputs, like en."""
    label_separator: str | None = None
    """Separator between the labels of a text, such as a comma; none if each text has one label."""
    both_directions: bool = False
    """Train both directions; a language token before each input selects one."""
    language_tag: bool = False
    """Put the token of the output language before each input even if there is one direction only."""

    def __post_init__(self) -> None:
        refuse_problems(self)

    def problems(self) -> list[str]:
        """Every setting that is out of range."""
        named = {"task.source": self.source, "task.target": self.target}
        found = [
            f"{name} is empty; give a language code, like en" for name, code in named.items() if code == ""
        ]
        if self.label_separator == "":
            found.append("task.label_separator is empty; give a separator, like | in a|b")
        for name, template in {"task.input": self.input, "task.output": self.output}.items():
            if template and not FIELD.search(template):
                found.append(f"{name} = {shown(template)} names no field; put one in braces, like {{text}}")
        if self.both_directions and self.source is not None and self.source == self.target:
            found.append(f"task.both_directions needs two languages, and both are {self.source}")
        return found

    @property
    def templates(self) -> tuple[str, str]:
        """Templates of inputs and outputs."""
        read, written = TEMPLATES.get(self.name, ("", ""))
        return self.input or read, self.output or written

    @property
    def has_tags(self) -> bool:
        """Whether a language token before each input selects the output language."""
        return self.both_directions or self.language_tag

    @property
    def directions(self) -> tuple[tuple[str | None, str | None], ...]:
        """Every direction of translation, as (input language, output language)."""
        forth, back = (self.source, self.target), (self.target, self.source)
        return (forth, back) if self.both_directions else (forth,)
