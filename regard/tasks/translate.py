"""The task `translate`: from pairs of files, a table, standard input or a built-in corpus."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from regard.bundle import Description, describe_bundle, load_bundle
from regard.bundle.bundle import add_file
from regard.bundle.manifest import SHORTLIST
from regard.config import RunConfig, registries
from regard.data.reading import keep_stdin, parallel_corpus, refuse_shared_files, table_corpus
from regard.data.reading.columns import Languages, language_of_column, pair_columns
from regard.data.store import Store
from regard.decode.shortlist import MOST_CELLS, SMALLEST_VOCABULARY, Pairs, Shortlist, learn
from regard.durable import write_atomically
from regard.engine.loading import EngineName
from regard.errors import ConfigError, CorpusError, RequestError
from regard.exchange.ctranslate2.weights_file import Quantisation
from regard.look.alignment.alignment import save_aligning_heads
from regard.tasks.data_folder import TEXT
from regard.tasks.loaded.translator import LoadedTranslator
from regard.tasks.pairs import SHOWN, PairsTask, inherited
from regard.tasks.task import SET_NAMES, DataFiles, Job, Prepared, TestResult
from regard.text.files import STDIN, display_name, path_problem
from regard.text.files.parallel import read_parallel
from regard.text.files.tables import TABLE_SUFFIXES, Column, table_kind
from regard.text.languages import known_code, language_of
from regard.text.normalisation import composed
from regard.text.vocabularies import read_vocabulary
from regard.text.vocabularies.vocabulary import Vocabulary

if TYPE_CHECKING:
    from regard.data.numerals import SplitName
    from regard.scores.translation import TranslationScore
    from regard.tasks.pair_preparation import PairsSource

NUMERALS = "numerals"
"""The built-in corpus: Chinese and English numbers, dates, times and prices. Also its preset."""
NUMERALS_SIZES: dict[SplitName, int] = {"train": 80_000, "valid": 1_000, "test": 1_000}
LINKED = 3000
"""Training pairs from which the links are learned by which heads are measured."""
_BYTE = re.compile(r"<0x[0-9A-F]{2}>")
"""A piece for a single byte."""
WHICH_COLUMNS = "name two with `columns`, by name as in zh,en or by number as in 1,2"


@registries.tasks.register("translate")
class Translate(PairsTask):
    """Translation from one language into another, or both ways."""

    name = "translate"
    columns = ("source", "target")
    options = frozenset({"columns", "languages"})
    builtins = (NUMERALS,)

    def configured(self, job: Job, written: Sequence[str]) -> RunConfig:
        """With the languages of the files, and the search of the model to start from."""
        check_files(job.files)
        config, start = job.config, job.start
        known = (config.task.source, config.task.target)
        languages = ("zh", "en") if job.files.builtin else languages_of(job, known)
        config = replace(config, task=replace(config.task, source=languages[0], target=languages[1]))
        config = inherited(job, config, written)
        if start is not None and config.task.has_tags:
            _check_language_tokens(start.folder, start.subwords, languages)
        return config

    def default_folder(self, job: Job) -> Path:
        """`runs/` and the languages, as in runs/zh-en."""
        task = job.config.task
        return Path("runs") / (job.files.builtin or f"{task.source}-{task.target}")

    def open_files(self, job: Job) -> dict[str, Any]:
        """Every set that is two files in step, or tables."""
        task, on_invalid = job.config.task, job.config.data.on_invalid
        sets = {name: files for name, files in job.files.sets.items() if str(files[0]) != STDIN}
        opened = {}
        for name, files in sets.items():
            if are_tables(files, job.files.columns):
                columns = columns_of(files, job.files, (task.source, task.target))
                opened[name] = table_corpus(*files, columns=columns, on_invalid=on_invalid)
            else:
                opened[name] = parallel_corpus(*files, on_invalid=on_invalid)
        refuse_shared_files({SET_NAMES[name]: each for name, each in opened.items()})
        return opened

    def source(self, job: Job, opened: dict[str, Any]) -> PairsSource:
        """The files; or standard input or a built-in corpus, which are copied to the run's folder."""
        from regard.tasks.pair_preparation import PairsSource

        task, texts, corpora = job.config.task, job.folder / "data" / TEXT, dict(opened)
        if job.files.builtin:
            corpora = numerals(texts, job.config.training.seed)
        elif str(job.files.train[0]) == STDIN:
            kept = keep_stdin(texts / "stdin.gz", fixed=job.began)
            on_invalid = job.config.data.on_invalid
            corpora["train"] = table_corpus(kept, columns=job.files.columns, on_invalid=on_invalid)
        assert task.source is not None, "`configured` has set the languages"
        assert task.target is not None, "`configured` has set the languages"
        return PairsSource(
            **corpora,
            languages=(task.source, task.target),
            both_directions=task.both_directions,
            language_tag=task.language_tag,
            **job.source_settings(),
        )

    def test(self, job: Job, prepared: Prepared) -> TestResult:
        """Translate the test set in each direction; also measure which heads align words."""
        from regard.scores.texts import example_lines
        from regard.scores.translation import score_translations

        _measure_aligning_heads(job, prepared)
        _learn_shortlist(job, prepared)
        model = scoring_translator(describe_bundle(job.folder / "best"), device=str(job.device))
        scores: dict[str, TranslationScore] = {}
        lines: list[str] = []
        for way, sides in zip(model.directions.known, ((0, 1), (1, 0)), strict=False):
            sources, references = ([composed(row[side]) for row in prepared.test] for side in sides)
            outputs = model.translate_lines(sources, to=way.target).lines
            score = score_translations(outputs, references, way.target)
            scores[f"{way.source}-{way.target}"] = score
            name = f"{way.source}-{way.target}: " if len(model.directions.known) > 1 else ""
            lines += [f"{name}{score}", *example_lines(sources[:SHOWN], outputs[:SHOWN], references[:SHOWN])]
        one = next(iter(scores.values()))
        several = len(scores) > 1
        kept = {name: asdict(score) for name, score in scores.items()} if several else asdict(one)
        return TestResult(
            score=scores if several else one,
            record={"decoding": asdict(job.config.decoding), **kept},
            text="\n".join(lines),
            example=next(iter(prepared.test), ("",))[0],
        )

    def evaluate(
        self,
        model: Description,
        files: Sequence[Path],
        *,
        columns: Sequence[Column] = (),
        beam_size: int | None = None,
    ) -> TranslationScore:
        """Translate the lines of a file, and score them against those of another."""
        if len(files) != 2 or columns:
            raise ConfigError(
                f"{model.folder}: translates, and is scored on two files, SRC and REF",
                code="wrong_number_of_files",
            )
        from regard.scores.translation import score_translations

        language = language_of(files[1]) or model.task.target
        sources, references = lines_in_step(files)
        made = scoring_translator(model).translate_lines(sources, to=language, beam_size=beam_size)
        return score_translations(made.lines, references, language)

    def next_commands(self, run: Path, example: str) -> list[str]:
        """Translate, and read the model's card."""
        return [*super().next_commands(run, example), f"regard info {shlex.quote(str(run / 'best'))}"]


