"""Convert a model folder to a CTranslate2 folder, without torch.

Settings that CTranslate2 cannot express are refused, all at once. Positions are written as a table, since
CTranslate2's own sinusoids differ: all sines before the cosines, other wavelengths, first position 1. A
bilinear similarity is multiplied into the map of the queries. Tokens are the pieces of the subword model, so
other programs can run the folder; without a subword model, they are the ids as digits.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import cast, get_args

import numpy as np

from regard.bundle.bundle import describe_bundle, load_bundle
from regard.bundle.manifest import SHORTLIST, SUBWORDS, WEIGHTS, intact_files, read_manifest
from regard.bundle.weights import float32_weights
from regard.bundle.writing import write_folder
from regard.config import ModelConfig
from regard.decode.shortlist import Shortlist, read_shortlist
from regard.errors import BundleError, ConfigError
from regard.exchange.ctranslate2.usage import usage_files
from regard.exchange.ctranslate2.weights_file import Array, Quantisation, quantised, to_bytes
from regard.exchange.verification import ProbeSequences, Verified, compare, draw_probe, log_probs
from regard.text.vocabularies import read_vocabulary

MODEL, VOCABULARY, SETTINGS = "model.bin", "shared_vocabulary.json", "config.json"
CANDIDATES = "vmap.txt"
"""The shortlist, if there is one, which searches with `use_vmap=True` use."""
UNKNOWN = "<unk>"
_SEPARATORS = re.compile(r"[ \t\r\n]")
"""What no token may contain that is listed among candidates."""
EXPRESSIBLE = {
    "positions": ("sinusoidal", "learned", "rotary", "none"),
    "similarity": ("scaled-dot", "dot", "bilinear"),
    "feed_forward": ("relu", "gelu", "gelu-tanh", "swish", "swiglu", "geglu"),
    "norm": ("layer", "rms"),
}
"""The choices that CTranslate2 can compute; every other one is refused."""
ACTIVATIONS = {"relu": 0, "gelu-tanh": 1, "swish": 2, "swiglu": 2, "gelu": 3, "geglu": 3}
"""CTranslate2's numbers; for a gated form, the activation of the gate."""


def write_ctranslate2(model: Path, out: Path, quantisation: str) -> Verified:
    """Write a model folder as a CTranslate2 folder, and compare it with the original.

    Raises:
        BundleError: the model folder is damaged; `out` exists; or the exported model computes something else.
        ConfigError: with every setting that CTranslate2 cannot express.
    """
    if quantisation not in get_args(Quantisation):
        known = ", ".join(get_args(Quantisation))
        problem = f"unknown quantisation {quantisation!r}: choose one of {known}"
        raise ConfigError(problem, code="unknown_quantisation")
    bundle = load_bundle(model)
    bos, eos = _begin_and_end(bundle.subwords)
    folder = export_ctranslate2(model, out, bos=bos, eos=eos, quantisation=cast(Quantisation, quantisation))
    probe = draw_probe(bundle.config)
    ours = [
        rows[np.arange(len(rows)), [*ids, eos]][:, None]
        for rows, ids in zip(log_probs(bundle.model, probe, bos=bos, eos=eos), probe.outputs, strict=True)
    ]
    theirs = _their_log_probs(folder, probe)
    return compare("CTranslate2", probe, ours, theirs, exact=quantisation == "float32")


def _begin_and_end(subwords: bytes | None) -> tuple[int, int]:
    """The ids that begin and end outputs; without a vocabulary, those of our own vocabularies."""
    if subwords is None:
        return 1, 2
    vocabulary = read_vocabulary(subwords)
    return vocabulary.bos_id, vocabulary.eos_id


def _their_log_probs(folder: Path, probe: ProbeSequences) -> list[np.ndarray]:
    """CTranslate2's log-probability of every output token and of the end, (tokens, 1)."""
    import ctranslate2

    translator = ctranslate2.Translator(str(folder), intra_threads=1)
    tokens = json.loads((folder / VOCABULARY).read_bytes())
    pieces = [[[tokens[i] for i in ids] for ids in side] for side in (probe.inputs, probe.outputs)]
    results = translator.score_batch(*pieces, max_input_length=0)
    return [np.array(result.log_probs)[:, None] for result in results]


