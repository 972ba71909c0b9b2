"""`regard translate`: text in, text out, line by line."""

from __future__ import annotations

import json
import sys
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import asdict
from itertools import accumulate, chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.shared.options import BUNDLED, ModelOption, RayOption, RunFlags, with_flags_of
from regard.cli.shared.reporting import MOST_WARNINGS, UNREADABLE_INPUT, DocumentProgress, print_lines
from regard.cli.shared.writing import load_models, written
from regard.config.checking import counted
from regard.errors import ConfigError
from regard.text.languages import DECIDING, language_name

if TYPE_CHECKING:  # the verb's help must not wait for engines
    from regard.engine.direction import Directions
    from regard.engine.translator import OutputLine
    from regard.tasks.loaded.translator import LoadedTranslator
    from regard.text.files.lines import InputLine


@with_flags_of
def translate(
    context: typer.Context,
    texts: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TEXT|FILE",
            help="Texts or documents to translate; by default, lines of standard input.",
        ),
    ] = None,
    *,
    models: ModelOption = BUNDLED,
    source: Annotated[
        str | None,
        typer.Option(metavar="CODE", help="Source language; default: detected."),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            metavar="CODE",
            help="Target language; default: detected, once for all of standard input.",
        ),
    ] = None,
    n_best: Annotated[int, typer.Option(help="Translations per line, separated by tabs.")] = 1,
    glossary: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="TSV or CSV with a phrase and its translation per line; `run|runs` lists alternatives, "
            "`=` copies the phrase.",
        ),
    ] = None,
    prefix: Annotated[
        str | None, typer.Option(metavar="TEXT", help="How each translation must begin.")
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="Copy this untranslated wherever it occurs; may be repeated."),
    ] = None,
    check_numbers: Annotated[
        bool,
        typer.Option(
            "--check-numbers/--no-check-numbers",
            help="Compare the values of both texts: amounts, dates, times; correct or report changed ones.",
        ),
    ] = True,
    too_long: Annotated[
        str,
        typer.Option(metavar="WAY", help="For sentences that are too long: split, or error."),
    ] = "split",
    alignment: Annotated[bool, typer.Option("--alignment", help="Add word alignments; with --json.")] = False,
    scores: Annotated[
        bool, typer.Option("--scores", help="Print the score and a tab before each translation.")
    ] = False,
    sentences: Annotated[
        bool,
        typer.Option("--sentences", help="Translate each sentence of a line separately; list markers stay."),
    ] = False,
    markup: Annotated[
        bool,
        typer.Option(
            "--markup/--no-markup",
            help="Keep inline markup of texts (`<b>`, `**`, links) at its words, or read it as text.",
        ),
    ] = True,
    shortlist: Annotated[
        bool,
        typer.Option(
            "--shortlist",
            help="Search among likely tokens only, where the model has a list of them: faster on CPUs, but "
            "an output depends a little on the other lines, and a test set loses about 0.1 BLEU.",
        ),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="PATH",
            help="Where to write translated documents: a file, or a folder for several; "
            "default: beside each, as notes.zh.md.",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace existing translations of documents.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Print which engine runs.")] = False,
    ray: RayOption = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="With --ray: workers, with --threads cores each; default: all cores."),
    ] = None,
    shards: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="With --ray: store finished shards here, and resume from them."),
    ] = None,
    flags: RunFlags,
) -> None:
    """Translate texts, documents, or each line of standard input.

    A document (.html, .md, .txt, .docx, .srt and others) is written with its structure, in the same format;
    of a folder, all documents are translated, with --output. A report is printed on stderr, or with --json as
    JSON. Without documents:

    Line i of the output belongs to line i of the input. A line that cannot be translated gives an empty line
    and a message on stderr, and the exit status is 2. A model of both directions translates a file or a pipe
    in one of them: the language of its first lines decides, or --target. Each TEXT, and each line that is
    typed on a terminal, is detected by itself.
    """
    if alignment and not flags.as_json:
        raise ConfigError("--alignment needs --json", code="missing_option")
    if ray is None and (workers or shards):
        raise ConfigError("--workers and --shards need --ray local, or an address", code="missing_option")
    options = {
        "source": source,
        "to": target,
        "n_best": n_best,
        "glossary": glossary,
        "prefix": prefix,
        "keep": keep or (),
        "check_numbers": check_numbers,
        "markup": markup,
        "shortlist": shortlist,
        "too_long": too_long,
        "alignment": alignment,
        "token_scores": scores and flags.as_json,
        "whole_lines": not sentences,
        **flags.search(),
    }
    if files := context.command.files:  # type: ignore[attr-defined]
        unusable = {"--ray": ray, "--scores": scores, "--alignment": alignment, "--n-best": n_best > 1}
        if wrong := next((flag for flag, given in unusable.items() if given), None):
            raise ConfigError(f"{wrong} is not for documents", code="option_of_texts")
        options |= {"whole_lines": False, "token_scores": False}
        _translate_files(load_models("translate", models, flags), files, output, force, options, flags)
        return
    if force:
        raise ConfigError("--force is for documents", code="missing_option")
    from regard.engine.translator import mark_code

    loaded = load_models("translate", models, flags)
    is_document = texts is None and loaded.task.name == "translate"  # other tasks read single lines
    undecided = is_document and not sys.stdin.isatty() and not loaded.directions.requested(source, target)
    blocks = _input(texts, unpacked=ray is not None, opening=undecided)
    blocks = mark_code(blocks) if is_document else blocks
    document = _Document(loaded.directions, blocks) if undecided else None
    if document is not None:
        blocks, options["to"] = iter(document), document.target
    if ray is None:
        lines = written(loaded, blocks, options, scores=scores, as_json=flags.as_json)
    else:
        lines = _on_cluster(models, flags, options, scores, blocks, (ray, workers, shards))
    notes = document.notes if document else tuple
    with closing(lines):
        print_lines(lines, progress=texts is None, engines=verbose, at_end=notes)


