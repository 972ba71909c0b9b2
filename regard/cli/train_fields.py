"""`regard train --task summarise FILE…`, converse, answer: from JSONL with named fields."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from regard.cli.asked import Asked, shaped_like, taught_like
from regard.cli.training import carried_out, joined, say
from regard.errors import ConfigError

if TYPE_CHECKING:
    from regard.training.fields import FieldsRun

SHOWN = 80
"""Characters of an input that are shown."""


def train_fields(asked: Asked) -> None:
    """Train a model that writes one field from others, and score it."""
    from regard.data.reading import refuse_shared_files, text_corpus
    from regard.text.files import path_problem

    name = asked.config.task.name
    if not asked.files:
        raise ConfigError(f"give a JSONL file or several: regard train --task {name} FILE…")
    if asked.columns:
        example = '--set task.input="{text}" --set task.output="{summary}"'
        raise ConfigError(f"fields are named by templates, not by --columns, as in {example}")
    if problems := [p for file in (*asked.files, *asked.valid, *asked.test) if (p := path_problem(file))]:
        raise ConfigError(problems)
    # What is no file can be read but once, and that comes later.
    files = {name: [file for file in files if file.is_file()] for name, files in asked.sets.items()}
    refuse_shared_files({name: text_corpus(*each) for name, each in files.items() if each})
    start = asked.start()
    config = taught_like(asked, shaped_like(asked, start), start)
    run = asked.run
    sets = {"train": asked.files, "valid": asked.valid, "test": asked.test}
    with joined(run, config, asked.device) as world:
        from regard.training.fields import FieldsRun, fields_source

        subwords = None if start is None else start.subwords
        source = partial(fields_source, run, sets, config, vocab_size=asked.vocab_size, subwords=subwords)
        task = FieldsRun(run, config, source, world, start=start, sharded=asked.shard, tell=say)
        carried_out(task, asked.log_to, partial(_conclude, run))


def _conclude(run: Path, task: FieldsRun) -> None:
    score, examples = task.score()
    typer.echo(f"{score}\nfor example:")
    for source, output in examples[:3]:
        typer.echo(f"  {source[:SHOWN]}…  →  {output}" if len(source) > SHOWN else f"  {source}  →  {output}")
    typer.echo(f"the model is in {run / 'best'}. Next:")
    example = examples[0][0][:SHOWN]
    typer.echo(f"  regard translate --model {shlex.quote(str(run))} {shlex.quote(example)}")