def export_ctranslate2(
    bundle: Path | str, folder: Path | str, *, bos: int, eos: int, quantisation: Quantisation = "float32"
) -> Path:
    """Write a model folder as a CTranslate2 folder, complete or not at all; returns its absolute path.

    It also has the subword model, and a README with the code that runs it.

    Raises:
        BundleError: the model folder is damaged, or `folder` exists.
        ConfigError: with every setting that CTranslate2 cannot express.
    """
    folder = Path(folder).resolve()
    files = ctranslate2_files(Path(bundle), quantisation, bos=bos, eos=eos)
    described = describe_bundle(bundle)
    if SUBWORDS in described.files:
        vocabulary = read_vocabulary((described.folder / SUBWORDS).read_bytes())
        files |= usage_files(described, vocabulary)
    write_folder(folder, files, overwrite=False)
    return folder


def inexpressible(config: ModelConfig) -> list[str]:
    """Every setting of a configuration that CTranslate2 cannot express, as sentences."""
    problems = []
    if config.architecture != "encoder-decoder":
        problems.append(f'model.architecture = "{config.architecture}": only "encoder-decoder" is converted')
    if config.key_width != config.value_width:
        widths = f"model.d_k = {config.key_width} and model.d_v = {config.value_width}"
        problems.append(f"{widths} differ: in CTranslate2 a head has one width")
    for setting, expressible in EXPRESSIBLE.items():
        if (value := getattr(config, setting)) not in expressible:
            known = ", ".join(expressible)
            problems.append(
                f'model.{setting} = "{value}" has no equivalent in CTranslate2, only {known} have'
            )
    if config.similarity == "bilinear" and config.positions == "rotary":
        both = 'model.similarity = "bilinear" with model.positions = "rotary"'
        problems.append(f"{both}: CTranslate2 rotates queries after the product, regard before")
    return problems


def ctranslate2_files(bundle: Path, quantisation: Quantisation, *, bos: int, eos: int) -> dict[str, bytes]:
    """The content of all files of the CTranslate2 folder, by name."""
    config = describe_bundle(bundle).config
    if problems := inexpressible(config):
        raise ConfigError(problems, f"{bundle}, for CTranslate2", code="inexpressible_setting")
    problems = []
    contents = dict(intact_files(bundle, read_manifest(bundle), problems))
    if problems:
        raise BundleError(problems, str(bundle), code="damaged_model_folder")
    variables = dict(variables_of(config, float32_weights(contents[WEIGHTS])))
    tokens = _tokens(config, contents.get(SUBWORDS), bundle)
    files = {
        MODEL: to_bytes(quantised(variables, quantisation)),
        VOCABULARY: json.dumps(tokens).encode(),
        SETTINGS: json.dumps(_settings(config, tokens, bos, eos), indent=2).encode(),
    }
    if SHORTLIST in contents and not any(map(_SEPARATORS.search, tokens)):
        files[CANDIDATES] = _candidates(
            read_shortlist(contents[SHORTLIST], config.vocab_size, bundle), tokens
        )
    return files


def _candidates(shortlist: Shortlist, tokens: list[str]) -> bytes:
    """A line for each token that has candidates; the first one, without a token, has what all have."""
    lines = [("", shortlist.always.tolist()), *zip(tokens, shortlist.as_lists, strict=True)]
    return "".join(
        f"{token}\t{' '.join([tokens[i] for i in candidates])}\n" for token, candidates in lines if candidates
    ).encode()


def _tokens(config: ModelConfig, subwords: bytes | None, bundle: Path) -> list[str]:
    """The names of all ids, without duplicates."""
    if subwords is None:
        return [str(i) for i in range(config.vocab_size)]
    vocabulary = read_vocabulary(subwords)
    if vocabulary.vocab_size != config.vocab_size:
        sizes = f"has {vocabulary.vocab_size} pieces, the model has {config.vocab_size}"
        problem = f"{SUBWORDS} {sizes}: they do not belong together"
        raise BundleError(problem, str(bundle), code="vocabulary_mismatch")
    pieces = vocabulary.pieces(range(config.vocab_size))
    # An imported vocabulary may write a letter and a byte the same way.
    return pieces if len({*pieces}) == len(pieces) else [str(i) for i in range(config.vocab_size)]


