"""The translation of texts for every API: the choice of models and languages, limits, streams."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from regard.engine.direction import unexpected_sentences
from regard.engine.document.layout import parts
from regard.engine.markup.plain_text import may_have_markup
from regard.engine.results import Continuation, Result
from regard.serve.http.errors import bad_value, too_large, unclear_language
from regard.serve.http.limits import Limits
from regard.serve.models import ModelRegistry, same_language
from regard.serve.work.jobs import RequestJob
from regard.tasks.loaded.translator import LoadedTranslator
from regard.text.detection import Detected, detect, is_in

AUTO = "auto"


@dataclass(frozen=True, kw_only=True, slots=True)
class TextsToTranslate:
    """The texts of a request."""

    texts: Sequence[str]
    model: str | None = None
    source: str | None = None
    """A code, `auto` to detect it, or None for the model's language, detected if it has several."""
    target: str | None = None
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def given_source(self) -> str | None:
        """The source language that the client gave; texts in any language are translated from it."""
        return None if self.source == AUTO else self.source


class ModelChoice(NamedTuple):
    """The model and languages for a text."""

    model: str | None
    """Its id; None if the text stays: it is in the target language already, has no letters, or is in none of
    the source languages."""
    source: str | None
    target: str | None = None
    detected: Detected | None = None
    unexpected: str = ""
    """The language of a text that is in none of the source languages."""


class Translated(NamedTuple):
    """The translation of a text."""

    result: Result
    choice: ModelChoice


class StreamedText(NamedTuple):
    """A piece of an output, or its end."""

    i: int
    """Index of the text."""
    text: str
    replaces: bool = False
    """Whether this is the whole translation, in place of the pieces before."""
    result: Translated | Continuation | None = None
    """The whole output, after its last piece."""


def check_texts(texts: Sequence[str], limits: Limits, param: str = "text") -> None:
    """Check the number and size of texts.

    Raises:
        ApiError: a limit is exceeded.
    """
    if len(texts) > limits.items:
        raise too_large(f"A request may have {limits.items:,} texts; this one has {len(texts):,}.", param)
    if (characters := sum(map(len, texts))) > limits.characters:
        limit = f"A request may have {limits.characters:,} characters"
        raise too_large(f"{limit}; this one has {characters:,}. Split it.", param)


def check_options(options: dict[str, Any], limits: Limits) -> None:
    """Check the width of a search, and the size of a glossary.

    Raises:
        ApiError: a limit is exceeded.
    """
    for name in ("beam_size", "n_best"):
        if (options.get(name) or 0) > limits.beam:
            raise bad_value(f"`{name}` is {options[name]}; the maximum is {limits.beam}.", name)
    terms, keep = options.get("glossary") or {}, options.get("keep") or ()
    if (n := len(terms) + len(keep)) > limits.glossary_entries:
        entries = f"{limits.glossary_entries:,} entries and texts to keep"
        raise too_large(f"A glossary may have {entries}; this one has {n:,}.", "glossary")
    if (n := sum(map(len, [*terms, *terms.values(), *keep]))) > limits.glossary_characters:
        characters = f"{limits.glossary_characters:,} characters"
        raise too_large(f"A glossary may have {characters}; this one has {n:,}.", "glossary")


def translate(models: ModelRegistry, job: RequestJob, request: TextsToTranslate) -> list[Translated]:
    """Translate each text with the model for it.

    Raises:
        ApiError: a language cannot be detected, or there is no model for it.
        RegardError: an option cannot be satisfied.
    """
    done: dict[int, Translated] = {}
    # By direction only: texts whose detection is more or less certain are decoded together.
    groups: defaultdict[ModelChoice, list[int]] = defaultdict(list)
    choices: dict[int, ModelChoice] = {}
    for i, text in enumerate(request.texts):
        choice = choose_model(models, request, i)
        if choice.model is None:
            done[i] = Translated(_unchanged(text, choice), choice)
        else:
            choices[i] = choice
            groups[choice._replace(detected=None)].append(i)
    for choice, places in groups.items():
        texts = [request.texts[i] for i in places]
        model = translator_for(models, choice, job, request, aligning=any(map(may_have_markup, texts)))
        results = model.translate(texts, **options_for(choice, request))
        done |= {i: Translated(result, choices[i]) for i, result in zip(places, results, strict=True)}
    return [done[i] for i in range(len(request.texts))]


