"""Code that a page shows from a file, in ```py blocks that begin with the file's name, is in that file."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.pages import blocks
from tests.architecture.sources import ROOT

PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


def untrue_excerpts(page: str, root: Path) -> Iterator[str]:
    """Excerpts whose lines do not stand in their file, one after another."""
    for block in blocks(page):
        if block.language != "py":
            continue
        head, _, excerpt = block.body.partition("\n")
        file = root / head.removeprefix("# ")
        if not head.startswith("# ") or not file.is_file():
            yield f"line {block.line}: the first line names no file: {head}"
        elif not excerpt.strip() or f"\n{excerpt}" not in file.read_text(encoding="utf-8"):
            yield f"line {block.line}: {file.name} does not say this"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_shows_is_what_a_file_says(page):
    assert list(untrue_excerpts(page.read_text(encoding="utf-8"), ROOT)) == []


def test_the_guided_reading_shows_code():
    for name in ("reading-the-paper.md", "reading-the-paper.zh.md"):
        page = (ROOT / "docs" / name).read_text(encoding="utf-8")
        assert sum(block.language == "py" for block in blocks(page)) > 10


@pytest.mark.parametrize(
    ("block", "complaint"),
    [
        ("# a.py\nx = 1\ny = 2\n", None),
        ("# a.py\ny = 2\n", None),
        ("# a.py\nx = 1\nz = 3\n", "does not say this"),
        ("# a.py\n = 1\n", "does not say this"),
        ("# a.py\n", "does not say this"),
        ("# b.py\nx = 1\n", "names no file"),
        ("x = 1\n", "names no file"),
    ],
)
def test_an_untrue_excerpt_is_found(tmp_path, block, complaint):
    (tmp_path / "a.py").write_text('"""A."""\nx = 1\ny = 2\nz = 3\n')
    found = list(untrue_excerpts(f"Text.\n\n```py\n{block}```\n", tmp_path))
    assert len(found) == (complaint is not None)
    assert not found or complaint in found[0]
