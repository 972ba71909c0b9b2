"""Which word of the inputs a word of the outputs comes from, by the heads that are chosen for it.

The row that predicts a token counts, unless told otherwise: there our small models find two to three times as
many links as in the token's own row, which is the better one elsewhere (Chen et al., 2020). So this choice is
measured as the heads are (`measuring_heads.py`). Words are those of `Tokens.words`, without special tokens.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from regard.bundle.bundle import add_file
from regard.bundle.manifest import ALIGNMENT
from regard.config import ModelConfig
from regard.errors import BundleError, RequestError
from regard.look.alignment.word_links import Link
from regard.look.trace.tokens import Tokens, Word

if TYPE_CHECKING:
    from regard.look.trace.data import TraceData


_LINK = re.compile(r"(\d+)([-p?])(\d+)")


@dataclass(frozen=True, slots=True)
class Gold:
    """The links of one pair of texts, as somebody who knows drew them."""

    sure: frozenset[Link]
    possible: frozenset[Link]
    """These and the sure ones."""

    @staticmethod
    def read(line: str) -> Gold:
        """One line of a file in Pharaoh's format.

        Raises:
            RequestError: something in it is no link.
        """
        links: dict[str, set[Link]] = {"-": set(), "p": set(), "?": set()}
        for each in line.split():
            if (found := _LINK.fullmatch(each)) is None:
                raise RequestError(f"{each!r} is no link: write 0-0 for a sure one, 0p0 for a possible one")
            links[found[2]].add((int(found[1]), int(found[3])))
        return Gold(frozenset(links["-"]), frozenset().union(*links.values()))


@dataclass(frozen=True, slots=True)
class AlignmentScore:
    """How well links fit those that are known, over one pair of texts or many (Och and Ney, 2003)."""

    precision: float
    """Of the links that were found, those that are possible."""
    recall: float
    """Of the links that are sure, those that were found."""
    error_rate: float
    """1 - (found and sure + found and possible) / (found + sure): AER, 0 at best."""


def alignment_error_rate(pairs: Iterable[tuple[Collection[Link], Gold]]) -> AlignmentScore:
    """Score the links of each pair of texts against the known ones, all pairs together.

    Raises:
        RequestError: there is no link that was found, or none that is sure.
    """
    n_found = n_sure = found_sure = found_possible = 0
    for links, gold in pairs:
        found = set(links)
        n_found, n_sure = n_found + len(found), n_sure + len(gold.sure)
        found_sure += len(found & gold.sure)
        found_possible += len(found & gold.possible)
    if not n_found or not n_sure:
        raise RequestError("an error rate needs a link that was found, and one that is surely right")
    return AlignmentScore(
        precision=found_possible / n_found,
        recall=found_sure / n_sure,
        error_rate=1 - (found_sure + found_possible) / (n_found + n_sure),
    )


Head = tuple[int, int]
"""Layer and head of cross-attention."""
Rows = Literal["own", "predicting"]
"""Where a token's attention is read: in its own row, or in the row before, which predicts it."""


@dataclass(frozen=True, eq=False, slots=True)
class Alignment:
    """Words of the outputs, each with its share in every word of the inputs."""

    inputs: tuple[Word, ...]
    outputs: tuple[Word, ...]
    shares: np.ndarray
    """(outputs, inputs); what special tokens of the inputs drew is missing from a row's sum."""

    @property
    def links(self) -> tuple[Link, ...]:
        """For each word of the outputs the word of the inputs with the largest share."""
        return tuple((int(row.argmax()), i) for i, row in enumerate(self.shares))

    @property
    def coverage(self) -> np.ndarray:
        """How much all the outputs together took from each word of the inputs."""
        total: np.ndarray = self.shares.sum(axis=0)
        return total

    @property
    def untouched(self) -> tuple[Word, ...]:
        """Words of the inputs that no output comes from: perhaps left untranslated."""
        linked = {i for i, _ in self.links}
        return tuple(word for i, word in enumerate(self.inputs) if i not in linked)

    def score(self, gold: Gold) -> AlignmentScore:
        """How well the links fit those that are known, which count words as `inputs` and `outputs` do.

        Raises:
            RequestError: one of those names a word that there is not, or none of them is sure.
        """
        for i, j in sorted(gold.possible):
            if i >= len(self.inputs) or j >= len(self.outputs):
                there = f"{len(self.inputs)} words of the inputs and {len(self.outputs)} of the outputs"
                raise RequestError(f"no link {i}-{j}: there are {there}, which count from 0")
        return alignment_error_rate([(self.links, gold)])


