"""What is in a model folder, and the verbs that run it: the base of every loaded model."""

# mypy: disable-error-code="overload-overlap"
# A text is also a sequence of texts, its characters; the overload for one text comes first.

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Unpack, overload

from regard.bundle.bundle import Description
from regard.config.task import COMMANDS
from regard.data.reading.templates import model_input
from regard.engine.loading import LazyBundle, subword_model
from regard.engine.options import (
    ClassifyKeywords,
    ClassifyOptions,
    GenerateKeywords,
    GenerateOptions,
    TranslateKeywords,
    TranslateOptions,
    options_of,
    takes,
)
from regard.errors import RequestError
from regard.text.vocabularies import read_vocabulary
from regard.text.vocabularies.vocabulary import Vocabulary

if TYPE_CHECKING:
    from regard.bundle import Bundle
    from regard.bundle.weights import Model
    from regard.engine.classifier import ClassifierEnsemble, TextClassifier
    from regard.engine.generator import Generator
    from regard.engine.results import Classification, Continuation, Result, Score, TranslatedLines
    from regard.engine.streams import TextStream
    from regard.engine.translator import Translator
    from regard.look.alignment.alignment import AligningHeads

WINDOW_TEXTS = 4096
"""Texts of an iterator that are translated together: enough to sort by length and keep all cores busy …"""
WINDOW_CHARACTERS = 1 << 20
"""… and few enough to be held in memory, however long they are."""


