"""The task `generate`: continuing a text, from documents.

DATA/train, DATA/valid  token stores of windows of text; DATA/test where a test set is given
DATA/texts.json         the sets, and their sizes in bytes
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import exp, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import nn

from regard.bundle import Description, load_bundle
from regard.config import RunConfig, TrainingConfig, registries
from regard.config.checking import counted
from regard.data.batches import Budget, one_pass
from regard.data.batches.examples import TEXT_EXTRA, Batch, make_text_batch, windows
from regard.data.cleaning.alarms import SETTINGS, dropped_warning, language_warning
from regard.data.reading import refuse_shared_files
from regard.data.reading.documents import Documents, encode_document, open_documents, split_documents
from regard.data.store import Example, Store
from regard.data.store.writing import content_key
from regard.engine.generator import Generator
from regard.engine.loading import load_onto, subword_model
from regard.engine.options import GenerateOptions
from regard.errors import ConfigError, CorpusError
from regard.loss import label_smoothed_cross_entropy
from regard.model.language_model import LanguageModel
from regard.packing import pack
from regard.scores.texts import Perplexity
from regard.tasks.data_folder import DataFolder
from regard.tasks.loaded.generator import LoadedGenerator
from regard.tasks.objectives import NextToken
from regard.tasks.task import (
    SET_NAMES,
    Job,
    Lesson,
    LossSums,
    Prepared,
    Reporter,
    Source,
    Task,
    TestResult,
    one_file,
)
from regard.text.files import display_name
from regard.text.files.lines import Tally
from regard.text.files.tables import Column
from regard.text.languages import language_of
from regard.text.normalisation import composed
from regard.text.vocabularies import read_vocabulary
from regard.text.vocabularies.vocabulary import Vocabulary

if TYPE_CHECKING:
    from regard.bundle.weights import Model

FACTS = "texts.json"
SET_WORDS = {"valid": "validation", "test": "test"}
SHOWN_TOKENS = 24
"""Tokens of a held-out text that are read, and as many that are written, at each validation."""
FEWEST_TOKENS = 2000
"""Tokens of a held-out set below which its perplexity means little."""
BATCH_TOKENS = 8192
"""Tokens whose likelihood is computed together."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DocumentSource(Source):
    """Documents; validation and test sets are given or split off."""

    CONTINUES: ClassVar[bool] = True
    train: Documents
    valid: Documents | None = None
    test: Documents | None = None

    def key(self) -> str:
        """A hash of everything that the prepared data depends on."""
        sets = [each for each in (self.train, self.valid, self.test) if each is not None]
        given = [self.valid is not None, self.test is not None, self.subwords and self.subwords.hex()]
        settings = ["texts", self.vocab_size, self.max_tokens, self.seed, *given]
        columns = [list(columns) for each in sets for columns in each.columns]
        paths = [path for each in sets for path in each.paths]
        return content_key(paths, [*settings, columns, self.data_settings()])


@dataclass(frozen=True, eq=False, kw_only=True)
class TextLesson(Lesson):
    """Windows of text: the next token is learned."""

    compiles: ClassVar[bool] = True
    valid_bytes: int
    """Size of the validation set in UTF-8."""

    def budget(self, tokens: int, *, fixed: bool = False) -> Budget:
        """Tokens that are read."""
        return Budget(tokens=(tokens,), extra=TEXT_EXTRA, fixed=fixed)

    def batch(self, store: Store, indices: np.ndarray, fill_to: Sequence[int | None] | None = None) -> Batch:
        """A batch of windows."""
        return make_text_batch(store, indices, fill_to=fill_to or (None,))

    def n_targets(self, store: Store, indices: np.ndarray) -> int:
        """All but the first token of each window."""
        return int(store.lengths(0, indices).sum()) - len(indices)

    def objective(self, model: Model, training: TrainingConfig, *, compiled: bool) -> nn.Module:
        """The next token."""
        return NextToken(model, training.label_smoothing, compiled=compiled)

    def facts(self, sums: LossSums) -> Mapping[str, float]:
        """Bits per byte, by which vocabularies of all sizes can be compared."""
        return {"valid_bits_per_byte": sums.nll / float(np.log(2)) / self.valid_bytes}


