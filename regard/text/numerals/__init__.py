"""Numerals: the values in a text, which of them a translation changes, and how a language writes a value."""

from regard.text.numerals.comparison import Change, added, changes, numerals, reads_words
from regard.text.numerals.numeral import Date, Numeral, Time
from regard.text.numerals.rendering import rendered

__all__ = ["Change", "Date", "Numeral", "Time", "added", "changes", "numerals", "reads_words", "rendered"]
