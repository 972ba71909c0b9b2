"""A loaded encoder-decoder model: translates, summarises, answers or converses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from regard.bundle.bundle import Description
from regard.config.checking import counted
from regard.config.task import TEMPLATES
from regard.data.reading.templates import model_input_of_text
from regard.engine.direction import Directions
from regard.engine.engines.protocol import Engines, Request
from regard.engine.loading import TORCH_DTYPES, EngineName, engines_of, subword_model
from regard.engine.options import TranslateKeywords, TranslateOptions, options_of, takes
from regard.engine.results import Aligner, Score, TranslatedLines
from regard.engine.translator import Translator
from regard.errors import BundleError, RequestError, TooLongError
from regard.exchange.ctranslate2.weights_file import Quantisation
from regard.look.alignment.alignment import AligningHeads, save_aligning_heads
from regard.tasks.loaded import LoadedModel
from regard.text.vocabularies.subwords import Subwords
from regard.text.vocabularies.vocabulary import Vocabulary

if TYPE_CHECKING:
    from regard.engine.engines.torch_engine import TorchEngine
    from regard.look.interventions.ablation import ChangedOutput
    from regard.look.interventions.interventions import Intervention
    from regard.look.trace.recorder import Text
    from regard.look.trace.trace import Trace
    from regard.model.transformer import Transformer
    from regard.tasks.loaded.files import FileReport


class LoadedTranslator(LoadedModel):
    """A model that writes a text for a text, with the engines that run it: see `LoadedModel.translate`."""

    verb = "translate"

    def __init__(
        self,
        described: Sequence[Description],
        *,
        subwords: Vocabulary | None = None,
        engine: EngineName = "auto",
        device: str = "auto",
        threads: int | None = None,
        quantisation: Quantisation | None = None,
    ) -> None:
        """Prepare for use; `regard.load` has the arguments.

        Raises:
            BundleError: models of an ensemble have different vocabularies.
            ConfigError: the engine does not exist, or cannot run the model.
        """
        super().__init__(described, subwords=subwords, device=device)
        for each in described[1:]:
            if subword_model(each) != subword_model(described[0]):
                raise BundleError(
                    f"has other subwords than {described[0].folder}: an ensemble needs one vocabulary",
                    str(each.folder),
                    code="ensemble_mismatch",
                )
        self.directions = Directions(self.task, self.subwords)
        self.engines = engines_of(
            described,
            self.subwords,
            engine=engine,
            device=device,
            threads=threads,
            quantisation=quantisation,
            bundle=self._bundle,
        )
        self._quantisation = quantisation
        self._given_aligner: Aligner | None = None

    def score(self, sources: Sequence[str], targets: Sequence[str], *, to: str | None = None) -> list[Score]:
        """The log-probability of each target as the translation of its source, each in one piece.

        Args:
            sources: the texts to translate.
            targets: their translations.
            to: the language of the targets; by default detected, if the model knows both directions.

        Raises:
            RequestError: the lists differ in length, a text is too long, or its language does not fit.
        """
        _check_pairs(sources, targets)
        read = [self.read(text, to=to) for text in sources]
        written = [tuple(ids.tolist()) for ids in self.subwords.outputs.encode(list(targets))]
        for i, pair in enumerate(zip(read, written, strict=True), start=1):
            if (longest := max(map(len, pair))) >= self.max_length:
                limit = f"the model reads at most {self.max_length - 1:,}"
                raise TooLongError(f"pair {i}: a text has {longest:,} tokens; {limit}", code="too_long")
        scored = zip(written, self.engines.first.score(read, written), strict=True)
        return [
            Score(log_prob=sum(each), tokens=tuple(self.subwords.pieces(ids)), token_scores=each)
            for ids, each in scored
        ]

    def translate_lines(
        self, lines: Sequence[str], *, to: str | None = None, beam_size: int | None = None
    ) -> TranslatedLines:
        """Translate the lines of a test set as they are; a line that is too long is split, and counted.

        Numbers are not checked, and there is no shortlist: the scores are those of the model's own search.

        Args:
            lines: the sources.
            to: the target language, for a model that knows both directions.
            beam_size: hypotheses kept at each step; by default as in the model folder.

        Raises:
            RequestError: the model does not know the language.
        """
        to = to if self.task.both_directions else None
        direction = self.directions.requested(None, to)
        # With the source language given, a line is translated whatever it looks like.
        source = direction.source if direction else None
        results = self.translate(
            list(lines),
            source=source,
            to=to,
            beam_size=beam_size,
            whole_lines=True,
            check_numbers=False,
            markup=False,
            shortlist=False,
        )
        engines = sorted({result.engine for result in results if result.engine})
        penalty = f"length penalty {self.decoding.length_penalty:g}"
        how = [f"{name}, {self._precision(name)}" for name in engines]
        how += [f"beam {beam_size or self.decoding.beam_size}", penalty]
        if n_split := sum(result.split > 1 for result in results):
            how.append(f"{counted(n_split, 'line')} too long and split")
        return TranslatedLines([result.text for result in results], ", ".join(how))

    @takes(TranslateOptions)
    def translator(self, **options: Unpack[TranslateKeywords]) -> Translator:
        """A function that translates lists of texts with one set of options, for many calls.

        Args:
            options: the fields of `TranslateOptions`.

        Raises:
            RequestError: an option does not exist, or cannot be satisfied.
        """
        if self.task.name != "translate":  # the summary of a document is not that of its sentences
            options |= {"whole_lines": True, "too_long": "error"}
        chosen = options_of(TranslateOptions, options)
        return Translator(
            self.engines,
            self.subwords,
            chosen,
            max_length=self.max_length,
            decoding=self.decoding,
            directions=self.directions,
            aligner=(self._given_aligner or self.aligner()) if chosen.alignment else None,
            placer=self._placer,
            read=self._one_line if self.task.name in TEMPLATES else None,
        )

    def translate_file(
        self,
        path: Path | str,
        out: Path | str | None = None,
        *,
        force: bool = False,
        progress: Callable[[int, int], None] | None = None,
        **options: Unpack[TranslateKeywords],
    ) -> FileReport:
        """Translate a document: HTML, Markdown, plain text, and what `docs/documents.md` lists.

        Its direction is decided once, by its beginning, unless `to` is given. Code, links and what else is no
        text stays as it is.

        Args:
            path: the file; its suffix tells its format.
            out: where to write; by default beside it, as `notes.zh.md`.
            force: replace an existing file.
            progress: called with the number of translated segments, and of all.
            options: the fields of `TranslateOptions`.

        Raises:
            ConfigError: the output exists, or is of another format.
            CorpusError: the file is missing, damaged or of an unknown format, or a package is not installed.
            RequestError: an option cannot be satisfied, or the language cannot be detected.
        """
        from regard.tasks.loaded.files import translate_file

        self.require("translate")
        return translate_file(self.translator, path, out, force=force, progress=progress, **options)

    def with_engines(self, engines: Engines, aligner: Aligner | None = None) -> LoadedTranslator:
        """The same model with other engines, and with another word aligner if one is given."""
        other = copy(self)
        other.engines, other._given_aligner = engines, aligner
        return other

    def read(self, text: str, *, to: str | None = None) -> tuple[int, ...]:
        """The token ids that the model reads for one text, with a language tag if it uses one.

        Raises:
            RequestError: the model does not translate into that language, or it cannot be detected.
        """
        text = self._one_line(text)
        direction = self.directions.requested(None, to) or self.directions.detect(text)
        return (*direction.tag, *self.subwords.encode_one(text).tolist())

    # --- looking inside ------------------------------------------------------------------------------------

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
        """Trace what the model does with a text; see `LoadedModel.look`."""
        from regard.look.trace.recorder import look

        if target is not None:
            return super().look(
                source,
                target,
                to=to,
                prefix=prefix,
                interventions=interventions,
                beam_size=beam_size,
                length_penalty=length_penalty,
            )
        model = self.bundle.model
        ids = self._checked(self.read(source, to=to) if isinstance(source, str) else source)
        options = TranslateOptions(beam_size=beam_size, length_penalty=length_penalty, shortlist=False)
        search = options.search(self.decoding)
        if beam_size is None and not interventions:
            engine = self.engines.choose(request := Request(ids=ids, prefix=tuple(prefix)), search)
            if engine.name != "torch":  # whose search the trace records
                ((best, *_),) = engine.decode([request], search)
                return replace(self._named(look(model, self.subwords, ids, best.ids)), engine=engine.name)
        trace = look(
            model,
            self.subwords,
            ids,
            prefix=prefix,
            search=search,
            interventions=interventions,
            engine=self._traced_engine,
            read=partial(self.read, to=to),
        )
        return self._named(trace)

    def changed_output(
        self,
        source: str,
        intact: Sequence[int],
        interventions: Sequence[Intervention],
        *,
        to: str | None = None,
        beam_size: int | None = None,
    ) -> ChangedOutput:
        """What the model writes with interventions, and how likely its unchanged output then is.

        The same as two traces, without what they record.

        Raises:
            RequestError: the text or the interventions do not fit the model.
        """
        from regard.look.interventions.ablation import changed_output

        request = Request(ids=self._checked(self.read(source, to=to)))
        search = TranslateOptions(beam_size=beam_size).search(self.decoding)
        model, read = self._transformer, partial(self.read, to=to)
        return changed_output(
            model, self._traced_engine, self.subwords, request, search, intact, interventions, read=read
        )

    def measure_alignment(self, sources: Iterable[str], targets: Iterable[str]) -> AligningHeads:
        """Measure which heads align words best, on pairs not trained on, and store that in the folder.

        Args:
            sources: texts, such as the lines of a file; a few hundred are enough, at most 1,000 are used.
            targets: their translations.

        Raises:
            RequestError: there are too few pairs.
        """
        from regard.look.alignment.aligner import measure_heads

        read, written = ([text.rstrip("\n") for text in side] for side in (sources, targets))
        _check_pairs(read, written)
        outputs = self.subwords.outputs
        pairs = [
            (self.read(text), outputs.encode_one(other).tolist())
            for text, other in zip(read, written, strict=True)
        ]
        heads = measure_heads(self._transformer, self.subwords, pairs)
        save_aligning_heads(self.folders[0], heads)
        self.__dict__.pop("aligning_heads", None)  # cached from the folder
        return heads

    def aligner(self) -> Aligner:
        """Aligns words by the measured heads, or the default ones.

        Raises:
            RequestError: several models were loaded.
        """
        from regard.look.alignment.aligner import WordAligner

        return WordAligner(self._transformer, self.subwords, self.aligning_heads)

    def _placer(self) -> Aligner | None:
        """What finds the place of glossary phrases; None if words cannot be aligned."""
        try:
            return self._given_aligner or self.aligner()
        except RequestError:
            return None

    def _one_line(self, text: str) -> str:
        """A text as the model was trained to read it: if that was rows with named fields, on one line.

        A JSON object has the fields, and each line of a conversation is a turn. An imported model, with its
        own vocabulary, reads texts as they are.

        Raises:
            RequestError: an object lacks a field.
        """
        template = self.task.templates[0]
        return (
            model_input_of_text(template, text) if template and isinstance(self.subwords, Subwords) else text
        )

    def _precision(self, engine: str) -> str:
        """The precision of an engine: scores differ slightly with it, so reports include it."""
        if engine == "ctranslate2":
            return self._quantisation or "int8"
        import torch

        usual = "bfloat16" if torch.cuda.is_available() else "float32"
        return self._quantisation if self._quantisation in TORCH_DTYPES else usual

    @cached_property
    def _traced_engine(self) -> TorchEngine:
        """The engine that searches for traces; cached, because packing its weights takes time."""
        from regard.engine.engines.torch_engine import TorchEngine

        model, subwords = self._transformer, self.subwords
        device = next(model.parameters()).device
        return TorchEngine([model], bos=subwords.bos_id, eos=subwords.eos_id, device=device)

    @property
    def _transformer(self) -> Transformer:
        model: Transformer = self.bundle.model  # type: ignore[assignment]  # by the task's architecture
        return model


def _check_pairs(sources: Sequence[str], targets: Sequence[str]) -> None:
    if len(sources) != len(targets):
        counts = f"{len(sources)} sources and {len(targets)} targets"
        raise RequestError(f"{counts}: give one target per source", code="pair_count_mismatch")