def scoring_translator(
    model: Description, *, engine: EngineName = "torch", device: str = "auto"
) -> LoadedTranslator:
    """A translator to be scored: by default in float32 with torch, so that a run and `evaluate` agree."""
    quantisation: Quantisation | None = "float32" if engine == "torch" else None
    return LoadedTranslator([model], engine=engine, device=device, quantisation=quantisation)


def lines_in_step(files: Sequence[Path]) -> list[list[str]]:
    """The lines of files of equal length, with accents composed as in training.

    Raises:
        CorpusError: a line is too long, the files have no lines, or not the same number.
    """
    columns: list[list[str]] = [[] for _ in files]
    for block in read_parallel(files):
        for i, why in block.unusable.items():
            place = f"{block.name}:{block.first + i}"
            raise CorpusError(f"{place}: {why}, here or in the other file; shorten it", code="line_too_long")
        for column, lines in zip(columns, block.columns, strict=True):
            column += map(composed, lines)
    if not columns[0]:
        raise CorpusError(f"{display_name(files[0])}: has no lines to score", code="no_usable_rows")
    return columns


def are_tables(files: Sequence[Path], columns: Sequence[Column] = ()) -> bool:
    """Whether files are tables with both sides, not a file for each side."""
    return (len(files) == 1 and bool(columns)) or all(table_kind(file) for file in files)


