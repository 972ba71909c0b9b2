"""What `regard.load` opens: a model that works as fast as it can, and shows how when somebody looks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, overload

from regard.bundle.bundle import Description, describe_bundle
from regard.bundle.labels import read_labels
from regard.bundled import DEFAULT
from regard.data.templates import read_of
from regard.engine.aligner import Aligner
from regard.engine.classification import Classification, Labelling
from regard.engine.engine import Request
from regard.engine.engines import Engines
from regard.engine.generation import Continuation, Generation
from regard.engine.loading import (
    EngineName,
    load_onto,
    model_folder,
    of_another_task,
    open_as,
    subword_model,
)
from regard.engine.model import Model
from regard.engine.options import Options
from regard.engine.result import Result
from regard.engine.translator import Translator
from regard.errors import RequestError
from regard.exchange.ctranslate2_file import Quantisation
from regard.look.aligning_heads import (
    AligningHeads,
    keep_aligning_heads,
    read_aligning_heads,
    usual_heads,
)
from regard.text.vocabularies import read_vocabulary

if TYPE_CHECKING:  # torch is not imported before somebody looks
    import numpy as np

    from regard.bundle import Bundle
    from regard.engine.classifier import TextClassifier
    from regard.engine.generator import Generator
    from regard.look.blocks import Kind
    from regard.look.interventions import Intervention
    from regard.look.looking import Text
    from regard.look.trace import Trace
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
            are an ensemble, which takes torch. By default the bundled translator.
        engine: `ctranslate2`, `torch`, or `auto`: for each request CTranslate2 if it can, else torch. Results
            tell what ran.
        device: `cpu`, `cuda`, or `auto`: with torch, a GPU if there is one. CTranslate2 runs on CPUs here, so
            `auto` takes torch where `cuda` is asked for.
        threads: CPU cores to use; by default all that there are.
        quantisation: how weights are kept. With CTranslate2 by default int8, or float32 where the CPU lacks
            it; torch knows float32 and bfloat16, which is its default on GPUs.

    Raises:
        BundleError: a model folder is missing, damaged or without subwords.
        ConfigError: the engine does not exist, or cannot run the model.
    """
    if isinstance(folder, Path | str):
        described = describe_bundle(model_folder(folder))
        if described.config.architecture != "encoder-decoder":
            return _to_be_looked_at(described, device)
    return open_as(
        LoadedModel, folder, engine=engine, device=device, threads=threads, quantisation=quantisation
    )