class RunnableModel:
    """A model folder, or several as an ensemble, with the verbs of every task.

    A subclass has what the verbs of its task need: `translator`, `generator` or `classifier`. The verbs of
    other tasks raise `RequestError`.
    """

    verb: ClassVar[str]
    """What it does: translate, generate or classify."""
    labels: tuple[str, ...] = ()
    """The labels of a classifier, in the order of its outputs."""

    def __init__(
        self, described: Sequence[Description], *, subwords: Vocabulary | None = None, device: str = "auto"
    ) -> None:
        """Prepare for use; the weights are read when they are needed.

        Args:
            described: the model folders, of one task; the first one provides the defaults.
            subwords: the vocabulary, if it was read before.
            device: where torch runs.
        """
        self.described, self.device = tuple(described), device
        self._bundle = LazyBundle(self.folders[0], device) if len(self.described) == 1 else None
        self.task, self.decoding = self.description.task, self.description.decoding
        self.subwords = subwords or read_vocabulary(subword_model(self.description))
        self.max_length = min(each.config.max_length for each in described)
        """Maximum number of tokens that the model reads or writes, including the one that ends a text."""

    def __repr__(self) -> str:
        ways = [f"{source} to {target}" for source, target in self.task.directions if source and target]
        facts = [self.command, *([" and ".join(ways)] if ways else [])]
        facts += [f"{each.n_parameters:,} parameters" for each in self.described[:1]]
        return f"{type(self).__name__}({', '.join(map(str, self.folders))}: {', '.join(facts)})"

    @property
    def description(self) -> Description:
        """What the model folder says about itself; of an ensemble, the first."""
        return self.described[0]

    @property
    def folders(self) -> tuple[Path, ...]:
        """The model folders."""
        return tuple(each.folder for each in self.described)

    @property
    def bundle(self) -> Bundle:
        """The model with its weights in torch, read on first use.

        Raises:
            RequestError: several models were loaded.
        """
        if self._bundle is None:
            raise RequestError(
                f"{len(self.described)} models are loaded as an ensemble: load one model for this",
                code="ensemble",
            )
        return self._bundle()

    @property
    def module(self) -> Model:
        """The model as a `torch.nn.Module`, in evaluation mode; its weights are read on first use.

        `regard.recording(loaded.module, …)` also reaches what the verbs of this loaded model run, in every
        batch and beam. CTranslate2 cannot be recorded, so torch runs meanwhile.

        Raises:
            RequestError: several models were loaded.
        """
        return self.bundle.model

    def read(self, text: str, *, to: str | None = None) -> tuple[int, ...]:  # noqa: ARG002
        """The token ids that the model reads for one text; `to` is for translators."""
        return tuple(self.subwords.encode_one(text).tolist())

    # --- verbs ----------------------------------------------------------------------------------------------

    @property
    def command(self) -> str:
        """The command that runs the model: `translate`, `summarise`, …."""
        return COMMANDS.get(self.task.name, self.verb)

    def require(self, verb: str) -> None:
        """Check that the model has a verb.

        Raises:
            RequestError: it is for another task; the message names its verb.
        """
        if verb not in (self.verb, self.command):
            raise RequestError(
                f"{self.folders[0]}: the model's task is {self.command}, so it cannot {verb}; "
                f"use {self.command}",
                code="wrong_task",
            )

    @overload
    def translate(self, texts: str, **options: Unpack[TranslateKeywords]) -> Result: ...
    @overload
    def translate(self, texts: Sequence[str], **options: Unpack[TranslateKeywords]) -> list[Result]: ...
    @overload
    def translate(self, texts: Iterable[str], **options: Unpack[TranslateKeywords]) -> Iterator[Result]: ...
    @takes(TranslateOptions)
    def translate(
        self, texts: str | Iterable[str], **options: Unpack[TranslateKeywords]
    ) -> Result | list[Result] | Iterator[Result]:
        """Translate a text, a list of texts, or a stream of texts.

        A text may be a document: its sentences are translated, its layout stays. Each text is a document of
        its own: a model of both directions detects the direction of each, unless `to` or `source` is given.
        For texts that belong together, such as the lines of a file, give `to`. A text or a sentence that is
        clearly in none of the model's source languages stays as it is, and its result says so
        (`unexpected_language`); with `source` it is translated.

        Args:
            texts: a text gives one result, a list a list, and an iterator an iterator, in the same order;
                of an iterator, a few thousand texts are taken at a time.
            options: the fields of `TranslateOptions`.

        Raises:
            RequestError: an option cannot be satisfied, or a text cannot be read.
        """
        translator = self.translator(**options)
        if isinstance(texts, str):
            return translator([texts])[0]
        results = (result for window in _windows(texts) for result in translator(window))
        return list(results) if isinstance(texts, Sequence) else results

    @takes(TranslateOptions)
    def stream(self, text: str, **options: Unpack[TranslateKeywords]) -> TextStream[Result]:
        """The translation of a text in pieces of whole characters, as they are decoded.

        Decoding is greedy or sampled: there is no beam, and no second attempt. A sentence with required
        phrases comes as a whole. After the last piece, `result` of the stream is the `Result`, but without
        scores.

        Args:
            text: may be a document.
            options: the fields of `TranslateOptions`.
        """
        return self.translator(**options).stream(text)

    @takes(TranslateOptions)
    def respond(self, row: str | Mapping[str, Any], **options: Unpack[TranslateKeywords]) -> Result:
        """The output for named fields, such as a question and its context; or for a whole text.

        Args:
            row: the fields that `task.input` names; `turns` is the list of all turns so far.
            options: the fields of `TranslateOptions`.

        Raises:
            RequestError: a field is missing, or the input is too long.
        """
        self.require("translate")
        text = row if isinstance(row, str) else model_input(self.task.templates[0], row)
        return self.translate(text, **options)

    @takes(TranslateOptions)
    def translator(self, **options: Unpack[TranslateKeywords]) -> Translator:  # noqa: ARG002
        """A function that translates lists of texts with one set of options, for many calls.

        Args:
            options: the fields of `TranslateOptions`.

        Raises:
            RequestError: an option does not exist, or cannot be satisfied.
        """
        self._lacks("translate")

    def translate_lines(
        self,
        lines: Sequence[str],  # noqa: ARG002
        *,
        to: str | None = None,  # noqa: ARG002
        beam_size: int | None = None,  # noqa: ARG002
    ) -> TranslatedLines:
        """Translate the lines of a test set; see `LoadedTranslator`."""
        self._lacks("translate")

    def score(
        self,
        sources: Sequence[str],  # noqa: ARG002
        targets: Sequence[str],  # noqa: ARG002
        *,
        to: str | None = None,  # noqa: ARG002
    ) -> list[Score]:
        """Score given translations; see `LoadedTranslator`."""
        self._lacks("translate")

    def measure_alignment(self, sources: Iterable[str], targets: Iterable[str]) -> AligningHeads:  # noqa: ARG002
        """Measure which heads align words best; see `LoadedTranslator`."""
        self._lacks("translate")

    @overload
    def generate(self, prompts: str, **options: Unpack[GenerateKeywords]) -> Continuation: ...
    @overload
    def generate(self, prompts: Sequence[str], **options: Unpack[GenerateKeywords]) -> list[Continuation]: ...
    @takes(GenerateOptions)
    def generate(
        self, prompts: str | Sequence[str], **options: Unpack[GenerateKeywords]
    ) -> Continuation | list[Continuation]:
        """Continue a text, or each text of a list.

        Args:
            prompts: how a text begins; it may be empty.
            options: the fields of `GenerateOptions`.

        Raises:
            RequestError: an option cannot be satisfied, or several models were loaded.
        """
        self.require("generate")
        chosen, generator = options_of(GenerateOptions, options), self.generator
        if isinstance(prompts, str):
            return generator.generate(prompts, chosen)
        return [generator.generate(prompt, chosen) for prompt in prompts]

    @takes(GenerateOptions)
    def continue_text(self, prompt: str, **options: Unpack[GenerateKeywords]) -> TextStream[Continuation]:
        """The continuation of a text in pieces of whole characters, as they are generated.

        After the last piece, `result` of the stream is the `Continuation`, with the reason why it ended.

        Args:
            prompt: how the text begins.
            options: the fields of `GenerateOptions`.

        Raises:
            RequestError: see `generate`; before the first piece.
        """
        self.require("generate")
        return self.generator.stream(prompt, options_of(GenerateOptions, options))

    @property
    def generator(self) -> Generator:
        """The model as a generator of texts; see `LoadedGenerator`."""
        self._lacks("generate")

    @overload
    def classify(self, texts: str, **options: Unpack[ClassifyKeywords]) -> Classification: ...
    @overload
    def classify(self, texts: Sequence[str], **options: Unpack[ClassifyKeywords]) -> list[Classification]: ...
    @takes(ClassifyOptions)
    def classify(
        self, texts: str | Sequence[str], **options: Unpack[ClassifyKeywords]
    ) -> Classification | list[Classification]:
        """Label a text, or each text of a list.

        Args:
            texts: none of them empty.
            options: the fields of `ClassifyOptions`.

        Raises:
            RequestError: a text is empty or too long.
        """
        self.require("classify")
        chosen, classifier = options_of(ClassifyOptions, options), self.classifier
        if isinstance(texts, str):
            return classifier.classify([texts], chosen)[0]
        return classifier.classify(texts, chosen)

    @property
    def classifier(self) -> TextClassifier | ClassifierEnsemble:
        """The model as a classifier of texts; see `LoadedClassifier`."""
        self._lacks("classify")

    def _lacks(self, verb: str) -> NoReturn:
        """Raise because the model is for another task."""
        self.require(verb)
        raise AssertionError(f"{type(self).__name__} has the verb {verb} and does not override it")


def _windows(texts: Iterable[str]) -> Iterator[list[str]]:
    window: list[str] = []
    characters = 0
    for text in texts:
        if not isinstance(text, str):
            raise RequestError(f"expected a text, got {type(text).__name__}: {text!r:.40}", code="not_a_text")
        window.append(text)
        characters += len(text)
        if len(window) >= WINDOW_TEXTS or characters >= WINDOW_CHARACTERS:
            yield window
            window, characters = [], 0
    if window:
        yield window
