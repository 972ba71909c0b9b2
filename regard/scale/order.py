"""What every worker is asked to do: which model, run how, and what to write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from regard.engine.line_by_line import LineByLine
from regard.engine.loading import EngineName
from regard.engine.phrases.glossary import read_glossary
from regard.exchange.ctranslate2.weights_file import Quantisation
from regard.loaded import load
from regard.version import __version__


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """How lines are to be translated."""

    engine: EngineName = "auto"
    device: str = "auto"
    """`cuda` gives each worker a GPU; else none has one."""
    threads: int = 1
    """CPU cores of each worker."""
    quantisation: Quantisation | None = None
    scores: bool = False
    as_json: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    """Fields of `Options`; lines are translated as they stand unless `whole_lines` says otherwise."""

    def carried(self) -> Order:
        """The same order for other machines: a glossary goes along, and a GPU that is there is not taken.

        Raises:
            CorpusError: the glossary cannot be read.
        """
        options = {"whole_lines": True, **self.options}
        if isinstance(given := options.get("glossary"), str | Path):
            options["glossary"] = read_glossary(given)
        return replace(self, options=options, device="cpu" if self.device == "auto" else self.device)

    def writer(self, models: Sequence[Path]) -> LineByLine:
        """What does the work; engines are loaded when the first line comes.

        Raises:
            BundleError: a model folder is missing or damaged.
            ConfigError: the engine cannot run the model.
            RequestError: the options do not fit it.
        """
        loaded = load(
            models if len(models) > 1 else models[0],
            engine=self.engine,
            device=self.device,
            threads=self.threads,
            quantisation=self.quantisation,
        )
        return LineByLine(
            loaded.translator(**self.options),
            strictly=self.options.get("too_long") == "error",
            scores=self.scores,
            as_json=self.as_json,
        )

    def decides(self, keys: Sequence[str]) -> dict[str, Any]:
        """All that decides what becomes of a line, as JSON can hold it; `keys` stand for the models."""
        told = {name: value for name, value in self.options.items() if value not in (None, ())}
        return {
            "regard": __version__,
            "models": list(keys),
            "engine": self.engine,
            "device": self.device,
            "quantisation": self.quantisation,
            "scores": self.scores,
            "as_json": self.as_json,
            "options": {name: _plain(value) for name, value in sorted(told.items())},
        }


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(sorted(value.items()))
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value if isinstance(value, str | int | float | bool) else repr(value)
