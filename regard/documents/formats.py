"""The known document formats, and the choice of one by the name of a file."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import PurePath

from regard.documents.document import Document
from regard.errors import CorpusError

EXTRA = "pip install 'regard[documents]'"
"""The command that installs what some formats need."""


@dataclass(frozen=True, slots=True)
class Format:
    """A document format."""

    module: str
    """Name of its module in `regard.documents`, which is imported when a document is read."""
    suffixes: tuple[str, ...]
    """Endings of file names, in lower case."""

    def read(self, content: bytes) -> Document:
        """Read a document.

        Raises:
            CorpusError: it is damaged, or a package is missing.
        """
        try:
            module = import_module(f"regard.documents.{self.module}")
        except ImportError as error:
            if (error.name or "").startswith("regard"):
                raise
            problem = f"reading {self.suffixes[0]} files needs {error.name}, which is not installed"
            raise CorpusError(f"{problem}: {EXTRA}", code="missing_library") from None
        document: Document = module.read(content)
        return document


FORMATS = (
    Format("text", (".txt",)),
    Format("html", (".html", ".htm", ".xhtml")),
    Format("markdown", (".md", ".markdown")),
    Format("subtitles", (".srt", ".vtt")),
    Format("gettext", (".po", ".pot")),
    Format("xliff", (".xliff", ".xlf")),
    Format("json_values", (".json", ".arb")),
    Format("word", (".docx", ".docm", ".dotx")),
    Format("epub", (".epub",)),
)
BY_SUFFIX = {suffix: each for each in FORMATS for suffix in each.suffixes}


def is_document(path: PurePath | str) -> bool:
    """Whether a name ends like a document of a known format."""
    return PurePath(path).suffix.lower() in BY_SUFFIX


def format_of(path: PurePath | str) -> Format:
    """The format of a file, by its name.

    Raises:
        CorpusError: the suffix is unknown.
    """
    suffix = PurePath(path).suffix.lower()
    if suffix not in BY_SUFFIX:
        what = f"files in {suffix}" if suffix else "files without a suffix"
        known = f"known are {', '.join(BY_SUFFIX)}"
        raise CorpusError(f"{path}: {what} are not translated; {known}", code="unknown_format")
    return BY_SUFFIX[suffix]
