"""Pairs of texts: the base of every task in which an encoder reads and a decoder writes."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from regard.bundle import Bundle, Description, load_bundle
from regard.config import DecodingConfig, RunConfig, TaskConfig, TrainingConfig
from regard.config.checking import shown
from regard.data.batches import Budget
from regard.data.reading import derived_corpus, refuse_shared_files, table_corpus, text_corpus
from regard.data.reading.templates import LINE, example_text, write_pairs
from regard.data.store import Store
from regard.engine.engines.protocol import Request, Search
from regard.engine.loading import load_onto, subword_model
from regard.errors import ConfigError, CorpusError
from regard.tasks.data_folder import TEXT
from regard.tasks.task import SET_NAMES, Job, Lesson, Prepared, Reporter, Task, TestResult, one_file
from regard.text.files import display_name, path_problem
from regard.text.files.formats import FORMATS
from regard.text.files.formats.format import Reading
from regard.text.files.lines import Tally
from regard.text.files.tables import Column, table_kind
from regard.text.normalisation import composed
from regard.text.vocabularies import read_vocabulary
from regard.text.vocabularies.vocabulary import Vocabulary

if TYPE_CHECKING:
    from torch import nn

    from regard.bundle.weights import Model
    from regard.data.batches.examples import Batch
    from regard.tasks.pair_preparation import PairsSource

# A loaded translator may run without torch, so torch is imported inside the functions that need it.

Right = str | Sequence[str]
"""The output to learn, or several that are right, of which the first is learned."""
BATCH_TOKENS = {"cpu": 4096, "cuda": 65536}
"""Tokens that are decoded together."""
VALIDATED = 200
"""Sentences of each direction that are translated at a validation."""
SHOWN_TOKENS = 14
"""Length of the sentence that is shown at a validation, about."""
SHOWN = 3
"""Examples of the test set that are shown."""
SHOWN_CHARACTERS = 80
"""Characters of an example input that are shown …"""
TYPED_CHARACTERS = 300
"""… and of one that is to be typed."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PairsLesson(Lesson):
    """Inputs and outputs: the next token of the output is learned."""

    compiles: ClassVar[bool] = True
    bos: int
    eos: int

    def budget(self, tokens: int, *, fixed: bool = False) -> Budget:
        """As many tokens on both sides; of fixed size, such that both fill up together."""
        from regard.data.batches.examples import PAIRS_EXTRA

        if fixed:
            return Budget.balanced(self.train, tokens, PAIRS_EXTRA, fixed=True)
        return Budget(tokens=(tokens, tokens), extra=PAIRS_EXTRA)

    def batch(self, store: Store, indices: np.ndarray, fill_to: Sequence[int | None] | None = None) -> Batch:
        """A batch of pairs."""
        from regard.data.batches.examples import make_pairs_batch

        return make_pairs_batch(store, indices, bos=self.bos, eos=self.eos, fill_to=fill_to or (None, None))

    def n_targets(self, store: Store, indices: np.ndarray) -> int:
        """Output tokens, with an end each."""
        return int(store.lengths(1, indices).sum()) + len(indices)

    def objective(self, model: Model, training: TrainingConfig, *, compiled: bool) -> nn.Module:
        """The next token."""
        from regard.tasks.objectives import NextToken

        return NextToken(model, training.label_smoothing, compiled=compiled)


