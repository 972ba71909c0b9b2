"""Requests and responses of our own API, as in the OpenAPI document."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

T = TypeVar("T")
Many = Annotated[list[T], Field(fail_fast=True)]
"""A list whose first problem is reported: an error for each of many items takes seconds and gigabytes."""
Text = Annotated[str, StringConstraints(min_length=0)]
Texts = Text | Annotated[Many[Text], Field(min_length=1)]
Row = dict[str, Any]
Code = Annotated[str, StringConstraints(min_length=1, max_length=32)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Id = Annotated[int, Field(ge=0, lt=2**31)]
Milliseconds = Annotated[int, Field(ge=1, le=3_600_000)]


class RequestBody(BaseModel):
    """Fields that every request may have."""

    model_config = ConfigDict(extra="forbid")

    model: Name | None = Field(None, description="A model's id; by default the first that fits.")
    deadline_ms: Milliseconds | None = Field(None, description="Maximum time for the response.")


class TranslateRequest(RequestBody):
    """Texts to translate, and options."""

    text: Text | Row | Annotated[Many[Text | Row], Field(min_length=1)] = Field(
        description="A text, or a list; for a model trained on named fields, an object with them."
    )
    source: Code | None = Field(
        None,
        description="Language of the texts; `auto` detects it for each text. "
        "Without a code, a text in none of the model's languages stays as it is.",
    )
    target: Code | None = None
    beam: int | None = Field(None, ge=1, description="Hypotheses kept at each step; 1 is greedy search.")
    n_best: int = Field(1, ge=1, description="Translations per text.")
    length_penalty: float | None = Field(None, ge=0, le=10)
    prefix: str | None = Field(None, max_length=2000, description="How every translation must begin.")
    glossary: dict[str, str] | None = Field(
        None, description="Source phrases and their required translations."
    )
    keep: Many[str] = Field([], description="Texts to copy untranslated.")
    check_numbers: bool = Field(
        True,
        description="Compare the values of source and translation; correct or report changed ones.",
    )
    markup: bool = Field(True, description="Keep inline markup (`<b>`, `**`, links) at its words.")
    whole_lines: bool = False
    scores: bool = Field(False, description="Return the log-probability of each token.")
    tokens: bool = Field(False, description="Return the output in subwords.")
    alignment: bool = Field(False, description="Return word alignments.")
    sample: bool = Field(False, description="Sample tokens instead of searching for the most likely.")
    temperature: float = Field(1.0, gt=0, le=100)
    top_k: int = Field(0, ge=0, le=1_000_000)
    top_p: float = Field(1.0, gt=0, le=1)
    min_p: float = Field(0.0, ge=0, le=1)
    seed: int = Field(1, ge=0, lt=2**63)
    stream: bool = Field(
        False,
        description="Respond with server-sent events as tokens are decoded, greedily or sampled. "
        "With a beam, `revise` has the whole text if the search finds another one.",
    )

    def texts(self) -> list[str]:
        """The texts as a list, objects as JSON."""
        given = self.text if isinstance(self.text, list) else [self.text]
        return [each if isinstance(each, str) else json.dumps(each, ensure_ascii=False) for each in given]

    @property
    def has_rows(self) -> bool:
        """Whether a text is an object."""
        given = self.text if isinstance(self.text, list) else [self.text]
        return any(isinstance(each, dict) for each in given)

    def options(self) -> dict[str, Any]:
        """The options under their names in Python."""
        same_name = (
            "n_best",
            "length_penalty",
            "prefix",
            "glossary",
            "keep",
            "check_numbers",
            "markup",
            "whole_lines",
            "alignment",
            "sample",
        )
        sampling = ("temperature", "top_k", "top_p", "min_p", "seed")
        given = {name: getattr(self, name) for name in (*same_name, *sampling)}
        # A shortlist is that of a whole batch: a translation would depend on the texts of other clients.
        return given | {"beam_size": self.beam, "token_scores": self.scores, "shortlist": False}


class DemonstrationRequest(BaseModel):
    """Nothing: everything about the training is fixed."""

    model_config = ConfigDict(extra="forbid")


class HypothesisItem(BaseModel):
    """One translation."""

    text: str
    score: float


class LinkItem(BaseModel):
    """A word of the translation and its source word; positions count characters."""

    source: str
    target: str
    source_start: int
    source_end: int
    target_start: int
    target_end: int
    strength: float


class NumberItem(BaseModel):
    """A value of the source that the translation does not have; positions count characters."""

    source: str
    source_start: int
    source_end: int
    source_value: str = Field(description="In digits: 1400000000, 45%, 11-28, 15:45.")
    target: str = Field(description="What the translation has instead; empty if the value is lost.")
    target_start: int | None
    target_end: int | None
    target_value: str


class TranslatedItem(BaseModel):
    """The translation of one text."""

    text: str
    score: float
    source_lang: str | None
    target_lang: str | None
    confidence: float | None = None
    hypotheses: list[HypothesisItem]
    engine: str
    split: int
    unfinished: bool
    repetitive: bool
    missing: list[str]
    unexpected_language: str
    numbers: list[NumberItem]
    tokens: list[str] | None = None
    token_scores: list[float] | None = None
    alignment: list[LinkItem] | None = None
    aligned_by: str | None = None


class Usage(BaseModel):
    """The size of a request and its response."""

    characters: int
    output_tokens: int


class TranslateResponse(BaseModel):
    """Translations, in the order of the texts."""

    id: str
    model: str | None
    items: list[TranslatedItem]
    usage: Usage


class ScoreRequest(RequestBody):
    """Pairs of sources and targets to score."""

    source: Texts
    target: Texts
    to: Code | None = Field(None, description="Language of the targets, for a model that knows several.")

    def pairs(self) -> tuple[list[str], list[str]]:
        """Both sides as lists."""
        sides = [[side] if isinstance(side, str) else side for side in (self.source, self.target)]
        return sides[0], sides[1]


class TokenizeRequest(RequestBody):
    """Texts to split into subwords."""

    text: Texts


class DetokenizeRequest(RequestBody):
    """Token ids to join to a text."""

    ids: Many[Id]


class DetectRequest(BaseModel):
    """Texts whose language to detect."""

    model_config = ConfigDict(extra="forbid")

    text: Texts


class GenerateRequest(RequestBody):
    """Texts to continue."""

    prompt: Texts
    max_tokens: int | None = Field(
        None,
        ge=1,
        le=100_000,
        description="By default up to the trained length, or 256 with slide.",
    )
    temperature: float = Field(1.0, ge=0, le=100, description="0 always takes the most likely token.")
    top_k: int = Field(0, ge=0, le=1_000_000)
    top_p: float = Field(1.0, gt=0, le=1)
    min_p: float = Field(0.0, ge=0, le=1)
    seed: int = Field(1, ge=0, lt=2**63)
    stop: Many[Annotated[str, StringConstraints(min_length=1)]] = Field(
        [], max_length=16, description="The text ends before any of these strings."
    )
    past_length: Literal["error", "slide"] = Field(
        "error", description="Past the trained length: an error, or a sliding window."
    )
    stream: bool = Field(False, description="Respond with server-sent events as tokens are generated.")

    def options(self) -> dict[str, Any]:
        """The options under their names in Python."""
        names = ("max_tokens", "temperature", "top_k", "top_p", "min_p", "seed", "stop", "past_length")
        return {name: getattr(self, name) for name in names}


class NextTokenRequest(RequestBody):
    """A text whose next token to predict."""

    prompt: str


class ClassifyRequest(RequestBody):
    """Texts to label."""

    text: Texts
    too_long: Literal["error", "cut"] = Field(
        "error", description="For a text that is too long: an error, or cut its end off."
    )
    threshold: float = Field(
        0.5,
        gt=0,
        lt=1,
        description="With several labels per text: minimum probability of a label.",
    )


class TraceRequest(RequestBody):
    """A text to trace."""

    source: Text
    target: Text | Many[Id] | None = Field(
        None,
        description="The output to assume, or its token ids; by default what the model would write. "
        "For a classifier, a label.",
    )
    prefix: Many[Id] | None = Field(
        None,
        max_length=4096,
        description="Token ids that the output must begin with; not with a target.",
    )
    to: Code | None = Field(None, description="Target language.")
    interventions: Many[dict[str, Any]] = Field(
        [], description="Changes inside the model; a patch may name a stored trace by its id."
    )
    beam: int | None = Field(None, ge=1)
    length_penalty: float | None = Field(None, ge=0, le=10, description="Of the search, if there is one.")


class AblateRequest(RequestBody):
    """A text, and lists of interventions to try on it."""

    source: Text
    target: Text | Many[Id] | None = Field(
        None, description="The output to score; by default that of the unchanged model."
    )
    to: Code | None = Field(None, description="Target language.")
    interventions: Many[Many[dict[str, Any]]] = []
    effects: bool = Field(False, description="Return the effect of every single head.")


class ErrorDetails(BaseModel):
    """Why a request failed."""

    code: str
    message: str
    param: str | None
    request_id: str


class ErrorResponse(BaseModel):
    """An error."""

    error: ErrorDetails


ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorResponse, "description": what}
    for status, what in {
        400: "The body is not valid JSON.",
        401: "A key is needed.",
        403: "The key is unknown, or the request comes from a page of another site.",
        404: "There is no such thing.",
        409: "The model is for another task.",
        408: "The request did not arrive in time.",
        413: "A limit of size is exceeded.",
        415: "The body is not of type application/json.",
        422: "A value is invalid.",
        429: "Too many requests of this client; see Retry-After.",
        431: "The head of the request is too large.",
        503: "Busy, or shutting down; see Retry-After.",
        504: "The deadline has passed.",
    }.items()
}
