"""The options of translating, generating and classifying; the docstrings are the reference. No torch here."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Any, Literal, TypedDict, TypeVar, get_args

from regard.config import DecodingConfig
from regard.config.checking import did_you_mean
from regard.engine.engines.protocol import SamplingOptions, Search
from regard.errors import RequestError

PastLength = Literal["error", "slide"]
TooLong = Literal["error", "cut"]
SLIDING = 256
"""Default of `max_tokens` in a sliding window, which has no other limit."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TranslateOptions(SamplingOptions):
    """How to translate. None stands for the default of the model folder."""

    to: str | None = None
    """Code of the target language. A model that knows both directions otherwise detects it for each text."""
    source: str | None = None
    """Code of the source language, where it should not be detected; any text is then translated."""
    beam_size: int | None = None
    """Hypotheses kept at each step; 1 is greedy search."""
    n_best: int = 1
    """Translations per text: the best one, and the others as its `alternatives`."""
    length_penalty: float | None = None
    """The paper's alpha: scores are divided by ((5 + length) / 6) ** alpha."""
    prefix: str | None = None
    """How every translation must begin."""
    glossary: Mapping[str, str] | Path | str | None = None
    """Source phrases and what the translation must contain for each occurrence: `run`, one of `run|runs`, or
    `=`, which copies the phrase; or a TSV or CSV file of such pairs."""
    keep: Sequence[str | re.Pattern[str]] = ()
    """What must be copied untranslated wherever it occurs in the source: texts, or patterns, as for URLs."""
    check_numbers: bool = True
    """Compare the values of source and translation: amounts, dates, times; correct or report changed ones."""
    markup: bool = True
    """Keep inline markup (`<b>`, `**`, links) at its words; otherwise the model reads it as text."""
    whole_lines: bool = False
    """Translate lines as they are; split only lines that are too long into sentences."""
    too_long: Literal["split", "error"] = "split"
    """For a sentence longer than the model reads: split it and report that, or raise an error."""
    token_scores: bool = False
    """Return the log-probability of each token; CTranslate2 needs a second run for it."""
    alignment: bool = False
    """Return word alignments; this takes one more forward pass per translation."""
    min_length: int = 0
    """Minimum number of tokens in the translation of a sentence."""
    extra_length: int | None = None
    """How many tokens longer than its sentence a translation may be."""
    sample: bool = False
    """Sample tokens instead of searching for the most likely ones."""
    shortlist: bool = True
    """On CPUs, search among the tokens that the model's shortlist has for the source, if it has one: faster,
    with almost the same outputs. Not in streams, with `prefix`, `min_length` or `sample`, or for phrases."""

    def __post_init__(self) -> None:
        if self.too_long not in ("split", "error"):
            raise RequestError(f"`too_long={self.too_long!r}` is not split or error", code="bad_option")
        minima = {"beam_size": 1, "n_best": 1, "length_penalty": 0, "min_length": 0, "extra_length": 0}
        for name, minimum in minima.items():
            value = getattr(self, name)
            if value is not None and value < minimum:
                raise RequestError(f"`{name}={value}` is less than {minimum}", code="bad_option")

    def search(self, defaults: DecodingConfig) -> Search:
        """The part of these options that engines take."""
        values = {field.name: getattr(self, field.name) for field in fields(Search)}
        for name in ("beam_size", "length_penalty", "extra_length"):
            if values[name] is None:
                values[name] = getattr(defaults, name)
        if self.beam_size is None and not self.sample:
            values["beam_size"] = max(values["beam_size"], self.n_best)
        return Search(**values)


