"""An error names flags on the command line, and keywords in Python."""

from dataclasses import fields
from inspect import signature

import typer

from regard import load
from regard.cli.program import app
from regard.cli.shared.options import FLAGS, with_flags
from regard.config import TaskConfig
from regard.engine.options import ClassifyOptions, GenerateOptions, TranslateOptions
from regard.errors import RequestError
from regard.tasks.loaded.translator import LoadedTranslator
from regard.training.run import train


def test_every_flag_and_every_option_is_there():
    verbs = typer.main.get_command(app).commands.values()
    assert set(FLAGS.values()) <= {flag for verb in verbs for param in verb.params for flag in param.opts}
    options = {
        field.name for kind in (TranslateOptions, GenerateOptions, ClassifyOptions) for field in fields(kind)
    }
    arguments = {
        name
        for function in (load, train, LoadedTranslator.translate_file)
        for name in signature(function).parameters
    }
    settings = {field.name for field in fields(TaskConfig)}
    assert set(FLAGS) <= options | arguments | settings


def test_options_become_flags():
    error = RequestError("`n_best=3` needs a `beam_size` of 3 (`past_length='slide'`), or `extra_length`")
    assert with_flags(error) == "--n-best 3 needs a --beam of 3 (--past-length slide), or extra_length"