def columns_of(paths: Sequence[Path], files: DataFiles, languages: Languages) -> tuple[Column, ...]:
    """The columns of tables: as given, or as the names of columns say.

    Raises:
        CorpusError: the choice is unclear.
    """
    return files.columns or pair_columns(paths[0], languages)


def check_files(files: DataFiles) -> None:
    """Check that the sets are pairs of files, tables, or built in; nothing is opened.

    Raises:
        ConfigError: with every problem.
    """
    if files.builtin:
        return
    held_out = {"valid": files.valid, "test": files.test}
    problems = _training_problems(files.train, files.columns)
    for name, paths in held_out.items():
        problems += _held_out_problems(name, paths)
    sets = [each for each in (files.train, *held_out.values()) if each]
    if files.columns and not any(are_tables(each, files.columns) for each in sets):
        problems.append("`columns` is for a table: one file, or - for standard input")
    if problems := problems or _column_problems(files.columns):
        raise ConfigError(problems, code="bad_files")


def _training_problems(files: tuple[Path, ...], columns: tuple[Column, ...]) -> list[str]:
    if len(files) == 2 and STDIN in map(str, files):
        return [f"standard input is a table with both sides; leave out the other file, and {WHICH_COLUMNS}"]
    if len(files) == 1 and not columns and str(files[0]) == STDIN:
        return [f"{display_name(files[0])}: {WHICH_COLUMNS}"]
    if files and (len(files) == 2 or are_tables(files, columns)):
        return []
    if len(files) == 1 and files[0].is_dir():
        return [f"{files[0]}: is a folder without a data set; name two files, SRC and TGT, or a table"]
    return [f"give two files, SRC and TGT, a table ({TABLE_SUFFIXES}), or `builtin=numerals`"]


def _held_out_problems(name: str, files: tuple[Path, ...]) -> list[str]:
    if STDIN in map(str, files):
        return [f"`{name}` takes files; standard input is for the training set"]
    if files and len(files) != 2 and not all(table_kind(file) for file in files):
        return [f"`{name}` takes two files, SRC and TGT, or a table ({TABLE_SUFFIXES})"]
    return []


def _column_problems(columns: tuple[Column, ...]) -> list[str]:
    if columns and (len(columns) != 2 or not all(columns) or columns[0] == columns[1]):
        return [f"{','.join(map(str, columns))} are not two different columns; {WHICH_COLUMNS}"]
    return []


def languages_of(job: Job, known: tuple[str | None, str | None] = (None, None)) -> tuple[str, str]:
    """The two languages: as given, or from the names of columns or files.

    Raises:
        ConfigError: a language cannot be inferred from a name.
        CorpusError: which columns of a table are meant is unclear.
    """
    files = job.files
    if tables := are_tables(files.train, files.columns):
        source, target = (each or before for each, before in zip(files.languages, known, strict=True))
        columns = columns_of(files.train, files, (source, target))
        named = [(f"column {column}", language_of_column(str(column))) for column in columns]
        if not files.columns:
            job.report(f"{display_name(files.train[0])}: the columns are {columns[0]} and {columns[1]}")
    else:
        named = [(str(file), language_of(file)) for file in files.train]
    found, problems = [], []
    for i, (name, code) in enumerate(named):
        given = files.languages[i] or known[i]
        found.append((known_code(given) or given) if given else code or "")
        if not found[-1]:
            missing = None if tables else path_problem(name)
            option = ("source", "target")[i]
            unknown = f"{name}: the name does not say its language; give `{option}`, as in `{option}=en`"
            problems.append(missing or unknown)
        elif code and code.split("-")[0] != found[-1].split("-")[0]:
            job.report(f"{name}: the name says {code}; taken as {found[-1]}, as given")
    if problems:
        raise ConfigError(problems, code="unknown_language")
    return found[0], found[1]