def _translate_files(
    loaded: LoadedTranslator,
    files: list[Path],
    output: Path | None,
    force: bool,
    options: dict[str, Any],
    flags: RunFlags,
) -> None:
    """Translate documents, and print a report of each."""
    from regard.tasks.loaded.files import jobs, summary, translate_files

    loaded.require("translate")
    found, skipped = jobs(files, output)
    failed = 0
    with DocumentProgress(len(found)) as progress:
        for report in translate_files(loaded.translator, found, force=force, progress=progress.of, **options):
            failed += bool(report.error)
            if flags.as_json:
                progress.print_result(json.dumps(asdict(report), ensure_ascii=False, default=str))
                continue
            progress.print(report.error or summary(report))
            shown = report.notes[:MOST_WARNINGS]
            for note in [
                *shown,
                *(
                    [f"{len(report.notes) - len(shown):,} more like these"]
                    if report.notes[len(shown) :]
                    else []
                ),
            ]:
                progress.print(f"  {note}")
        if skipped and not flags.as_json:
            names = ", ".join(path.name for path in skipped[:5]) + (", …" if len(skipped) > 5 else "")
            progress.print(f"skipped {counted(len(skipped), 'file')} of other formats: {names}")
    if failed:
        raise typer.Exit(UNREADABLE_INPUT)


def _input(texts: list[str] | None, *, unpacked: bool, opening: bool) -> Iterator[list[InputLine]]:
    """The lines of input; for a cluster, standard input may be compressed."""
    from regard.cli.shared.input_lines import input_blocks

    if texts is not None or not unpacked:
        return input_blocks(texts, opening=opening)
    from regard.scale.corpus import lines_of
    from regard.text.files import STDIN

    return lines_of([STDIN])


class _Document:
    """Lines that are translated in one direction, which the first ones decide."""

    def __init__(self, directions: Directions, blocks: Iterator[list[InputLine]]) -> None:
        """Read the first lines, and print the direction."""
        self._directions, self._n_kept = directions, 0
        first = next((block for block in blocks if block), [])
        self._blocks = chain([first], blocks)
        sizes = accumulate(len(line.text) + 1 for line in first)
        opening = [line for line, size in zip(first, sizes, strict=True) if size <= DECIDING] or first[:1]
        text = "\n".join(line.text for line in opening if not line.is_code)
        self._direction = directions.of_document(text[:DECIDING])
        if self._direction is not None:
            names = [language_name(code or "") for code in (self._direction.source, self._direction.target)]
            how = "detected from the first lines; --target CODE chooses"
            print(f"regard: translating from {names[0]} into {names[1]}, {how}", file=sys.stderr, flush=True)

    @property
    def target(self) -> str | None:
        """The target language; None if every line has to decide for itself."""
        return None if self._direction is None else self._direction.target

    def __iter__(self) -> Iterator[list[InputLine]]:
        for block in self._blocks:
            if self._direction is not None:
                self._n_kept += sum(
                    self._directions.already_translated(line.text, self._direction)
                    for line in block
                    if not line.is_code
                )
            yield block

    def notes(self) -> Iterator[str]:
        """What to report when all lines are translated."""
        if self._n_kept:
            language = language_name(self.target or "")
            yield f"{counted(self._n_kept, 'line')} already in {language}, kept unchanged"


def _on_cluster(
    models: list[Path],
    flags: RunFlags,
    options: dict[str, Any],
    scores: bool,
    blocks: Iterator[list[InputLine]],
    cluster: tuple[str, int | None, Path | None],
) -> Generator[list[OutputLine]]:
    """Translate with the workers of a Ray cluster, shard by shard."""
    from regard.scale.corpus import CorpusRun
    from regard.scale.workers import WorkerSettings

    address, workers, shards = cluster
    settings = WorkerSettings(
        engine=flags.engine,  # type: ignore[arg-type]
        device=flags.device,
        threads=flags.threads or 1,
        scores=scores,
        as_json=flags.as_json,
        options=options,
    )
    run = CorpusRun(models, settings, address=address, workers=workers, shards=shards)
    try:
        yield from run.written(blocks)
    except (KeyboardInterrupt, GeneratorExit):  # the latter when printing was interrupted
        print(f"regard: finished shards are kept; resume with --shards {run.shards}", file=sys.stderr)
        raise
