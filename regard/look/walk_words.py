"""What each step of a walk says: its formula, plain and in LaTeX, and a sentence in English and Chinese."""

from __future__ import annotations

from dataclasses import dataclass

from regard.config import ModelConfig
from regard.look.trace.blocks import Kind


@dataclass(frozen=True, slots=True)
class Words:
    """One step in words."""

    formula: str
    latex: str
    english: str
    chinese: str


INTERVENTION = Words(
    "changed on request",
    r"\text{changed on request}",
    "Here an intervention steps in: these numbers are its doing.",
    "此处有人为干预：这些数字由干预决定。",
)
RESIDUAL = Words(
    "x + output",
    r"x + \mathrm{output}",
    "What the block has found is added to the vector that it was given: the residual connection.",
    "把这个模块的输出加回它的输入上：这就是残差连接。",
)
NORMALISER = Words(
    "z = log Σ exp(logit)",
    r"z = \log \sum_i \exp(\mathrm{logit}_i)",
    "The sum of the exponentials of all logits, as a logarithm; dividing by it makes probabilities of them.",
    "对所有 logit 取指数后求和，再取对数；除以这个和，就得到概率。",
)


def embedding(token: str, config: ModelConfig) -> Words:
    """The vector of a subword."""
    if not config.scale_embeddings:
        return Words(
            "E[token]",
            r"E_{\mathrm{token}}",
            f"“{token}” is looked up in the embedding table.",
            f"在嵌入表中查到“{token}”的向量。",
        )
    return Words(
        "E[token] √d_model",
        r"E_{\mathrm{token}} \sqrt{d_{\mathrm{model}}}",
        f"“{token}” is looked up in the embedding table, and its vector multiplied by √{config.d_model}.",
        f"在嵌入表中查到“{token}”的向量，再乘以 √{config.d_model}。",
    )


def position(place: str, config: ModelConfig) -> Words:
    """The vector of a token's position."""
    if config.positions not in ("sinusoidal", "learned"):
        return Words(
            "position(pos)",
            r"\mathrm{position}(pos)",
            f"The vector that the model adds at position {place}.",
            f"模型在位置 {place} 加上的向量。",
        )
    if config.positions == "learned":
        return Words(
            "P[pos]",
            r"P_{\mathrm{pos}}",
            f"The vector that was learned for position {place}.",
            f"为位置 {place} 学得的向量。",
        )
    return Words(
        "PE(pos, 2i) = sin(pos / 10000^(2i / d_model)), PE(pos, 2i+1) = cos(the same)",
        r"PE_{(pos,2i)} = \sin(pos / 10000^{2i/d_{\mathrm{model}}}),\ "
        r"PE_{(pos,2i+1)} = \cos(pos / 10000^{2i/d_{\mathrm{model}}})",
        f"The encoding of position {place}: sines and cosines of many wavelengths.",
        f"位置 {place} 的编码：由许多不同波长的正弦和余弦组成。",
    )


def placed(token: str, config: ModelConfig) -> Words:
    """Word and place."""
    if config.embedding_norm:
        return Words(
            "x = Norm(embedding + position)",
            r"x = \mathrm{Norm}(\mathrm{embedding} + \mathrm{position})",
            f"Word and place are added up and normalised: all that the model knows of “{token}” so far.",
            f"词的向量加上位置的向量，再归一化：到此为止，模型对“{token}”的了解全在这里。",
        )
    return Words(
        "x = embedding + position",
        r"x = \mathrm{embedding} + \mathrm{position}",
        f"Word and place are added up: all that the model knows of “{token}” so far.",
        f"词的向量加上位置的向量：到此为止，模型对“{token}”的了解全在这里。",
    )


def unplaced(config: ModelConfig) -> Words:
    """A word without a place of its own."""
    normed = config.embedding_norm
    later, chinese_later = {
        "rotary": ("; queries and keys will be turned by it", "；稍后会按位置旋转查询和键"),
        "alibi": ("; distances will lower the scores", "；稍后距离会降低得分"),
        "t5-relative": ("; distances will change the scores", "；稍后会按距离调整得分"),
    }.get(config.positions, ("", ""))
    return Words(
        "x = Norm(embedding)" if normed else "x = embedding",
        r"x = \mathrm{Norm}(\mathrm{embedding})" if normed else r"x = \mathrm{embedding}",
        f"No position is added{later}.",
        f"这里不加位置{chinese_later}。",
    )


