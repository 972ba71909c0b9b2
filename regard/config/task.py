"""What a model is for. The docstrings are the help text."""

from dataclasses import dataclass
from typing import ClassVar

from regard.config.checking import refuse_problems


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskConfig:
    """What a model is for: from which language, and into which; perhaps the other way, too."""

    SECTION: ClassVar[str] = "task"

    source: str | None = None
    """Code of the language of inputs, like zh; `regard train` takes it from the names of the files."""

    target: str | None = None
    """Code of the language of outputs, like en."""

    both_directions: bool = False
    """Whether the model translates the other way, too; a tag before each input tells which way."""

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
        if self.both_directions and self.source is not None and self.source == self.target:
            found.append(f"task.both_directions needs two languages, and both are {self.source}")
        return found

    @property
    def directions(self) -> tuple[tuple[str | None, str | None], ...]:
        """Every way that the model translates, as languages of inputs and of outputs."""
        forth, back = (self.source, self.target), (self.target, self.source)
        return (forth, back) if self.both_directions else (forth,)
