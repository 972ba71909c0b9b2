"""Text: reading files, subword vocabularies, languages. Imports no torch."""

from regard.text.files.lines import Block, Tally, read_lines
from regard.text.files.parallel import read_parallel
from regard.text.files.tables import read_table
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
    "read_lines",
    "read_parallel",
    "read_table",
]