def handed_up(token: str, kind: Kind) -> Words:
    """What the block below made of a token."""
    if kind == "cross":
        english, chinese = "masked self-attention", "带掩码的自注意力"
    else:
        english, chinese = "the layer below", "下面一层"
    return Words("x", "x", f"What {english} made of “{token}”.", f"{chinese}处理“{token}”之后得到的向量。")


def normed(config: ModelConfig) -> Words:
    """A norm before a block."""
    formula, latex, _, _ = _norm(config)
    return Words(
        formula,
        latex,
        "The block reads the vector normalised; the residual connection keeps it as it was.",
        "模块读入的是归一化之后的向量；残差连接保留的仍是原来的向量。",
    )


def query(token: str, config: ModelConfig, kind: Kind) -> Words:
    """What a token looks for."""
    formula, latex = _projected("q", config, kind)
    return Words(
        formula, latex, f"The query of “{token}”: what it looks for.", f"“{token}”的查询向量：它在找什么。"
    )


def keys(n: int, config: ModelConfig, kind: Kind) -> Words:
    """What tokens are found by."""
    formula, latex = _projected("k", config, kind)
    whose, from_where = ("of the memory's", "编码器输出中") if kind == "cross" else ("of the", "")
    return Words(
        formula,
        latex,
        f"The key of each {whose} {n} tokens: what it can be found by.",
        f"{from_where} {n} 个词元各自的键向量：别人凭它找到这个词元。".strip(),
    )


def similarity(config: ModelConfig) -> Words:
    """How alike query and key are."""
    match config.similarity:
        case "additive":
            formula, latex = "uᵀ tanh(q + k)", r"u^\top \tanh(q + k)"
            english = "How well the query and each key go together, by a small network."
            chinese = "用一个小网络衡量查询与每个键有多相配。"
        case "cosine":
            formula, latex = "q · k", r"q \cdot k"
            english = "The cosine of the angle between the query and each key: both have length 1."
            chinese = "查询与每个键夹角的余弦：二者的长度都已是 1。"
        case "scaled-dot" | "dot" | "bilinear":
            formula, latex = "q · k", r"q \cdot k"
            english = "How alike the query and each key are: their dot product."
            chinese = "查询与每个键有多相近：求二者的点积。"
        case name:
            formula, latex = f"{name}(q, k)", rf"\mathrm{{{name}}}(q, k)"
            english = f"How alike the query and each key are, by the similarity “{name}”."
            chinese = f"查询与每个键有多相近，由相似度“{name}”给出。"
    return Words(formula, latex, english, chinese)


def biased(config: ModelConfig) -> Words:
    """What positions add to the scores."""
    if config.positions == "alibi":
        return Words(
            "score − slope · distance",
            r"\mathrm{score} - m \cdot |i - j|",
            "Each head lowers the scores in proportion to the distance (ALiBi).",
            "每个头按距离成比例地降低得分（ALiBi）。",
        )
    return Words(
        "score + bias(distance)",
        r"\mathrm{score} + b_{i - j}",
        "A number is added for the distance between query and key.",
        "按查询与键之间的距离加上一个数。",
    )


def scaled(config: ModelConfig) -> Words:
    """The paper's scale."""
    root = f"{config.key_width**0.5:.4g}"
    return Words(
        "q · k / √d_k",
        r"\frac{q \cdot k}{\sqrt{d_k}}",
        f"Divided by √d_k = {root}, so that the softmax does not saturate.",
        f"除以 √d_k = {root}，免得 softmax 饱和。",
    )


def masked(token: str, kind: Kind, sees_all: bool) -> Words:
    """Who may be looked at."""
    if sees_all:
        english = f"Nothing is masked: “{token}” may look at every token here."
        chinese = f"没有遮蔽：“{token}”可以看到这里的每个词元。"
    elif kind == "decoder":
        english = f"“{token}” may not look ahead: scores of what comes after it become −∞."
        chinese = f"“{token}”不能往后看：排在它后面的词元，分数一律变为 −∞。"
    else:
        english, chinese = "Scores of masked tokens become −∞.", "被遮蔽的词元，分数变为 −∞。"
    return Words(
        "score, or −∞ where masked",
        r"\begin{cases} \mathrm{score} \\ -\infty & \text{where masked} \end{cases}",
        english,
        chinese,
    )


