"""*Attention Is All You Need* (Vaswani et al., 2017) as plain `for` loops over float64 numbers.

This is the oracle of the parity tests: slow, obvious, and written from the paper alone, so that it cannot
share a mistake with the library. It reads one sequence at a time: no batch, no padding, no dropout, and no
mask but the causal rule. What the paper does not have (rotary positions, gated feed-forward, other
similarities, RMS norm, pre-norm) is written from its usual definition.

Shapes: `L` queries, `M` keys, `S` inputs, `T` outputs, `D` d_model, `H` heads, `K` d_k, `U` d_v, `V` words.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

Weights = Mapping[str, np.ndarray]
Config = Any  # anything with the attributes of the library's model configuration
EPSILON = 1e-5


def array(values: Any) -> np.ndarray:
    """The values in float64, whatever they came in."""
    return np.asarray(values, dtype=np.float64)


# Attention (section 3.2)


def softmax(row: Sequence[float | None]) -> np.ndarray:
    """The softmax of one row; None is masked and gets exactly 0; a row of only None gives zeros."""
    largest = max((float(score) for score in row if score is not None), default=0.0)
    exponentials = [0.0 if score is None else math.exp(float(score) - largest) for score in row]
    total = sum(exponentials)
    return array([exponential / total if total else 0.0 for exponential in exponentials])


def dot(a: np.ndarray, b: np.ndarray) -> float:
    """The dot product of two vectors."""
    total = 0.0
    for a_i, b_i in zip(a, b, strict=True):
        total += float(a_i) * float(b_i)
    return total


def weigh(scores: np.ndarray, v: np.ndarray, may_attend: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mask, SoftMax and the second MatMul of Figure 2: scores (L, M) and v (M, U) to (weights, output)."""
    assert scores.shape == np.shape(may_attend), f"{scores.shape} scores, {np.shape(may_attend)} may attend"
    weights, output = np.zeros(scores.shape), np.zeros((len(scores), v.shape[1]))
    for i in range(len(scores)):
        weights[i] = softmax([s if may else None for s, may in zip(scores[i], may_attend[i], strict=True)])
        for u in range(v.shape[1]):
            output[i, u] = dot(weights[i], v[:, u])
    return weights, output


