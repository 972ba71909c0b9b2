"""From texts and languages as clients give them to models and back; the same for every family of routes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from regard.engine.result import Result
from regard.serve.detection import Detected, detect
from regard.serve.job import Job
from regard.serve.limits import Limits
from regard.serve.refusals import bad_value, too_large
from regard.serve.served import Catalogue, Served

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
    detected: Detected | None = None


class Translated(NamedTuple):
    """What became of a text."""

    result: Result
    way: Way


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
            raise bad_value(f"{name} is {limits.beam} at most, and {options[name]} was asked for.", name)


def translate(catalogue: Catalogue, job: Job, asked: Asked) -> list[Translated]:
    """Translate each text by the model for it.

    Raises:
        Refusal: a language cannot be told, or there is no model for it.
        RegardError: what is asked for cannot be done.
    """
    found: dict[int, Translated] = {}
    groups: defaultdict[str, list[int]] = defaultdict(list)
    ways = [way(catalogue, asked, i) for i in range(len(asked.texts))]
    for i, each in enumerate(ways):
        if each.model is None:
            found[i] = Translated(Result(text=asked.texts[i]), each)
        else:
            groups[each.model.id].append(i)
    for name, places in groups.items():
        results = (
            catalogue.named(name).for_job(job).translate([asked.texts[i] for i in places], **asked.options)
        )
        for i, result in zip(places, results, strict=True):
            found[i] = Translated(result, ways[i])
    return [found[i] for i in range(len(ways))]


def way(catalogue: Catalogue, asked: Asked, i: int) -> Way:
    """Which model translates the i-th text, and from which language.

    Raises:
        Refusal: the language cannot be told, or there is no model for it.
    """
    text, target = asked.texts[i], asked.target
    models = [catalogue.named(asked.model)] if asked.model else list(catalogue)
    pairs = [pair for each in models for pair in each.directions]
    sources = list(dict.fromkeys(source for source, into in pairs if target in (None, into)))
    if asked.source not in (None, AUTO):
        if asked.source == target and asked.source in catalogue.languages:
            return Way(None, asked.source)
        return Way(catalogue.choose(asked.model, asked.source, target), asked.source)
    if not pairs or (asked.source is None and len(sources) < 2):
        return Way(catalogue.choose(asked.model, None, target), sources[0] if sources else None)
    if not any(letter.isalpha() for letter in text):
        return Way(None, None)
    known = list(dict.fromkeys([*sources, *([target] if target else [])]))
    detected = detect(text, known)
    if detected is None:
        which = f"It is not clear whether text {i + 1} is in {' or '.join(known)}"
        raise bad_value(f"{which}. Say which, as source.", "source")
    if detected.language == target and target not in sources:
        return Way(None, target, detected)
    return Way(catalogue.choose(asked.model, detected.language, target), detected.language, detected)


def stream(catalogue: Catalogue, job: Job, asked: Asked) -> Iterator[tuple[int, str]]:
    """Each text's number with a piece of its translation, as it is found.

    Raises:
        Refusal: a language cannot be told, or there is no model for it.
        RegardError: what is asked for cannot be done.
    """
    for i, text in enumerate(asked.texts):
        served = way(catalogue, asked, i).model
        if served is None:
            yield i, text
            continue
        for piece in served.for_job(job).stream(text, **asked.options):
            yield i, piece
