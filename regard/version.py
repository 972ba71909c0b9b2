"""The version, on the lowest rung: model folders record it, and nothing below them may import `regard`."""

__version__ = "0.1.0"