@registries.tasks.register("generate")
class Generate(Task):
    """Continuing a text."""

    name = "generate"
    architecture = "decoder"
    settings = ("model.architecture=decoder",)
    verb = "generate"
    columns = ("text",)
    options = frozenset({"columns"})

    @classmethod
    def load(
        cls, described: Sequence[Description], *, device: str = "auto", **_engine: Any
    ) -> LoadedGenerator:
        """Load finished models of this task; torch runs them, so options of the engine do not apply."""
        return LoadedGenerator(described, device=device)

    def open_files(self, job: Job) -> dict[str, Any]:
        """Plain files, each a document; or tables, each row a document."""
        if not job.files.train:
            raise ConfigError(
                "name the files to train on: regard train --task generate FILE…", code="missing_file"
            )
        options: dict[str, Any] = {"columns": job.files.columns, "on_invalid": job.config.data.on_invalid}
        opened = {name: open_documents(*files, **options) for name, files in job.files.sets.items()}
        refuse_shared_files({SET_NAMES[name]: each.corpus for name, each in opened.items()})
        return opened

    def source(self, job: Job, opened: dict[str, Any]) -> DocumentSource:
        """The documents."""
        return DocumentSource(**opened, **job.source_settings())

    def prepare(self, folder: Path, source: DocumentSource, report: Reporter) -> None:
        """Learn subwords, and write windows of text to token stores."""
        key, place = source.key(), DataFolder(folder, FACTS)
        if place.is_made_from(key):
            return
        empty = Tally()
        sets = _sets(source, report, empty)
        warnings = list(_doubts(source, sets, empty))
        place.begin()
        lines = (line for text in sets["train"] for line in text.split("\n"))
        subwords = place.write_subwords(lines, source, report)
        report("encoding")
        n_bytes = {name: sum(len(composed(text).encode()) for text in texts) for name, texts in sets.items()}
        for name, texts in sets.items():
            cut = _windows(texts, subwords, source.max_tokens)
            store = place.write_store(name, cut, ("text",), key, subwords)
            n_tokens = store.facts.sides[0].n_tokens - len(store)
            sizes = {"document": len(texts), "byte": n_bytes[name], "token": n_tokens, "window": len(store)}
            report(f"{name}: {', '.join(counted(number, what) for what, number in sizes.items())}")
            if name != "train" and n_tokens < FEWEST_TOKENS:
                warnings.append(_few_tokens(name, n_tokens))
        for warning in warnings:
            report(f"warning: {warning}")
        place.finish({"bytes": n_bytes, "sets": [*sets], "warnings": warnings}, key)

    def prepared(self, folder: Path, config: RunConfig) -> Prepared:  # noqa: ARG002
        """The stores of windows; without a test set, the validation set serves as one."""
        contents = DataFolder(folder, FACTS).read()
        stores, subwords, n_bytes = contents.stores, contents.subwords, contents.facts["bytes"]
        lesson = TextLesson(
            stores["train"], stores["valid"], valid_bytes=n_bytes["valid"], subwords=subwords.model
        )
        held_out = "test" if "test" in stores else "valid"
        return Prepared(lesson, subwords, (stores[held_out], n_bytes[held_out]))

    def validator(self, job: Job, prepared: Prepared) -> Callable[[Any], dict[str, Any]]:  # noqa: ARG002
        """A held-out text, continued."""
        return ContinuedText(prepared.lesson.valid, prepared.subwords)

    def test(self, job: Job, prepared: Prepared) -> TestResult:
        """The perplexity of the test set, or of the validation set where there is none."""
        lesson, (store, n_bytes) = prepared.lesson, prepared.test
        best = load_bundle(job.folder / "best", job.device).model
        device = torch.device(job.device)
        longest = max(BATCH_TOKENS, store.facts.sides[0].longest)
        batches = (lesson.batch(store, part) for part in one_pass(store, lesson.budget(longest)))
        objective = lesson.objective(best, job.config.training, compiled=False).eval()
        with torch.no_grad():
            measured = [(objective(batch.to(device))[1], batch.n_targets) for batch in batches]
        score = Perplexity(
            nll=float(sum(sums[1].cpu().double() for sums, _ in measured)),
            n_tokens=sum(n for _, n in measured),
            n_bytes=n_bytes,
            held_out="validation" if store is lesson.valid else "test",
        )
        shown = ContinuedText(store, prepared.subwords)(best)["sample"]
        prompt, output = shown["source"], shown["output"]
        return TestResult(
            score=score,
            record=asdict(score) | score.measures(),
            text=f"{score}\nfor example:\n  {prompt!r}  →  {output!r}",
            example=next((line for line in prompt.split("\n") if line.strip()), ""),
        )

    def evaluate(
        self,
        model: Description,
        files: Sequence[Path],
        *,
        columns: Sequence[Column] = (),
        beam_size: int | None = None,  # noqa: ARG002 - nothing is searched for
    ) -> Perplexity:
        """The perplexity of a text, or of the rows of a table."""
        file = one_file(self, files)
        texts = list(open_documents(file, columns=columns).read())
        if not texts:
            raise CorpusError(f"{display_name(file)}: every document is empty", code="no_usable_rows")
        loaded, subwords = load_onto(model.folder, "auto").model, read_vocabulary(subword_model(model))
        assert isinstance(loaded, LanguageModel), "the task needs a decoder alone"
        encoded = (encode_document(subwords, text) for text in texts)
        cut = windows(encoded, model.config.max_length, bos=subwords.bos_id, eos=subwords.eos_id)
        nll, n_tokens = likelihood(loaded, cut)
        n_bytes = sum(len(composed(text).encode()) for text in texts)
        return Perplexity(nll=nll, n_tokens=n_tokens, n_bytes=n_bytes)


