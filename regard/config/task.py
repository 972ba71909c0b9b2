"""What a model is for. The docstrings are the help text."""

from dataclasses import dataclass
from typing import ClassVar

from regard.config.checking import refuse_problems


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskConfig:
    """What a model is for: from which language, and into which."""

    SECTION: ClassVar[str] = "task"

    source: str | None = None
    """Code of the language of inputs, like zh; `regard train` takes it from the names of the files."""

    target: str | None = None
    """Code of the language of outputs, like en."""

    def __post_init__(self) -> None:
        refuse_problems(self)

    def problems(self) -> list[str]:
        """Every setting that is out of range, as sentences."""
        named = {"task.source": self.source, "task.target": self.target}
        return [
            f"{name} is empty; it is the code of a language, like en"
            for name, code in named.items()
            if code == ""
        ]
