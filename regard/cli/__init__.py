"""The command line: one file per verb. Verbs parse options and print; the rest of the package computes."""

from regard.cli.program import main

__all__ = ["main"]