def weights(most: str, share: str) -> Words:
    """The shares of attention."""
    return Words(
        "softmax(scores)",
        r"\mathrm{softmax}(\mathrm{scores})",
        f"The softmax turns scores into shares that sum to 1; the largest, {share}, goes to “{most}”.",
        f"softmax 把分数变成总和为 1 的份额；最大的一份 {share} 归“{most}”。",
    )


def values(config: ModelConfig, kind: Kind) -> Words:
    """What tokens hand over."""
    plain, latex = _linear("v", config, kind)
    return Words(
        f"v = {plain}",
        f"v = {latex}",
        "The value of each token: what it hands over to whoever looks at it.",
        "每个词元的值向量：谁关注它，它就把这些内容交给谁。",
    )


def head(token: str) -> Words:
    """What one head has found."""
    return Words(
        "Σ weight · v",
        r"\sum_j \mathrm{weight}_j\, v_j",
        f"The values, each times its share, added up: what this head has found for “{token}”.",
        f"各个值乘以各自的份额再相加：这个头为“{token}”找到的内容。",
    )


def concat(config: ModelConfig) -> Words:
    """All heads."""
    return Words(
        "Concat(head₁, …, head_h)",
        r"\mathrm{Concat}(\mathrm{head}_1, \ldots, \mathrm{head}_h)",
        f"What all {config.n_heads} heads have found, side by side.",
        f"把 {config.n_heads} 个头找到的内容首尾相接。",
    )


def output(config: ModelConfig) -> Words:
    """W_O."""
    bias = config.attention_bias
    return Words(
        f"Concat(…) W_O{' + b_O' if bias else ''}",
        rf"\mathrm{{Concat}}(\ldots) W^O{' + b^O' if bias else ''}",
        f"W_O mixes the heads and comes back to d_model = {config.d_model} numbers.",
        f"W_O 把各个头混合起来，变回 d_model = {config.d_model} 维。",
    )


def norm(config: ModelConfig) -> Words:
    """A norm behind a block."""
    return Words(*_norm(config))


def final_norm(config: ModelConfig) -> Words:
    """The norm behind a stack of pre-norm layers."""
    formula, latex, _, _ = _norm(config)
    return Words(formula, latex, "One last norm, behind all the layers.", "所有层之后的最后一次归一化。")


def cross(token: str) -> Words:
    """The attention that follows the one walked through."""
    return Words(
        "MultiHead(x, memory, memory)",
        r"\mathrm{MultiHead}(x, \mathrm{memory}, \mathrm{memory})",
        f"Attention on the memory follows: what “{token}” has found in the inputs.",
        f"接着对编码器的输出做注意力：这是“{token}”从输入中找到的内容。",
    )


def feed_forward(token: str, config: ModelConfig) -> Words:
    """The second half of every layer."""
    hidden, latex = {
        "relu": ("max(0, x W₁ + b₁)", r"\max(0, x W_1 + b_1)"),
        "gelu": ("GELU(x W₁ + b₁)", r"\mathrm{GELU}(x W_1 + b_1)"),
        "gelu-tanh": ("GELU(x W₁ + b₁)", r"\mathrm{GELU}(x W_1 + b_1)"),
        "swish": ("SiLU(x W₁ + b₁)", r"\mathrm{SiLU}(x W_1 + b_1)"),
        "swiglu": ("SiLU(x W_g + b_g) ⊙ (x W₁ + b₁)", r"\mathrm{SiLU}(x W_g + b_g) \odot (x W_1 + b_1)"),
        "geglu": ("GELU(x W_g + b_g) ⊙ (x W₁ + b₁)", r"\mathrm{GELU}(x W_g + b_g) \odot (x W_1 + b_1)"),
    }.get(config.feed_forward, (f"{config.feed_forward}(x W₁ + b₁)", r"f(x W_1 + b_1)"))
    if config.feed_forward in ("swiglu", "geglu"):
        hidden, latex = f"({hidden})", rf"\left({latex}\right)"
    return Words(
        f"FFN(x) = {hidden} W₂ + b₂",
        rf"\mathrm{{FFN}}(x) = {latex} W_2 + b_2",
        f"The feed-forward sub-layer treats “{token}” by itself: {config.d_ff} hidden units, and back.",
        f"前馈子层单独处理“{token}”：先展开到 {config.d_ff} 个隐藏单元，再收回来。",
    )