def _check_language_tokens(folder: Path, subwords: bytes | None, languages: Sequence[str]) -> None:
    """Check that the vocabulary of the model to start from has a token for every language.

    Raises:
        ConfigError: it has not.
    """
    assert subwords is not None, "a model without subwords is refused before"
    known = read_vocabulary(subwords).languages
    if missing := [language for language in languages if language not in known]:
        raise ConfigError(
            f"{folder}: its subwords have no token for {' and '.join(missing)}, which says the target "
            "language; train one direction without it, or start from a model that has it",
            code="missing_language_token",
        )


def numerals(folder: Path, seed: int) -> dict[str, Any]:
    """The built-in corpus as files in a folder."""
    from regard.data.numerals import sample

    folder = folder / f"seed-{seed}"
    folder.mkdir(parents=True, exist_ok=True)
    corpora: dict[str, Any] = {}
    for split, size in NUMERALS_SIZES.items():
        paths = [folder / f"{split}.{language}" for language in ("zh", "en")]
        if not all(path.exists() for path in paths):
            pairs = sample(split, size, seed)
            texts = [pair.chinese for pair in pairs], [pair.english for pair in pairs]
            for path, lines in zip(paths, texts, strict=True):
                write_atomically(path, "\n".join(lines) + "\n")
        corpora[split] = parallel_corpus(*paths)
    return corpora


def _measure_aligning_heads(job: Job, prepared: Prepared) -> None:
    """Measure on the validation set which heads of the best model align words, and store it there."""
    from regard.look.alignment.aligner import MEASURED, measure_heads

    best, lesson = job.folder / "best", prepared.lesson
    model: Any = load_bundle(best, job.device).model
    held_out, others = _some(lesson.valid, MEASURED), _some(lesson.train, LINKED)
    try:
        heads = measure_heads(model, prepared.subwords, held_out, others)
    except RequestError as error:  # the model is usable without it
        job.report(f"could not measure which heads align words: {error}")
        return
    save_aligning_heads(best, heads)
    names = ", ".join(f"{layer}.{head}" for layer, head in heads.heads)
    job.report(f"words are aligned by heads {names} (layer.head): {heads.accuracy:.0%} of held-out links")


def _learn_shortlist(job: Job, prepared: Prepared) -> None:
    """Learn from the training pairs which tokens a translation may have, and store it in the best model."""
    subwords = prepared.subwords
    if subwords.vocab_size >= SMALLEST_VOCABULARY:
        found = shortlist_of_pairs(prepared.lesson.train, subwords)
        add_file(job.folder / "best", SHORTLIST, found.to_bytes())


def shortlist_of_pairs(pairs: Pairs, subwords: Vocabulary, most_cells: int = MOST_CELLS) -> Shortlist:
    """The shortlist of pairs as they are trained on: ids, with language tags if the model has them."""
    everything = range(subwords.vocab_size)
    pieces = subwords.pieces(everything)
    return learn(
        pairs,
        subwords.vocab_size,
        special=[i for i in everything if subwords.is_special(i)],
        tags=[subwords.tag_id(language) for language in subwords.languages],
        spelling=[i for i in everything if _BYTE.fullmatch(pieces[i])],
        most_cells=most_cells,
    )


def _some(store: Store, n: int) -> list[tuple[np.ndarray, ...]]:
    """At most `n` pairs from all over a store."""
    return [store[int(i)] for i in np.unique(np.linspace(0, len(store) - 1, n).astype(np.int64))]
