"""The program `regard`: its verbs, global options and exit status."""

import io
import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Annotated, Any

import typer

from regard.cli.shared.command import Command, DocumentsCommand, ModelCommand, TextCommand, TextsCommand
from regard.cli.shared.data_files import SetsCommand
from regard.cli.shared.examples import examples_help
from regard.cli.shared.options import settings_help, with_flags
from regard.cli.verbs.answer import answer
from regard.cli.verbs.average import average
from regard.cli.verbs.chat import chat
from regard.cli.verbs.classify import classify
from regard.cli.verbs.config import config
from regard.cli.verbs.doctor import doctor
from regard.cli.verbs.evaluate import evaluate
from regard.cli.verbs.experiment import experiment
from regard.cli.verbs.export import export
from regard.cli.verbs.generate import generate
from regard.cli.verbs.import_ import import_
from regard.cli.verbs.info import info
from regard.cli.verbs.look import look
from regard.cli.verbs.score import score
from regard.cli.verbs.serve import serve
from regard.cli.verbs.summarise import summarise
from regard.cli.verbs.train import train
from regard.cli.verbs.translate import translate
from regard.errors import ConfigError, RegardError
from regard.version import __version__

MISTAKE = 2
"""Exit status for a mistake of the user, as shells and argument parsers use it."""

PIPE_CLOSED = 1
"""Exit status when the reader of our output has closed it (`regard … | head`), as in typer."""

# Plain help text: faster to build than panels, and the same in a pipe.
APPEARANCE: dict[str, Any] = {
    "name": "regard",
    "add_completion": False,
    "rich_markup_mode": None,
    "pretty_exceptions_enable": False,
}
app = typer.Typer(**APPEARANCE)


def _add(
    verb: str, function: Callable[..., None], *, settings: bool = False, cls: type[Command] = Command
) -> None:
    epilog = [examples_help(verb), *([settings_help()] if settings else ())]
    app.command(verb, epilog="\n\n".join(epilog), cls=cls)(function)


# In the order in which a user meets them; the help lists them so.
_add("train", train, settings=True, cls=SetsCommand)
_add("translate", translate, cls=DocumentsCommand)
_add("look", look, cls=TextCommand)
_add("serve", serve, cls=ModelCommand)
_add("evaluate", evaluate, cls=ModelCommand)
_add("score", score, cls=ModelCommand)
_add("generate", generate, cls=TextsCommand)
_add("classify", classify, cls=TextsCommand)
_add("summarise", summarise, cls=TextsCommand)
_add("answer", answer, cls=TextsCommand)
_add("chat", chat, cls=TextsCommand)
_add("experiment", experiment)
_add("export", export, cls=ModelCommand)
_add("import", import_)
_add("average", average)
_add("info", info, cls=ModelCommand)
_add("config", config, settings=True)
_add("doctor", doctor)


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"regard {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def regard(
    context: typer.Context,
    *,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,  # noqa: ARG001
    version: Annotated[  # noqa: ARG001
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    plugins: Annotated[
        list[str] | None,
        typer.Option(
            "--plugin",
            metavar="MODULE",
            help="Import a module of yours first; may be repeated.",
        ),
    ] = None,
) -> None:
    """Train, run, serve and look inside Transformers, as Attention Is All You Need defines them."""
    for plugin in plugins or ():
        _import_plugin(plugin)
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _import_plugin(name: str) -> None:
    """Import a module, also from the working folder.

    Raises:
        ConfigError: there is no such module.
    """
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name.partition(".")[0] and error.name != name:
            raise
        raise ConfigError(
            f"--plugin {name}: there is no module {error.name!r} in this folder or among the installed ones",
            code="missing_module",
        ) from error


def _program(words: Sequence[str]) -> typer.Typer:
    """The program; of its verbs only the one that is named first, since building all takes some 0.1 s."""
    named = [each for each in app.registered_commands if each.name in words[:1]]
    if not named:
        return app
    one = typer.Typer(**APPEARANCE)
    one.registered_callback, one.registered_commands = app.registered_callback, named
    return one


def _warning(message: Warning | str, *_: object, **__: object) -> str:
    """A warning as the command line prints it: without the line of code."""
    return f"regard: {message}\n"


def _terminate(number: int, _: object) -> None:
    """Exit on SIGTERM like on an error, so that temporary files are removed."""
    sys.exit(128 + number)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the program and exit: status 0, or 2 and a message on stderr if a user can correct the error."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    warnings.formatwarning = _warning
    in_main_thread = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, _terminate) if in_main_thread else None
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal that cannot show a character gets its code instead of an error.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        try:
            _program(words)(words, prog_name="regard")
        finally:
            if before is not None:
                signal.signal(signal.SIGTERM, before)
            # Buffered output would otherwise fail at exit, where the error cannot be caught.
            sys.stdout.flush()
    except RegardError as error:
        if "--debug" in words:
            traceback.print_exc()
        else:
            print(f"regard: error[{error.code}]: {with_flags(error)}", file=sys.stderr)
        sys.exit(MISTAKE)
    except BrokenPipeError:
        # Python flushes once more at exit; discard that output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(PIPE_CLOSED)
