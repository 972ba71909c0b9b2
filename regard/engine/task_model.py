"""A model that does what it was trained for: translate, respond, continue texts or label them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

from regard.bundle.bundle import Description, describe_bundle
from regard.bundle.labels import read_labels
from regard.data.reading.templates import model_input, model_input_of_text
from regard.engine.classification import Classification, Labelling
from regard.engine.generation import Continuation, Generation
from regard.engine.loading import load_onto, of_another_task
from regard.engine.model import Model
from regard.engine.result import Result
from regard.engine.translator import Translator
from regard.errors import RequestError
from regard.text.vocabularies.subwords import Subwords

if TYPE_CHECKING:  # torch is not imported before somebody asks for its models
    from regard.bundle import Bundle
    from regard.engine.classifier import TextClassifier
    from regard.engine.classifier_ensemble import ClassifierEnsemble
    from regard.engine.generator import Generator


class TaskModel(Model):
    """A loaded model of any task."""

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

    def as_read(self, text: str) -> str:
        """A text as the model was trained to read it: where that was rows with named fields, on one line.

        An object of JSON has the fields, and each line of a conversation is a turn. A model that was trained
        elsewhere, and brought its own vocabulary, reads texts as they stand.

        Raises:
            RequestError: an object lacks a field.
        """
        template = self.task.templates[0]
        return (
            model_input_of_text(template, text) if template and isinstance(self.subwords, Subwords) else text
        )

    def respond(self, row: str | Mapping[str, Any], **options: Any) -> Result:
        """What the model writes for named fields, such as a question and its context; or for a whole text.

        Args:
            row: the fields that `task.input` names; of `turns`, all that was said so far.
            options: the fields of `Options`.

        Raises:
            RequestError: a field is missing, or the whole is too long for the model.
        """
        read = row if isinstance(row, str) else model_input(self.task.templates[0], row)
        return self.translate(read, **options)

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
        if len(self.folders) > 1:
            raise RequestError(f"{len(self.folders)} models were loaded together, and one continues texts")
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
    def classifier(self) -> TextClassifier | ClassifierEnsemble:
        """What labels texts: several models give the mean of their answers.

        Raises:
            RequestError: the model is for another task.
            BundleError: of several, one has other labels than the first.
        """
        from regard.engine.classifier import TextClassifier
        from regard.engine.classifier_ensemble import ClassifierEnsemble
        from regard.model.classifier import Classifier

        if len(self.folders) > 1:
            return ClassifierEnsemble.of([describe_bundle(each) for each in self.folders], self.device)
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

    @cached_property
    def description(self) -> Description:
        """What can be told of the folder, the first where there are several."""
        return describe_bundle(self.folders[0])

    @cached_property
    def _watched(self) -> Bundle:
        """The model itself, with its weights in torch."""
        if len(self.folders) != 1:
            raise RequestError(
                f"{len(self.folders)} models were loaded together: load one alone to look inside"
            )
        return load_onto(self.folders[0], self.device)


def _generation(options: dict[str, Any]) -> Generation:
    try:
        return Generation(**options)
    except TypeError as error:
        raise RequestError(f"{error}; the options are {', '.join(Generation.__slots__)}") from None
