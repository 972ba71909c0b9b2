"""Commands that pages show but do not run, in `text` blocks, are at least such as the program understands."""

import contextlib
import re
import shlex
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import typer

from regard.bundle.manifest import MANIFEST
from regard.cli.program import app
from regard.engine.loading import BEST
from tests.architecture.sources import ROOT

BLOCK = re.compile(r"^```text\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^(?:torchrun .* -m )?regard (\w.*?)(?:  .*| [<>] .*)?$", re.MULTILINE)
PAGES = [ROOT / "README.md", ROOT / "README.zh.md", *sorted((ROOT / "docs").glob("*.md"))]


def shown(page):
    """What follows `regard` in the commands of a page; lines that go on are one, and a synopsis is none."""
    for block in BLOCK.findall(page):
        for words in COMMAND.findall(re.sub(r"\\\n\s*", "", block)):
            if "[--" not in words:
                yield words


def understand(words):
    """Read a command line as the program would, and do nothing; raises what a wrong word raises.

    The run that it begins with is there, as it is for those who type it: a text would be one more word.
    """
    verb, *others = shlex.split(words)
    command = typer.main.get_command(app).get_command(None, verb)
    assert command is not None, f"there is no verb {verb}"
    with TemporaryDirectory() as place, contextlib.chdir(place):
        if others and others[0].startswith(("runs/", "models/")):
            model = Path(others[0], BEST)
            model.mkdir(parents=True)
            (model / MANIFEST).touch()
        command.make_context(verb, others)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_shows_is_understood(page):
    for words in shown(page.read_text(encoding="utf-8")):
        understand(words)


def test_commands_are_found_whole_and_mistakes_are_seen():
    page = (
        "```text\nregard serve a   a page\nregard look b \\\n    --vew heads < c\nregard look [--to X]\n```\n"
    )
    serve, look = shown(page)
    assert (serve, look) == ("serve a", "look b --vew heads")
    understand(serve)
    with pytest.raises(Exception, match="No such option"):
        understand(look)
    with pytest.raises(AssertionError, match="no verb lok"):
        understand("lok b")