def _sets(source: DocumentSource, report: Reporter, empty: Tally) -> dict[str, Sequence[str]]:
    report(f"reading {', '.join(source.train.names)}")
    if source.valid is None:
        train, valid = split_documents(source.train, source.data.valid_lines, source.seed, empty)
    else:
        train, valid = list(source.train.read(empty)), list(source.valid.read(empty))
    sets: dict[str, Sequence[str]] = {"train": train, "valid": valid}
    if source.test is not None:
        sets["test"] = list(source.test.read(empty))
    for what, entry in empty.as_dict().items():
        kind, places = ("document" if what == "empty" else "row"), ", ".join(entry["first"])
        report(f"left out as {what!r}: {counted(entry['lines'], kind)}, such as {places}")
    for note in empty.notes:
        report(note)
    for name, texts in sets.items():
        if not texts:
            raise CorpusError(f"the {name} set has no text: every document is empty", code="no_usable_rows")
    return sets


def _doubts(source: DocumentSource, sets: Mapping[str, Sequence[str]], empty: Tally) -> Iterator[str]:
    """Warnings about documents that were left out, and about texts in another language than files say."""
    n_read = sum(map(len, sets.values()))
    if source.train.is_table:
        yield from dropped_warning(empty, n_read + empty.total)
        return
    for path, text in zip(source.train.paths, sets["train"], strict=False):
        if len(source.train.paths) == 1 and (language := language_of(path)):
            yield from language_warning(text.split("\n"), language, display_name(path))


def _few_tokens(name: str, n_tokens: int) -> str:
    """The warning that a held-out set is small: a token's likelihood varies by about e cubed."""
    times = exp(min(4.0, 1.96 * 3 / sqrt(max(1, n_tokens))))
    words = SET_WORDS[name]
    return (
        f"the {words} set has {counted(n_tokens, 'token')}: its perplexity means little, since it is "
        f"uncertain by a factor of about {times:.2f}; give a larger one with --{name}"
        + (f", or hold out more lines, as with --set data.{SETTINGS[words]}=100" if name == "valid" else "")
    )


def _windows(texts: Sequence[str], subwords: Vocabulary, max_tokens: int) -> Iterator[Example]:
    encoded = (encode_document(subwords, text) for text in texts)
    cut = windows(encoded, max_tokens, bos=subwords.bos_id, eos=subwords.eos_id)
    return ((window.astype(subwords.dtype),) for window in cut)


class ContinuedText:
    """The beginning of the same held-out text, continued at every validation."""

    def __init__(self, valid: Store, subwords: Vocabulary) -> None:
        self.subwords = subwords
        longest = int(np.argmax(valid.lengths(0, np.arange(len(valid)))))
        ids = valid[longest][0].tolist()
        cut = min(SHOWN_TOKENS, len(ids) // 2)
        halves = ids[:cut], ids[cut : cut + SHOWN_TOKENS]
        self.prompt, self.reference = (subwords.decode(part) for part in halves)

    def __call__(self, model: Any) -> dict[str, Any]:
        """What the model writes, taking the most likely token each time."""
        assert isinstance(model, LanguageModel), "the task needs a decoder alone"
        was_training = model.training
        options = GenerateOptions(max_tokens=SHOWN_TOKENS, temperature=0.0, past_length="slide")
        text = Generator(model, self.subwords).generate(self.prompt, options).text
        model.train(was_training)
        return {"sample": {"source": self.prompt, "output": text, "reference": self.reference}}


def likelihood(model: LanguageModel, cut: Iterable[np.ndarray]) -> tuple[float, int]:
    """The negative log-likelihood of windows of text, and their number of tokens."""
    output = model.eval().output_probabilities
    total, n_tokens = 0.0, 0
    for batch in _batches(cut):
        with torch.inference_mode():
            packed = pack([window[:-1].tolist() for window in batch], output.weight.device)
            targets_N = torch.from_numpy(np.concatenate([window[1:] for window in batch]).astype(np.int64))
            loss = label_smoothed_cross_entropy(
                model.decode(packed), output.weight, targets_N.to(output.weight.device), bias_V=output.bias
            )
        total, n_tokens = total + float(loss.nll), n_tokens + len(targets_N)
    return total, n_tokens


def _batches(cut: Iterable[np.ndarray]) -> Iterator[list[np.ndarray]]:
    batch: list[np.ndarray] = []
    for window in cut:
        if batch and sum(map(len, batch)) + len(window) > BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(window)
    if batch:
        yield batch
