"""A Trace: everything that a model did with one text, as numbers, in one value and one file. No torch here.

It keeps the queries, keys and values of every block, not the weights that follow from them: those of a head
are worked out when they are asked for, so that a trace grows with the length of a text, not with its square.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from regard.config import ModelConfig
from regard.errors import ConfigError, RequestError
from regard.look.alignment.heads import AligningHeads
from regard.look.choice import choose
from regard.look.export.notebook import HEIGHT, Frame
from regard.look.interventions.interventions import (
    Intervention,
    change_scores,
    from_json,
    masked_source,
    to_json,
)
from regard.look.search.tree import BeamTree
from regard.look.trace.blocks import BlockName, Kind, address_of, kinds_of, layers_of, sublayers_of
from regard.look.trace.contents import INFLUENCE, contents_of, side_of
from regard.look.trace.file import packed, read_file, unpacked, write_file
from regard.look.trace.tokens import Tokens, shown
from regard.look.walk.walk import Step, walk

Stack = Literal["encoder", "decoder"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """What might come next, or the label that might be right."""

    id: int
    piece: str
    """As the vocabulary writes it; of a label, its number."""
    probability: float

    @property
    def text(self) -> str:
        """As one shows it: without its space."""
        return shown(self.piece)


@dataclass(frozen=True, eq=False, slots=True)
class Trace:
    """One text, or one pair, read once from end to end. Layers, heads and tokens count from 0."""

    config: ModelConfig
    inputs: Tokens | None
    """What the encoder read."""
    outputs: Tokens | None
    """What the decoder read: the outputs, shifted right."""
    wanted: tuple[int, ...]
    """What came next: after each token of the outputs the one that followed; of a classifier, its label."""
    pieces: Mapping[int, str]
    """How the vocabulary writes the candidates."""
    interventions: tuple[Intervention, ...]
    """What was changed inside of the model."""
    arrays: Mapping[str, np.ndarray]
    """Activations by address, as `regard.recording` names them; under `said`, what each layer would say."""
    beam: BeamTree | None = None
    """The search that found the outputs, where one was run for it and could be observed."""
    engine: str = ""
    """What found the outputs; none where they were given."""
    weights_hash: str = ""
    """Of the weights that were looked at, as the model folder names it; none where there is no folder."""
    several: bool = False
    """Whether a classifier decides on each label by itself; else they share one probability."""

    def __repr__(self) -> str:
        sides = [str(len(side)) for side in (self.inputs, self.outputs) if side is not None]
        return f"Trace({self.config.architecture}, {' + '.join(sides)} tokens, {self.nbytes / 1e6:.1f} MB)"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Trace):
            return NotImplemented
        same = self._header() == other._header() and self.arrays.keys() == other.arrays.keys()
        return same and all(
            each.dtype == other.arrays[name].dtype and np.array_equal(each, other.arrays[name])
            for name, each in self.arrays.items()
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def nbytes(self) -> int:
        """What the arrays take."""
        return sum(array.nbytes for array in self.arrays.values())

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of attention that there are: encoder, decoder (masked), cross."""
        return kinds_of(self.config)

    def queries(self, kind: Kind) -> Tokens:
        """The tokens that look."""
        side = self.inputs if kind == "encoder" else self.outputs
        assert side is not None, f"{kind} attention without its queries"
        return side

    def keys(self, kind: Kind) -> Tokens:
        """The tokens that are looked at."""
        side = self.outputs if kind == "decoder" else self.inputs
        assert side is not None, f"{kind} attention without its keys"
        return side

    def may_attend(self, kind: Kind) -> np.ndarray:
        """(queries, keys), True where a query may look."""
        self._check(kind)
        may_attend_LM = np.ones((len(self.queries(kind)), len(self.keys(kind))), dtype=bool)
        if kind == "decoder":
            return np.tril(may_attend_LM)
        may_attend_LM[:, masked_source(self.interventions)] = False
        return may_attend_LM

    def q(self, kind: Kind, layer: int, head: int) -> np.ndarray:
        """A head's queries, (queries, d_k), as they are multiplied: turned or normalised where that is so."""
        return self._projected("q", kind, layer, head)

    def k(self, kind: Kind, layer: int, head: int) -> np.ndarray:
        """A head's keys, (keys, d_k), as they are multiplied."""
        return self._projected("k", kind, layer, head)

    def v(self, kind: Kind, layer: int, head: int) -> np.ndarray:
        """A head's values, (keys, d_v)."""
        return self._projected("v", kind, layer, head)

    def similarities(self, kind: Kind, layer: int, head: int) -> np.ndarray:
        """How alike each query and key are, (queries, keys), before any scale."""
        q_LK, k_MK = self.q(kind, layer, head), self.k(kind, layer, head)
        if self.config.similarity == "additive":
            hidden_LMK = np.tanh(q_LK[:, None] + k_MK)
            return hidden_LMK @ self.arrays[f"{address_of(kind, layer)}.similarity.weight"][head]
        return q_LK @ k_MK.T

    def scores(self, kind: Kind, layer: int, head: int) -> np.ndarray:
        """What the softmax is taken of, (queries, keys), before the mask."""
        scores_LM = self.similarities(kind, layer, head)
        if self.config.similarity == "scaled-dot":
            scores_LM = scores_LM * scores_LM.dtype.type(self.config.key_width**-0.5)
        change_scores(scores_LM, self.interventions, self.config, kind, layer, head)
        return scores_LM

    def attention(self, kind: Kind, layer: int, head: int) -> np.ndarray:
        """The attention weights of one head, (queries, keys): rows sum to 1, masked cells are exactly 0."""
        scores_LM = np.where(self.may_attend(kind), self.scores(kind, layer, head), -np.inf)
        weights_LM = np.exp(scores_LM - scores_LM.max(axis=-1, keepdims=True))
        return weights_LM / weights_LM.sum(axis=-1, keepdims=True)

    def output(self, block: BlockName, layer: int) -> np.ndarray:
        """What a block hands to its residual connection, (tokens, d_model)."""
        self._check(block, layer)
        return self.arrays[f"{address_of(block, layer)}.output"]

    def stream(self, stack: Stack, layer: int, sublayer: int = -1) -> np.ndarray:
        """The residual stream behind a sub-layer (the last, unless another is named), (tokens, d_model).

        Layer -1 is what goes into the first: embedding plus position.
        """
        blocks = self._sublayers(stack)
        if layer == -1:
            return self.arrays[f"{side_of(stack)}_embedding.with_positions"]
        if not -len(blocks) <= sublayer < len(blocks):
            raise RequestError(f"no sub-layer {sublayer}; those of the {stack} are {', '.join(blocks)}")
        self._check(blocks[sublayer], layer)
        return self.arrays[f"{stack}.layers.{layer}.add_and_norm.{sublayer % len(blocks)}.output"]

    def residual_norms(self, stack: Stack) -> np.ndarray:
        """How long each token's vector is: (1 + layers · sub-layers, tokens), from the embedding upwards."""
        blocks = self._sublayers(stack)
        streams = [
            self.stream(stack, layer, i)
            for layer in range(layers_of(self.config, blocks[0]))
            for i in range(len(blocks))
        ]
        return np.stack([np.linalg.norm(x_ND, axis=-1) for x_ND in (self.stream(stack, -1), *streams)])

    def _sublayers(self, stack: Stack) -> tuple[BlockName, ...]:
        if not (blocks := sublayers_of(self.config, stack)):
            raise RequestError(f"this model has no {stack}")
        return blocks

    @property
    def log_probs(self) -> np.ndarray:
        """Log-probability of each token in `wanted`."""
        return self.arrays["said.log_probs"][-1]

    @property
    def influence(self) -> np.ndarray | None:
        """How much likelier each token made the label of a classifier; None where nobody worked it out."""
        return self.arrays.get(INFLUENCE)

    def candidates(self, row: int, layer: int = -1) -> list[Candidate]:
        """The likeliest tokens after a token of the outputs, the likeliest first.

        With a layer, what that layer would have said: its stream through the last norm and the output layer,
        the logit lens. Of a classifier the only row is 0.
        """
        ids, logits = self.arrays["said.ids"], self.arrays["said.logits"]
        n_layers, n_rows, _ = ids.shape
        if not -n_rows <= row < n_rows or not -n_layers <= layer < n_layers:
            there = f"rows from 0 to {n_rows - 1} and layers from 0 to {n_layers - 1}"
            raise RequestError(f"no candidates of row {row}, layer {layer}; there are {there}")
        likely = logits[layer, row]
        shares = 1 / (1 + np.exp(-likely)) if self.several else np.exp(likely - self._normaliser(row, layer))
        found = zip(ids[layer, row].tolist(), shares.tolist(), strict=True)
        return [Candidate(i, self.pieces[i], share) for i, share in found]

    def _normaliser(self, row: int, layer: int) -> np.floating[Any]:
        found: np.floating[Any] = self.arrays["said.normaliser"][layer, row]
        return found

    def lens(self, row: int) -> list[list[Candidate]]:
        """What each layer would have said after a token of the outputs; the last is what the model says."""
        return [self.candidates(row, layer) for layer in range(len(self.arrays["said.ids"]))]

    def walk(self, kind: Kind, layer: int, head: int, query: int) -> list[Step]:
        """The formula, step by step, with the numbers of one token in one head."""
        self._check(kind, layer, head)
        if not 0 <= query < (n := len(self.queries(kind))):
            raise RequestError(f"no query {query}; the tokens go from 0 to {n - 1}")
        return walk(self, kind, layer, head, query)

    def save(
        self,
        path: Path | str,
        view: str = "heads",
        *,
        kind: str | None = None,
        layer: int | None = None,
        head: int | Sequence[int] | None = None,
        query: int | None = None,
        aligning: AligningHeads | None = None,
    ) -> None:
        """Write the trace, or a view of it.

        Args:
            path: what is written follows from its end. `.safetensors` holds everything, and `Trace.load`
                reads it; `.html` is a page that shows all of it; `.svg` and `.png` are pictures of a view,
                `.csv` and `.npz` its numbers.
            view: heads, matrix, lines, alignment, beam, positions, walk, steps or, where
                `LoadedModel.with_influences` measured it, influence.
            kind: of attention; by default cross-attention, or the only one that there is.
            layer: by default the last.
            head: one or several; by default all of the layer.
            query: the token of a walk; by default the first that is a word.
            aligning: the heads that words are aligned by, such as those that a model folder keeps.

        Raises:
            RequestError: there is no such view or place, or the file cannot be written.
        """
        from regard.look.export.saving import WHOLE, save_view

        if (path := Path(path)).suffix.lower() == WHOLE:
            write_file(path, self.to_bytes())
        else:
            where: dict[str, Any] = {"kind": kind, "layer": layer, "head": head, "query": query}
            save_view(self, path, choose(self, view, **where, aligning=aligning))

    def show(self, height: int = HEIGHT) -> Frame:
        """The whole page inside of a notebook, so many pixels high: the last line of a cell shows it."""
        from regard.look.export.html import html

        return Frame(html(self, tree=self.beam), height)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:  # noqa: ARG002
        """What a notebook shows: all heads as one picture, which runs nothing."""
        from regard.look.views import picture

        return {"text/plain": repr(self), "image/svg+xml": picture(self, choose(self))}

    @staticmethod
    def load(path: Path | str) -> Trace:
        """A saved trace, equal to what was saved.

        Raises:
            RequestError: there is no such file, or it holds no trace that this version reads.
        """
        return Trace.from_bytes(read_file(Path(path)), str(path))

    def to_bytes(self) -> bytes:
        """The whole trace as one block, as it lies in a file."""
        return packed(self._header(), self.arrays)

    @staticmethod
    def from_bytes(block: bytes, name: str = "the trace") -> Trace:
        """The trace that was made to such a block; errors call it by `name`.

        Raises:
            RequestError: it holds no trace that this version reads.
        """
        header, arrays = unpacked(block, name)
        try:
            inputs, outputs = (header[side] for side in ("inputs", "outputs"))
            trace = Trace(
                config=ModelConfig(**header["config"]),
                inputs=None if inputs is None else Tokens.from_json(inputs),
                outputs=None if outputs is None else Tokens.from_json(outputs),
                wanted=tuple(header["wanted"]),
                pieces=dict(header["pieces"]),
                interventions=from_json(header["interventions"]),
                arrays=arrays,
                beam=None if (beam := header.get("beam")) is None else BeamTree.from_json(beam),
                engine=header.get("engine", ""),
                weights_hash=header.get("weights_hash", ""),
                several=header.get("several", False),
            )
        except (KeyError, TypeError, ConfigError, RequestError) as error:
            raise RequestError(f"{name} is damaged, or was written by a later version: {error}") from error
        if missing := sorted(contents_of(trace.config) - arrays.keys()):
            raise RequestError(f"{name} is damaged: it lacks {len(missing)} arrays, such as {missing[0]}")
        return trace

    def _header(self) -> dict[str, Any]:
        return {
            "config": asdict(self.config),
            "inputs": None if self.inputs is None else self.inputs.to_json(),
            "outputs": None if self.outputs is None else self.outputs.to_json(),
            "wanted": list(self.wanted),
            "pieces": sorted([i, piece] for i, piece in self.pieces.items()),
            "interventions": to_json(self.interventions),
            "beam": None if self.beam is None else self.beam.to_json(),
            "engine": self.engine,
            "weights_hash": self.weights_hash,
            "several": self.several,
        }

    def _projected(self, which: str, kind: Kind, layer: int, head: int) -> np.ndarray:
        self._check(kind, layer, head)
        return self.arrays[f"{address_of(kind, layer)}.{which}"][:, head]

    def _check(self, block: BlockName, layer: int = 0, head: int = 0) -> None:
        """Refuse a block, a layer or a head that the model does not have."""
        stacks = [*sublayers_of(self.config, "encoder"), *sublayers_of(self.config, "decoder")]
        if block not in stacks:
            raise RequestError(f"no {block} attention or block in this model, which has {', '.join(stacks)}")
        if not 0 <= layer < (n := layers_of(self.config, block)):
            raise RequestError(f"no layer {layer}; the {block} layers go from 0 to {n - 1}")
        if not 0 <= head < self.config.n_heads:
            raise RequestError(f"no head {head}; heads go from 0 to {self.config.n_heads - 1}")