class PairsTask(Task):
    """Writing one text from another. Subclass it, and say what the rows of a file are and what counts.

    class Backwards(regard.PairsTask):
        def rows(self, path):
            for line in path.read_text().splitlines():
                yield line, line[::-1]
    """

    lesson: ClassVar[type[PairsLesson]] = PairsLesson
    """What is learned from a pair."""

    def rows(self, path: Path) -> Iterator[tuple[str, Right]]:
        """The inputs and outputs of a file; by default two fields, or `input` and `output` of objects."""
        kind = table_kind(path) or "tsv"
        columns: tuple[Column, ...] = self.columns if FORMATS[kind].has_names else (1, 2)
        for row in table_corpus(path, columns=columns, kind=kind).rows():
            yield row[0], row[1]

    def score(self, outputs: Sequence[str], references: Sequence[Right]) -> Any:
        """A score of outputs, a dataclass; by default BLEU, chrF and the share of exact matches."""
        from regard.scores.translation import score_translations

        first = [each if isinstance(each, str) else each[0] for each in references]
        return score_translations(outputs, first)

    def numbered_rows(
        self,
        path: Path,
        task: TaskConfig,  # noqa: ARG002 - for tasks with settings
    ) -> Iterator[tuple[int, tuple[str, Sequence[str]]]]:
        """`rows`, with the number of each row's line, for messages."""
        for number, (read, right) in enumerate(self.rows(path), start=1):
            yield number, (read, [right] if isinstance(right, str) else right)

    def readable_rows(
        self,
        path: Path,
        task: TaskConfig,
        reading: Reading,  # noqa: ARG002 - for tasks that can leave rows out
        bad: Tally,  # noqa: ARG002
    ) -> Iterator[tuple[int, tuple[str, Sequence[str]]]]:
        """`numbered_rows`, perhaps without the rows that cannot be read, which `bad` counts."""
        return self.numbered_rows(path, task)

    def configured(self, job: Job, written: Sequence[str]) -> RunConfig:
        """With the search of a model to start from that has the same task."""
        return inherited(job, job.config, written)

    def open_files(self, job: Job) -> dict[str, Any]:
        """One file or several for each set."""
        if not job.files.train:
            raise ConfigError(
                f"name the files to train on: regard train --task {self.name} FILE…", code="missing_file"
            )
        sets = job.files.sets
        if problems := [p for files in sets.values() for file in files if (p := path_problem(file))]:
            raise ConfigError(problems, code="missing_file")
        # A pipe can be read only once, which happens later.
        files = {name: [file for file in files if file.is_file()] for name, files in sets.items()}
        refuse_shared_files({SET_NAMES[name]: text_corpus(*each) for name, each in files.items() if each})
        return sets

    def source(self, job: Job, opened: dict[str, Any]) -> PairsSource:
        """The rows of every file, copied to the run's folder as pairs."""
        from regard.tasks.pair_preparation import SIDES, PairsSource

        corpora: dict[str, Any] = {}
        texts = job.folder / "data" / TEXT
        for place in texts.glob("*.jsonl"):  # of a call with other files, before the run began
            place.unlink()
        for name, files in opened.items():
            places = [texts / f"{name}-{i}.jsonl" for i in range(len(files))]
            repaired, skipped = [Tally() for _ in files], [Tally() for _ in files]
            for place, file, repairs, bad in zip(places, files, repaired, skipped, strict=True):
                reading = Reading(display_name(file), repairs, job.config.data.on_invalid)
                write_pairs(
                    place, self.readable_rows(file, job.config.task, reading, bad), repairs, reading.name
                )
            origins = dict(zip(places, files, strict=True))
            corpora[name] = derived_corpus(origins, ("input", "output"), LINE, repaired, skipped)
        return PairsSource(**corpora, languages=SIDES, compared=(0,), **job.source_settings())

    def prepare(self, folder: Path, source: PairsSource, report: Reporter) -> None:
        """Clean the pairs, learn subwords, write token stores."""
        from regard.tasks.pair_preparation import prepare_pairs

        prepare_pairs(folder, source, report)

    def prepared(self, folder: Path, config: RunConfig) -> Prepared:  # noqa: ARG002
        """The stores of pairs, and the test set as text."""
        from regard.tasks.pair_preparation import read_pairs

        contents, test = read_pairs(folder)
        stores, subwords = contents.stores, contents.subwords
        lesson = self.lesson(
            stores["train"],
            stores["valid"],
            bos=subwords.bos_id,
            eos=subwords.eos_id,
            subwords=subwords.model,
        )
        return Prepared(lesson, subwords, test)

    def validator(self, job: Job, prepared: Prepared) -> Callable[[Any], dict[str, Any]]:
        """BLEU of quick translations, one of which is shown."""
        config = job.config
        return GreedyTranslations(prepared.lesson.valid, prepared.subwords, config.task, config.decoding)

    def test(self, job: Job, prepared: Prepared) -> TestResult:
        """Score the outputs for the test set, against everything that is right."""
        from regard.scores.texts import example_lines

        sources, outputs = best_outputs(job, prepared)
        right = right_outputs(job.folder / "data" / TEXT)
        references = [right[read] for read in sources]
        score = self.score(outputs, references)
        shown = [
            f"{source[:SHOWN_CHARACTERS]}{'…' if len(source) > SHOWN_CHARACTERS else ''}"
            for source in sources
        ]
        lines = [str(score), *example_lines(shown[:SHOWN], outputs[:SHOWN], references[:SHOWN])]
        record = {"decoding": asdict(job.config.decoding), **asdict(score)}
        example = next(
            (read for read in sources if len(read) <= TYPED_CHARACTERS), sources[0][:TYPED_CHARACTERS]
        )
        return TestResult(score=score, record=record, text="\n".join(lines), example=example)

    def evaluate(
        self,
        model: Description,
        files: Sequence[Path],
        *,
        columns: Sequence[Column] = (),  # noqa: ARG002 - rows have names of their own
        beam_size: int | None = None,
    ) -> Any:
        """Write an output for every row of a file, and score it."""
        file = one_file(self, files)
        rows = [row for _, row in self.numbered_rows(file, model.task)]
        if not rows:
            raise CorpusError(f"{display_name(file)}: has no rows to score", code="no_usable_rows")
        loaded, subwords = load_onto(model.folder, "auto").model, read_vocabulary(subword_model(model))
        decoding = model.decoding if beam_size is None else replace(model.decoding, beam_size=beam_size)
        room = model.config.max_length - 1
        encoded = subwords.encode([example_text(read) for read, _ in rows])
        inputs = [tuple(ids[:room].tolist()) for ids in encoded]
        outputs = decoded(loaded, subwords, inputs, decoding)
        return self.score(outputs, [[composed(example_text(each)) for each in right] for _, right in rows])


