"""What the native routes are asked and answer, as the OpenAPI document shows it."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Text = Annotated[str, StringConstraints(min_length=0)]
Texts = Text | Annotated[list[Text], Field(min_length=1)]
Row = dict[str, Any]
Code = Annotated[str, StringConstraints(min_length=1, max_length=32)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Id = Annotated[int, Field(ge=0, lt=2**31)]
Milliseconds = Annotated[int, Field(ge=1, le=3_600_000)]


class Asked(BaseModel):
    """What every request may say."""

    model_config = ConfigDict(extra="forbid")

    model: Name | None = Field(None, description="A model's id; by default the first that fits.")
    deadline_ms: Milliseconds | None = Field(None, description="After so long the answer is not wanted.")


class TranslateAsked(Asked):
    """Texts to translate, and how."""

    text: Text | Row | Annotated[list[Text | Row], Field(min_length=1)] = Field(
        description="A text or a list; of a model that was trained on named fields, an object may hold them."
    )
    source: Code | None = Field(None, description="The language of the texts; `auto` finds it out for each.")
    target: Code | None = None
    beam: int | None = Field(None, ge=1, description="Hypotheses kept at each step; 1 is greedy search.")
    n_best: int = Field(1, ge=1, description="Translations of each text.")
    length_penalty: float | None = Field(None, ge=0, le=10)
    prefix: str | None = Field(None, max_length=2000, description="How each translation must begin.")
    glossary: dict[str, str] | None = Field(None, description="Phrases, and what they must become.")
    keep: list[str] = Field([], max_length=256, description="What must not be translated.")
    whole_lines: bool = False
    scores: bool = Field(False, description="Whether each token's log-probability is wanted.")
    tokens: bool = Field(False, description="Whether the output in subwords is wanted.")
    alignment: bool = Field(False, description="Whether links between words are wanted.")
    sample: bool = Field(False, description="Draw tokens instead of searching for the likeliest.")
    temperature: float = Field(1.0, gt=0, le=100)
    top_k: int = Field(0, ge=0, le=1_000_000)
    top_p: float = Field(1.0, gt=0, le=1)
    min_p: float = Field(0.0, ge=0, le=1)
    seed: int = Field(1, ge=0, lt=2**63)
    stream: bool = Field(
        False,
        description="Answer by server-sent events as tokens are found: greedy, or drawn. "
        "With a beam, `revise` tells the whole text where the search finds another.",
    )

    def texts(self) -> list[str]:
        """The texts as a list; objects as JSON."""
        given = self.text if isinstance(self.text, list) else [self.text]
        return [each if isinstance(each, str) else json.dumps(each, ensure_ascii=False) for each in given]

    @property
    def has_rows(self) -> bool:
        """Whether an object is among them."""
        given = self.text if isinstance(self.text, list) else [self.text]
        return any(isinstance(each, dict) for each in given)

    def options(self) -> dict[str, Any]:
        """What the model is asked, in its own words."""
        alike = (
            "n_best",
            "length_penalty",
            "prefix",
            "glossary",
            "keep",
            "whole_lines",
            "alignment",
            "sample",
        )
        drawing = ("temperature", "top_k", "top_p", "min_p", "seed")
        given = {name: getattr(self, name) for name in (*alike, *drawing)}
        return given | {"beam_size": self.beam, "token_scores": self.scores}


class Hypothesis(BaseModel):
    """One translation."""

    text: str
    score: float


class Link(BaseModel):
    """A word of the translation, and the word that it comes from; places count characters of the texts."""

    source: str
    target: str
    source_start: int
    source_end: int
    target_start: int
    target_end: int
    strength: float


class TranslatedItem(BaseModel):
    """What became of one text."""

    text: str
    score: float
    source_lang: str | None
    target_lang: str | None
    confidence: float | None = None
    hypotheses: list[Hypothesis]
    engine: str
    split: int
    unfinished: bool
    repetitive: bool
    missing: list[str]
    tokens: list[str] | None = None
    token_scores: list[float] | None = None
    alignment: list[Link] | None = None
    aligned_by: str | None = None


class Usage(BaseModel):
    """What it took."""

    characters: int
    output_tokens: int


class TranslateAnswer(BaseModel):
    """Translations, in the order of the texts."""

    id: str
    model: str | None
    items: list[TranslatedItem]
    usage: Usage


class ScoreAsked(Asked):
    """Pairs whose targets are scored."""

    source: Texts
    target: Texts
    to: Code | None = Field(None, description="The language of the targets, where a model knows several.")

    def pairs(self) -> tuple[list[str], list[str]]:
        """Both sides as lists."""
        sides = [[side] if isinstance(side, str) else side for side in (self.source, self.target)]
        return sides[0], sides[1]


class TokenizeAsked(Asked):
    """Texts to cut into subwords."""

    text: Texts


class DetokenizeAsked(Asked):
    """Token ids to put together."""

    ids: Annotated[list[Id], Field(max_length=100_000)]


class DetectAsked(BaseModel):
    """Texts whose language is wanted."""

    model_config = ConfigDict(extra="forbid")

    text: Texts


class GenerateAsked(Asked):
    """A text to go on from."""

    prompt: Texts
    max_tokens: int | None = Field(
        None,
        ge=1,
        le=100_000,
        description="By default as many as it was trained on, or 256 with slide.",
    )
    temperature: float = Field(1.0, ge=0, le=100, description="0 takes the likeliest token each time.")
    top_k: int = Field(0, ge=0, le=1_000_000)
    top_p: float = Field(1.0, gt=0, le=1)
    min_p: float = Field(0.0, ge=0, le=1)
    seed: int = Field(1, ge=0, lt=2**63)
    stop: list[Annotated[str, StringConstraints(min_length=1)]] = Field(
        [], max_length=16, description="The text ends before any of these."
    )
    past_length: Literal["error", "slide"] = Field(
        "error", description="Past the trained length: an error, or a window that slides along."
    )
    stream: bool = Field(False, description="Answer by server-sent events as tokens are found.")

    def options(self) -> dict[str, Any]:
        """What the model is asked, in its own words."""
        names = ("max_tokens", "temperature", "top_k", "top_p", "min_p", "seed", "stop", "past_length")
        return {name: getattr(self, name) for name in names}


class NextAsked(Asked):
    """A text whose next token is wanted."""

    prompt: str


class ClassifyAsked(Asked):
    """Texts to label."""

    text: Texts
    too_long: Literal["error", "cut"] = Field(
        "error", description="A text that is too long is an error, or its beginning is read."
    )
    threshold: float = Field(
        0.5,
        gt=0,
        lt=1,
        description="Where a text may have several labels, it gets those that are so probable.",
    )


class LookAsked(Asked):
    """A text to look into the model with."""

    source: Text
    target: Text | list[Id] | None = Field(
        None,
        description="What it is to have written, or its token ids; by default what it would write. "
        "Of a classifier, a label.",
    )
    prefix: list[Id] | None = Field(
        None,
        max_length=4096,
        description="Token ids that what it writes must begin with, instead of a target.",
    )
    to: Code | None = Field(None, description="The language to translate into.")
    interventions: list[dict[str, Any]] = Field([], description="What to change inside of the model.")
    beam: int | None = Field(None, ge=1)
    length_penalty: float | None = Field(None, ge=0, le=10, description="Of the search, where there is one.")


class AblateAsked(Asked):
    """A text, and lists of interventions to try on it."""

    source: Text
    target: Text | list[Id] | None = Field(
        None, description="What each is scored on; by default the intact model's output."
    )
    to: Code | None = Field(None, description="The language to translate into.")
    interventions: list[list[dict[str, Any]]] = []
    effects: bool = Field(False, description="Whether the effect of every single head is wanted.")


class Error(BaseModel):
    """Why there is no result."""

    code: str
    message: str
    param: str | None
    request_id: str


class ErrorAnswer(BaseModel):
    """The one shape of errors."""

    error: Error


ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorAnswer, "description": what}
    for status, what in {
        400: "The body is no JSON.",
        401: "A key is needed.",
        403: "The key is not known.",
        404: "There is no such thing.",
        409: "The model is for another task.",
        413: "Too much for one request.",
        422: "A value cannot be used.",
        429: "Too often; see Retry-After.",
        503: "Busy, or shutting down; see Retry-After.",
        504: "The deadline has passed.",
    }.items()
}
