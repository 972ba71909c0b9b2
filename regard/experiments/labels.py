"""Labels that several experiments share."""

from __future__ import annotations

from regard.config import SimilarityName
from regard.experiments.findings import Both

LOSS = Both("loss, nats a token", "损失，奈特每词元")
SIMILARITY = Both("similarity", "相似度")
PARAMETERS = Both("parameters", "参数")

SIMILARITIES: dict[SimilarityName, Both] = {
    "scaled-dot": Both("scaled-dot", "缩放点积"),
    "dot": Both("dot", "点积"),
    "cosine": Both("cosine", "余弦"),
    "additive": Both("additive", "加性"),
    "bilinear": Both("bilinear", "双线性"),
}


def reversing_for(steps: int) -> Both:
    """What was learned, and for how long."""
    return Both(f"reversing, {steps} steps", f"倒序，{steps} 步")