def attention(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, may_attend: np.ndarray, scale: float | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Section 3.2.1, eq. (1): q (L, K), k (M, K), v (M, U) to weights (L, M) and output (L, U)."""
    q, k, v = array(q), array(k), array(v)
    scale = 1 / math.sqrt(q.shape[1]) if scale is None else scale
    scores = np.zeros((len(q), len(k)))
    for i in range(len(q)):
        for j in range(len(k)):
            scores[i, j] = dot(q[i], k[j]) * scale
    return weigh(scores, v, may_attend)


def similar(weights: Weights, prefix: str, kind: str, head: int, q: np.ndarray, k: np.ndarray) -> float:
    """How much one query of one head has to do with one key: the paper's way (3.2.1), or another."""
    match kind:
        case "scaled-dot":
            return dot(q, k) / math.sqrt(len(q))
        case "dot":
            return dot(q, k)
        case "cosine":
            norms = math.sqrt(dot(q, q)) * math.sqrt(dot(k, k))
            return dot(q, k) / norms if norms else 0.0
        case "bilinear":  # q^T W k
            matrix = array(weights[f"{prefix}similarity.weight"][head])
            return dot(q, array([dot(row, k) for row in matrix]))
        case "additive":  # sum_j u_j tanh((A q)_j + (B k)_j)
            u = array(weights[f"{prefix}similarity.weight"][head])
            a = array(weights[f"{prefix}similarity.query"][head])
            b = array(weights[f"{prefix}similarity.key"][head])
            return dot(u, array([math.tanh(dot(a[j], q) + dot(b[j], k)) for j in range(len(u))]))
    raise ValueError(f"unknown similarity: {kind!r}")


def rotate(x: np.ndarray) -> np.ndarray:
    """Rotary positions: in row `position`, turn the pair (x[2i], x[2i+1]) by position / 10000^(2i/K)."""
    length, width = x.shape
    assert width % 2 == 0, f"rotary positions turn pairs, so d_k must be even, not {width}"
    result = np.zeros((length, width))
    for position in range(length):
        for i in range(width // 2):
            angle = position / 10000 ** (2 * i / width)
            even, odd = x[position, 2 * i], x[position, 2 * i + 1]
            result[position, 2 * i] = even * math.cos(angle) - odd * math.sin(angle)
            result[position, 2 * i + 1] = even * math.sin(angle) + odd * math.cos(angle)
    return result


def alibi_slope(head: int, n_heads: int) -> float:
    """Press, Smith and Lewis, section 3: 2^(-8(i+1)/n) for n heads, n a power of two.

    For other n, the slopes of the power of two below it, then every second slope of the power above.
    """
    power = 2 ** int(math.log2(n_heads))
    if head < power:
        return float(2 ** (-8 * (head + 1) / power))
    return float(2 ** (-8 * (2 * (head - power) + 1) / (2 * power)))


def t5_bucket(distance: int, causal: bool) -> int:
    """T5's bucket of a distance, key minus query: 32 buckets, the last for distances of 128 and more."""
    first, n_buckets = 0, 32
    if causal:
        steps = max(0, -distance)
    else:
        n_buckets, steps = 16, abs(distance)
        first = 16 if distance > 0 else 0
    exact = n_buckets // 2
    if steps < exact:
        return first + steps
    grown = math.log(steps / exact) / math.log(128 / exact) * (n_buckets - exact)
    return first + min(n_buckets - 1, exact + int(grown))


def score_bias(weights: Weights, config: Config, name: str, length: int, causal: bool) -> np.ndarray | None:
    """What positions add to the scores of self-attention, (H, L, L); `name` is that of their weights."""
    if config.positions not in ("alibi", "t5-relative"):
        return None
    bias = np.zeros((config.n_heads, length, length))
    for head in range(config.n_heads):
        for i in range(length):
            for j in range(length):
                if config.positions == "alibi":
                    bias[head, i, j] = -alibi_slope(head, config.n_heads) * abs(i - j)
                else:
                    bias[head, i, j] = weights[name][t5_bucket(j - i, causal)][head]
    return bias


def linear(weights: Weights, prefix: str, x: np.ndarray) -> np.ndarray:
    """y = W x (+ b, where there is one) at every position; `prefix` ends before ".weight"."""
    matrix = array(weights[f"{prefix}.weight"])
    bias = array(weights.get(f"{prefix}.bias", np.zeros(len(matrix))))
    y = np.zeros((len(x), len(matrix)))
    for position in range(len(x)):
        for row in range(len(matrix)):
            y[position, row] = dot(matrix[row], x[position]) + bias[row]
    return y


def multi_head_attention(
    weights: Weights,
    prefix: str,
    x_queries: np.ndarray,
    x_keys: np.ndarray,
    n_heads: int,
    may_attend: np.ndarray,
    rotary: bool = False,
    similarity: str = "scaled-dot",
    bias: np.ndarray | None = None,
) -> np.ndarray:
    """Section 3.2.2: MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W^O; x_keys gives the values too.

    `bias` (H, L, M) is added to the scores.
    """
    all_q = linear(weights, f"{prefix}w_q", array(x_queries))
    all_k = linear(weights, f"{prefix}w_k", array(x_keys))
    all_v = linear(weights, f"{prefix}w_v", array(x_keys))
    outputs = []
    for head in range(n_heads):
        q, k, v = (np.split(x, n_heads, axis=1)[head] for x in (all_q, all_k, all_v))
        if rotary:
            q, k = rotate(q), rotate(k)
        scores = np.zeros((len(q), len(k)))
        for i in range(len(q)):
            for j in range(len(k)):
                scores[i, j] = similar(weights, prefix, similarity, head, q[i], k[j])
                scores[i, j] += 0.0 if bias is None else bias[head, i, j]
        outputs.append(weigh(scores, v, may_attend)[1])
    return linear(weights, f"{prefix}w_o", np.concatenate(outputs, axis=1))


def everyone(n_queries: int, n_keys: int) -> np.ndarray:
    """Every query may attend to every key (section 3.2.3: in the encoder, and from decoder to memory)."""
    return np.ones((n_queries, n_keys), dtype=bool)


def causal(length: int) -> np.ndarray:
    """A position may attend to itself and to those before it (section 3.2.3: in the decoder)."""
    return np.array([[key <= query for key in range(length)] for query in range(length)])


# The other parts of a layer (sections 3.1 and 3.3)


def layer_norm(weights: Weights, prefix: str, x: np.ndarray, epsilon: float = EPSILON) -> np.ndarray:
    """Layer normalization (section 3.1): to mean 0 and variance 1 at every position, then weight and bias."""
    weight, bias = array(weights[f"{prefix}weight"]), array(weights[f"{prefix}bias"])
    y = np.zeros(np.shape(x))
    for position, row in enumerate(array(x)):
        mean = sum(row) / len(row)
        variance = sum((value - mean) ** 2 for value in row) / len(row)
        for d in range(len(row)):
            y[position, d] = (row[d] - mean) / math.sqrt(variance + epsilon) * weight[d] + bias[d]
    return y


def rms_norm(weights: Weights, prefix: str, x: np.ndarray, epsilon: float = EPSILON) -> np.ndarray:
    """Root mean square normalization: no mean taken away, no bias."""
    weight = array(weights[f"{prefix}weight"])
    y = np.zeros(np.shape(x))
    for position, row in enumerate(array(x)):
        mean_square = sum(value**2 for value in row) / len(row)
        for d in range(len(row)):
            y[position, d] = row[d] / math.sqrt(mean_square + epsilon) * weight[d]
    return y


def norm(weights: Weights, config: Config, prefix: str, x: np.ndarray) -> np.ndarray:
    """The normalization that the configuration names."""
    return {"layer": layer_norm, "rms": rms_norm}[config.norm](weights, prefix, x, config.norm_epsilon)


def relu(x: float) -> float:
    """max(0, x), eq. (2)."""
    return max(0.0, x)


def gelu(x: float) -> float:
    """x times the probability that a standard normal number is below x."""
    return x * 0.5 * (1 + math.erf(x / math.sqrt(2)))


def gelu_tanh(x: float) -> float:
    """GELU's first approximation, by a tanh."""
    return x * 0.5 * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def silu(x: float) -> float:
    """x times sigmoid(x), the sigmoid written as a tanh because that never overflows."""
    return x * 0.5 * (1 + math.tanh(x / 2))


def feed_forward(weights: Weights, prefix: str, x: np.ndarray, kind: str) -> np.ndarray:
    """Section 3.3, eq. (2): narrow(relu(widen(x))), or with gelu, or gated by a silu or gelu of gate(x)."""
    plain = {"relu": relu, "gelu": gelu, "gelu-tanh": gelu_tanh, "swish": silu}
    activation = {**plain, "swiglu": silu, "geglu": gelu}[kind]
    gated = kind in ("swiglu", "geglu")
    wide = linear(weights, f"{prefix}widen", array(x))
    gate = linear(weights, f"{prefix}gate", array(x)) if gated else wide
    hidden = np.zeros(wide.shape)
    for position in range(wide.shape[0]):
        for f in range(wide.shape[1]):
            hidden[position, f] = activation(gate[position, f]) * (wide[position, f] if gated else 1.0)
    return linear(weights, f"{prefix}narrow", hidden)


def add_and_norm(
    weights: Weights, config: Config, prefix: str, x: np.ndarray, sublayer: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    """Section 3.1: LayerNorm(x + Sublayer(x)); pre-norm is x + Sublayer(LayerNorm(x))."""
    match config.norm_position:
        case "post":
            return norm(weights, config, f"{prefix}norm.", x + sublayer(x))
        case "pre":
            return array(x + sublayer(norm(weights, config, f"{prefix}norm.", x)))
    raise ValueError(f"unknown norm position: {config.norm_position!r}")


# Embeddings and positions (sections 3.4 and 3.5)


def sinusoids(n_positions: int, d_model: int) -> np.ndarray:
    """Section 3.5: PE(pos, 2i) = sin(pos / 10000^(2i/d_model)), PE(pos, 2i+1) = cos of the same."""
    table = np.zeros((n_positions, d_model))
    for position in range(n_positions):
        for d in range(d_model):
            angle = position / 10000 ** (2 * (d // 2) / d_model)
            table[position, d] = math.sin(angle) if d % 2 == 0 else math.cos(angle)
    return table


def embed(table: np.ndarray, ids: Sequence[int], scaled: bool) -> np.ndarray:
    """Section 3.4: the rows of the ids, times sqrt(d_model) if scaled."""
    factor = math.sqrt(np.shape(table)[1]) if scaled else 1.0
    return array([[float(value) * factor for value in table[token]] for token in ids])


def place(weights: Weights, config: Config, name: str, x: np.ndarray) -> np.ndarray:
    """Add the positions, where they are something that is added (section 3.5)."""
    match config.positions:
        case "sinusoidal":
            return array(x + sinusoids(len(x), config.d_model))
        case "learned":
            return array(x + array(weights[name])[: len(x)])
        case "rotary" | "none" | "alibi" | "t5-relative":
            return x
    raise ValueError(f"unknown positions: {config.positions!r}")


# The models (sections 3.1 and 3.4)


def attend(
    weights: Weights,
    config: Config,
    prefix: str,
    x: np.ndarray,
    keys: np.ndarray,
    may: np.ndarray,
    rotary: bool,
    bias: np.ndarray | None = None,
) -> np.ndarray:
    """Multi-head attention as configured; only self-attention may be rotary or have a bias."""
    rotary = rotary and config.positions == "rotary"
    n_heads, similarity = config.n_heads, config.similarity
    return multi_head_attention(weights, prefix, x, keys, n_heads, may, rotary, similarity, bias)


def encoder(weights: Weights, config: Config, ids: Sequence[int]) -> np.ndarray:
    """The left half of Figure 1: ids to memory (S, D)."""
    x = embed(weights["input_embedding.weight"], ids, config.scale_embeddings)
    x = place(weights, config, "input_positions.weight", x)
    if config.embedding_norm:
        x = norm(weights, config, "input_norm.", x)
    for i in range(config.encoder_layers):
        x = encoder_layer(weights, config, f"encoder.layers.{i}.", x)
    return norm(weights, config, "encoder.norm.", x) if config.norm_position == "pre" else x


def encoder_layer(weights: Weights, config: Config, prefix: str, x: np.ndarray) -> np.ndarray:
    """Attention among all the inputs, then the feed-forward network."""

    def attend_to_inputs(y: np.ndarray) -> np.ndarray:
        may_attend = everyone(len(y), len(y))
        bias = score_bias(weights, config, "input_positions.weight", len(y), causal=False)
        return attend(weights, config, f"{prefix}multi_head_attention.", y, y, may_attend, True, bias)

    def feed(y: np.ndarray) -> np.ndarray:
        return feed_forward(weights, f"{prefix}feed_forward.", y, config.feed_forward)

    x = add_and_norm(weights, config, f"{prefix}add_and_norm.0.", x, attend_to_inputs)
    return add_and_norm(weights, config, f"{prefix}add_and_norm.1.", x, feed)


def decoder(weights: Weights, config: Config, memory: np.ndarray | None, ids: Sequence[int]) -> np.ndarray:
    """The right half of Figure 1, below the last Linear: ids to (T, D); memory is None in a decoder alone."""
    x = embed(weights[decoder_table(config, memory is None)], ids, config.scale_embeddings)
    x = place(weights, config, "output_positions.weight", x)
    if config.embedding_norm:
        x = norm(weights, config, "output_norm.", x)
    for i in range(config.decoder_layers):
        x = decoder_layer(weights, config, f"decoder.layers.{i}.", memory, x)
    return norm(weights, config, "decoder.norm.", x) if config.norm_position == "pre" else x


def decoder_layer(
    weights: Weights, config: Config, prefix: str, memory: np.ndarray | None, x: np.ndarray
) -> np.ndarray:
    """Attention to the outputs so far, then to memory if there is one, then the feed-forward network."""

    def attend_to_outputs(y: np.ndarray) -> np.ndarray:
        name = f"{prefix}masked_multi_head_attention."
        bias = score_bias(weights, config, "output_positions.weight", len(y), causal=True)
        return attend(weights, config, name, y, y, causal(len(y)), True, bias)

    def attend_to_memory(y: np.ndarray) -> np.ndarray:
        keys = array(memory)
        may_attend = everyone(len(y), len(keys))
        return attend(weights, config, f"{prefix}multi_head_attention.", y, keys, may_attend, rotary=False)

    def feed(y: np.ndarray) -> np.ndarray:
        return feed_forward(weights, f"{prefix}feed_forward.", y, config.feed_forward)

    sublayers = [attend_to_outputs, feed] if memory is None else [attend_to_outputs, attend_to_memory, feed]
    for i, sublayer in enumerate(sublayers):
        x = add_and_norm(weights, config, f"{prefix}add_and_norm.{i}.", x, sublayer)
    return x


def decoder_table(config: Config, alone: bool) -> str:
    """The name of the decoder's embedding: shared three ways, it is the encoder's, if there is an encoder."""
    from_encoder = config.shared_embeddings == "three-way" and not alone
    return "input_embedding.weight" if from_encoder else "output_embedding.weight"


def output_table(config: Config, alone: bool) -> str:
    """The name of the last Linear's weights: where anything is shared, the decoder's embedding (3.4)."""
    shared = {"none": False, "two-way": True, "three-way": True}[config.shared_embeddings]
    return decoder_table(config, alone) if shared else "output_probabilities.weight"


def log_softmax(row: np.ndarray) -> np.ndarray:
    """The logarithm of the softmax of one row."""
    largest = max(row)
    log_total = largest + math.log(sum(math.exp(score - largest) for score in row))
    return array([score - log_total for score in row])


def output_log_probs(weights: Weights, table: str, x: np.ndarray) -> np.ndarray:
    """Linear and Softmax at the top of Figure 1 (section 3.4), in logarithms: (T, D) to (T, V)."""
    scores = linear({**weights, "output_probabilities.weight": weights[table]}, "output_probabilities", x)
    return array([log_softmax(row) for row in scores])


def transformer_log_probs(
    weights: Weights, config: Config, input_ids: Sequence[int], output_ids: Sequence[int]
) -> np.ndarray:
    """Figure 1, whole: (T, V), the log-probabilities of what follows each of the outputs."""
    x = decoder(weights, config, encoder(weights, config, input_ids), output_ids)
    return output_log_probs(weights, output_table(config, alone=False), x)


def language_model_log_probs(weights: Weights, config: Config, ids: Sequence[int]) -> np.ndarray:
    """A decoder alone: (T, V), the log-probabilities of what follows each of the ids."""
    return output_log_probs(weights, output_table(config, alone=True), decoder(weights, config, None, ids))


def classifier_log_probs(weights: Weights, config: Config, ids: Sequence[int]) -> np.ndarray:
    """An encoder alone, the first id being [CLS]: (n_labels,), read at that first position."""
    first = label_head(weights, config, encoder(weights, config, ids)[:1])
    return array(output_log_probs(weights, "output_probabilities.weight", first)[0])


def label_head(weights: Weights, config: Config, x: np.ndarray) -> np.ndarray:
    """What BERT puts before its output layers."""
    if config.label_head == "none":
        return x
    activation = {"tanh": math.tanh, "gelu-norm": gelu}[config.label_head]
    mapped = array([[activation(value) for value in row] for row in linear(weights, "label_head.map", x)])
    return norm(weights, config, "label_head.norm.", mapped) if config.label_head == "gelu-norm" else mapped


def label_smoothed_cross_entropy(log_probs: np.ndarray, targets: Sequence[int], smoothing: float) -> float:
    """Section 5.4, summed over positions: 1 - smoothing on the target, smoothing spread evenly over all V."""
    total = 0.0
    for row, target in zip(array(log_probs), targets, strict=True):
        total += (1 - smoothing) * -float(row[target])
        for log_prob in row:
            total += smoothing / len(row) * -float(log_prob)
    return total
