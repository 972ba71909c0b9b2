"""What a lane is asked of a model of one stack: to continue a text, or to label some."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from regard.engine.engines.protocol import Engines, Search
from regard.engine.options import ClassifyOptions, GenerateOptions
from regard.engine.results import Classification, Continuation
from regard.serve.work.job import Job
from regard.serve.work.scheduler import Scheduler

if TYPE_CHECKING:
    from regard.engine.classifier import ClassifierEnsemble, TextClassifier
    from regard.engine.generator import Generator


@dataclass(frozen=True, slots=True, eq=False)
class Continue:
    """One text continued; piece by piece where somebody hears it, else whole."""

    generator: Generator
    prompt: str
    options: GenerateOptions
    hear: Callable[[str], bool] | None = None
    """Takes each piece, and says whether the next is still wanted."""
    job: Job | None = None
    """Where nobody hears it: whose it is. It may be long, and ends with that."""
    search = Search(beam_size=1)

    @property
    def key(self) -> Hashable:
        """Nothing shares its batch."""
        return self

    @property
    def length(self) -> int:
        """Its prompt, and the token that starts it."""
        return len(self.generator.subwords.encode_one(self.prompt)) + 1

    def run(self, _engines: Engines, batch: Sequence[Continue]) -> list[Continuation | None]:
        """The continuation, or nothing more than what was heard."""
        assert len(batch) == 1, "a text is continued alone"
        if self.hear is None:
            return [self.generator.generate(self.prompt, self.options, self._is_wanted)]
        for piece in self.generator.stream(self.prompt, self.options):
            if not self.hear(piece):
                break
        return [None]

    def _is_wanted(self) -> bool:
        return self.job is None or self.job.over is None


@dataclass(frozen=True, slots=True, eq=False)
class Label:
    """The label of one text."""

    classifier: TextClassifier | ClassifierEnsemble
    text: str
    options: ClassifyOptions
    search = Search(beam_size=1)

    @property
    def key(self) -> Hashable:
        """Texts that are labelled in the same way share a batch."""
        return Label, self.options

    @property
    def length(self) -> int:
        """Its tokens, and [CLS]."""
        return self.classifier.n_tokens(self.text)

    def run(self, _engines: Engines, batch: Sequence[Label]) -> list[Any]:
        """The labels of all."""
        return self.classifier.classify([each.text for each in batch], self.options)


@dataclass(frozen=True, slots=True, eq=False)
class Weigh(Label):
    """What speaks for each label of one text."""

    @property
    def key(self) -> Hashable:
        """Texts that are weighed in the same way share a batch."""
        return Weigh, self.options

    def run(self, _engines: Engines, batch: Sequence[Label]) -> list[Any]:
        """The raw scores of all."""
        from regard.engine.classifier import TextClassifier

        assert isinstance(self.classifier, TextClassifier), "what is served is one model"
        return self.classifier.raw_scores([each.text for each in batch], self.options)


def continued(
    scheduler: Scheduler, job: Job, generator: Generator, prompts: Sequence[str], options: GenerateOptions
) -> list[Continuation]:
    """Texts continued, each in its turn."""
    tasks = [Continue(generator, prompt, options, job=job) for prompt in prompts]
    return list(scheduler.submit(job, tasks).all.result())


def streamed(
    scheduler: Scheduler, job: Job, generator: Generator, prompts: Sequence[str], options: GenerateOptions
) -> Iterator[tuple[int, str]]:
    """Each text's number with a piece of what is added to it, as it is found, one text after another."""
    for i, prompt in enumerate(prompts):
        yield from ((i, piece) for piece in _pieces(scheduler, job, generator, prompt, options))


def _pieces(
    scheduler: Scheduler, job: Job, generator: Generator, prompt: str, options: GenerateOptions
) -> Iterator[str]:
    """What is added to one text; whoever stops listening stops it."""
    heard: SimpleQueue[str | None] = SimpleQueue()
    listening = True

    def hear(piece: str) -> bool:
        heard.put(piece)
        return listening and job.over is None

    parts = scheduler.submit(job, [Continue(generator, prompt, options, hear)])
    parts.all.add_done_callback(lambda _: heard.put(None))
    try:
        while (piece := heard.get()) is not None:
            yield piece
        parts.all.result()
    finally:
        listening = False


def labelled(
    scheduler: Scheduler,
    job: Job,
    classifier: TextClassifier | ClassifierEnsemble,
    texts: Sequence[str],
    options: ClassifyOptions,
) -> list[Classification]:
    """Texts labelled, when their turn comes."""
    tasks = [Label(classifier, text, options) for text in texts]
    return list(scheduler.submit(job, tasks).all.result())


def weighed(
    scheduler: Scheduler,
    job: Job,
    classifier: TextClassifier | ClassifierEnsemble,
    texts: Sequence[str],
    options: ClassifyOptions,
) -> list[dict[str, float]]:
    """What speaks for each label of some texts, when their turn comes."""
    tasks = [Weigh(classifier, text, options) for text in texts]
    return list(scheduler.submit(job, tasks).all.result())
