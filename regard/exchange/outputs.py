"""Whether an exported model writes what the original writes: the same texts go through both.

regard's outputs come from the loaded model, in float32, by its own search: without the checks of numbers, and
each text in one piece. Theirs come from `transformers` as its users call it: the tokenizer and the model that
its `Auto` classes find, and `generate()` without arguments.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from regard.bundle.bundle import Description
from regard.decode.hypothesis import length_penalty, loops
from regard.exchange.generation import Candidates
from regard.exchange.sample_texts import SampleText, SampleTexts
from regard.text.vocabularies.vocabulary import Vocabulary

NEW_TOKENS = 16
"""Tokens of a continuation."""
BATCH = 20
"""Texts that `transformers` translates at once."""
KINDS = {"encoder-decoder": "translations", "decoder": "continuations", "encoder": "labels"}
"""What is compared, by architecture."""

LIMIT = "regard limits an output to the length of its text and some more"
LOOP = "regard searches again where an output ends in a loop"
PENALTY = "no power of the length ranks all outputs as the paper's length penalty does"
SEARCH = "the searches differ in when they stop, or in rounding"
COPIED = "regard copies code, addresses and other signs from the text"
LABELS = "the probabilities differ by rounding"


class Original(Protocol):
    """The model as regard runs it: what `regard.load` returns, with torch on a CPU in float32."""

    @property
    def module(self) -> Any:
        """The model itself."""

    @property
    def read(self) -> Callable[..., Any]:
        """A text to the ids that the model reads."""

    @property
    def translate(self) -> Callable[..., Any]:
        """See `LoadedModel.translate`."""

    @property
    def generate(self) -> Callable[..., Any]:
        """See `LoadedModel.generate`."""

    @property
    def classify(self) -> Callable[..., Any]:
        """See `LoadedModel.classify`."""


@dataclass(frozen=True, slots=True)
class Expected:
    """A text, and what regard writes for it."""

    sample: SampleText
    output: str
    """A translation, a continuation, or labels."""
    candidates: Candidates = ()
    """Of a translation: the best outputs of the search, the chosen one first."""
    limited: bool = False
    """Whether the output was cut off at its limit."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """How many outputs of an exported model equal those of regard."""

    kind: str
    origin: str
    """What the texts are."""
    n: int
    reasons: tuple[tuple[str, int], ...] = ()
    """Why some differ, and how many for that reason."""

    @property
    def n_equal(self) -> int:
        """The number of outputs that are equal."""
        return self.n - sum(count for _, count in self.reasons)

    def __str__(self) -> str:
        if not self.n:
            return f"no {self.kind} compared: there are no texts"
        equal = f"{self.n_equal} of {self.n} {self.kind} equal those of regard ({self.origin})"
        if not self.reasons:
            return f"verified: {equal}"
        return "\n".join([equal, *(f"  {count} differ: {reason}" for reason, count in self.reasons)])


# --- regard -------------------------------------------------------------------------------------------------


def expected_outputs(original: Original, described: Description, samples: SampleTexts) -> list[Expected]:
    """What regard writes for texts; those that the model does not read in one piece are left out."""
    match described.config.architecture:
        case "decoder":
            return [*_continued(original, described, samples.texts)]
        case "encoder":
            return [*_labelled(original, samples.texts)]
        case _:
            return [*_translated(original, described, samples.texts)]


def _translated(
    original: Original, described: Description, samples: Sequence[SampleText]
) -> Iterator[Expected]:
    options = {"whole_lines": True, "check_numbers": False, "n_best": described.decoding.beam_size}
    for source, target in dict.fromkeys((each.source, each.target) for each in samples):
        these = [each for each in samples if (each.source, each.target) == (source, target)]
        results = original.translate([each.text for each in these], source=source, to=target, **options)
        for sample, result in zip(these, results, strict=True):
            if result.engine and result.split == 1:  # otherwise no search, or several
                ranked = [(each.log_prob, len(each.tokens) + 1) for each in (result, *result.alternatives)]
                yield Expected(sample, result.text, tuple(ranked), limited=result.unfinished)


def _continued(
    original: Original, described: Description, samples: Sequence[SampleText]
) -> Iterator[Expected]:
    for sample in samples:
        result = original.generate(sample.text, temperature=0, max_tokens=_new_tokens(described))
        yield Expected(sample, result.text)


def _new_tokens(described: Description) -> int:
    """The tokens of a continuation."""
    return min(NEW_TOKENS, max(1, described.config.max_length // 2))


def _labelled(original: Original, samples: Sequence[SampleText]) -> Iterator[Expected]:
    results = original.classify([each.text for each in samples], too_long="cut")
    for sample, result in zip(samples, results, strict=True):
        yield Expected(sample, ", ".join(sorted(result.labels)))


# --- transformers -------------------------------------------------------------------------------------------


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Neither progress bars nor warnings of `transformers` in this block."""
    from transformers import logging

    bars, verbosity = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


def agreement(
    folder: Path,
    original: Original,
    described: Description,
    vocabulary: Vocabulary,
    expected: Sequence[Expected],
    origin: str,
) -> Agreement:
    """Run an exported folder in `transformers`, and compare what it writes with what regard wrote."""
    import transformers

    architecture = described.config.architecture
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    kinds: dict[str, Any] = {
        "encoder-decoder": transformers.AutoModelForSeq2SeqLM,
        "decoder": transformers.AutoModelForCausalLM,
        "encoder": transformers.AutoModelForSequenceClassification,
    }
    model = kinds[architecture].from_pretrained(folder, local_files_only=True).eval()
    outputs: Callable[..., Iterator[tuple[int, str, str | None]]] = {
        "encoder-decoder": _their_translations,
        "decoder": _their_continuations,
        "encoder": _their_labels,
    }[architecture]
    reasons: Counter[str] = Counter()
    for i, output, reason in outputs(tokenizer, model, described, vocabulary, expected):
        # Their tokenizers remove a space that begins or ends an output.
        if output.strip() != expected[i].output.strip():
            searched = partial(_searched, original, described, vocabulary)
            reasons[reason or _reason(model, tokenizer, described, expected[i], output, searched)] += 1
    return Agreement(KINDS[architecture], origin, len(expected), tuple(reasons.most_common()))