def align(trace: TraceData, heads: Collection[Head], rows: Rows = "predicting") -> Alignment:
    """Align by the mean of some heads of cross-attention.

    Raises:
        RequestError: no head was chosen, or the model has none of that kind.
    """
    if trace.inputs is None or trace.outputs is None:
        raise RequestError("only an encoder-decoder model aligns outputs with inputs")
    if not heads:
        raise RequestError("choose at least one head to align by, such as (3, 5): layer 3, head 5")
    weights_LM = np.mean([trace.attention("cross", layer, head) for layer, head in heads], axis=0)
    inputs, outputs = words_of(trace.inputs), words_of(trace.outputs)
    if not inputs or not outputs:
        raise RequestError("there is nothing to align: one side has no words")
    return Alignment(inputs, outputs, shares_of_words(weights_LM, inputs, outputs, rows))


def shares_of_words(
    weights: np.ndarray, inputs: Sequence[Word], outputs: Sequence[Word], rows: Rows = "predicting"
) -> np.ndarray:
    """Attention between tokens, (…, queries, keys), as attention between words, (…, outputs, inputs).

    A word draws what its tokens draw, and looks where its tokens look on average.
    """
    shift = 0 if rows == "own" else 1
    columns = [weights[..., word.first : word.last + 1].sum(axis=-1) for word in inputs]
    joined = np.stack(columns, axis=-1)
    looking = [joined[..., word.first - shift : word.last + 1 - shift, :].mean(axis=-2) for word in outputs]
    return np.stack(looking, axis=-2)


def words_of(side: Tokens) -> tuple[Word, ...]:
    """The words that can be aligned."""
    return tuple(word for word in side.words if not side[word.first].special)


def accuracy_of_each_head(
    traces: Sequence[TraceData], links: Sequence[Collection[Link]], rows: Rows = "predicting"
) -> np.ndarray:
    """(layers, heads): how often a head's link of a word is one of the links known to be right.

    Words without a known link are not counted.

    Raises:
        RequestError: there is not one collection of links for each trace, or no link at all.
    """
    if not traces or len(traces) != len(links):
        raise RequestError(
            f"{len(traces)} traces and {len(links)} collections of links: one of each is a pair"
        )
    config = traces[0].config
    right = np.zeros((config.decoder_layers, config.n_heads))
    counted = sum(len({output for _, output in known}) for known in links)
    if not counted:
        raise RequestError("no link is known: give pairs of an input word and an output word")
    for trace, known in zip(traces, links, strict=True):
        for layer, head in np.ndindex(right.shape):
            right[layer, head] += len(set(align(trace, [(layer, head)], rows).links) & set(known))
    return right / counted


def best_heads(accuracy: np.ndarray, n: int) -> tuple[Head, ...]:
    """The n heads that align best, the best first."""
    order = np.argsort(-accuracy, axis=None, kind="stable")[:n]
    return tuple((int(i) // accuracy.shape[1], int(i) % accuracy.shape[1]) for i in order)


@dataclass(frozen=True, kw_only=True, slots=True)
class AligningHeads:
    """Some heads of cross-attention, and how well they align when they are averaged."""

    heads: tuple[Head, ...]
    rows: Rows = "predicting"
    accuracy: float | None = None
    """Share of known links that they find, in pairs that had no say in the choice; None: not measured."""
    n_pairs: int = 0
    """Pairs that the accuracy was measured on."""
    of_each_head: tuple[tuple[float, ...], ...] = ()
    """What each head alone found of the pairs that it was chosen by: layers, and heads in them."""

    @property
    def measured(self) -> bool:
        """Whether these heads were chosen by measuring."""
        return self.accuracy is not None

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)

    @staticmethod
    def from_json(values: Mapping[str, Any]) -> AligningHeads:
        """Undo `to_json`."""
        rows = values["rows"]
        if rows not in get_args(Rows):
            raise ValueError(f"rows = {rows!r}")
        return AligningHeads(
            heads=tuple((int(layer), int(head)) for layer, head in values["heads"]),
            rows=rows,
            accuracy=values["accuracy"],
            n_pairs=int(values["n_pairs"]),
            of_each_head=tuple(tuple(map(float, layer)) for layer in values["of_each_head"]),
        )


def default_heads(config: ModelConfig) -> AligningHeads:
    """What to align by where nothing was measured: all heads of the later half of the layers, averaged."""
    layers = range(config.decoder_layers // 2, config.decoder_layers)
    return AligningHeads(heads=tuple((layer, head) for layer in layers for head in range(config.n_heads)))


def save_aligning_heads(folder: Path | str, heads: AligningHeads) -> None:
    """Write them into a model folder."""
    add_file(folder, ALIGNMENT, (json.dumps(heads.to_json()) + "\n").encode())


def read_aligning_heads(folder: Path | str) -> AligningHeads | None:
    """What a model folder keeps; None where nothing was measured.

    Raises:
        BundleError: it cannot be read.
    """
    file = Path(folder) / ALIGNMENT
    if not file.exists():
        return None
    try:
        return AligningHeads.from_json(json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BundleError(f"{ALIGNMENT} cannot be read: {error!r}; measure again", str(folder)) from error
