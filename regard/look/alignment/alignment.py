"""Word alignment from cross-attention: its heads, the alignment of a trace, and its score. Imports no torch.

By default a token's attention is read in the row that predicts it: in our small models this finds two to
three times as many links as the token's own row, which is better in others (Chen et al., 2020). The choice
is therefore measured together with the heads (`aligner.py`). Words are those of `Tokens.words`, without
special tokens. Reference alignments are in Pharaoh's format, `0-0 1-2 2p1`: a word of the inputs and one of
the outputs, both from 0; a sure link, or with `p` or `?` a possible one.
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
from regard.look.trace.tokens import Tokens, Word

if TYPE_CHECKING:  # a translator starts without the rest of a trace
    from regard.look.trace.data import TraceData

Link = tuple[int, int]
"""A word of the inputs and a word of the outputs, by their numbers."""
Head = tuple[int, int]
"""Layer and head of cross-attention."""
Rows = Literal["own", "predicting"]
"""Where the attention of a token is read: in its own row, or in the row before, which predicts it."""
_LINK = re.compile(r"(\d+)([-p?])(\d+)")


@dataclass(frozen=True, kw_only=True, slots=True)
class AligningHeads:
    """Heads of cross-attention whose mean aligns words, and how well it does."""

    heads: tuple[Head, ...]
    rows: Rows = "predicting"
    accuracy: float | None = None
    """Share of known links found, on pairs that were not used for the choice; None: not measured."""
    n_pairs: int = 0
    """Number of pairs that the accuracy was measured on."""
    of_each_head: tuple[tuple[float, ...], ...] = ()
    """Accuracy of each head alone, by layer, on the pairs used for the choice."""

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
    """The heads to use without a measurement: all heads of the later half of the layers."""
    layers = range(config.decoder_layers // 2, config.decoder_layers)
    return AligningHeads(heads=tuple((layer, head) for layer in layers for head in range(config.n_heads)))


def save_aligning_heads(folder: Path | str, heads: AligningHeads) -> None:
    """Write heads into a model folder."""
    add_file(folder, ALIGNMENT, (json.dumps(heads.to_json()) + "\n").encode())


def read_aligning_heads(folder: Path | str) -> AligningHeads | None:
    """The heads stored in a model folder; None if there are none.

    Raises:
        BundleError: the file cannot be read.
    """
    file = Path(folder) / ALIGNMENT
    if not file.exists():
        return None
    try:
        return AligningHeads.from_json(json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError) as error:
        what = f"{ALIGNMENT} cannot be read: {error!r}; measure the alignment again"
        raise BundleError(what, str(folder), code="damaged_file") from error


@dataclass(frozen=True, slots=True)
class Gold:
    """The reference links of one pair of texts."""

    sure: frozenset[Link]
    possible: frozenset[Link]
    """Including the sure ones."""

    @staticmethod
    def read(line: str) -> Gold:
        """Read one line in Pharaoh's format.

        Raises:
            RequestError: a part of it is not a link.
        """
        links: dict[str, set[Link]] = {"-": set(), "p": set(), "?": set()}
        for each in line.split():
            if (match := _LINK.fullmatch(each)) is None:
                what = f"{each!r} is not a link: write 0-0 for a sure one, 0p0 for a possible one"
                raise RequestError(what, code="bad_link")
            links[match[2]].add((int(match[1]), int(match[3])))
        return Gold(frozenset(links["-"]), frozenset().union(*links.values()))


@dataclass(frozen=True, slots=True)
class AlignmentScore:
    """Agreement of links with reference links, over one or many pairs of texts (Och and Ney, 2003)."""

    precision: float
    """Share of the links that are possible."""
    recall: float
    """Share of the sure links that were found."""
    error_rate: float
    """1 - (found and sure + found and possible) / (found + sure): AER, best at 0."""


def alignment_error_rate(pairs: Iterable[tuple[Collection[Link], Gold]]) -> AlignmentScore:
    """Score the links of pairs of texts against reference links, all pairs together.

    Raises:
        RequestError: no link was found, or none is sure.
    """
    n_found = n_sure = found_sure = found_possible = 0
    for links, gold in pairs:
        found = set(links)
        n_found, n_sure = n_found + len(found), n_sure + len(gold.sure)
        found_sure += len(found & gold.sure)
        found_possible += len(found & gold.possible)
    if not n_found or not n_sure:
        what = "an error rate needs at least one link that was found and one that is sure"
        raise RequestError(what, code="no_links")
    return AlignmentScore(
        precision=found_possible / n_found,
        recall=found_sure / n_sure,
        error_rate=1 - (found_sure + found_possible) / (n_found + n_sure),
    )


@dataclass(frozen=True, eq=False, slots=True)
class Alignment:
    """Words of the outputs, each with its share in every word of the inputs."""

    inputs: tuple[Word, ...]
    outputs: tuple[Word, ...]
    shares: np.ndarray
    """(outputs, inputs); rows sum to less than 1 by the attention to special tokens."""

    @property
    def links(self) -> tuple[Link, ...]:
        """For each word of the outputs the word of the inputs with the largest share."""
        return tuple((int(row.argmax()), i) for i, row in enumerate(self.shares))

    @property
    def coverage(self) -> np.ndarray:
        """The sum of the shares in each word of the inputs."""
        total: np.ndarray = self.shares.sum(axis=0)
        return total

    @property
    def untouched(self) -> tuple[Word, ...]:
        """Words of the inputs without a link: perhaps left untranslated."""
        linked = {i for i, _ in self.links}
        return tuple(word for i, word in enumerate(self.inputs) if i not in linked)

    def score(self, gold: Gold) -> AlignmentScore:
        """Score the links against reference links, which number words as `inputs` and `outputs` do.

        Raises:
            RequestError: a reference link names a word that does not exist, or none is sure.
        """
        for i, j in sorted(gold.possible):
            if i >= len(self.inputs) or j >= len(self.outputs):
                sizes = f"{len(self.inputs)} words of the inputs and {len(self.outputs)} of the outputs"
                raise RequestError(f"no link {i}-{j}: there are {sizes}, from 0", code="bad_link")
        return alignment_error_rate([(self.links, gold)])


def align(trace: TraceData, heads: Collection[Head], rows: Rows = "predicting") -> Alignment:
    """Align words by the mean of some heads of cross-attention.

    Raises:
        RequestError: no head was given, or the model has no cross-attention.
    """
    if trace.inputs is None or trace.outputs is None:
        what = "only an encoder-decoder model aligns outputs with inputs"
        raise RequestError(what, code="nothing_to_show")
    if not heads:
        what = "choose at least one head to align by, such as (3, 5): layer 3, head 5"
        raise RequestError(what, code="no_head")
    weights_LM = np.mean([trace.attention("cross", layer, head) for layer, head in heads], axis=0)
    inputs, outputs = words_of(trace.inputs), words_of(trace.outputs)
    if not inputs or not outputs:
        raise RequestError("nothing to align: one side has no words", code="nothing_to_show")
    return Alignment(inputs, outputs, shares_of_words(weights_LM, inputs, outputs, rows))


def shares_of_words(
    weights: np.ndarray, inputs: Sequence[Word], outputs: Sequence[Word], rows: Rows = "predicting"
) -> np.ndarray:
    """Attention between tokens, (…, queries, keys), as attention between words, (…, outputs, inputs).

    The sum over the tokens of a word read, the mean over the tokens of a word written.
    """
    shift = 0 if rows == "own" else 1
    columns = [weights[..., word.first : word.last + 1].sum(axis=-1) for word in inputs]
    joined = np.stack(columns, axis=-1)
    means = [joined[..., word.first - shift : word.last + 1 - shift, :].mean(axis=-2) for word in outputs]
    return np.stack(means, axis=-2)


def words_of(side: Tokens) -> tuple[Word, ...]:
    """The words that can be aligned."""
    return tuple(word for word in side.words if not side[word.first].special)


def accuracy_of_each_head(
    traces: Sequence[TraceData], links: Sequence[Collection[Link]], rows: Rows = "predicting"
) -> np.ndarray:
    """(layers, heads): how often a head's link of a word is one of the known links.

    Words without a known link are not counted.

    Raises:
        RequestError: the number of traces and of collections of links differ, or no link is known.
    """
    if not traces or len(traces) != len(links):
        what = f"{len(traces)} traces and {len(links)} collections of links: give one per trace"
        raise RequestError(what, code="pair_count_mismatch")
    config = traces[0].config
    right = np.zeros((config.decoder_layers, config.n_heads))
    counted = sum(len({output for _, output in known}) for known in links)
    if not counted:
        what = "no link is known: give pairs of an input word and an output word"
        raise RequestError(what, code="no_links")
    for trace, known in zip(traces, links, strict=True):
        for layer, head in np.ndindex(right.shape):
            right[layer, head] += len(set(align(trace, [(layer, head)], rows).links) & set(known))
    return right / counted


def best_heads(accuracy: np.ndarray, n: int) -> tuple[Head, ...]:
    """The n heads that align best, best first."""
    order = np.argsort(-accuracy, axis=None, kind="stable")[:n]
    return tuple((int(i) // accuracy.shape[1], int(i) % accuracy.shape[1]) for i in order)