class LoadedModel(Model):
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
    ) -> Trace:
        """Trace what the model does with a text.

        A translation is found as fast as usual, by the engine that translates. Where torch does it, the trace
        has the tree of the search; with a beam size, or with interventions, torch always does it. The weights
        that are looked at are read when one looks for the first time.

        Args:
            source: what it reads, in one piece: a text, or token ids.
            target: what it is to have written, whole or in part: a text, or token ids, such as those of a
                node of a beam tree. Without one, a translation is searched for.
            to: the language to translate into; where a model knows both directions, else the source tells.
            prefix: token ids that an output which is searched for must begin with, such as those of another
                node of a beam tree.
            interventions: what to change inside of the model, in the search too.
            beam_size: hypotheses that are kept at each step of the search; by default as the folder says.

        Raises:
            RequestError: a text is too long, interventions do not fit it, or several models were loaded.
        """
        from regard.look.looking import look

        bundle = self._watched
        ids = self._fitting(self.read(source, to=to) if isinstance(source, str) else source)
        answer = None if target is None else self._fitting(self._encoded(target))
        searching = answer is None and bundle.config.architecture == "encoder-decoder"
        if beam_size is not None and not searching:
            raise RequestError("beam_size is for a search, and here there is nothing to search for")
        search, engine = Options(beam_size=beam_size).search(self.decoding), ""
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
            prefix=prefix,
            search=search,
            interventions=interventions,
        )
        if self.labels:
            trace = replace(trace, pieces={i: self.labels[i] for i in trace.pieces})
        return replace(trace, engine=engine or trace.engine, weights_hash=self.description.weights_hash)

    @overload
    def generate(self, prompts: str, **options: Any) -> Continuation: ...
    @overload
    def generate(self, prompts: Sequence[str], **options: Any) -> list[Continuation]: ...
    def generate(self, prompts: str | Sequence[str], **options: Any) -> Continuation | list[Continuation]:
        """Continue a text, or each of a list; of a model of the decoder alone.

        Args:
            prompts: how a text begins; it may be empty.
            options: the fields of `Generation`: `max_tokens`, `temperature`, `top_k`, `top_p`, `min_p`,
                `seed`, `stop`, `past_length`.

        Raises:
            RequestError: what is asked for cannot be done, or the model is for another task.
        """
        asked, generator = _generation(options), self.generator
        if isinstance(prompts, str):
            return generator.generate(prompts, asked)
        return [generator.generate(prompt, asked) for prompt in prompts]

    def continue_text(self, prompt: str, **options: Any) -> Iterator[str]:
        """What `generate` adds to a text, piece by piece as it is found, each made of whole characters."""
        return self.generator.stream(prompt, _generation(options))

    @cached_property
    def generator(self) -> Generator:
        """What continues texts.

        Raises:
            RequestError: the model is for another task.
        """
        from regard.engine.generator import Generator
        from regard.model.language_model import LanguageModel

        if self.description.config.architecture != "decoder":
            raise RequestError(f"{self.folders[0]}: only a model of the decoder alone continues texts")
        model = self._watched.model
        assert isinstance(model, LanguageModel), "the description says so"
        return Generator(model, self.subwords)

    @overload
    def classify(self, texts: str, **options: Any) -> Classification: ...
    @overload
    def classify(self, texts: Sequence[str], **options: Any) -> list[Classification]: ...
    def classify(self, texts: str | Sequence[str], **options: Any) -> Classification | list[Classification]:
        """Label a text, or each of a list; of a model of the encoder alone.

        Args:
            texts: none of them empty.
            options: the fields of `Labelling`: `too_long`.

        Raises:
            RequestError: a text cannot be labelled, or the model is for another task.
        """
        try:
            asked = Labelling(**options)
        except TypeError as error:
            raise RequestError(f"{error}; the options are {', '.join(Labelling.__slots__)}") from None
        classifier = self.classifier
        if isinstance(texts, str):
            return classifier.classify([texts], asked)[0]
        return classifier.classify(texts, asked)

    @cached_property
    def classifier(self) -> TextClassifier:
        """What labels texts.

        Raises:
            RequestError: the model is for another task.
        """
        from regard.engine.classifier import TextClassifier
        from regard.model.classifier import Classifier

        if self.description.config.architecture != "encoder":
            raise RequestError(f"{self.folders[0]}: only a model of the encoder alone labels texts")
        model = self._watched.model
        assert isinstance(model, Classifier), "the description says so"
        several = self.task.label_separator is not None
        return TextClassifier(model, self.subwords, self.labels, several)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """What a classifier tells apart, in the order of its outputs; nothing for other models."""
        n_labels = self.description.config.n_labels
        return read_labels(self.folders[0], n_labels) if n_labels else ()

    def head_effects(self, trace: Trace) -> dict[Kind, np.ndarray]:
        """For each kind (layers, heads): how much likelier what was written becomes without this head.

        Raises:
            RequestError: the trace cannot have come from this model.
        """
        from regard.look.head_effects import effect_of_each_head

        return effect_of_each_head(self._watched.model, trace)

    def influence(self, trace: Trace, row: int = 0) -> np.ndarray:
        """How much each token that was read had to do with one that was written, by integrated gradients.

        Above 0 it made that token, or the label of a classifier, likelier.

        Raises:
            RequestError: there is no such row, or the trace cannot have come from this model.
        """
        from regard.look.influence import integrated_gradients

        return integrated_gradients(self._watched.model, trace, row)

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

    def measure_alignment(self, sources: Iterable[str], targets: Iterable[str]) -> AligningHeads:
        """Measure which heads align words best, on pairs not trained on, and keep that in the folder.

        Args:
            sources: texts, such as the lines of a file; a few hundred are enough, a thousand are used.
            targets: their translations.

        Raises:
            RequestError: the pairs are too few, or the model has no cross-attention.
        """
        from regard.look.measuring_heads import measure_heads

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

    def translator(self, **options: Any) -> Translator:
        """What translates lists of texts in one way: for those who call it many times.

        Raises:
            ConfigError: the model is for another task.
        """
        if self.description.config.architecture != "encoder-decoder":
            raise of_another_task(self.description)
        if self.task.name != "translate":  # a document's summary is not that of its sentences
            options |= {"whole_lines": True, "too_long": "error"}
        return super().translator(**options)

    def respond(self, row: str | Mapping[str, Any], **options: Any) -> Result:
        """What the model writes for named fields, such as a question and its context; or for a whole text.

        Args:
            row: the fields that `task.input` names; of `turns`, all that was said so far.
            options: the fields of `Options`.

        Raises:
            RequestError: a field is missing, or the whole is too long for the model.
        """
        read = row if isinstance(row, str) else read_of(self.task.templates[0], row)
        return self.translate(read, **options)

    def aligner(self) -> Aligner:
        """Who aligns words: the heads that were measured, or the usual ones.

        Raises:
            RequestError: the model has no cross-attention, or several were loaded.
        """
        from regard.look.word_aligner import WordAligner

        return WordAligner(self._translator_to_watch, self.subwords, self.aligning_heads)

    @property
    def _translator_to_watch(self) -> Transformer:
        from regard.model.transformer import Transformer

        if not isinstance(model := self._watched.model, Transformer):
            raise RequestError("only an encoder-decoder model aligns outputs with inputs")
        return model

    @cached_property
    def description(self) -> Description:
        """What can be told of the folder, the first where there are several."""
        return describe_bundle(self.folders[0])

    @cached_property
    def _watched(self) -> Bundle:
        """The model that is looked at."""
        if len(self.folders) != 1:
            raise RequestError(
                f"{len(self.folders)} models were loaded together: load one alone to look inside"
            )
        return load_onto(self.folders[0], self.device)

    def _encoded(self, text: Text) -> Sequence[int]:
        return self.subwords.outputs.encode_one(text).tolist() if isinstance(text, str) else text

    def _fitting(self, ids: Sequence[int]) -> tuple[int, ...]:
        if len(ids) >= self.max_length:
            most = f"the model reads {self.max_length - 1:,} at most"
            raise RequestError(f"a text of {len(ids):,} tokens cannot be looked at in one piece: {most}")
        return tuple(int(i) for i in ids)


def _generation(options: dict[str, Any]) -> Generation:
    try:
        return Generation(**options)
    except TypeError as error:
        raise RequestError(f"{error}; the options are {', '.join(Generation.__slots__)}") from None


def _to_be_looked_at(described: Description, device: str) -> LoadedModel:
    """A model for another task; whoever wants a translation of it is told why there is none."""

    def refuse() -> NoReturn:
        raise of_another_task(described)

    return LoadedModel(
        Engines([refuse]),
        read_vocabulary(subword_model(described)),
        max_length=described.config.max_length,
        decoding=described.decoding,
        task=described.task,
        folders=[described.folder],
        device=device,
    )