def inherited(job: Job, config: RunConfig, written: Sequence[str]) -> RunConfig:
    """The configuration with the language token and the search of a start that had the same task.

    Settings that the user has written stay.
    """
    start, task = job.start, config.task
    if start is None or not _does(start, task):
        return config
    if start.task.has_tags and not task.has_tags and "task.language_tag" not in written:
        task = replace(task, language_tag=True)
        job.report(f"the model to start from has the token <2{task.target}> before each input; it stays")
    own, decoding = start.decoding, config.decoding
    names = [each.name for each in fields(own) if f"decoding.{each.name}" not in written]
    taken = {name: getattr(own, name) for name in names if getattr(own, name) != getattr(decoding, name)}
    if taken:
        settings = ", ".join(f"decoding.{name}={shown(value)}" for name, value in taken.items())
        job.report(f"taken from the model to start from: {settings}")
    return replace(config, task=task, decoding=replace(decoding, **taken))


def _does(start: Bundle, task: TaskConfig) -> bool:
    """Whether a model already has this task, in all its directions."""
    return start.task.name == task.name and {*task.directions} <= {*start.task.directions}


def best_outputs(job: Job, prepared: Prepared) -> tuple[list[str], list[str]]:
    """The inputs of the test set, and what the best model writes for them."""
    model = load_bundle(job.folder / "best", job.device).model
    subwords, room = prepared.subwords, model.config.max_length - 1
    sources = [composed(read) for read, _ in prepared.test]
    # Longer inputs were left out of the set, or are cut.
    inputs = [tuple(ids[:room].tolist()) for ids in subwords.encode(sources)]
    return sources, decoded(model, subwords, inputs, job.config.decoding)


def right_outputs(texts: Path) -> dict[str, list[str]]:
    """Every right output of the derived tables in a folder, by its input, in NFC."""
    right: dict[str, list[str]] = {}
    for place in sorted(texts.glob("*.jsonl")):
        with place.open(encoding="utf-8") as lines:
            for row in map(json.loads, lines):
                right.setdefault(composed(row["input"]), []).extend(map(composed, row["right"]))
    return right


def decoded(
    model: Any, subwords: Vocabulary, inputs: Sequence[tuple[int, ...]], decoding: DecodingConfig
) -> list[str]:
    """The best output for each input, in their order, made on the model's device."""
    from regard.engine.engines.torch_engine import TorchEngine

    device = model.output_probabilities.weight.device
    engine = TorchEngine(
        [model],
        bos=subwords.bos_id,
        eos=subwords.eos_id,
        device=device,
        batch_tokens=BATCH_TOKENS.get(device.type, 4096),
    )
    search = Search(
        beam_size=decoding.beam_size,
        length_penalty=decoding.length_penalty,
        extra_length=decoding.extra_length,
    )
    found = engine.decode([Request(ids=ids) for ids in inputs], search)
    return [subwords.decode(best.ids) for best, *_ in found]


class GreedyTranslations:
    """The same sentences of the validation set, translated and scored at every validation."""

    def __init__(
        self, valid: Store, subwords: Vocabulary, task: TaskConfig, decoding: DecodingConfig
    ) -> None:
        self.subwords = subwords
        self.decoding = replace(decoding, beam_size=1)
        self.languages = [target for _, target in task.directions]
        ways = len(self.languages)
        # A pair is stored once for each direction, one after the other.
        pairs = np.unique(np.linspace(0, len(valid) // ways - 1, VALIDATED).astype(np.int64))
        self.chosen = [pairs * ways + way for way in range(ways)]
        self.inputs = [_ids(valid, 0, chosen) for chosen in self.chosen]
        self.references = [[subwords.decode(ids) for ids in _ids(valid, 1, chosen)] for chosen in self.chosen]
        lengths = valid.lengths(0, self.chosen[0]).astype(np.int64)
        self.shown = int(np.argmin(np.abs(lengths - SHOWN_TOKENS)))

    def __call__(self, model: Any) -> dict[str, Any]:
        """BLEU of greedy translations, the mean over directions and of each; and one translation."""
        from regard.scores.translation import score_translations

        was_training = model.training
        outputs = decoded(model.eval(), self.subwords, [*chain(*self.inputs)], self.decoding)
        model.train(was_training)
        sample = {
            "source": self.subwords.decode(self.inputs[0][self.shown]),
            "output": outputs[self.shown],
            "reference": self.references[0][self.shown],
        }
        rest = iter(outputs)
        scores = [
            score_translations([*islice(rest, len(references))], references, language).bleu
            for references, language in zip(self.references, self.languages, strict=True)
        ]
        each = {f"valid_bleu_{language}": bleu for language, bleu in zip(self.languages, scores, strict=True)}
        mean = math.fsum(scores) / len(scores)
        return {"valid_bleu": mean, **(each if len(each) > 1 else {}), "sample": sample}


def _ids(store: Store, side: int, chosen: np.ndarray) -> list[tuple[int, ...]]:
    ids, lengths = store.gather(side, chosen)
    return [tuple(part.tolist()) for part in np.split(ids, np.cumsum(lengths)[:-1])]
