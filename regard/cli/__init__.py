"""The command line: one file a verb, and none of them computes anything itself."""

from regard.cli.program import main

__all__ = ["main"]
