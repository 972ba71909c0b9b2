"""`regard import`: convert a Hugging Face folder to a model folder."""

from pathlib import Path
from typing import Annotated

import typer


def import_(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="A folder with config.json, weights and a tokenizer.")
    ],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The model folder to write; it must be new.")],
) -> None:
    """Import a model from a Hugging Face folder.

    Supported are OPUS-MT, Pegasus, BERT, GPT-2 and BART, and what `regard export` wrote. Nothing is
    downloaded.
    """
    from regard.bundle import describe_bundle
    from regard.exchange.huggingface import import_model

    bundle = describe_bundle(import_model(folder, out))
    shape = f"{bundle.config.architecture}, {bundle.n_parameters:,} parameters"
    typer.echo(f"{folder} is in {out}: {shape}")
