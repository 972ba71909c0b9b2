"""The page of the Python API says what the code says."""

import ast

import regard
from tests.architecture.sources import ROOT
from tools import python_page

SOURCE = '''
class Box:
    """A box.

    It has a lid.
    """

    width: int = 3
    """How wide
    it is."""
    hidden: int = 4

    def __init__(self, width: int = 3) -> None: ...

    @property
    def area(self) -> int:
        """Its area."""

    def open(
        self, lid: dict[str, int], *, gently: bool = True, then: tuple[int, ...] = (),
        why: str = "because the key was lost",
    ) -> None:
        """Open it.

        Args:
            lid: which of them,
                and when.
            gently: how.

        Raises:
            ValueError: it is stuck.
        """

    def _inner(self):
        """Not for others."""

    def unsaid(self): ...
'''


def test_the_page_is_made_from_the_docstrings():
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    assert page == python_page.page(), "run `make docs`"


def test_every_public_name_has_its_heading():
    page = python_page.page()
    for name in regard.__all__:
        assert name == "__version__" or f"\n### `{name}`\n" in page


def test_what_a_class_has_from_those_below_it_is_told_as_its_own():
    page = python_page.page()
    assert "\n#### `LoadedModel.generate`\n" in page
    assert "TaskModel" not in page


def test_a_class_as_a_reader_sees_it():
    (node,) = ast.parse(SOURCE).body
    assert list(python_page.constructor(node)) == ["```text\nBox(width: int=3)\n```\n"]
    fields, area, *rest = python_page.members(node, "Box")
    assert fields == "- `width`: How wide it is.\n"
    assert (area, rest[0]) == ("#### `Box.area`\n", "Its area.\n")
    assert rest[1] == "#### `Box.open`\n"
    assert "\n    lid: dict[str, int],\n    *,\n    gently: bool=True,\n" in rest[2]
    assert rest[3] == (
        "Open it.\n\nArgs:\n\n- `lid`: which of them, and when.\n- `gently`: how.\n\nRaises:\n\n"
        "- `ValueError`: it is stuck.\n"
    )
    assert len(rest) == 4
