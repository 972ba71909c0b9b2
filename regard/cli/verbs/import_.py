"""`regard import`: a model of Hugging Face's, as a model folder."""

from pathlib import Path
from typing import Annotated

import typer


def import_(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="A folder with config.json, weights and a tokenizer.")
    ],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The model folder to write; it must be new.")],
) -> None:
    """Take in a model as Hugging Face keeps it.

    It may be of OPUS-MT, BERT, GPT-2 or BART. Nothing is downloaded.
    """
    from regard.bundle import describe_bundle
    from regard.exchange.huggingface.import_ import import_model

    described = describe_bundle(import_model(folder, out))
    shape = f"{described.config.architecture}, {described.n_parameters:,} parameters"
    typer.echo(f"{folder} is in {out}: {shape}")
