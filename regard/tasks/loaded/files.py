"""Files and folders that are translated: their names, their segments, and a report of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.config.checking import counted
from regard.documents.document import Document
from regard.documents.formats import EXTRA, format_of, is_document
from regard.durable import make_folder, write_atomically
from regard.engine.markup.results import MarkedResult
from regard.engine.translator import Translator, warnings_of
from regard.errors import ConfigError, CorpusError, RegardError, reason
from regard.text.files import path_problem
from regard.text.languages import DECIDING, language_name
from regard.text.marked import Marked

WINDOW = 128
"""Segments that are translated together: enough for large batches, few enough to show progress."""
SHOWN = 40
"""Characters of a segment in a report."""

Progress = Callable[[int, int], None]
"""Receives the number of translated segments, and of all."""


MakeTranslator = Callable[..., Translator]
"""Makes a translator for the options that are given as keywords."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FileReport:
    """What was done with one file."""

    source: Path
    output: Path | None
    """None if nothing was written."""
    from_language: str = ""
    to_language: str = ""
    segments: int = 0
    """Paragraphs, headings, cells, subtitles or messages."""
    unchanged: int = 0
    """Those whose translation is their source, as they are in the target language already, or names."""
    notes: tuple[str, ...] = ()
    """What could not be kept or translated."""
    error: str = ""
    """Why the file was not translated."""


def translate_file(
    translator: MakeTranslator,
    path: Path | str,
    out: Path | str | None = None,
    *,
    force: bool = False,
    progress: Progress | None = None,
    **options: Any,
) -> FileReport:
    """Translate a document; see `LoadedTranslator.translate_file`."""
    source = Path(path)
    kind = format_of(source)
    if problem := path_problem(source):
        raise CorpusError(problem, code="missing_file")
    if out is not None:
        check_output(source, Path(out), force=force)
    try:
        content = source.read_bytes()
    except OSError as error:
        raise CorpusError(f"{source}: cannot be read: {reason(error)}", code="unreadable_file") from None
    try:
        document = kind.read(content)
    except CorpusError as error:
        raise CorpusError(f"{source}: {error}", code=error.code) from None
    translations, report = translate_document(translator, document, progress=progress, **options)
    output = Path(out) if out is not None else output_beside(source, *report[:2])
    if out is None:
        check_output(source, output, force=force)
    write_atomically(output, document.written(translations, report[1]))
    return FileReport(
        source=source,
        output=output,
        from_language=report[0],
        to_language=report[1],
        segments=len(document.segments),
        unchanged=sum(one == other for one, other in zip(document.segments, translations, strict=True)),
        notes=(*document.notes, *report[2]),
    )


def translate_document(
    translator: MakeTranslator, document: Document, *, progress: Progress | None = None, **options: Any
) -> tuple[list[Marked], tuple[str, str, list[str]]]:
    """The translations of the segments of a document, in one direction; its languages, and notes.

    Raises:
        RequestError: an option cannot be satisfied, or the language cannot be detected.
    """
    segments = document.segments
    translate = translator(**options)
    direction = translate.document_direction(_beginning(segments))
    languages = direction.source or "", direction.target or ""
    if direction.target and not options.get("to"):
        translate = translator(**{**options, "to": direction.target})
    results: list[MarkedResult] = []
    for start in range(0, len(segments), WINDOW):
        results += translate.marked(segments[start : start + WINDOW])
        if progress is not None:
            progress(len(results), len(segments))
    notes = [note for source, each in zip(segments, results, strict=True) for note in _notes(source, each)]
    return [each.best for each in results], (*languages, notes)


def _beginning(segments: Sequence[Marked]) -> str:
    texts, size = [], 0
    for segment in segments:
        if size > DECIDING:
            break
        texts.append(segment.text)
        size += len(segment.text) + 1
    return "\n".join(texts)[:DECIDING]


def _notes(source: Marked, found: MarkedResult) -> Iterator[str]:
    where = _shown(source.text)
    for warning in warnings_of(found.result):
        yield f"{where}: {warning}"
    if found.unaligned:
        words = ", ".join(map(_shown, found.unaligned))
        yield f"{where}: no word of the translation is aligned with {words}: check the place of its markup"


def _shown(text: str) -> str:
    """The beginning of a text, in quotation marks."""
    return f"“{text if len(text) <= SHOWN else f'{text[:SHOWN]}…'}”"