def stream(models: ModelRegistry, job: RequestJob, request: TextsToTranslate) -> Iterator[StreamedText]:
    """Pieces of each translation as they are decoded, greedily or sampled.

    Raises:
        ApiError: a language cannot be detected, or there is no model for it.
        RegardError: an option cannot be satisfied.
    """
    for i, text in enumerate(request.texts):
        choice = choose_model(models, request, i)
        if choice.model is None:
            yield StreamedText(i, text)
            yield StreamedText(i, "", result=Translated(_unchanged(text, choice), choice))
            continue
        model = translator_for(models, choice, job, request, aligning=may_have_markup(text))
        pieces = model.stream(text, **options_for(choice, request))
        for piece in pieces:
            yield StreamedText(i, piece)
        yield StreamedText(i, "", result=Translated(pieces.result, choice))


def stream_and_search(
    models: ModelRegistry, job: RequestJob, request: TextsToTranslate
) -> Iterator[StreamedText]:
    """The same, and after each text the translation of a beam search, if it differs.

    A beam search has no certain result before its end, so a reader sees the greedy one meanwhile.

    Raises:
        ApiError: a language cannot be detected, or there is no model for it.
        RegardError: an option cannot be satisfied.
    """
    for i, text in enumerate(request.texts):
        one, so_far = replace(request, texts=[text]), ""
        for piece in stream(models, job, one):
            if piece.result is None:
                so_far += piece.text
                yield piece._replace(i=i)
        (best,) = translate(models, job, one)
        if best.result.text != so_far:
            yield StreamedText(i, best.result.text, replaces=True)
        yield StreamedText(i, "", result=best)


def choose_model(models: ModelRegistry, request: TextsToTranslate, i: int) -> ModelChoice:
    """The model and languages for the i-th text.

    Raises:
        ApiError: the language cannot be detected, or there is no model for it.
    """
    text, source, target = request.texts[i], request.source, request.target
    candidates = [models.named(request.model)] if request.model else list(models)
    pairs = [pair for each in candidates for pair in each.directions]
    sources = list(dict.fromkeys(one for one, other in pairs if same_language(target, other)))
    detected = None
    languages = list(dict.fromkeys([*sources, *([target] if target else [])]))
    if pairs and request.source in (None, AUTO):
        document = parts(text)
        foreign = unexpected_sentences(document, languages)
        expected = [part for k, part in enumerate(document) if k not in foreign]
        if foreign and not any(part.translated for part in expected):
            other = next(iter(foreign.values()))
            return ModelChoice(None, other.language, target, other, other.language)
        text = "".join(part.text for part in expected) if foreign else text
    if source == AUTO or (source is None and len(sources) > 1):
        if not pairs:
            source = None
        elif not any(letter.isalpha() for letter in text):
            return ModelChoice(None, None, target)
        else:
            detected = _detected(text, i, languages)
            source = detected.language
    known = {code for pair in pairs for code in pair}
    if source is not None and source == target and source not in sources and source in known:
        rest = _rest(text, source, [each.directions for each in candidates]) if detected else None
        if rest is None:
            return ModelChoice(None, source, target, detected)
        detected, source = rest, rest.language
    model = models.translator(request.model, source, target)
    return ModelChoice(model.id, *model.direction(source, target), detected)


def _rest(text: str, target: str, directions: Sequence[Sequence[tuple[str, str]]]) -> Detected | None:
    """The language of the sentences that are not in the target language, as most of the text is.

    None if there are none, or no model has both directions: only such a model leaves the others as they are.
    """
    sources = [one for both in directions for one, other in both if other == target and (target, one) in both]
    sentences = [part.text for part in parts(text) if part.translated]
    others = [each for each in sentences if not is_in(each, target, [target, *dict.fromkeys(sources)])]
    return detect(" ".join(others), sources) if others and sources else None


def _detected(text: str, i: int, languages: list[str]) -> Detected:
    detected = detect(text, languages)
    if detected is None:
        which = f"It is unclear whether text {i + 1} is in {' or '.join(languages)}"
        raise unclear_language(f"{which}. Set `source`.", "source")
    return detected


def _unchanged(text: str, choice: ModelChoice) -> Result:
    return Result(text=text, unexpected_language=choice.unexpected)


def translator_for(
    models: ModelRegistry,
    choice: ModelChoice,
    job: RequestJob,
    request: TextsToTranslate,
    *,
    aligning: bool = False,
) -> LoadedTranslator:
    """The chosen model for one request; `aligning`: whether tags are put back, by word alignment."""
    assert choice.model is not None, "a text that stays as it is needs no model"
    # Glossary phrases are placed by word alignment.
    aligning |= any(request.options.get(name) for name in ("alignment", "glossary", "keep"))
    return models.translator(choice.model).for_job(job, aligning=aligning)


def options_for(choice: ModelChoice, request: TextsToTranslate) -> dict[str, Any]:
    """The options of a request for the chosen model and languages."""
    return {**request.options, "source": choice.source if request.given_source else None, "to": choice.target}