def _settings(config: ModelConfig, tokens: list[str], bos: int, eos: int) -> dict[str, object]:
    return {
        "add_source_bos": False,
        "add_source_eos": True,
        "bos_token": tokens[bos],
        "decoder_start_token": tokens[bos],
        "eos_token": tokens[eos],
        "layer_norm_epsilon": config.norm_epsilon,
        "multi_query_attention": False,
        "unk_token": UNKNOWN if UNKNOWN in tokens else tokens[0],
    }


# --- the weights, box by box, under CTranslate2's names -----------------------------------------------------

Weights = dict[str, np.ndarray]
Variables = Iterator[tuple[str, Array]]


def variables_of(config: ModelConfig, weights: Weights) -> Variables:
    """All variables by name; a shared weight is one array under several names."""
    inputs = weights["input_embedding.weight"]
    outputs = inputs if config.shared_embeddings == "three-way" else weights["output_embedding.weight"]
    shared = config.shared_embeddings != "none"
    yield "encoder/embeddings_0/weight", inputs
    yield "encoder/embeddings_merge", np.array(0, np.int8)
    yield "encoder/multi_query_attention", np.array(0, np.int8)
    yield "decoder/embeddings/weight", outputs
    yield "decoder/projection/weight", outputs if shared else weights["output_probabilities.weight"]
    if config.output_bias:
        yield "decoder/projection/bias", weights["output_probabilities.bias"]
    yield from _positions(config, weights)
    for stack, n_layers in (("encoder", config.encoder_layers), ("decoder", config.decoder_layers)):
        yield from _stack(config, stack)
        if config.embedding_norm:
            side = "input" if stack == "encoder" else "output"
            yield from _norm(weights, f"{side}_norm", f"{stack}/layernorm_embedding")
        if config.norm_position == "pre":
            yield from _norm(weights, f"{stack}.norm", f"{stack}/layer_norm")
        for i in range(n_layers):
            yield from _layer(config, weights, f"{stack}.layers.{i}", f"{stack}/layer_{i}")


def _stack(config: ModelConfig, stack: str) -> Variables:
    yield f"{stack}/num_heads", np.array(config.n_heads, np.int16)
    yield f"{stack}/pre_norm", np.array(config.norm_position == "pre", np.int8)
    yield f"{stack}/activation", np.array(ACTIVATIONS[config.feed_forward], np.int8)
    yield f"{stack}/scale_embeddings", np.array(config.scale_embeddings, np.int8)


def _positions(config: ModelConfig, weights: Weights) -> Variables:
    sides = {"encoder": "input_positions", "decoder": "output_positions"}
    if config.positions == "learned":
        tables = {stack: weights[f"{name}.weight"] for stack, name in sides.items()}
    elif config.positions == "sinusoidal":
        tables = dict.fromkeys(sides, _sinusoids(config.max_length, config.d_model))
    elif config.positions == "none":  # with no table CTranslate2 would add sinusoids
        tables = dict.fromkeys(sides, np.zeros((config.max_length, config.d_model), np.float32))
    else:
        return
    for stack, table in tables.items():
        yield f"{stack}/position_encodings/encodings", table


def _sinusoids(n_positions: int, d_model: int) -> Array:
    """The paper's table, sine and cosine in turn (3.5), computed in float32 as the model does."""
    even = np.arange(0, d_model, 2, dtype=np.float32)
    slowing = np.float32(10000) ** (-even / np.float32(d_model))
    angles = np.arange(n_positions, dtype=np.float32)[:, None] * slowing
    return np.stack((np.sin(angles), np.cos(angles)), axis=-1).reshape(n_positions, d_model)


