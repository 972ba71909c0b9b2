"""Text: files of lines read and repaired, subwords, languages. Imports no torch."""

from regard.text.in_step import read_in_step
from regard.text.languages import LANGUAGES, Language, known_code, language_in, language_name, language_of
from regard.text.lines import Block, read_lines
from regard.text.normalisation import comparison_forms
from regard.text.subwords import Subwords, learn_subwords
from regard.text.tables import read_table
from regard.text.tally import Tally

__all__ = [
    "LANGUAGES",
    "Block",
    "Language",
    "Subwords",
    "Tally",
    "comparison_forms",
    "known_code",
    "language_in",
    "language_name",
    "language_of",
    "learn_subwords",
    "read_in_step",
    "read_lines",
    "read_table",
]
