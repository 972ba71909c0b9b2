"""`regard train --task generate FILE…`: a generator from documents."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from regard.cli.asked import Asked, shaped_like
from regard.cli.corpora import columns_of
from regard.cli.training import carried_out, joined, say
from regard.errors import ConfigError

if TYPE_CHECKING:
    from regard.training.generation import GeneratorRun


def train_texts(asked: Asked) -> None:
    """Train a generator, and measure it."""
    from regard.data.reading import refuse_shared_files
    from regard.data.reading.documents import open_documents
    from regard.training.texts import TextSource

    if not asked.files:
        raise ConfigError("give a text file or several: regard train --task generate FILE…")
    start = asked.start()
    config = shaped_like(asked, start)
    columns = columns_of(asked.columns)
    made = {name: open_documents(*files, columns=columns) for name, files in asked.sets.items()}
    refuse_shared_files({name: each.corpus for name, each in made.items()})
    run = asked.run
    source = TextSource(
        train=made["training"],
        valid=made.get("validation"),
        test=made.get("the test"),
        **asked.wanted(config, start),
    )
    with joined(run, config, asked.device) as world:
        from regard.training.generation import GeneratorRun

        task = GeneratorRun(run, config, lambda: source, world, start=start, sharded=asked.shard, tell=say)
        carried_out(task, asked.log_to, partial(_conclude, run))


def _conclude(run: Path, task: GeneratorRun) -> None:
    typer.echo(str(task.test()))
    prompt, text = task.example()
    typer.echo(f"for example:\n  {prompt!r}  →  {text!r}")
    typer.echo(f"the model is in {run / 'best'}. Next:")
    example = shlex.quote(next((line for line in prompt.split("\n") if line.strip()), ""))
    typer.echo(f"  regard generate --model {shlex.quote(str(run))} {example}")
