"""From what clients ask of the inspector to traces, in its turn and within limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from regard.errors import RequestError
from regard.look.interventions.interventions import Intervention
from regard.look.trace.trace import Trace
from regard.serve.http.errors import bad_value, too_large, unclear_language
from regard.serve.served import Served
from regard.serve.service import Service
from regard.serve.work.job import Job


@dataclass(frozen=True, slots=True)
class Looked:
    """A text to look into a model with."""

    source: str
    target: str | tuple[int, ...] | None = None
    """What it is to have written, as a text or as token ids, or its label; None for what it would say."""
    to: str | None = None
    """The language to translate into."""
    beam: int | None = None
    prefix: tuple[int, ...] = ()
    """What it must begin with, where no target is given."""
    length_penalty: float | None = None


def traced(
    service: Service, served: Served, job: Job, looked: Looked, changes: Sequence[Intervention] = ()
) -> Trace:
    """The trace of a text; where no target is given, of what torch finds, with the tree of its search.

    Raises:
        Refusal: a text is too long for it, or too many wait to look.
        RegardError: texts and interventions do not fit the model.
    """
    _check(service, served, looked)
    searches = served.description.config.architecture == "encoder-decoder"
    if searches and looked.to is None:
        _check_language(served, looked.source)
    beam = looked.beam or (served.model.decoding.beam_size if searches else None)
    return service.inspector.look(served, job, lambda: _trace(served, looked, changes, beam))


def _trace(served: Served, looked: Looked, changes: Sequence[Intervention], beam: int | None) -> Trace:
    if looked.target is None:
        return served.model.look(
            looked.source,
            to=looked.to,
            prefix=looked.prefix,
            interventions=changes,
            beam_size=beam,
            length_penalty=looked.length_penalty,
        )
    return served.model.look(looked.source, looked.target, to=looked.to, interventions=changes)


def _check(service: Service, served: Served, looked: Looked) -> None:
    limits = service.limits
    if (looked.beam or 0) > limits.beam:
        raise bad_value(f"beam is {limits.beam} at most, and {looked.beam} was asked for.", "beam")
    if looked.prefix and looked.target is not None:
        raise bad_value("A target is given whole: leave out prefix, or target.", "prefix")
    for param, side in (("source", looked.source), ("target", looked.target)):
        check_length(service, served, param, side or ())


def check_length(service: Service, served: Served, param: str, text: str | Sequence[int]) -> None:
    """Refuse a text, or token ids, too long to look into a model with.

    Raises:
        Refusal: it is.
    """
    limits = service.limits
    if isinstance(text, str) and len(text) > limits.characters:
        raise too_large(f"A text may have {limits.characters:,} characters.", param)
    n = len(served.model.subwords.encode_one(text)) if isinstance(text, str) else len(text)
    if n > limits.trace_tokens:
        most = f"A text to look at may have {limits.trace_tokens:,} tokens"
        raise too_large(f"{most}, and this one has {n:,}.", param)


def _check_language(served: Served, source: str) -> None:
    """That a text tells which way it is translated, with a code of its own: a page then asks its reader."""
    try:
        served.model.directions.detect(source)
    except RequestError as unclear:
        raise unclear_language(f"{unclear}.", "to") from None
