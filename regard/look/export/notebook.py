"""A trace in a notebook: a picture that needs nothing to run, and the whole page in a frame."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

HEIGHT = 640
"""Pixels: a frame that grew with its page would jump while one reads."""


@dataclass(frozen=True, slots=True, repr=False)
class Frame:
    """A page of its own inside of a notebook's. It sees nothing of the notebook, and asks for nothing."""

    page: str
    height: int = HEIGHT

    def __repr__(self) -> str:
        return f"Frame({len(self.page) / 1e6:.1f} MB of HTML, shown by a notebook)"

    def _repr_html_(self) -> str:
        held, may = escape(self.page), "allow-scripts allow-downloads"  # a download is a figure saved
        style = f"width:100%;height:{self.height}px;border:0"
        return f'<iframe srcdoc="{held}" sandbox="{may}" style="{style}"></iframe>'