def _layer(config: ModelConfig, weights: Weights, ours: str, theirs: str) -> Variables:
    """A layer of either stack: its attentions and its feed-forward, with their norms."""
    own, of_memory = f"{ours}.multi_head_attention", None
    if theirs.startswith("decoder"):
        own, of_memory = f"{ours}.masked_multi_head_attention", own
    yield from _own_attention(config, weights, own, f"{theirs}/self_attention")
    yield from _norm(weights, f"{ours}.add_and_norm.0.norm", f"{theirs}/self_attention/layer_norm")
    if of_memory is not None:
        yield from _memory_attention(config, weights, of_memory, f"{theirs}/attention")
        yield from _norm(weights, f"{ours}.add_and_norm.1.norm", f"{theirs}/attention/layer_norm")
    last = 1 if of_memory is None else 2
    yield from _feed_forward(config, weights, f"{ours}.feed_forward", f"{theirs}/ffn")
    yield from _norm(weights, f"{ours}.add_and_norm.{last}.norm", f"{theirs}/ffn/layer_norm")


def _own_attention(config: ModelConfig, weights: Weights, ours: str, theirs: str) -> Variables:
    q, k, v, o = _projections(config, weights, ours)
    yield from _linear([q, k, v], f"{theirs}/linear_0")
    yield from _linear([o], f"{theirs}/linear_1")
    yield from _head(config, theirs)
    if config.positions == "rotary":  # all dimensions rotate, in neighbouring pairs
        yield f"{theirs}/rotary_dim", np.array(0, np.int32)
        yield f"{theirs}/rotary_interleave", np.array(1, np.int8)
        yield f"{theirs}/rotary_base", np.array(10000, np.float32)


def _memory_attention(config: ModelConfig, weights: Weights, ours: str, theirs: str) -> Variables:
    q, k, v, o = _projections(config, weights, ours)
    yield from _linear([q], f"{theirs}/linear_0")
    yield from _linear([k, v], f"{theirs}/linear_1")
    yield from _linear([o], f"{theirs}/linear_2")
    yield from _head(config, theirs)


def _head(config: ModelConfig, theirs: str) -> Variables:
    yield f"{theirs}/head_dim", np.array(config.key_width, np.int32)
    if config.similarity != "scaled-dot":
        yield f"{theirs}/queries_scale", np.array(1, np.float32)


def _projections(config: ModelConfig, weights: Weights, ours: str) -> list[Weights]:
    """Weight and bias of W^Q, W^K, W^V and W^O."""
    q, k, v, o = (_map(weights, f"{ours}.{name}") for name in ("w_q", "w_k", "w_v", "w_o"))
    if config.similarity == "bilinear":  # qᵀ W k is (Wᵀ q)ᵀ k
        by_head = weights[f"{ours}.similarity.weight"]
        shape = (config.n_heads, config.key_width, -1)
        q = {n: np.einsum("hkj,hkd->hjd", by_head, x.reshape(shape)).reshape(x.shape) for n, x in q.items()}
    return [q, k, v, o]


def _feed_forward(config: ModelConfig, weights: Weights, ours: str, theirs: str) -> Variables:
    widen, narrow = _map(weights, f"{ours}.widen"), _map(weights, f"{ours}.narrow")
    if config.feed_forward in ("swiglu", "geglu"):
        yield from _linear([_map(weights, f"{ours}.gate")], f"{theirs}/linear_0")
        yield from _linear([widen], f"{theirs}/linear_0_noact")
    else:
        yield from _linear([widen], f"{theirs}/linear_0")
    yield from _linear([narrow], f"{theirs}/linear_1")


def _map(weights: Weights, ours: str) -> Weights:
    names = ("weight", "bias")
    return {name: weights[f"{ours}.{name}"] for name in names if f"{ours}.{name}" in weights}


def _linear(maps: list[Weights], theirs: str) -> Variables:
    """Maps of the same input, concatenated."""
    for name in maps[0]:
        yield f"{theirs}/{name}", np.concatenate([weights[name] for weights in maps])


def _norm(weights: Weights, ours: str, theirs: str) -> Variables:
    yield f"{theirs}/gamma", weights[f"{ours}.weight"]
    if f"{ours}.bias" in weights:  # RMSNorm has none
        yield f"{theirs}/beta", weights[f"{ours}.bias"]
