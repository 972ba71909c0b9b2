"""Parquet and Arrow files, read with pyarrow; data sets of Hugging Face are folders of them.

Fields with class labels hold numbers; the names are in the file's metadata, and are what is read.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from regard.errors import CorpusError
from regard.text.files import path_problem
from regard.text.files.formats.format import Format, Reading, Records

_AT_ONCE = 4096
_METADATA = b"huggingface"
INFO = "dataset_info.json"
"""The file beside Arrow files that describes their fields, if the files do not."""


class _Columnar(Format):
    is_text = False

    def read(self, path: Path | str, reading: Reading, wanted: Sequence[str] = ()) -> Iterator[Records]:
        """The rows, numbered from 1."""
        name = reading.name
        if problem := path_problem(path):
            raise CorpusError(problem, code="missing_file")
        if not Path(path).is_file():
            problem = "comes from a pipe, but can be read only from a file: save it first"
            raise CorpusError(f"{name}: {problem}", code="not_a_file")
        arrow = _arrow(name)
        first = 1
        with _damage_reported(arrow, name):
            for schema, batch in self.batches(path, {each.partition(".")[0] for each in wanted}):
                labels = class_labels(schema, Path(path))
                for start in range(0, batch.num_rows, _AT_ONCE):
                    rows = batch.slice(start, _AT_ONCE).to_pylist()
                    for field, names in labels.items():
                        for row in rows:
                            if field in row:
                                row[field] = _label(row[field], names)
                    yield Records(rows, range(first, first + len(rows)))
                    first += len(rows)

    @abstractmethod
    def batches(self, path: Path | str, wanted: set[str]) -> Iterator[tuple[Any, Any]]:
        """The schema and the record batches, perhaps of the wanted columns alone."""


class Parquet(_Columnar):
    """Columns in groups of rows."""

    kind, suffixes = "parquet", (".parquet",)

    def batches(self, path: Path | str, wanted: set[str]) -> Iterator[tuple[Any, Any]]:
        """One column group after the other."""
        from pyarrow import parquet

        with parquet.ParquetFile(path) as file:
            schema = file.schema_arrow
            for batch in file.iter_batches(batch_size=_AT_ONCE, columns=_chosen(schema, wanted)):
                yield schema, batch


class Arrow(_Columnar):
    """Record batches, as a stream or as a file."""

    kind, suffixes = "arrow", (".arrow",)

    def batches(self, path: Path | str, wanted: set[str]) -> Iterator[tuple[Any, Any]]:
        """Batches, mapped into memory."""
        import pyarrow

        with pyarrow.memory_map(str(path)) as source:
            is_file = source.size() and source.read(6) == b"ARROW1"
            source.seek(0)
            reader: Any = pyarrow.ipc.open_file(source) if is_file else pyarrow.ipc.open_stream(source)
            batches = map(reader.get_batch, range(reader.num_record_batches)) if is_file else reader
            columns = _chosen(reader.schema, wanted)
            for batch in batches:
                yield reader.schema, batch.select(columns) if columns else batch


def _chosen(schema: Any, wanted: set[str]) -> list[str] | None:
    """The wanted columns; None for all, also where one does not exist, so that a message can list all."""
    return sorted(wanted) if wanted and wanted <= set(schema.names) else None


def class_labels(schema: Any, path: Path) -> dict[str, list[str]]:
    """The names of the labels of each field that has class labels."""
    info: Any = {}
    if written := (schema.metadata or {}).get(_METADATA):
        info = _json(written).get("info")
    elif (path.parent / INFO).is_file():
        info = _json((path.parent / INFO).read_bytes())
    features = info.get("features") if isinstance(info, Mapping) else None
    found = {}
    for field, feature in features.items() if isinstance(features, Mapping) else ():
        if isinstance(feature, Mapping) and feature.get("_type") == "ClassLabel" and feature.get("names"):
            found[field] = [str(name) for name in feature["names"]]
    return found


def _json(content: bytes) -> dict[str, Any]:
    try:
        value = json.loads(content)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _label(value: Any, names: list[str]) -> Any:
    """The name of a label; -1 is a text without one, and so is an unknown number."""
    if isinstance(value, list):
        return [_label(each, names) for each in value]
    if not isinstance(value, int):
        return value
    return names[value] if 0 <= value < len(names) else None


def _arrow(name: str) -> Any:
    try:
        import pyarrow
    except ImportError:
        problem = "is read with pyarrow, which is not installed: pip install 'regard[tables]'"
        raise CorpusError(f"{name}: {problem}", code="missing_library") from None
    return pyarrow


@contextmanager
def _damage_reported(arrow: Any, name: str) -> Iterator[None]:
    try:
        yield
    except (arrow.ArrowException, EOFError) as error:
        first = str(error).partition("\n")[0]
        raise CorpusError(f"{name}: is damaged or truncated: {first}", code="damaged_file") from error
    except OSError as error:
        reason = error.strerror or str(error).partition("\n")[0]
        raise CorpusError(f"{name}: cannot be read: {reason}", code="damaged_file") from error