@dataclass(frozen=True, kw_only=True, slots=True)
class GenerateOptions(SamplingOptions):
    """How to continue a text; a temperature of 0 always takes the most likely token."""

    max_tokens: int | None = None
    """Maximum number of new tokens; by default up to the trained length, or 256 in a sliding window."""
    stop: Sequence[str] = ()
    """The text ends before any of these strings."""
    past_length: PastLength = "error"
    """Past the trained length: raise an error, or slide the window and forget the beginning."""

    def __post_init__(self) -> None:
        checks = {
            f"`max_tokens={self.max_tokens}` must be at least 1": self.max_tokens is None
            or self.max_tokens >= 1,
            f"`temperature={self.temperature}` must be at least 0": self.temperature >= 0,
            "a stop string is empty": all(self.stop),
            f"`past_length={self.past_length!r}` is not error or slide": self.past_length
            in get_args(PastLength),
        }
        if problems := [problem for problem, holds in checks.items() if not holds]:
            raise RequestError("; ".join(problems), code="bad_option")

    def room(self, n_prompt: int, max_length: int) -> int:
        """How many tokens may be added to a prompt of `n_prompt` tokens.

        Raises:
            RequestError: the text would grow past the trained length, and the window must not slide.
        """
        if self.past_length == "slide":
            return SLIDING if self.max_tokens is None else self.max_tokens
        # The last token is not read, but the one that starts every text is.
        left = max_length - n_prompt
        wanted = max(1, left) if self.max_tokens is None else self.max_tokens
        if wanted > left:
            raise RequestError(
                f"the model was trained on texts of {max_length:,} tokens; the prompt has {n_prompt:,}, "
                f"which leaves {max(0, left):,}, not {wanted:,}. Ask for fewer tokens, shorten the prompt, "
                "or let the window slide (`past_length='slide'`)",
                code="no_room",
            )
        return wanted


@dataclass(frozen=True, kw_only=True, slots=True)
class ClassifyOptions:
    """How to label texts."""

    too_long: TooLong = "error"
    """For a text longer than the model reads: raise an error, or cut its end off and report that."""
    threshold: float = 0.5
    """With several labels per text: the minimum probability of a label."""

    def __post_init__(self) -> None:
        if not 0 < self.threshold < 1:
            raise RequestError(f"`threshold={self.threshold}` is not between 0 and 1", code="bad_option")
        if self.too_long not in get_args(TooLong):
            raise RequestError(f"`too_long={self.too_long!r}` is not error or cut", code="bad_option")


class SamplingKeywords(TypedDict, total=False):
    """`SamplingOptions` as keyword arguments."""

    temperature: float
    top_k: int
    top_p: float
    min_p: float
    seed: int


class TranslateKeywords(SamplingKeywords, total=False):
    """`TranslateOptions` as keyword arguments, for editors and type checkers; a test compares the two."""

    to: str | None
    source: str | None
    beam_size: int | None
    n_best: int
    length_penalty: float | None
    prefix: str | None
    glossary: Mapping[str, str] | Path | str | None
    keep: Sequence[str | re.Pattern[str]]
    check_numbers: bool
    markup: bool
    whole_lines: bool
    too_long: Literal["split", "error"]
    token_scores: bool
    alignment: bool
    min_length: int
    extra_length: int | None
    sample: bool
    shortlist: bool


class GenerateKeywords(SamplingKeywords, total=False):
    """`GenerateOptions` as keyword arguments."""

    max_tokens: int | None
    stop: Sequence[str]
    past_length: PastLength


class ClassifyKeywords(TypedDict, total=False):
    """`ClassifyOptions` as keyword arguments."""

    too_long: TooLong
    threshold: float


T = TypeVar("T", TranslateOptions, GenerateOptions, ClassifyOptions)
Method = TypeVar("Method", bound=Callable[..., Any])


def options_of(kind: type[T], given: Mapping[str, Any]) -> T:
    """Keyword arguments as options of one kind.

    Raises:
        RequestError: there is no such option, or a value is out of range.
    """
    known = [field.name for field in fields(kind)]
    for name in given:
        if name not in known:
            # The name of its flag, for who knows the command line.
            near = "; did you mean to?" if name == "target" and "to" in known else did_you_mean(name, known)
            problem = f"there is no option {name!r}; the options are {', '.join(known)}{near}"
            raise RequestError(problem, code="unknown_option")
    return kind(**given)


def takes(kind: type[Any]) -> Callable[[Method], Method]:
    """Decorate a method with `**options`, so that `help` and notebooks show options and their defaults."""

    def decorate(method: Method) -> Method:
        *own, _ = signature(method).parameters.values()
        options = [
            Parameter(each.name, Parameter.KEYWORD_ONLY, default=each.default, annotation=each.type)
            for each in fields(kind)
        ]
        method.__signature__ = Signature([*own, *options])  # type: ignore[attr-defined]
        return method

    return decorate
