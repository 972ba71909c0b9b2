"""Looking inside served models: traces, and outputs of a model that is changed inside.

Looks run one at a time and after other requests: they may be slow, and must not delay those.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from regard.cancellation import cancellable
from regard.errors import RequestError
from regard.host import step_back
from regard.look.trace.trace import Trace
from regard.serve.cache import BlobStore, ResultCache
from regard.serve.http.errors import ApiError, bad_value, busy, too_large, unclear_language
from regard.serve.http.limits import Limits
from regard.serve.http.metrics import Metrics
from regard.serve.models import ServedClassifier, ServedGenerator, ServedModel, ServedTranslator
from regard.serve.work.jobs import RequestJob
from regard.serve.work.pool import Pool

if TYPE_CHECKING:  # they import torch, which the process for large work does without
    from regard.look.interventions.ablation import ChangedOutput
    from regard.look.interventions.interventions import HeadOff, Intervention

T = TypeVar("T")
Served = ServedModel[Any]
PATIENCE_S = 2.0
"""Maximum number of seconds that other requests go first."""
CONTINUATION_TOKENS = 24
"""Number of tokens that a generator adds to an ablated text."""


EFFECT_TOKENS = 256
"""Tokens in a batch of the effects of heads: whoever switches a head meanwhile waits for one batch."""
TURN_S = 0.002
"""Seconds between two batches, in which another look may begin."""


@dataclass(frozen=True, slots=True)
class TracedText:
    """A text to trace, and how."""

    source: str
    target: str | tuple[int, ...] | None = None
    """The output to assume: a text, token ids or a label; None for what the model would output."""
    to: str | None = None
    """The target language."""
    beam: int | None = None
    prefix: tuple[int, ...] = ()
    """How the output must begin, if no target is given."""
    length_penalty: float | None = None


@dataclass(frozen=True, slots=True)
class ModelOutput:
    """The output of a model for a text."""

    ids: tuple[int, ...]
    """Token ids without the end token, or the number of a label."""
    text: str
    log_prob: float
    labels: dict[str, float] | None = None
    """The most likely labels of a classifier."""
    first: int = 0
    """The row of its trace where it begins: a generator reads its prompt first."""

    def to_json(self) -> dict[str, Any]:
        """The output in a response."""
        fields: dict[str, Any] = {"text": self.text, "log_prob": self.log_prob}
        return fields if self.labels is None else fields | {"labels": self.labels}


class Inspector:
    """Runs looks one at a time, and stores traces."""

    def __init__(self, limits: Limits, metrics: Metrics) -> None:
        # Traces are stored as bytes: as objects they take a third more memory than their arrays.
        self.traces = BlobStore("trace", limits.traces_bytes, limits.trace_seconds)
        self._limits, self._outputs = limits, ResultCache(limits.remembered, limits.trace_seconds)
        self._preloading = False
        self._n_waiting, self._counting, self._turn = 0, threading.Lock(), threading.Lock()
        # Always the same thread, so that memory freed by one look is reused by the next.
        self._thread = Pool(1, "inspector", step_back)
        metrics.watch("regard_trace_bytes", "Memory of the traces that are kept.", lambda: self.traces.nbytes)

    def preload(self, models: Iterable[Served]) -> None:
        """Load torch and the weights before the first look: that takes seconds, once."""
        with self._counting:
            is_first, self._preloading = not self._preloading, True
        if is_first:
            for served in models:
                self._thread.submit(served.preload)

    @property
    def is_busy(self) -> bool:
        """Whether a look runs."""
        return self._thread.is_busy

    def look(self, served: Served, job: RequestJob, work: Callable[[], T]) -> T:
        """The result of some work inside a model, when its turn comes.

        Raises:
            ApiError: too many looks are queued, or the job was cancelled.
        """
        until = time.monotonic() + PATIENCE_S
        with self._counting:
            if self._n_waiting >= (limit := self._limits.looks_waiting):
                raise busy(f"{limit} requests to look inside are queued. Retry in a moment.")
            self._n_waiting += 1
        try:
            with job.waiting(), self._turn:
                if job.cancelled is None:
                    served.scheduler.wait_until_idle(max(0.0, until - time.monotonic()))
                job.check()
                return self._thread.submit(partial(_cancellable, job, work)).result()
        finally:
            with self._counting:
                self._n_waiting -= 1

    # --- traces -------------------------------------------------------------------------------------------

    def trace(
        self, served: Served, job: RequestJob, text: TracedText, changes: Sequence[Intervention] = ()
    ) -> Trace:
        """The trace of a text; without a target, of what torch finds, with the tree of its search.

        Raises:
            ApiError: a text is too long, its language is unclear, or too many looks are queued.
            RegardError: texts and interventions do not fit the model.
        """
        self._check(served, text)
        beam = text.beam
        if isinstance(served, ServedTranslator):
            beam = beam or served.model.decoding.beam_size
            if text.to is None:
                _check_language(served, text.source)
        options: dict[str, Any] = {"to": text.to, "interventions": changes}
        if text.target is None:
            options |= {"prefix": text.prefix, "beam_size": beam, "length_penalty": text.length_penalty}
        trace = self.look(served, job, lambda: served.model.look(text.source, text.target, **options))
        if not np.isfinite(trace.log_probs).all():
            raise infinite()
        return trace

    def check_length(self, served: Served, param: str, text: str | Sequence[int]) -> None:
        """Check that a text, or token ids, may be traced.

        Raises:
            ApiError: it is too long.
        """
        limits = self._limits
        if isinstance(text, str) and len(text) > limits.characters:
            raise too_large(f"A text may have {limits.characters:,} characters.", param)
        n = len(served.model.subwords.encode_one(text)) if isinstance(text, str) else len(text)
        if n > limits.trace_tokens:
            raise too_large(
                f"A text to trace may have {limits.trace_tokens:,} tokens; this one has {n:,}.", param
            )

    def _check(self, served: Served, text: TracedText) -> None:
        if (text.beam or 0) > self._limits.beam:
            raise bad_value(f"beam is {text.beam}; the maximum is {self._limits.beam}.", "beam")
        if text.prefix and text.target is not None:
            raise bad_value("prefix and target exclude each other: send one of them.", "prefix")
        for param, side in (("source", text.source), ("target", text.target)):
            self.check_length(served, param, side or ())

    def interventions(
        self, served: Served, lists: Sequence[Sequence[dict[str, Any]]]
    ) -> list[tuple[Intervention, ...]]:
        """The interventions of a request; a patch may name a stored trace of this model.

        Raises:
            ApiError: there are too many, they refer to too many or too long texts, or a trace is unknown.
            RequestError: one is malformed.
        """
        from regard.look.interventions.activations import Activation
        from regard.look.interventions.interventions import from_json

        limits = self._limits
        if (n := sum(map(len, lists))) > (most := limits.interventions):
            raise bad_value(f"A request may have {most} interventions; this one has {n}.", "interventions")

        def stored(trace: str) -> Trace:
            blob = self.traces.get(trace)
            if blob.name != served.id:
                raise bad_value(f"Trace {trace!r} is of another model.", "interventions")
            return Trace.from_bytes(blob.content)

        found = [from_json(each, stored) for each in lists]
        changes = [each for one in found for each in one if isinstance(each, Activation)]
        texts = {reference for each in changes for reference in each.references}
        if len(texts) > (most := limits.intervention_texts):
            raise bad_value(
                f"Interventions may refer to {most} texts; these have {len(texts)}.", "interventions"
            )
        for source, target in texts:
            self.check_length(served, "interventions", source)
            self.check_length(served, "interventions", target or "")
        return found

    # --- ablation -----------------------------------------------------------------------------------------

    def ablate(
        self,
        served: Served,
        job: RequestJob,
        text: TracedText,
        lists: Sequence[Sequence[Intervention]],
        *,
        effects: bool,
    ) -> dict[str, Any]:
        """The output of the unchanged model, and for each list of interventions that of the changed model.

        An item has the output of the changed model (if no target was given), and the probability that it
        gives the unchanged model's output. Other looks may run between two of them. The unchanged output is
        cached, because a page that switches heads requests the same text again and again.
        """
        intact = self._outputs.get(_key(served, text), lambda: self._output(served, job, text))
        response: dict[str, Any] = {"model": served.id, "intact": intact.to_json(), "items": []}
        forced = replace(text, target=intact.ids)
        for changes in lists:
            if isinstance(served, ServedTranslator) and text.target is None:
                item = self._changed(served, job, text, intact, changes)
            else:
                item = {"log_prob_of_intact": self._output(served, job, forced, changes).log_prob}
                if text.target is None:
                    item |= self._output(served, job, text, changes).to_json()
            response["items"].append(item)
        if effects:
            response["effects"] = self._outputs.get(
                ("effects", served.id, forced), lambda: self._effects(served, job, forced, intact.first)
            )
        return response

    def cache_output(self, served: Served, text: TracedText, trace: Trace) -> None:
        """Cache the output of an unchanged model from its trace: an ablation is likely to follow."""
        if not isinstance(served, ServedGenerator):  # whose trace is of its prompt
            self._outputs.get(_key(served, text), lambda: _traced_output(served, trace))

    def _changed(
        self,
        served: ServedTranslator,
        job: RequestJob,
        text: TracedText,
        intact: ModelOutput,
        changes: Sequence[Intervention],
    ) -> dict[str, Any]:
        """What a changed translator writes, without traces: a page waits for this at every click."""

        def work() -> ChangedOutput:
            beam = served.model.decoding.beam_size
            return served.model.changed_output(text.source, intact.ids, changes, to=text.to, beam_size=beam)

        found = self.look(served, job, work)
        if not np.isfinite([found.log_prob, found.log_prob_of_intact]).all():
            raise infinite()
        output = ModelOutput(found.ids, served.model.subwords.decode(found.ids), found.log_prob)
        return {"log_prob_of_intact": found.log_prob_of_intact} | output.to_json()

    def _effects(self, served: Served, job: RequestJob, forced: TracedText, first: int) -> dict[str, Any]:
        """How much more likely the unchanged output becomes without each head."""
        from regard.look.interventions.ablation import collected

        trace = self.trace(served, job, forced)
        batches = served.model.effects_of_heads(trace, first, EFFECT_TOKENS)
        found: list[Mapping[HeadOff, float]] = []
        while (batch := self.look(served, job, lambda: next(batches, None))) is not None:
            found.append(batch)
            with job.waiting():
                time.sleep(TURN_S)  # a lock alone would let this thread go on
        return {kind: each.tolist() for kind, each in collected(trace, found).items()}

    def _output(
        self, served: Served, job: RequestJob, text: TracedText, changes: Sequence[Intervention] = ()
    ) -> ModelOutput:
        """The output of a changed model; or the given one, as the changed model scores it."""
        if isinstance(served, ServedGenerator):
            return self._continuation(served, job, text, changes)
        return _traced_output(served, self.trace(served, job, text, changes))

    def _continuation(
        self, served: ServedGenerator, job: RequestJob, text: TracedText, changes: Sequence[Intervention]
    ) -> ModelOutput:
        from regard.look.interventions.ablation import continued

        subwords = served.model.subwords
        prompt = subwords.encode_one(text.source).tolist()
        if text.target is None:
            generator = served.model.generator
            room = min(
                CONTINUATION_TOKENS, served.model.max_length - len(prompt) - 1
            )  # 1 for the start token
            if room < 1:
                raise too_large(f"The text has {len(prompt):,} tokens: there is no room for more.", "source")
            ids = tuple(self.look(served, job, lambda: continued(generator, prompt, room, changes)))
        else:
            given = text.target
            ids = tuple(subwords.encode_one(given).tolist()) if isinstance(given, str) else given
        trace = self.trace(served, job, replace(text, target=ids), changes)
        added = subwords.decode([*prompt, *ids])[len(subwords.decode(prompt)) :]
        first = len(trace.targets) - len(ids)
        return ModelOutput(ids, added, _log_prob(trace, first), first=first)


def _cancellable(job: RequestJob, work: Callable[[], T]) -> T:
    with cancellable(job.check):
        return work()


def infinite() -> ApiError:
    """An error for interventions with which a model computes no numbers."""
    return bad_value("With these interventions the model's numbers are infinite.", "interventions")


def _key(served: Served, text: TracedText) -> Hashable:
    return "intact", served.id, text


def _traced_output(served: Served, trace: Trace) -> ModelOutput:
    """The output of a translator or a classifier in its trace."""
    if isinstance(served, ServedClassifier):
        labels = {each.text: each.probability for each in trace.candidates(0)}
        return ModelOutput(trace.targets, served.model.labels[trace.targets[0]], _log_prob(trace), labels)
    subwords = served.model.subwords
    ids = trace.targets[:-1] if trace.targets and trace.targets[-1] == subwords.eos_id else trace.targets
    return ModelOutput(ids, subwords.decode(ids), _log_prob(trace))


def _log_prob(trace: Trace, first: int = 0) -> float:
    return float(trace.log_probs[first:].sum())


def _check_language(served: ServedTranslator, source: str) -> None:
    """Raise an error with its own code for a text of unclear language, so that a page can ask for it."""
    try:
        served.model.directions.detect(source)
    except RequestError as unclear:
        raise unclear_language(f"{unclear}.", "to") from None
