"""`regard doctor`: check this machine and this installation."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from regard.doctor.facts import EngineState, Facts
    from regard.doctor.findings import Finding

BROKEN = 1
"""Exit status if something is broken; a wrong command line exits with 2."""


def doctor(
    *,
    deep: Annotated[
        bool, typer.Option("--deep", help="Read bundled models and cached conversions as a whole.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object instead.")] = False,
) -> None:
    """Check this machine and this installation.

    Reports what is missing, broken or slow, and what to do. The exit status is 1 if something is broken.
    """
    from regard.doctor.examination import examine
    from regard.doctor.findings import findings

    facts = examine(deep=deep)
    problems = findings(facts)
    if as_json:
        document = asdict(facts) | {"engine": facts.engine, "findings": [asdict(one) for one in problems]}
        typer.echo(json.dumps(document))
    else:
        typer.echo("\n".join(_text(facts, problems)))
    if any(problem.kind == "broken" for problem in problems):
        raise typer.Exit(BROKEN)


def _text(facts: Facts, problems: list[Finding]) -> list[str]:
    processor, threads = facts.processor, facts.threads
    cores = f"{processor.cores} cores" + (
        "" if processor.quota is None else f", at most {processor.quota:g} busy"
    )
    return [
        f"regard {facts.regard}, Python {facts.python}, {facts.system}",
        *_section("libraries", {library.name: library.installed or "missing" for library in facts.libraries}),
        *_section(
            "machine",
            {
                "processor": f"{processor.name}, {cores}",
                "memory": "unknown" if processor.memory is None else _gigabytes(processor.memory),
                "bf16": f"fast in torch ({processor.bf16})" if processor.bf16 else "slow in torch",
                "threads": f"CTranslate2 {threads.ctranslate2}, torch {threads.torch or 0}",
                "GPU": "; ".join(_gpus(facts)) or "none that torch can use",
            },
        ),
        *_section("engines", {engine.name: _engine(engine, facts) for engine in facts.engines}),
        *_section("extras", {extra.name: _extra(extra.name, extra.missing) for extra in facts.extras}),
        *_section(
            "models",
            {
                "bundled": ", ".join(facts.models) or "none",
                "conversions": facts.cache.folder,
            },
        ),
        "",
        *(line for one in problems for line in (f"{one.kind}: {one.what}", f"  {one.remedy}")),
        *([] if problems else ["no problems"]),
    ]


def _gpus(facts: Facts) -> list[str]:
    cuda = facts.cuda
    return [
        f"{gpu.name}, {_gigabytes(gpu.memory)}, compute capability {gpu.capability}, "
        f"CUDA {cuda.built_for}, driver {cuda.driver or 'unknown'}"
        for gpu in cuda.gpus
    ]


def _engine(engine: EngineState, facts: Facts) -> str:
    chosen = " (the default)" if engine.name == facts.engine else ""
    return (", ".join(engine.computes_in) or "cannot run") + chosen


def _extra(name: str, missing: tuple[str, ...]) -> str:
    return f"missing {', '.join(missing)}: pip install 'regard[{name}]'" if missing else "installed"


def _gigabytes(n_bytes: int) -> str:
    return f"{n_bytes / 2**30:.1f} GiB"


def _section(title: str, values: dict[str, str]) -> list[str]:
    width = max(map(len, values), default=0)
    return ["", title, *(f"  {name:{width}}  {value}" for name, value in values.items())] if values else []
