"""From texts and languages as clients give them to models and back; the same for every family of routes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from regard.engine.document.layout import parts
from regard.engine.results import Result
from regard.serve.http.errors import bad_value, too_large, unclear_language
from regard.serve.http.limits import Limits
from regard.serve.served import Catalogue, Served, agree
from regard.serve.work.job import Job
from regard.text.detection import Detected, detect, is_in

AUTO = "auto"


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """Texts to translate."""

    texts: Sequence[str]
    model: str | None = None
    source: str | None = None
    """A code, `auto` to find out, or None for what the model reads, found out where it reads several."""
    target: str | None = None
    options: dict[str, Any] = field(default_factory=dict)


class Way(NamedTuple):
    """How a text is translated."""

    model: Served | None
    """None where the text is in the language asked for, or has no letter, and stays as it is."""
    source: str | None
    target: str | None = None
    detected: Detected | None = None


class Translated(NamedTuple):
    """What became of a text."""

    result: Result
    way: Way


class Said(NamedTuple):
    """What a stream says of a text."""

    i: int
    """Which of the texts."""
    text: str
    instead: bool = False
    """Whether this is the whole translation, in place of what was said so far."""


def check_texts(texts: Sequence[str], limits: Limits, param: str = "text") -> None:
    """Refuse more texts, or longer ones, than are taken at once.

    Raises:
        Refusal: with the numbers.
    """
    if len(texts) > limits.items:
        raise too_large(f"A request may have {limits.items:,} texts, and this one has {len(texts):,}.", param)
    if (characters := sum(map(len, texts))) > limits.characters:
        most = f"A request may have {limits.characters:,} characters"
        raise too_large(f"{most}, and this one has {characters:,}. Send it in parts.", param)


def check_options(options: dict[str, Any], limits: Limits) -> None:
    """Refuse a search that is wider than the server goes.

    Raises:
        Refusal: with the numbers.
    """
    for name in ("beam_size", "n_best"):
        if (options.get(name) or 0) > limits.beam:
            most = f"a search here keeps {limits.beam} hypotheses at most"
            raise bad_value(f"`{name}`: {most}, and this asks for {options[name]}.", name)


def translate(catalogue: Catalogue, job: Job, asked: Asked) -> list[Translated]:
    """Translate each text by the model for it.

    Raises:
        Refusal: a language cannot be told, or there is no model for it.
        RegardError: what is asked for cannot be done.
    """
    found: dict[int, Translated] = {}
    groups: defaultdict[Way, list[int]] = defaultdict(list)
    for i, text in enumerate(asked.texts):
        how = way(catalogue, asked, i)
        if how.model is None:
            found[i] = Translated(Result(text=text), how)
        else:
            groups[how].append(i)
    for how, places in groups.items():
        results = _model(how, job, asked).translate([asked.texts[i] for i in places], **_options(how, asked))
        found |= {i: Translated(result, how) for i, result in zip(places, results, strict=True)}
    return [found[i] for i in range(len(asked.texts))]


def stream(catalogue: Catalogue, job: Job, asked: Asked) -> Iterator[Said]:
    """Pieces of the translation of each text, as they are found, greedily or drawn.

    Raises:
        Refusal: a language cannot be told, or there is no model for it.
        RegardError: what is asked for cannot be done.
    """
    for i, text in enumerate(asked.texts):
        how = way(catalogue, asked, i)
        if how.model is None:
            yield Said(i, text)
            continue
        for piece in _model(how, job, asked).stream(text, **_options(how, asked)):
            yield Said(i, piece)


def stream_and_search(catalogue: Catalogue, job: Job, asked: Asked) -> Iterator[Said]:
    """The same, and after each text the translation that a beam search finds, where it is another.

    Of a beam nothing is certain before its end, so a reader has the likeliest tokens meanwhile.

    Raises:
        Refusal: a language cannot be told, or there is no model for it.
        RegardError: what is asked for cannot be done.
    """
    for i, text in enumerate(asked.texts):
        one, so_far = replace(asked, texts=[text]), ""
        for said in stream(catalogue, job, one):
            so_far += said.text
            yield Said(i, said.text)
        (found,) = translate(catalogue, job, one)
        if found.result.text != so_far:
            yield Said(i, found.result.text, instead=True)


def way(catalogue: Catalogue, asked: Asked, i: int) -> Way:
    """Which model translates the i-th text, and from which language into which.

    Raises:
        Refusal: the language cannot be told, or there is no model for it.
    """
    text, source, target = asked.texts[i], asked.source, asked.target
    models = [catalogue.named(asked.model)] if asked.model else list(catalogue)
    pairs = [pair for each in models for pair in each.directions]
    sources = list(dict.fromkeys(one for one, other in pairs if agree(target, other)))
    detected = None
    if source == AUTO or (source is None and len(sources) > 1):
        if not pairs:
            source = None
        elif not any(letter.isalpha() for letter in text):
            return Way(None, None, target)
        else:
            detected = _detected(text, i, [*sources, *([target] if target else [])])
            source = detected.language
    if source is not None and source == target and source not in sources and source in _known(pairs):
        rest = _rest(text, source, models) if detected else None
        if rest is None:
            return Way(None, source, target, detected)
        detected, source = rest, rest.language
    model = catalogue.choose(asked.model, source, target)
    return Way(model, *model.direction(source, target), detected)


def _rest(text: str, target: str, models: Sequence[Served]) -> Detected | None:
    """The language of sentences that are not in the one wanted, as most of the text is.

    None where all are, or no model goes both ways: only such a one leaves the others as they are.
    """
    ways = [each.directions for each in models]
    sources = [one for both in ways for one, other in both if other == target and (target, one) in both]
    asked = [part.text for part in parts(text) if part.translated]
    others = [each for each in asked if not is_in(each, target, [target, *dict.fromkeys(sources)])]
    return detect(" ".join(others), sources) if others and sources else None


def _detected(text: str, i: int, languages: list[str]) -> Detected:
    found = detect(text, list(dict.fromkeys(languages)))
    if found is None:
        which = f"It is not clear whether text {i + 1} is in {' or '.join(dict.fromkeys(languages))}"
        raise unclear_language(f"{which}. Say which, as `source`.", "source")
    return found


def _known(pairs: Sequence[tuple[str, str]]) -> set[str]:
    return {code for pair in pairs for code in pair}


def _model(how: Way, job: Job, asked: Asked) -> Any:
    assert how.model is not None, "what stays as it is needs no model"
    # Who looks for phrases of a glossary wants to know where they belong.
    aligning = any(asked.options.get(name) for name in ("alignment", "glossary", "keep"))
    return how.model.for_job(job, aligning=aligning)


def _options(how: Way, asked: Asked) -> dict[str, Any]:
    return {**asked.options, "source": how.source, "to": how.target}