# --- names ------------------------------------------------------------------------------------------------


def output_beside(source: Path, from_language: str, to_language: str) -> Path:
    """The default name of a translation: `notes.zh.md`, beside `notes.md` or `notes.en.md`."""
    stem = source.stem.removesuffix(f".{from_language}") if from_language else source.stem
    return source.with_name(f"{stem}.{to_language or 'translated'}{source.suffix}")


def check_output(source: Path, output: Path, *, force: bool) -> None:
    """Check that a translation can be written.

    Raises:
        ConfigError: it would replace its source or another file, or change the format.
    """
    if output.suffix.lower() != source.suffix.lower() and format_of(output) != format_of(source):
        problem = f"{output}: a translation has the format of its source, {source.suffix}"
        raise ConfigError(problem, code="other_format")
    if output.exists():
        if output.samefile(source):
            raise ConfigError(f"{output}: is the source; name another file", code="same_file")
        if not force:
            problem = f"{output}: exists; `force` replaces it, or name another file with `output`"
            raise ConfigError(problem, code="file_exists")


@dataclass(frozen=True, slots=True)
class Job:
    """A file to translate, and where."""

    source: Path
    output: Path | None


def jobs(sources: Sequence[Path], output: Path | None) -> tuple[list[Job], list[Path]]:
    """The files to translate, those of folders included, and the files of folders that are no documents.

    Raises:
        ConfigError: several files have one output, or a folder has none.
        CorpusError: a source is missing, or not of a known format.
    """
    to_folder = output is not None and (output.is_dir() or len(sources) > 1 or not output.suffix)
    if len(sources) > 1 and output is not None and output.is_file():
        problem = f"{output}: is a file, and there are {len(sources)} sources: name a folder"
        raise ConfigError(problem, code="one_output")
    found: list[Job] = []
    skipped: list[Path] = []
    for source in sources:
        if not source.is_dir():
            format_of(source)
            if missing := path_problem(source):
                raise CorpusError(missing, code="missing_file")
            found.append(Job(source, output / source.name if output and to_folder else output))
            continue
        if output is None:
            problem = f"{source}: is a folder; name a folder for its translations with `output`"
            raise ConfigError(problem, code="no_output")
        target = output / source.name if len(sources) > 1 else output
        for path in _files(source, target):
            if is_document(path):
                found.append(Job(path, target / path.relative_to(source)))
            else:
                skipped.append(path)
    outputs = [job.output for job in found if job.output is not None]
    if len(set(outputs)) < len(outputs):
        twice = next(path for path in outputs if outputs.count(path) > 1)
        raise ConfigError(f"{twice}: is the output of two sources", code="one_output")
    if not found:
        raise CorpusError(f"{sources[0]}: has no document of a known format ({EXTRA})", code="no_documents")
    return found, skipped


def _files(folder: Path, output: Path) -> Iterator[Path]:
    """The files of a folder and its sub-folders, without hidden ones and those of the output."""
    outside = output.resolve()
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.resolve() == outside:
            continue
        if path.is_dir() and not path.is_symlink():
            yield from _files(path, output)
        elif path.is_file():
            yield path


def translate_files(
    translator: MakeTranslator,
    files: Sequence[Job],
    *,
    force: bool = False,
    progress: Callable[[Path], Progress] | None = None,
    **options: Any,
) -> Iterator[FileReport]:
    """Translate files one after another; one that fails is reported, and the others are translated."""
    for job in files:
        try:
            if job.output is not None:
                make_folder(job.output.parent)
            shown = progress(job.source) if progress else None
            yield translate_file(translator, job.source, job.output, force=force, progress=shown, **options)
        except RegardError as error:
            yield FileReport(source=job.source, output=None, error=str(error))
        except OSError as error:
            yield FileReport(source=job.source, output=None, error=f"{job.source}: {reason(error)}")


def summary(report: FileReport) -> str:
    """One line about a file that was translated."""
    names = " into ".join(language_name(code) for code in (report.from_language, report.to_language) if code)
    found = counted(report.segments, "segment")
    kept = f", {report.unchanged:,} of them unchanged" if report.unchanged else ""
    return f"{report.source} → {report.output}: {found}{f' from {names}' if names else ''}{kept}"