def logits(n: int, config: ModelConfig) -> Words:
    """The output layer's numbers."""
    is_label = config.architecture == "encoder"
    biased = is_label or config.output_bias
    whom, chinese_whom = (
        ("label", "每个标签") if is_label else ("subword of the vocabulary", "词表里的每个子词")
    )
    return Words(
        "x W_out + b" if biased else "x W_out",
        r"x W_{\mathrm{out}} + b" if biased else r"x W_{\mathrm{out}}",
        f"The output layer gives every {whom} a number; the {n} highest are shown.",
        f"输出层给{chinese_whom}打分；这里列出最高的 {n} 个。",
    )


def probabilities(best: str, share: str, *, is_label: bool) -> Words:
    """What the model says."""
    what, chinese_what = ("is the label", "是正确标签") if is_label else ("comes next", "紧接着出现")
    return Words(
        "exp(logit − z)",
        r"\exp(\mathrm{logit} - z)",
        f"The softmax makes probabilities of them: “{best}” {what} with {share}.",
        f"softmax 把它们变成概率：“{best}”{chinese_what}的概率是 {share}。",
    )


def decisions(best: str, share: str) -> Words:
    """What a model says that decides on each label by itself."""
    return Words(
        "1 / (1 + exp(−logit))",
        r"\frac{1}{1 + \exp(-\mathrm{logit})}",
        f"The sigmoid makes a probability of each by itself: “{best}” is a label with {share}.",
        f"sigmoid 把每个 logit 单独变成概率：“{best}”是标签的概率为 {share}。",
    )


def _norm(config: ModelConfig) -> tuple[str, str, str, str]:
    if config.norm == "rms":
        return (
            "x / √(mean(x²) + ε) ⊙ gain",
            r"\frac{x}{\sqrt{\overline{x^2} + \epsilon}} \odot g",
            "Divided by the root mean square, then times a learned gain.",
            "除以均方根，再乘以学得的增益。",
        )
    return (
        "(x − mean) / √(variance + ε) ⊙ gain + bias",
        r"\frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} \odot g + b",
        "Brought to mean 0 and variance 1, then given a learned gain and bias.",
        "先变成均值为 0、方差为 1，再乘以学得的增益、加上学得的偏置。",
    )


def _linear(letter: str, config: ModelConfig, kind: Kind) -> tuple[str, str]:
    """A projection: of this token, or of what is looked at."""
    of_memory, name = kind == "cross" and letter != "q", letter.upper()
    plain_bias, latex_bias = (f" + b_{name}", f" + b^{name}") if config.attention_bias else ("", "")
    plain, latex = ("memory", r"\mathrm{memory}\,") if of_memory else ("x", "x")
    return f"{plain} W_{name}{plain_bias}", f"{latex} W^{name}{latex_bias}"


def _projected(letter: str, config: ModelConfig, kind: Kind) -> tuple[str, str]:
    """The formula of queries or keys, with what the configuration does to them before they meet."""
    plain, latex = _linear(letter, config, kind)
    if config.positions == "rotary" and kind != "cross":
        plain, latex = f"turn({plain}, pos)", rf"R_{{\mathrm{{pos}}}}({latex})"
    match config.similarity, letter:
        case "cosine", _:
            plain, latex = f"unit({plain})", rf"\frac{{{latex}}}{{\lVert {latex} \rVert}}"
        case "bilinear", "q":
            plain, latex = f"({plain}) W", rf"\left({latex}\right) W"
        case "additive", _:
            matrix = "A" if letter == "q" else "B"
            plain, latex = f"{matrix} ({plain})", rf"{matrix} \left({latex}\right)"
    return f"{letter} = {plain}", f"{letter} = {latex}"
