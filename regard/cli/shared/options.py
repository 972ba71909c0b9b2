"""Options that several verbs share, and their names in error messages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from regard.bundled import DEFAULT
from regard.config import settings
from regard.errors import ConfigError, RegardError, with_options

PresetOption = Annotated[
    str | None,
    typer.Option(
        "--preset", metavar="NAME", help="Settings to start from; `regard config --list` lists them."
    ),
]
ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="A TOML file of settings; overrides the preset."),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="A.B=C", help="One setting; overrides the file; may be repeated."),
]


def model_option(more: str = "") -> Any:
    """The option that names a model; `more` is added to its help."""
    words = f"A model folder, or the folder of a run{more}."
    return typer.Option("--model", "-m", metavar="MODEL", show_default=False, help=words)


ModelOption = Annotated[
    list[Path], model_option("; several form an ensemble. Default: the bundled translator")
]
BUNDLED = [Path(DEFAULT)]
"""The default of `--model`."""
OwnModelsOption = Annotated[list[Path] | None, model_option("; several form an ensemble")]
"""For verbs whose task no bundled model has: see `needed`."""
EngineOption = Annotated[
    str,
    typer.Option(metavar="NAME", help="torch, ctranslate2, or auto: the fastest that supports the options."),
]
DeviceOption = Annotated[
    str, typer.Option(metavar="NAME", help="cpu, cuda, mps (Macs) or auto: cuda, else cpu.")
]
ThreadsOption = Annotated[int | None, typer.Option(min=1, help="CPU cores to use. Default: all.")]
RayOption = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS", help="Run on a Ray cluster: local starts one here, auto finds one, or HOST:PORT."
    ),
]
TopKOption = Annotated[int, typer.Option(min=0, help="Sample among this many most likely tokens; 0 for all.")]
TopPOption = Annotated[
    float,
    typer.Option(min=0, max=1, help="Sample among the most likely tokens with this total probability."),
]
MinPOption = Annotated[
    float,
    typer.Option(min=0, max=1, help="Sample among tokens at least this fraction as likely as the best."),
]
SeedOption = Annotated[int, typer.Option(help="The same seed gives the same text.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")]


@dataclass(frozen=True, kw_only=True, slots=True)
class RunFlags:
    """How an encoder-decoder model runs, searches or samples: the same flags for every verb that runs one."""

    beam: Annotated[int | None, typer.Option(help="Hypotheses kept at each step; 1 is greedy.")] = None
    sample: Annotated[
        bool, typer.Option("--sample", help="Sample tokens instead of searching for the most likely.")
    ] = False
    temperature: Annotated[
        float, typer.Option(help="With --sample: below 1 sharpens the distribution, above 1 flattens it.")
    ] = 1.0
    top_k: TopKOption = 0
    top_p: TopPOption = 1.0
    min_p: MinPOption = 0.0
    seed: SeedOption = 1
    engine: EngineOption = "auto"
    device: DeviceOption = "auto"
    threads: ThreadsOption = None
    as_json: JsonOption = False

    def search(self) -> dict[str, Any]:
        """The options of the search or the sampling, under their names in Python.

        Raises:
            ConfigError: an option of sampling is given without `--sample`.
        """
        sampling = {name: getattr(self, name) for name in ("temperature", "top_k", "top_p", "min_p", "seed")}
        changed = [
            each.name for each in fields(self) if sampling.get(each.name, each.default) != each.default
        ]
        if changed and not self.sample:
            raise ConfigError(f"`{changed[0]}` needs `sample`", code="missing_option")
        return {"beam_size": self.beam, "sample": self.sample, **sampling}


def with_flags_of(verb: Callable[..., None]) -> Callable[..., None]:
    """A verb whose last parameter is a dataclass of flags: typer is shown its fields as options."""
    *own, flags = signature(verb, eval_str=True).parameters.values()
    hints = get_type_hints(flags.annotation, include_extras=True)
    options = [
        Parameter(each.name, Parameter.KEYWORD_ONLY, default=each.default, annotation=hints[each.name])
        for each in fields(flags.annotation)
    ]

    @wraps(verb)
    def run(**given: Any) -> None:
        values = {option.name: given.pop(option.name) for option in options}
        verb(**given, **{flags.name: flags.annotation(**values)})

    shown = [*own, *options]
    run.__signature__ = Signature(shown)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in shown}
    return run


def settings_help() -> str:
    """Every setting with its description, for the end of a verb's help."""
    width = max(map(len, settings()))
    # "\b" keeps the help formatter from joining the lines of a paragraph.
    return "\b\nSettings:\n" + "\n".join(f"  {name:{width}}  {text}" for name, text in settings().items())


_SAME_NAME = (
    *("device", "glossary", "keep", "max_tokens", "min_p", "n_best", "past_length", "prefix", "quantisation"),
    *("sample", "seed", "source", "target", "temperature", "threshold", "too_long", "top_k", "top_p"),
    *("both_directions", "builtin", "columns", "force", "markup", "out", "output", "pretrain", "shard"),
    *("skip_bad", "test", "valid"),
)
FLAGS = {name: f"--{name.replace('_', '-')}" for name in _SAME_NAME} | {
    "beam_size": "--beam",
    "start_from": "--from",
    "to": "--target",
}
"""Flags by Python keyword. What has no flag, such as `extra_length`, is a setting of the model folder."""


def with_flags(error: RegardError | str) -> str:
    """The message of an error, with flags in place of Python keywords."""
    return with_options(str(error), lambda name, value: f"{FLAGS.get(name, name)} {value}".strip())
