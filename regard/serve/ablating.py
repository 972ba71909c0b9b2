"""What becomes of what a model says when it is changed inside: translations, continuations, labels."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from regard.look.interventions.apply import continued
from regard.look.interventions.interventions import Intervention
from regard.look.trace.trace import Trace
from regard.serve.http.errors import too_large
from regard.serve.looking import Looked, traced
from regard.serve.served import CLASSIFY, GENERATE, Served
from regard.serve.service import Service
from regard.serve.work.job import Job

CONTINUED = 24
"""Tokens that a generator goes on for."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a model said to a text."""

    ids: tuple[int, ...]
    """Of tokens without the one that ends them, or of a label."""
    text: str
    log_prob: float
    """How likely all of it was."""
    labels: dict[str, float] | None = None
    """The likeliest labels of a classifier."""
    first: int = 0
    """The row of its trace where it begins: a generator reads its prompt first."""

    def told(self) -> dict[str, Any]:
        """In a request's answer."""
        told: dict[str, Any] = {"text": self.text, "log_prob": self.log_prob}
        return told if self.labels is None else told | {"labels": self.labels}


def ablated(
    service: Service,
    served: Served,
    job: Job,
    looked: Looked,
    lists: Sequence[Sequence[Intervention]],
    *,
    effects: bool,
) -> dict[str, Any]:
    """The intact model's output, and for each list of interventions what becomes of it.

    Each is told by the output of the changed model (where no target was given), and by how likely that model
    finds the intact one's. Between two of them others have their turn. Whoever switches heads asks about one
    text again and again, so what the intact model says is remembered.
    """
    remembered = service.inspector.remembered
    intact = remembered.get(_key(served, looked), lambda: _outcome(service, served, job, looked))
    answer: dict[str, Any] = {"model": served.id, "intact": intact.told(), "items": []}
    forced = replace(looked, target=intact.ids)
    for changes in lists:
        told = {"log_prob_of_intact": _outcome(service, served, job, forced, changes).log_prob}
        if looked.target is None:
            told |= _outcome(service, served, job, looked, changes).told()
        answer["items"].append(told)
    if effects:
        answer["effects"] = remembered.get(
            ("effects", served.id, forced), lambda: _effects(service, served, job, forced, intact.first)
        )
    return answer


def remember(service: Service, served: Served, looked: Looked, trace: Trace) -> None:
    """What an intact model said, of whose trace somebody asks: changing it is likely to come next."""
    if served.task != GENERATE:  # whose trace is of what it read
        service.inspector.remembered.get(_key(served, looked), lambda: _said(served, trace))


def _key(served: Served, looked: Looked) -> Hashable:
    return "intact", served.id, looked


def _effects(service: Service, served: Served, job: Job, forced: Looked, first: int) -> dict[str, Any]:
    """How much likelier the intact output becomes without each head."""
    trace = traced(service, served, job, forced)
    found = service.inspector.look(served, job, lambda: served.model.head_effects(trace, first))
    return {kind: each.tolist() for kind, each in found.items()}


def _outcome(
    service: Service, served: Served, job: Job, looked: Looked, changes: Sequence[Intervention] = ()
) -> Outcome:
    """What a model says as it is changed; or what it is to have said, where that is given."""
    if served.task == GENERATE:
        return _continuation(service, served, job, looked, changes)
    return _said(served, traced(service, served, job, looked, changes))


def _said(served: Served, trace: Trace) -> Outcome:
    """What a translator or a classifier said, as its trace tells."""
    if served.task == CLASSIFY:
        labels = {each.text: each.probability for each in trace.candidates(0)}
        return Outcome(trace.targets, served.model.labels[trace.targets[0]], _log_prob(trace), labels)
    eos = served.model.subwords.eos_id
    ids = trace.targets[:-1] if trace.targets and trace.targets[-1] == eos else trace.targets
    return Outcome(ids, served.model.subwords.decode(ids), _log_prob(trace))


def _continuation(
    service: Service, served: Served, job: Job, looked: Looked, changes: Sequence[Intervention]
) -> Outcome:
    subwords = served.model.subwords
    prompt = subwords.encode_one(looked.source).tolist()
    if looked.target is None:
        generator = served.model.generator
        room = min(CONTINUED, served.model.max_length - len(prompt) - 1)  # one token starts every text
        if room < 1:
            raise too_large(f"The text has {len(prompt):,} tokens, and leaves no room to go on.", "source")
        ids = tuple(service.inspector.look(served, job, lambda: continued(generator, prompt, room, changes)))
    else:
        given = looked.target
        ids = tuple(subwords.encode_one(given).tolist()) if isinstance(given, str) else given
    trace = traced(service, served, job, replace(looked, target=ids), changes)
    text = subwords.decode([*prompt, *ids])[len(subwords.decode(prompt)) :]
    first = len(trace.targets) - len(ids)
    return Outcome(ids, text, _log_prob(trace, first), first=first)


def _log_prob(trace: Trace, first: int = 0) -> float:
    return float(trace.log_probs[first:].sum())
