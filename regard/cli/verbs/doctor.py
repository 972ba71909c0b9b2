"""`regard doctor`: what this machine has, what is missing, and what would slow things down or break them."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from regard.doctor.facts import Facts
    from regard.doctor.findings import Finding

BROKEN = 1
"""Exit status when something is: nothing that was asked is wrong, the installation is."""


def doctor(
    *,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object instead.")] = False,
) -> None:
    """Say what this machine has for regard, and what it lacks.

    And what to do about it. The exit status is 1 if something is broken.
    """
    from regard.doctor.examination import examine
    from regard.doctor.findings import findings

    facts = examine()
    found = findings(facts)
    if as_json:
        told = asdict(facts) | {"engine": facts.engine, "findings": [asdict(each) for each in found]}
        typer.echo(json.dumps(told))
    else:
        typer.echo("\n".join(_text(facts, found)))
    if any(each.kind == "broken" for each in found):
        raise typer.Exit(BROKEN)


def _text(facts: Facts, found: list[Finding]) -> list[str]:
    processor, threads = facts.processor, facts.threads
    cores = f"{processor.cores} cores" + (
        "" if processor.quota is None else f", of which {processor.quota:g} may be busy"
    )
    return [
        f"regard {facts.regard}, Python {facts.python}, {facts.system}",
        *_section("libraries", {each.name: each.installed or "missing" for each in facts.libraries}),
        *_section(
            "machine",
            {
                "processor": f"{processor.name}, {cores}",
                "memory": "unknown" if processor.memory is None else _gigabytes(processor.memory),
                "bf16": f"fast in torch ({processor.bf16})" if processor.bf16 else "no instructions for it",
                "threads": f"CTranslate2 {threads.ctranslate2}, torch {threads.torch or 0}",
                "GPU": "; ".join(_gpus(facts)) or "none that torch can use",
            },
        ),
        *_section(
            "engines", {each.name: _engine(each.name, each.computes_in, facts) for each in facts.engines}
        ),
        *_section("extras", {each.name: _extra(each.name, each.missing) for each in facts.extras}),
        *_section(
            "models",
            {
                "bundled": ", ".join(facts.models) or "none; name a model folder, or a run's",
                "conversions": facts.cache.folder,
            },
        ),
        "",
        *(line for each in found for line in (f"{each.kind}: {each.what}", f"  {each.remedy}")),
        *([] if found else ["all is well"]),
    ]


def _gpus(facts: Facts) -> list[str]:
    cuda = facts.cuda
    return [
        f"{gpu.name}, {_gigabytes(gpu.memory)}, compute capability {gpu.capability}, "
        f"CUDA {cuda.built_for}, driver {cuda.driver or 'unknown'}"
        for gpu in cuda.gpus
    ]


def _engine(name: str, computes_in: tuple[str, ...], facts: Facts) -> str:
    chosen = " (auto takes it first)" if name == facts.engine else ""
    return (", ".join(computes_in) or "cannot run") + chosen


def _extra(name: str, missing: tuple[str, ...]) -> str:
    return f"lacks {', '.join(missing)}: pip install 'regard[{name}]'" if missing else "installed"


def _gigabytes(n_bytes: int) -> str:
    return f"{n_bytes / 2**30:.1f} GiB"


def _section(title: str, values: dict[str, str]) -> list[str]:
    width = max(map(len, values), default=0)
    return ["", title, *(f"  {name:{width}}  {value}" for name, value in values.items())] if values else []
