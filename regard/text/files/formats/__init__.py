"""The formats of tables, by the ends of file names."""

from __future__ import annotations

from regard.text.files.formats.bilingual import Tmx, Xliff
from regard.text.files.formats.columnar import Arrow, Parquet
from regard.text.files.formats.delimited import Csv, Tsv
from regard.text.files.formats.format import Format
from regard.text.files.formats.objects import Jsonl

FORMATS: dict[str, Format] = {each.kind: each() for each in (Tsv, Csv, Jsonl, Parquet, Arrow, Tmx, Xliff)}
"""The formats by kind."""
SUFFIXES = {suffix: each.kind for each in FORMATS.values() for suffix in each.suffixes}
"""The kind of a table by the end of its name."""
