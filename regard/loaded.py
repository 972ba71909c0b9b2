"""What `regard.load` opens: a model that works as fast as it can, and shows how when somebody looks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from regard.bundle.bundle import Description, describe_bundle
from regard.bundled import DEFAULT
from regard.config.checking import did_you_mean
from regard.engine.aligner import Aligner
from regard.engine.engines.fallback import Engines
from regard.engine.engines.protocol import Request
from regard.engine.loading import (
    EngineName,
    model_folder,
    of_another_task,
    open_as,
    subword_model,
)
from regard.engine.options import Options
from regard.engine.task_model import TaskModel
from regard.errors import ConfigError, RequestError, TooLongError
from regard.exchange.ctranslate2.weights_file import Quantisation
from regard.look.alignment.heads import (
    AligningHeads,
    keep_aligning_heads,
    read_aligning_heads,
    usual_heads,
)
from regard.look.trace.contents import INFLUENCE
from regard.look.trace.tokens import token_ids
from regard.text.vocabularies import read_vocabulary

if TYPE_CHECKING:  # torch is not imported before somebody looks
    import numpy as np

    from regard.engine.engines.torch_engine import TorchEngine
    from regard.look.influence.methods import Measures
    from regard.look.interventions.interventions import Intervention
    from regard.look.trace.blocks import Kind
    from regard.look.trace.neighbours import Neighbours
    from regard.look.trace.trace import Trace
    from regard.look.trace.tracing import Text
    from regard.model.transformer import Transformer


def load(
    folder: Path | str | Sequence[Path | str] = DEFAULT,
    *,
    engine: EngineName = "auto",
    device: str = "auto",
    threads: int | None = None,
    quantisation: Quantisation | None = None,
) -> LoadedModel:
    """Open a model: one that translates, or one for another task, which can be looked at.

    Args:
        folder: a model folder, or a run's, whose best model is meant, or the name of a bundled one; several
            are an ensemble of translators or of classifiers, which takes torch. By default the bundled
            translator.
        engine: `ctranslate2`, `torch`, or `auto`: for each request CTranslate2 if it can, else torch. Results
            tell what ran.
        device: `cpu`, `cuda`, or `auto`: with torch, a GPU if there is one. CTranslate2 runs on CPUs here, so
            `auto` takes torch where `cuda` is asked for.
        threads: CPU cores to use; by default all that there are.
        quantisation: how weights are kept. With CTranslate2 by default int8, or float32 where the CPU lacks
            it; torch knows float32 and bfloat16, which is its default on GPUs.

    Raises:
        BundleError: a model folder is missing, damaged or without subwords.
        ConfigError: the engine does not exist, or cannot run the model; or several models are not alike.
    """
    folders = [folder] if isinstance(folder, Path | str) else list(folder)
    described = [describe_bundle(model_folder(each)) for each in folders]
    for each in described:
        if (own := each.config.architecture) != (other := described[0].config.architecture):
            told = f"{own}, and {described[0].folder} of the {other}: models of one ensemble are alike"
            raise ConfigError(f"{each.folder}: is a model of the {told}")
    if described and described[0].config.architecture != "encoder-decoder":
        return _to_be_looked_at(described, device)
    return open_as(
        LoadedModel, folder, engine=engine, device=device, threads=threads, quantisation=quantisation
    )


class LoadedModel(TaskModel):
    """A loaded model: text in, text out, and everything between."""

    def look(
        self,
        source: Text,
        target: Text | None = None,
        *,
        to: str | None = None,
        prefix: Sequence[int] = (),
        interventions: Sequence[Intervention] = (),
        beam_size: int | None = None,
        length_penalty: float | None = None,
    ) -> Trace:
        """Trace what the model does with a text.

        A translation is found as fast as usual, by the engine that translates. Where torch does it, the trace
        has the tree of the search; with a beam size, or with interventions, torch always does it. The weights
        that are looked at are read when one looks for the first time.

        Args:
            source: what it reads, in one piece: a text, or token ids.
            target: what it is to have written, whole or in part: a text, or token ids, such as those of a
                node of a beam tree. Without one, a translation is searched for. Of a classifier, a label, by
                its name or, as `[2]`, its number; without one, the likeliest.
            to: the language to translate into; where a model knows both directions, else the source tells.
            prefix: token ids that an output which is searched for must begin with, such as those of another
                node of a beam tree.
            interventions: what to change inside of the model, in the search too.
            beam_size: hypotheses that are kept at each step of the search; by default as the folder says.
            length_penalty: the paper's alpha, by which that search weighs lengths; by default the folder's.

        Raises:
            RequestError: a text is too long, interventions do not fit it, or several models were loaded.
        """
        from regard.look.trace.tracing import look

        bundle = self._watched
        ids = self._fitting(self.read(source, to=to) if isinstance(source, str) else source)
        answer = None if target is None else self._wanted(target)
        searching = answer is None and bundle.config.architecture == "encoder-decoder"
        of_search = {
            "beam_size": beam_size,
            "length_penalty": length_penalty,
            "prefix": tuple(prefix) or None,
        }
        for name, given in of_search.items():
            if given is not None and not searching:
                raise RequestError(f"`{name}` is for a search, and here there is nothing to search for")
        options = Options(beam_size=beam_size, length_penalty=length_penalty)
        search, engine = options.search(self.decoding), ""
        if searching and beam_size is None and not interventions:
            chosen = self._engines.choose(request := Request(ids=ids, prefix=tuple(prefix)), search)
            if chosen.name != "torch":  # which is observed below
                ((best, *_),) = chosen.decode([request], search)
                answer, engine = best.ids, chosen.name
        trace = look(
            bundle.model,
            self.subwords,
            ids,
            answer,
            prefix=() if engine else prefix,
            search=search,
            interventions=interventions,
            several=self.task.label_separator is not None,
            engine=self._searching_inside if searching and not engine else None,
        )
        if self.labels:
            trace = replace(trace, pieces={i: self.labels[i] for i in trace.pieces})
        return replace(trace, engine=engine or trace.engine, weights_hash=self.description.weights_hash)

    def head_effects(self, trace: Trace, first: int = 0) -> dict[Kind, np.ndarray]:
        """For each kind (layers, heads): how much likelier what was written becomes without this head.

        Args:
            trace: what was written, or the label of a classifier.
            first: the first token of what was written that counts, as where a continuation begins.

        Raises:
            RequestError: there is no such token, or the trace cannot have come from this model.
        """
        from regard.look.interventions.head_effects import effect_of_each_head

        return effect_of_each_head(self._watched.model, trace, first)

    def influence(
        self, trace: Trace, row: int = 0, *, method: str = "integrated-gradients", prefix: bool = False
    ) -> np.ndarray:
        """How much each token that was read had to do with one that was written, or with a label.

        Args:
            trace: what was read and written.
            row: the token that was written; of a classifier 0, its label.
            method: attention, norms, rollout, gradient-x-input, integrated-gradients, value-zeroing or
                leave-one-out. Of the last four, a token above 0 made it likelier; the others tell shares.
            prefix: whether a translator is asked for the tokens that it had written as well, behind those of
                the inputs.

        Raises:
            RequestError: there is no such row or method, or the trace cannot have come from this model.
        """
        from regard.look.influence.measures import influence_by

        return influence_by(method, self._watched.model, trace, row, prefix=prefix)

    def influences(self, trace: Trace, row: int = 0) -> Measures:
        """Influence by every method, with what was written before; how far they agree, and which to trust.

        Raises:
            RequestError: there is no such row, or the trace cannot have come from this model.
        """
        from regard.look.influence.measures import measures

        return measures(self._watched.model, trace, row)

    def with_influence(self, trace: Trace) -> Trace:
        """The trace of a classifier, with the influence of each token on its label: tables and pages show it.

        Raises:
            RequestError: the trace cannot have come from this model.
        """
        return replace(trace, arrays={**trace.arrays, INFLUENCE: self.influence(trace)})

    def with_influences(self, trace: Trace, row: int = 0, method: str | None = None) -> Trace:
        """The trace, with influence on the token of a row by a method or by all, for the view `influence`.

        Raises:
            RequestError: there is no such row or method, or the trace cannot have come from this model.
        """
        from regard.look.influence.measured import with_measured
        from regard.look.influence.methods import METHODS

        methods = METHODS if method is None else (method,)
        found = {each: self.influence(trace, row, method=each, prefix=True) for each in methods}
        return with_measured(trace, row, found)

    def positions(self, length: int) -> np.ndarray | None:
        """What is added to the embeddings at the first places, (length, d_model); None where nothing is.

        Raises:
            ShapeError: fewer positions were learned.
        """
        from regard.packing import pack

        model = self._watched.model
        side = "input_positions" if hasattr(model, "input_positions") else "output_positions"
        positions = getattr(model, side)
        if positions is None:
            return None
        device = next(model.parameters()).device
        found: np.ndarray = positions(pack([[0] * length], device).boundaries).detach().cpu().numpy()
        return found

    def neighbours(self, text: str, n: int = 8) -> Neighbours:
        """The tokens whose embeddings are most alike to those of a text's tokens, by cosine.

        Args:
            text: a word, or a whole text; each of its tokens is asked for once.
            n: neighbours of each token.

        Raises:
            RequestError: there is no token in the text, or several models were loaded.
        """
        from regard.look.trace.neighbours import neighbours

        if not (ids := self.subwords.encode_one(text).tolist()):
            raise RequestError("there is no token in the text whose neighbours could be found")
        model = self._watched.model
        side = "input_embedding" if hasattr(model, "input_embedding") else "output_embedding"
        embedding_VD = getattr(model, side).weight.detach().float().cpu().numpy()
        return neighbours(embedding_VD, ids, self.subwords.pieces, n)

    def measure_alignment(self, sources: Iterable[str], targets: Iterable[str]) -> AligningHeads:
        """Measure which heads align words best, on pairs not trained on, and keep that in the folder.

        Args:
            sources: texts, such as the lines of a file; a few hundred are enough, a thousand are used.
            targets: their translations.

        Raises:
            RequestError: the pairs are too few, or the model has no cross-attention.
        """
        from regard.look.alignment.measuring import measure_heads

        model = self._translator_to_watch
        read, written = ([text.rstrip("\n") for text in side] for side in (sources, targets))
        if len(read) != len(written):
            raise RequestError(f"{len(read)} sources and {len(written)} targets: one of each is a pair")
        pairs = [(self.read(text), self._encoded(other)) for text, other in zip(read, written, strict=True)]
        heads = measure_heads(model, self.subwords, pairs)
        keep_aligning_heads(self.folders[0], heads)
        self.__dict__.pop("aligning_heads", None)  # to be read anew
        return heads

    @cached_property
    def aligning_heads(self) -> AligningHeads:
        """The heads that words are aligned by: as measured, or else those that are taken unmeasured."""
        return read_aligning_heads(self.folders[0]) or usual_heads(self.description.config)

    def aligner(self) -> Aligner:
        """Who aligns words: the heads that were measured, or the usual ones.

        Raises:
            RequestError: the model has no cross-attention, or several were loaded.
        """
        from regard.look.alignment.aligner import WordAligner

        return WordAligner(self._translator_to_watch, self.subwords, self.aligning_heads)

    @cached_property
    def _searching_inside(self) -> TorchEngine:
        """What searches while somebody looks: to lay its weights out takes as long as half a search."""
        from regard.engine.engines.torch_engine import TorchEngine

        model, subwords = self._translator_to_watch, self.subwords
        device = next(model.parameters()).device
        return TorchEngine([model], bos=subwords.bos_id, eos=subwords.eos_id, device=device)

    @property
    def _translator_to_watch(self) -> Transformer:
        from regard.model.transformer import Transformer

        if not isinstance(model := self._watched.model, Transformer):
            raise RequestError("only an encoder-decoder model aligns outputs with inputs")
        return model

    def _encoded(self, text: Text) -> Sequence[int]:
        return self.subwords.outputs.encode_one(text).tolist() if isinstance(text, str) else text

    def _wanted(self, target: Text) -> Sequence[int]:
        """The token ids of what is to have been written; of a classifier, the number of the label."""
        if not self.labels:
            return self._fitting(self._encoded(target))
        if not isinstance(target, str):
            return target
        if target not in self.labels:
            known = did_you_mean(target, self.labels) or f"; there are {', '.join(self.labels)}"
            raise RequestError(f"there is no label {target!r}{known}")
        return [self.labels.index(target)]

    def _fitting(self, ids: Sequence[int]) -> tuple[int, ...]:
        if len(ids) >= self.max_length:
            most = f"the model reads {self.max_length - 1:,} at most"
            raise TooLongError(f"a text of {len(ids):,} tokens cannot be looked at in one piece: {most}")
        return token_ids(ids, self.description.config.vocab_size)


def _to_be_looked_at(described: Sequence[Description], device: str) -> LoadedModel:
    """Models for another task; whoever wants a translation of them is told why there is none."""
    first = described[0]

    def refuse() -> NoReturn:
        raise of_another_task(first)

    return LoadedModel(
        Engines([refuse]),
        read_vocabulary(subword_model(first)),
        max_length=min(each.config.max_length for each in described),
        decoding=first.decoding,
        task=first.task,
        folders=[each.folder for each in described],
        device=device,
    )
