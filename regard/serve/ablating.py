"""What becomes of what a model says when it is changed inside: translations, continuations, labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from regard.look.continuing import continued
from regard.look.interventions import Intervention
from regard.look.trace import Trace
from regard.serve.job import Job
from regard.serve.looking import Looked, traced
from regard.serve.refusals import too_large
from regard.serve.served import CLASSIFY, GENERATE, Served
from regard.serve.service import Service

CONTINUED = 24
"""Tokens that a generator goes on for."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a model said to a text."""

    trace: Trace
    ids: tuple[int, ...]
    """Of tokens without the one that ends them, or of a label."""
    text: str
    first: int = 0
    """The row of the trace where it begins: a generator reads its prompt first."""

    @property
    def log_prob(self) -> float:
        """How likely all of it was."""
        return float(self.trace.log_probs[self.first :].sum())

    def told(self) -> dict[str, Any]:
        """In a request's answer; of a classifier with the likeliest labels."""
        told: dict[str, Any] = {"text": self.text, "log_prob": self.log_prob}
        if self.trace.config.architecture == "encoder":
            told["labels"] = {each.text: each.probability for each in self.trace.candidates(0)}
        return told


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
    finds the intact one's. Between two of them others have their turn.
    """
    intact = _outcome(service, served, job, looked)
    answer: dict[str, Any] = {"model": served.id, "intact": intact.told(), "items": []}
    forced = replace(looked, target=list(intact.ids))
    for changes in lists:
        told = {"log_prob_of_intact": _outcome(service, served, job, forced, changes).log_prob}
        if looked.target is None:
            told |= _outcome(service, served, job, looked, changes).told()
        answer["items"].append(told)
    if effects:
        found = service.inspector.look(
            served, job, lambda: served.model.head_effects(intact.trace, intact.first)
        )
        answer["effects"] = {kind: each.tolist() for kind, each in found.items()}
    return answer


def _outcome(
    service: Service, served: Served, job: Job, looked: Looked, changes: Sequence[Intervention] = ()
) -> Outcome:
    """What a model says as it is changed; or what it is to have said, where that is given."""
    if served.task == GENERATE:
        return _continuation(service, served, job, looked, changes)
    trace = traced(service, served, job, looked, changes)
    if served.task == CLASSIFY:
        return Outcome(trace, trace.wanted, served.model.labels[trace.wanted[0]])
    eos = served.model.subwords.eos_id
    ids = trace.wanted[:-1] if trace.wanted and trace.wanted[-1] == eos else trace.wanted
    return Outcome(trace, ids, served.model.subwords.decode(ids))


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
        ids = service.inspector.look(served, job, lambda: continued(generator, prompt, room, changes))
    else:
        given = looked.target
        ids = subwords.encode_one(given).tolist() if isinstance(given, str) else given
    trace = traced(service, served, job, replace(looked, target=ids), changes)
    text = subwords.decode([*prompt, *ids])[len(subwords.decode(prompt)) :]
    return Outcome(trace, tuple(ids), text, first=len(trace.wanted) - len(ids))
