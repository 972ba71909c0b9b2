"""`LoadedModel`: what `regard.load` returns, for any task; a subclass per kind of task has its verbs.

    RunnableModel               what is in the folder, and the verbs of every task
    └── LoadedModel             looking inside
        ├── LoadedTranslator    translate, stream, translator, respond, score, measure_alignment
        ├── LoadedGenerator     generate, continue_text
        └── LoadedClassifier    classify

torch is imported on first use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from regard.errors import RequestError, TooLongError
from regard.look.alignment.alignment import AligningHeads, default_heads, read_aligning_heads
from regard.look.influence import STEPS
from regard.look.trace.blocks import INFLUENCE
from regard.look.trace.tokens import token_ids
from regard.tasks.loaded.runnable import RunnableModel

if TYPE_CHECKING:
    import numpy as np

    from regard.look.influence.methods import Influence, InfluenceMeasures
    from regard.look.interventions.interventions import HeadOff, Intervention
    from regard.look.trace.blocks import Kind
    from regard.look.trace.comparison import Neighbours
    from regard.look.trace.recorder import Text
    from regard.look.trace.trace import Trace


class LoadedModel(RunnableModel):
    """A model folder, ready for use; or several as an ensemble."""

    def look(
        self,
        source: Text,
        target: Text | None = None,
        *,
        to: str | None = None,
        prefix: Sequence[int] = (),
        interventions: Sequence[Intervention | Mapping[str, Any]] = (),
        beam_size: int | None = None,
        length_penalty: float | None = None,
    ) -> Trace:
        """Trace what the model does with a text.

        A translator first finds a translation with its usual engine. If that is torch, the trace has the tree
        of the beam search; with `beam_size` or interventions, torch always runs.

        Args:
            source: what the model reads, in one piece: a text, or token ids.
            target: the output to assume, complete or partial: a text, or token ids, such as those of a node
                of a beam tree; by default a translator searches for one. For a classifier, a label by its
                name or, as `[2]`, its number; by default the most likely.
            to: the target language; by default detected, if the model knows both directions.
            prefix: token ids that the output of a search must begin with.
            interventions: changes inside the model, also during the search; also as plain values, as in JSON.
            beam_size: hypotheses kept at each step of the search; by default as in the model folder.
            length_penalty: the paper's alpha in that search; by default as in the model folder.

        Raises:
            RequestError: a text is too long, interventions do not fit it, or several models were loaded.
        """
        from regard.look.trace.recorder import look

        search_only = {"beam_size": beam_size, "length_penalty": length_penalty, "prefix": prefix or None}
        for name, value in search_only.items():
            if value is not None:
                raise RequestError(
                    f"`{name}` needs a search, but there is nothing to search for", code="no_search"
                )
        trace = look(
            self.bundle.model,
            self.subwords,
            self._checked(self.read(source, to=to) if isinstance(source, str) else source),
            None if target is None else self._target_ids(target),
            interventions=interventions,
            read=partial(self.read, to=to),
            multi_label=self.task.label_separator is not None,
        )
        return self._named(trace)

    def head_effects(self, trace: Trace, first: int = 0) -> dict[Kind, np.ndarray]:
        """How much more likely the output becomes without each head: per kind (layers, heads).

        Args:
            trace: a trace of this model.
            first: the first output token that counts, as where a continuation begins.

        Raises:
            RequestError: there is no such token, or the trace is of another model.
        """
        from regard.look.interventions.ablation import effect_of_each_head

        return effect_of_each_head(self.bundle.model, trace, first)

    def effects_of_heads(self, trace: Trace, first: int, batch_tokens: int) -> Iterator[dict[HeadOff, float]]:
        """The same, batch by batch, so that something else can run in between.

        Raises:
            RequestError: there is no such token, or the trace is of another model.
        """
        from regard.look.interventions.ablation import effects_of_heads

        return effects_of_heads(self.bundle.model, trace, first, batch_tokens)

    def influence(
        self,
        trace: Trace,
        row: int = 0,
        *,
        method: str = "integrated-gradients",
        prefix: bool = False,
        steps: int = STEPS,
    ) -> Influence:
        """The influence of each input token on an output token, or on a label.

        Args:
            trace: a trace of this model.
            row: the output token; 0 for the label of a classifier.
            method: attention, norms, rollout, gradient-x-input, integrated-gradients, value-zeroing or
                leave-one-out. For the last four, a value above 0 makes the output more likely; the others
                are shares.
            prefix: whether to append the influence of the output tokens before it, for a translator.
            steps: most points at which integrated gradients evaluate the gradient; they stop when the errors
                of all intervals sum to at most 7% of all changes in log-probability. These errors are
                distributed, so that the values add up; the `convergence` of the returned array has their sum.

        Raises:
            RequestError: there is no such row or method, or the trace is of another model.
        """
        from regard.look.influence.attribution import influence_by

        return influence_by(method, self.bundle.model, trace, row, prefix=prefix, steps=steps)

    def influences(self, trace: Trace, row: int = 0, *, steps: int = STEPS) -> InfluenceMeasures:
        """Influence by every method, including earlier output tokens; how far they agree, and which to trust.

        `steps` are those of integrated gradients, whose `convergence` is part of the result.

        Raises:
            RequestError: there is no such row, or the trace is of another model.
        """
        from regard.look.influence.attribution import measure_influence

        return measure_influence(self.bundle.model, trace, row, steps=steps)

    def with_influence(self, trace: Trace, *, steps: int = STEPS) -> Trace:
        """The trace of a classifier with the influence of each token on the label, for tables and pages.

        Raises:
            RequestError: the trace is of another model.
        """
        from regard.look.influence.methods import arrays_of

        found = arrays_of(INFLUENCE, self.influence(trace, steps=steps))
        return replace(trace, arrays={**trace.arrays, **found})

    def with_influences(
        self, trace: Trace, row: int = 0, method: str | None = None, *, steps: int = STEPS
    ) -> Trace:
        """The trace with the influence on one row by one method, or by all, for the view `influence`.

        Raises:
            RequestError: there is no such row or method, or the trace is of another model.
        """
        from regard.look.influence.methods import METHODS, store_influence

        methods = METHODS if method is None else (method,)
        influences = {
            each: self.influence(trace, row, method=each, prefix=True, steps=steps) for each in methods
        }
        return store_influence(trace, row, influences)

    def positions(self, length: int) -> np.ndarray | None:
        """What is added to the embeddings at the first positions, (length, d_model); None if nothing is.

        Raises:
            ShapeError: fewer positions were learned.
        """
        from regard.packing import pack

        model = self.bundle.model
        side = "input_positions" if hasattr(model, "input_positions") else "output_positions"
        device = next(model.parameters()).device
        added = getattr(model, side)(pack([[0] * length], device).boundaries)
        return None if added is None else added.detach().cpu().numpy()

    def neighbours(self, text: str, n: int = 8) -> Neighbours:
        """The tokens whose embeddings are closest to those of a text's tokens, by cosine similarity.

        Args:
            text: a word or a longer text; duplicate tokens are shown once.
            n: neighbours per token.

        Raises:
            RequestError: the text has no token, or several models were loaded.
        """
        from regard.look.trace.comparison import neighbours

        if not (ids := self.subwords.encode_one(text).tolist()):
            raise RequestError("the text has no token whose neighbours could be shown", code="empty_text")
        model = self.bundle.model
        side = "input_embedding" if hasattr(model, "input_embedding") else "output_embedding"
        embedding_VD = getattr(model, side).weight.detach().float().cpu().numpy()
        return neighbours(embedding_VD, ids, self.subwords.pieces, n)

    @cached_property
    def aligning_heads(self) -> AligningHeads:
        """The heads for word alignment: as measured, or else the default ones."""
        return read_aligning_heads(self.folders[0]) or default_heads(self.description.config)

    def _named(self, trace: Trace) -> Trace:
        """The trace with the hash of this model's weights."""
        return replace(trace, weights_hash=self.description.weights_hash)

    def _target_ids(self, target: Text) -> Sequence[int]:
        """The token ids of an output to assume."""
        ids = self.subwords.outputs.encode_one(target).tolist() if isinstance(target, str) else target
        return self._checked(ids)

    def _checked(self, ids: Sequence[int]) -> tuple[int, ...]:
        if len(ids) >= self.max_length:
            raise TooLongError(
                f"a text of {len(ids):,} tokens cannot be traced: the model reads at most "
                f"{self.max_length - 1:,}",
                code="too_long",
            )
        return token_ids(ids, self.description.config.vocab_size)
