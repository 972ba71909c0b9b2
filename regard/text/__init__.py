"""Text: files of lines read and repaired, subwords, languages. Imports no torch."""

from regard.text.files.in_step import read_in_step
from regard.text.files.lines import Block, read_lines
from regard.text.files.tables import read_table
from regard.text.files.tally import Tally
from regard.text.languages import LANGUAGES, Language, known_code, language_in, language_name, language_of
from regard.text.normalisation import comparison_forms
from regard.text.vocabularies.subwords import Subwords, learn_subwords

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