def _their_text(described: Description, sample: SampleText) -> str:
    """A text as their tokenizer expects it: with its language, if the model has a tag for it."""
    tagged = described.task.has_tags and sample.target
    return f">>{sample.target}<<{sample.text}" if tagged else sample.text


def _their_translations(
    tokenizer: Any, model: Any, described: Description, vocabulary: Vocabulary, expected: Sequence[Expected]
) -> Iterator[tuple[int, str, str | None]]:
    """The index of each text, its translation, and a reason if that differs, if it is obvious."""
    import torch

    order = sorted(range(len(expected)), key=lambda i: len(expected[i].sample.text))
    for start in range(0, len(order), BATCH):
        places = order[start : start + BATCH]
        texts = [_their_text(described, expected[i].sample) for i in places]
        with torch.inference_mode():
            ids = model.generate(**tokenizer(texts, return_tensors="pt", padding=True))
        for i, row, text in zip(
            places, ids.tolist(), tokenizer.batch_decode(ids, skip_special_tokens=True), strict=True
        ):
            written = row[1 : row.index(vocabulary.eos_id, 1)] if vocabulary.eos_id in row[1:] else row[1:]
            reason = LOOP if loops(written) else LIMIT if expected[i].limited else None
            yield i, text, reason


def _their_continuations(
    tokenizer: Any, model: Any, described: Description, _: Vocabulary, expected: Sequence[Expected]
) -> Iterator[tuple[int, str, str | None]]:
    import torch

    for i, each in enumerate(expected):
        read = tokenizer([each.sample.text], return_tensors="pt")
        with torch.inference_mode():
            ids = model.generate(**read, max_new_tokens=_new_tokens(described))[0]
        new = ids[read["input_ids"].shape[1] :]
        yield i, tokenizer.decode(new, skip_special_tokens=True), SEARCH


def _their_labels(
    tokenizer: Any, model: Any, described: Description, _: Vocabulary, expected: Sequence[Expected]
) -> Iterator[tuple[int, str, str | None]]:
    import torch

    names, several = model.config.id2label, described.task.label_separator is not None
    for i, each in enumerate(expected):
        read = tokenizer(
            each.sample.text, return_tensors="pt", truncation=True, max_length=described.config.max_length
        )
        with torch.inference_mode():
            logits = model(**read).logits[0]
        chosen = (logits.sigmoid() >= 0.5).nonzero()[:, 0].tolist() if several else [int(logits.argmax())]
        yield i, ", ".join(sorted(names[k] for k in chosen)), LABELS


def _reason(
    model: Any,
    tokenizer: Any,
    described: Description,
    expected: Expected,
    output: str,
    searched: Callable[[SampleText], str],
) -> str:
    """Why a translation differs from that of regard."""
    if searched(expected.sample).strip() == output.strip():
        return COPIED
    if model.generation_config.num_beams == 1:
        return SEARCH
    alpha, power = described.decoding.length_penalty, model.generation_config.length_penalty
    read = tokenizer([_their_text(described, expected.sample)], return_tensors="pt")
    ours, theirs = (_scored(model, tokenizer, read, text) for text in (expected.output, output))
    by_paper = [total / length_penalty(n, alpha) for total, n in (ours, theirs)]
    by_power = [total / n**power for total, n in (ours, theirs)]
    return PENALTY if by_paper[0] >= by_paper[1] and by_power[0] < by_power[1] else SEARCH


def _searched(original: Original, described: Description, vocabulary: Vocabulary, sample: SampleText) -> str:
    """The output of the plain search, without all that regard does around it."""
    import torch

    from regard.decode.beam import beam_search
    from regard.decode.constraints import Constraints
    from regard.packing import pack

    model, decoding = original.module, described.decoding
    ids = original.read(sample.text, to=sample.target)
    limit = min(len(ids) + decoding.extra_length, described.config.max_length - 1)
    constraints = Constraints(bos=vocabulary.bos_id, eos=vocabulary.eos_id, limits=(limit,))
    with torch.inference_mode():
        memory = model.encode(pack([[*ids, vocabulary.eos_id]]))
        state = model.start(memory, limit, decoding.beam_size)
        ((best,),) = beam_search(
            model.step, state, constraints, width=decoding.beam_size, alpha=decoding.length_penalty
        )
    return vocabulary.decode(best.ids)


def _scored(model: Any, tokenizer: Any, read: Any, output: str) -> tuple[float, int]:
    """The log-probability of an output, and its number of tokens with the end."""
    import torch

    ids = tokenizer(text_target=[output], return_tensors="pt")["input_ids"]
    start = torch.tensor([[model.generation_config.decoder_start_token_id]])
    with torch.inference_mode():
        logits = model(**read, decoder_input_ids=torch.cat([start, ids[:, :-1]], dim=1)).logits
    log_probs = logits.float().log_softmax(-1)[0].gather(1, ids[0][:, None])
    return float(log_probs.sum()), ids.shape[1]
