"""How the words of a verb are read: an option once, a model in one place, and a text that is no path.

The model of a verb is the value of `--model` or `-m`. Without that option it is the first word that is not an
option, wherever options stand, if that word is a model folder, the folder of a run, or the name of a bundled
model. A verb that needs a model takes its first word in any case, as does one with a word too many. What
follows `--` is text.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

from typer.core import TyperArgument, TyperCommand, TyperOption

from regard import bundled
from regard.documents.formats import is_document
from regard.errors import BundleError, ConfigError
from regard.text.files import STDIN, path_problem

FILE_SUFFIXES = (
    *(
        ".arrow",
        ".csv",
        ".doc",
        ".docx",
        ".epub",
        ".gz",
        ".htm",
        ".html",
        ".json",
        ".jsonl",
        ".md",
        ".odt",
        ".parquet",
    ),
    *(
        ".pdf",
        ".po",
        ".rtf",
        ".safetensors",
        ".srt",
        ".tmx",
        ".toml",
        ".tsv",
        ".txt",
        ".vtt",
        ".xhtml",
        ".xlf",
    ),
    *(".xliff", ".xml", ".xz", ".yaml", ".yml", ".zip", ".zst"),
)
"""Suffixes by which a word is taken for the name of a file, although there is none."""
RUN_FOLDERS = ("runs", "models")
"""Folders where models usually are, so that a path in them is recognised from any folder."""
SEPARATOR = "--"
LANGUAGES = {"--from": "--source", "--to": "--target"}
"""Options of languages under the names that they have in other programs."""
_SUFFIX = re.compile(r"\.[A-Za-z]\w*$")
"""How a word ends that may be the name of a file: "Hello." and 3.14 are none."""
_ROOTED = re.compile(r"(?:\.{1,2}|~|[A-Za-z]:)[/\\]|/[\w.-]", re.ASCII)
"""How a path begins that is not relative to this folder, or says that it is."""


class _Word(str):
    """A word of a command line; equal words at two places are two objects."""

    __slots__ = ()


class GivenWords(NamedTuple):
    """The words of a command line."""

    options: list[str]
    """Options and their values, and `--` if there is one."""
    words: list[str]
    """The other words before `--`."""
    literal: list[str]
    """The words after it."""
    values: dict[str, Any]
    """The values of the options that are given, by parameter."""
    times: Mapping[Any, int]
    """How often each option is given."""

    def joined(self, words: list[str] | None = None) -> list[str]:
        """The same command line with its options first, and perhaps with other words."""
        return [*self.options, *(self.words if words is None else words), *self.literal]


class Command(TyperCommand):
    """A verb. An option that takes one value is given at most once."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words.

        Raises:
            ConfigError: an option is repeated, or a word cannot be what it is taken for.
        """
        given = self._given(ctx, args)
        if ctx.resilient_parsing or "help" in given.values:
            return super().parse_args(ctx, args)
        for option, times in given.times.items():
            if times > 1 and isinstance(option, TyperOption) and not option.multiple:
                flag = max(option.opts, key=len)
                raise ConfigError(f"{flag} is given {times} times: give it once", code="repeated_option")
        return super().parse_args(ctx, self.arranged(given, ctx.info_name or ""))

    def arranged(self, given: GivenWords, verb: str) -> list[str]:  # noqa: ARG002 - for verbs with a model
        """The command line to parse."""
        return given.joined()

    def _given(self, ctx: Any, args: list[str]) -> GivenWords:
        """The words of a command line, which its options alone tell apart."""
        options: list[Any] = [param for param in self.params if isinstance(param, TyperOption)]
        tokens: list[str] = list(map(_Word, args))
        parser = TyperCommand(None, params=options).make_parser(ctx)
        try:
            values, words, order = parser.parse_args(list(tokens))
        except Exception as error:
            # Of click's errors; some versions of typer contain a copy of click.
            option = getattr(error, "option_name", None) if type(error).__name__ == "NoSuchOption" else None
            meant = LANGUAGES.get(option or "")
            if not any(meant in each.opts for each in options):
                raise
            problem = f"{option}: there is no such option; {meant} CODE gives the language"
            raise ConfigError(problem, code="unknown_option") from error
        places = {id(word) for word in words}
        rest = [token for token in tokens if id(token) not in places]
        ends = rest[-1] if rest and rest[-1] == SEPARATOR else None
        n_before = (
            len(words) if ends is None else [id(token) for token in tokens].index(id(ends)) - len(rest) + 1
        )
        return GivenWords(rest, words[:n_before], words[n_before:], values, Counter(order))


class ModelCommand(Command):
    """A verb that runs a model, which may come first, without `--model`; the other words are files."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        (self._model,) = (param for param in self.params if "--model" in param.opts)
        self._model.help += " It may also come first, without --model."  # type: ignore[attr-defined]

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The words of the usage line, with the model."""
        options, *others = super().collect_usage_pieces(ctx)
        return [options, "MODEL" if self._model.required else "[MODEL]", *others]

    def arranged(self, given: GivenWords, verb: str) -> list[str]:
        """The command line with its model behind `--model`.

        Raises:
            ConfigError: models are named in both ways.
        """
        option, words = given.values.get(self._model.name or "", ()), given.words
        named = [option] if isinstance(option, str) else option
        sizes = [param.nargs for param in self.params if isinstance(param, TyperArgument)]
        has_too_many = -1 not in sizes and len(words) + len(given.literal) > sum(sizes)
        first, rest = words[:1], words[1:]
        if not first or not (is_model(*first) or (not named and (self._model.required or has_too_many))):
            self.check(words, shlex.join(["regard", verb, *_as_options(named)]))
            return given.joined()
        if named:
            problem = f"{first[0]} is a model, and --model names another: remove one of them"
            raise ConfigError(problem, code="two_models")
        self.check(rest, shlex.join(["regard", verb, *first]))
        return [*_as_options(first), *given.joined(rest)]

    def check(self, words: list[str], command: str) -> None:
        """Check what is not the model; `command` is for advice."""


class TextsCommand(ModelCommand):
    """A verb that runs a model on texts; a text that is a path, or looks like one, is refused."""

    reads_lines = True
    """Whether it also reads standard input."""
    translates_files = False
    """Whether it also translates documents."""

    def check(self, words: list[str], command: str) -> None:
        """Check that no text is a path.

        Raises:
            ConfigError: one is.
        """
        for word in words:
            if word == STDIN and self.reads_lines:
                advice = f"`{command}` reads standard input, `{command} -- -` takes it as a text"
                raise ConfigError(f"{word}: is no text; {advice}", code="path_as_text")
            if problem := path_as_text(word):
                advice = f"`{command} -- {shlex.quote(word)}` takes it as a text"
                if self.translates_files and Path(word).is_dir():
                    advice = f"`{command} {shlex.quote(word)} --output FOLDER` translates its files, {advice}"
                if self.reads_lines and Path(word).is_file():
                    advice = f"`{command} < {shlex.quote(word)}` reads its lines, {advice}"
                between = " " if problem.endswith("?") else "; "
                raise ConfigError(f"{problem}{between}{advice}", code="path_as_text")


class DocumentsCommand(TextsCommand):
    """A verb that runs a model on texts, or on documents and folders of them."""

    translates_files = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.files: list[Path] = []
        """The documents and folders that are named instead of texts."""

    def arranged(self, given: GivenWords, verb: str) -> list[str]:
        """The command line with its model behind `--model`.

        Raises:
            ConfigError: models are named in both ways, or a text is a path.
        """
        self.files, self._has_output = [], given.values.get("output") is not None
        if self._has_output and given.literal:
            raise ConfigError("--output is for files, not for texts", code="output_of_texts")
        return super().arranged(given, verb)

    def check(self, words: list[str], command: str) -> None:
        """Check that the words are texts, or files.

        Raises:
            ConfigError: they are neither.
        """
        if self._has_output:
            problems = [path_problem(word) or "" for word in words if not Path(word).is_dir()]
            if any(problems):
                raise ConfigError(next(filter(None, problems)), code="missing_file")
            self.files = [Path(word) for word in words]
            if not words:
                raise ConfigError("--output needs the names of files to translate", code="no_files")
        elif words and all(is_document(word) and _existing(word) and Path(word).is_file() for word in words):
            self.files = [Path(word) for word in words]
        else:
            super().check(words, command)


class TextCommand(TextsCommand):
    """A verb that runs a model on one text, and reads no standard input."""

    reads_lines = False


def _as_options(models: Iterable[str]) -> Iterator[str]:
    """Models behind `--model` each."""
    return (word for model in models for word in ("--model", model))


def is_model(word: str) -> bool:
    """Whether a word is a model folder, the folder of a run, or the name of a bundled model."""
    if _existing(word) is None and word not in (bundled.DEFAULT, *bundled.names()):
        return False
    from regard.bundle.manifest import MANIFEST
    from regard.engine.loading import model_folder

    return (model_folder(word) / MANIFEST).exists()


def path_as_text(word: str) -> str | None:
    """Why a word is no text: it exists as a path, or it looks like one; None if it is a text."""
    if is_model(word):
        return f"{word}: is a model; name it first, or with --model"
    if (path := _existing(word)) is None:
        if name := _model_meant(word):
            return f"{word}: is no model; did you mean {name}?"
        problem = path_problem(word) if _looks_like_path(word) else None
        # As it was typed, with its ./
        return problem and word + problem.removeprefix(str(Path(word)))
    if path.is_dir():
        from regard.bundle.manifest import read_manifest

        try:
            read_manifest(path)
        except BundleError as error:
            return f"{word}: {error.problems[0]}"
    return f"{word}: is a file"


def _looks_like_path(word: str) -> bool:
    """Whether a word begins like a path, ends like a file, or is like a name in this folder.

    Slashes and dots alone are no sign: and/or, 1/2, 3.14, https://a.org and "Hello." are texts.
    """
    if "://" in word or word.startswith("www."):
        return False
    # A Chinese sentence has no spaces, and may end like a file.
    ends_like_file = word.lower().endswith(FILE_SUFFIXES) and word.isascii()
    path = Path(word)
    if any(map(str.isspace, word)):
        return ends_like_file and (_ROOTED.match(word) is not None or _is_like_one_of(path))
    if ends_like_file:
        return True
    if _ROOTED.match(word):
        # /help and /kæt/ are texts.
        return len(path.parts) > 2 or not path.is_absolute() or _is_like_one_of(path)
    first, *others = path.parts or ("",)
    if path.is_absolute():
        return False
    if others:
        folder = _existing(first)
        is_folder = _is_like_one_of(Path(first)) if folder is None else folder.is_dir()
        return first in RUN_FOLDERS or is_folder
    return _SUFFIX.search(word) is not None and _is_like_one_of(path)


def _model_meant(word: str) -> str | None:
    """The bundled model that a word seems to mean: zh_en, en-zh, zh-enn; None if there is none."""
    codes = re.split("[-_]", word.lower())
    if len(codes) != 2:
        return None
    spellings = {"-".join(codes), "-".join(reversed(codes))}
    return next((name for name in bundled.names() if get_close_matches(name, spellings, cutoff=0.75)), None)


def _is_like_one_of(path: Path) -> bool:
    """Whether the folder of a path has an entry with nearly its name."""
    with suppress(OSError):
        return bool(get_close_matches(path.name, [entry.name for entry in path.parent.iterdir()], 1, 0.75))
    return False


def _existing(word: str) -> Path | None:
    """The path that a word is, if it exists; a text may be longer than any path."""
    with suppress(OSError):
        return path if word and (path := Path(word)).exists() else None
    return None
