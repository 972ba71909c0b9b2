"""The data of a trace: what one pass of a model over a text computed, as named arrays. Imports no torch.

Queries, keys and values of every block are stored. Scores, attention weights and the outputs of heads are
computed from them on demand, so that a trace grows with the length of the text, not with its square; `look`
compares them with those that ran, and stores the recorded ones of every block where they differ. `trace.py`
adds walk, save and show.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from regard.config import ModelConfig
from regard.errors import ConfigError, RequestError
from regard.look.interventions.interventions import (
    Intervention,
    change_scores,
    from_json,
    heads_off,
    masked_source,
    to_json,
)
from regard.look.trace.beam import BeamTree
from regard.look.trace.blocks import (
    INFLUENCE,
    BlockName,
    Kind,
    address_of,
    contents_of,
    kinds_of,
    layers_of,
    side_of,
    sublayers_of,
)
from regard.look.trace.file import packed, read_file, unpacked
from regard.look.trace.tokens import Tokens, display_piece

Stack = Literal["encoder", "decoder"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A token that may come next, or a label, with its probability."""

    id: int
    piece: str
    """As the vocabulary writes it; of a label, its number."""
    probability: float

    @property
    def text(self) -> str:
        """The piece as it is displayed: without the marker of its space."""
        return display_piece(self.piece)


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a model predicted at one step."""

    after: str
    """The last token read; of a classifier, the token at which its label is read off."""
    candidates: tuple[Candidate, ...]
    """Most likely first; the actual one comes last if it is not among the most likely."""
    actual: int | None
    """The id that followed; None after the last token of a text."""


@dataclass(frozen=True, eq=False, slots=True)
class TraceData:
    """One text, or one pair of texts, read once. Layers, heads and tokens count from 0."""

    config: ModelConfig
    inputs: Tokens | None
    """What the encoder read."""
    outputs: Tokens | None
    """What the decoder read: the outputs, shifted right."""
    targets: tuple[int, ...]
    """The token that followed each token of the outputs; of a classifier, its label."""
    pieces: Mapping[int, str]
    """The candidates, as the vocabulary writes them."""
    interventions: tuple[Intervention, ...]
    """What was changed inside the model."""
    arrays: Mapping[str, np.ndarray]
    """Activations by address, as `regard.model.taps` names them; under `said`, the predictions by layer."""
    beam: BeamTree | None = None
    """The search that found the outputs, if one was run and observed."""
    engine: str = ""
    """The engine that found the outputs; empty if they were given."""
    weights_hash: str = ""
    """Hash of the model's weights, from its folder; empty without a folder."""
    multi_label: bool = False
    """Whether a classifier decides on each label independently; otherwise they share one softmax."""

    def __repr__(self) -> str:
        sides = [str(len(side)) for side in (self.inputs, self.outputs) if side is not None]
        return f"Trace({self.config.architecture}, {' + '.join(sides)} tokens, {self.nbytes / 1e6:.1f} MB)"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TraceData):
            return NotImplemented
        same = self._header() == other._header() and self.arrays.keys() == other.arrays.keys()
        return same and all(
            each.dtype == other.arrays[name].dtype and np.array_equal(each, other.arrays[name])
            for name, each in self.arrays.items()
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def nbytes(self) -> int:
        """Size of all arrays."""
        return sum(array.nbytes for array in self.arrays.values())

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of attention in this model: encoder, decoder (masked), cross."""
        return kinds_of(self.config)

    def queries(self, kind: Kind) -> Tokens:
        """The tokens that attend."""
        side = self.inputs if kind == "encoder" else self.outputs
        assert side is not None, f"{kind} attention without its queries"
        return side

    def keys(self, kind: Kind) -> Tokens:
        """The tokens attended to."""
        side = self.outputs if kind == "decoder" else self.inputs
        assert side is not None, f"{kind} attention without its keys"
        return side

    def may_attend(self, kind: Kind) -> np.ndarray:
        """(queries, keys), True where a query may attend to a key."""
        self.check_place(kind)
        may_attend_LM = np.ones((len(self.queries(kind)), len(self.keys(kind))), dtype=bool)
        if kind == "decoder":
            return np.tril(may_attend_LM)
        may_attend_LM[:, masked_source(self.interventions)] = False
        return may_attend_LM

    def q(self, kind: Kind, layer: int, head: int) -> np.ndarray:
        """A head's queries, (queries, d_k), as they are multiplied: after rotation or normalisation."""
        return self._projected("q", kind, layer, head)

    def k(self, kind: Kind, layer: int, head: int) -> np.ndarray:
        """A head's keys, (keys, d_k), as they are multiplied."""
        return self._projected("k", kind, layer, head)

    def v(self, kind: Kind, layer: int, head: int) -> np.ndarray:
        """A head's values, (keys, d_v)."""
        return self._projected("v", kind, layer, head)

    def similarities(self, kind: Kind, layer: int, head: int) -> np.ndarray:
        """Similarity of each query and key, (queries, keys), before scaling; or the recorded scores."""
        q_LK, k_MK = self.q(kind, layer, head), self.k(kind, layer, head)
        if (stored_BHLM := self.recorded("scores", kind, layer)) is not None:
            stored_LM: np.ndarray = stored_BHLM[0, head]
            return stored_LM
        if self.config.similarity == "additive":
            hidden_LMK = np.tanh(q_LK[:, None] + k_MK)
            return hidden_LMK @ self.arrays[f"{address_of(kind, layer)}.similarity.weight"][head]
        return q_LK @ k_MK.T

    def score_bias(self, kind: Kind, head: int) -> np.ndarray | None:
        """What the model's positions add to the scores of a head, (queries, keys); None if nothing."""
        bias_HLM = None if kind == "cross" else self.arrays.get(f"{side_of(kind)}_positions.score_bias")
        return None if bias_HLM is None else bias_HLM[head]

    def scores(self, kind: Kind, layer: int, head: int) -> np.ndarray:
        """Input of the softmax, (queries, keys), before the mask."""
        scores_LM = self.similarities(kind, layer, head)
        if self.recorded("scores", kind, layer) is not None:
            return scores_LM
        if self.config.similarity == "scaled-dot":
            scores_LM = scores_LM * scores_LM.dtype.type(self.config.key_width**-0.5)
        if (bias_LM := self.score_bias(kind, head)) is not None:
            scores_LM = scores_LM + bias_LM
        change_scores(scores_LM, self.interventions, self.config, kind, layer, head)
        return scores_LM

    def attention(self, kind: Kind, layer: int, head: int) -> np.ndarray:
        """Attention weights of one head, (queries, keys): rows sum to 1, masked cells are exactly 0.

        They are those that ran; only an intervention or a module of one's own can break the rule of the sum.
        """
        self.check_place(kind, layer, head)
        if (stored_BHLM := self.recorded("weights", kind, layer)) is not None:
            stored_LM: np.ndarray = stored_BHLM[0, head]
            return stored_LM
        scores_LM = np.where(self.may_attend(kind), self.scores(kind, layer, head), -np.inf)
        weights_LM = np.exp(scores_LM - scores_LM.max(axis=-1, keepdims=True))
        return weights_LM / weights_LM.sum(axis=-1, keepdims=True)

    def head_output(self, kind: Kind, layer: int, head: int) -> np.ndarray:
        """The output of one head before W_O, (queries, d_v), after all interventions."""
        if (stored_NHU := self.recorded("heads", kind, layer)) is not None:
            self.check_place(kind, layer, head)
            stored_NU: np.ndarray = stored_NHU[:, head]
            return stored_NU
        output_NU = self.attention(kind, layer, head) @ self.v(kind, layer, head)
        return np.zeros_like(output_NU) if head in heads_off(self.interventions, kind, layer) else output_NU

    def recorded(self, name: str, kind: Kind, layer: int) -> np.ndarray | None:
        """The scores, weights or heads of a block as recorded; None if they follow from other arrays."""
        return self.arrays.get(f"{address_of(kind, layer)}.{name}")

    def output(self, block: BlockName, layer: int) -> np.ndarray:
        """Output of a block before its residual connection, (tokens, d_model)."""
        self.check_place(block, layer)
        return self.arrays[f"{address_of(block, layer)}.output"]

    def stream(self, stack: Stack, layer: int, sublayer: int = -1) -> np.ndarray:
        """The residual stream after a sub-layer (default: the last of the layer), (tokens, d_model).

        Layer -1 is the input of the first layer: embedding plus position.
        """
        blocks = self._sublayers(stack)
        if layer == -1:
            return self.arrays[f"{side_of(stack)}_embedding.with_positions"]
        if not -len(blocks) <= sublayer < len(blocks):
            names = ", ".join(blocks)
            raise RequestError(f"no sub-layer {sublayer}; the {stack} has {names}", code="unknown_place")
        self.check_place(blocks[sublayer], layer)
        return self.arrays[f"{stack}.layers.{layer}.add_and_norm.{sublayer % len(blocks)}.output"]

    def residual_norms(self, stack: Stack) -> np.ndarray:
        """Norm of each token's vector: (1 + layers · sub-layers, tokens), from the embedding upwards."""
        blocks = self._sublayers(stack)
        streams = [
            self.stream(stack, layer, i)
            for layer in range(layers_of(self.config, blocks[0]))
            for i in range(len(blocks))
        ]
        return np.stack([np.linalg.norm(x_ND, axis=-1) for x_ND in (self.stream(stack, -1), *streams)])

    def _sublayers(self, stack: Stack) -> tuple[BlockName, ...]:
        if not (blocks := sublayers_of(self.config, stack)):
            raise RequestError(f"this model has no {stack}", code="unknown_place")
        return blocks

    @property
    def log_probs(self) -> np.ndarray:
        """Log-probability of each of the `targets`."""
        return self.arrays["said.log_probs"][-1]

    @property
    def influence(self) -> np.ndarray | None:
        """How much each token raised the probability of a classifier's label; None if not computed."""
        return self.arrays.get(INFLUENCE)

    def candidates(self, row: int, layer: int = -1) -> list[Candidate]:
        """The most likely tokens after a token of the outputs, most likely first.

        With a layer, the prediction of that layer: its stream through the last norm and the output layer
        (the logit lens). A classifier has one row, 0.
        """
        ids, logits = self.arrays["said.ids"], self.arrays["said.logits"]
        n_layers, n_rows, _ = ids.shape
        if not -n_rows <= row < n_rows or not -n_layers <= layer < n_layers:
            there = f"there are rows 0 to {n_rows - 1} and layers 0 to {n_layers - 1}"
            raise RequestError(f"no candidates of row {row}, layer {layer}; {there}", code="unknown_place")
        logits_Y, normaliser = logits[layer, row], self.arrays["said.normaliser"][layer, row]
        probabilities = 1 / (1 + np.exp(-logits_Y)) if self.multi_label else np.exp(logits_Y - normaliser)
        pairs = zip(ids[layer, row].tolist(), probabilities.tolist(), strict=True)
        return [Candidate(i, self.pieces[i], probability) for i, probability in pairs]

    def lens(self, row: int) -> list[list[Candidate]]:
        """The candidates of every layer after a token of the outputs; the last are the model's own."""
        return [self.candidates(row, layer) for layer in range(len(self.arrays["said.ids"]))]

    def predictions(self, n: int | None = None) -> list[Prediction]:
        """Every step with its `n` most likely candidates (default: all that are stored) and what followed."""
        read = self.outputs if self.outputs is not None else self.inputs
        assert read is not None, "a trace has inputs or outputs"
        steps = []
        for row in range(self.arrays["said.ids"].shape[1]):
            candidates = tuple(self.candidates(row)[:n])
            actual = self.targets[row] if row < len(self.targets) else None
            if actual is not None and actual not in {candidate.id for candidate in candidates}:
                # The token that ends an output is never read, so only the candidates can name it.
                piece = read[row + 1].piece if row + 1 < len(read) else self.pieces.get(actual, "</s>")
                candidates += (Candidate(actual, piece, float(np.exp(self.log_probs[row]))),)
            steps.append(Prediction(read[row].text, candidates, actual))
        return steps

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read a saved trace, equal to the one that was saved.

        Raises:
            RequestError: the file does not exist, or holds no trace that this version can read.
        """
        return cls.from_bytes(read_file(Path(path)), str(path))

    def to_bytes(self) -> bytes:
        """The whole trace in the format of its file."""
        return packed(self._header(), self.arrays)

    @classmethod
    def from_bytes(cls, block: bytes, name: str = "the trace") -> Self:
        """Undo `to_bytes`; error messages call the source `name`.

        Raises:
            RequestError: it holds no trace that this version can read.
        """
        header, arrays = unpacked(block, name)
        try:
            inputs, outputs = (header[side] for side in ("inputs", "outputs"))
            trace = cls(
                config=ModelConfig(**header["config"]),
                inputs=None if inputs is None else Tokens.from_json(inputs),
                outputs=None if outputs is None else Tokens.from_json(outputs),
                targets=tuple(header["wanted"]),
                pieces=dict(header["pieces"]),
                interventions=from_json(header["interventions"]),
                arrays=arrays,
                beam=None if (beam := header.get("beam")) is None else BeamTree.from_json(beam),
                engine=header.get("engine", ""),
                weights_hash=header.get("weights_hash", ""),
                multi_label=header.get("several", False),
            )
        except (KeyError, TypeError, ConfigError, RequestError) as error:
            what = f"{name} is damaged, or was written by a later version: {error}"
            raise RequestError(what, code="damaged_file") from error
        if missing := sorted(contents_of(trace.config, arrays) - arrays.keys()):
            what = f"{name} is damaged: {len(missing)} arrays are missing, such as {missing[0]}"
            raise RequestError(what, code="damaged_file")
        return trace

    def _header(self) -> dict[str, Any]:
        """Everything but the arrays; the names of older files are kept."""
        return {
            "config": asdict(self.config),
            "inputs": None if self.inputs is None else self.inputs.to_json(),
            "outputs": None if self.outputs is None else self.outputs.to_json(),
            "wanted": list(self.targets),
            "pieces": sorted([i, piece] for i, piece in self.pieces.items()),
            "interventions": to_json(self.interventions),
            "beam": None if self.beam is None else self.beam.to_json(),
            "engine": self.engine,
            "weights_hash": self.weights_hash,
            "several": self.multi_label,
        }

    def _projected(self, which: str, kind: Kind, layer: int, head: int) -> np.ndarray:
        self.check_place(kind, layer, head)
        return self.arrays[f"{address_of(kind, layer)}.{which}"][:, head]

    def check_place(self, block: BlockName, layer: int = 0, head: int = 0) -> None:
        """Check that the model has a block, a layer and a head.

        Raises:
            RequestError: it does not; the message says what it has.
        """
        blocks = [*sublayers_of(self.config, "encoder"), *sublayers_of(self.config, "decoder")]
        if block not in blocks:
            has = ", ".join(blocks)
            raise RequestError(f"no {block} attention or block; this model has {has}", code="unknown_place")
        places = (("layer", layer, layers_of(self.config, block)), ("head", head, self.config.n_heads))
        for name, number, count in places:
            if not 0 <= number < count:
                there = f"{block} {name}s are numbered 0 to {count - 1}"
                raise RequestError(f"no {name} {number}; {there}", code="unknown_place")
