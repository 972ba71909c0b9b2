"""The `/predict` route of text-embeddings-inference, for its clients."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from regard.engine.options import ClassifyOptions
from regard.serve.http.dependencies import state_of
from regard.serve.http.errors import bad_value
from regard.serve.http.schemas import Many, Name
from regard.serve.models import ServedClassifier
from regard.serve.translation import check_texts
from regard.serve.work.jobs import RequestJob

router = APIRouter(tags=["text-embeddings-inference"])
Sequence = Annotated[Many[str], Field(min_length=1)]


class PredictRequest(BaseModel):
    """The body of `/predict`."""

    model_config = ConfigDict(extra="ignore")

    inputs: str | Sequence | Annotated[Many[Sequence], Field(min_length=1)] = Field(
        description="A text, optionally in a list; or a batch: a list of lists of one text."
    )
    truncate: bool | None = Field(None, description="Cut the end of a text that is too long off.")
    truncation_direction: Literal["Right", "right"] = "Right"
    raw_scores: bool = Field(False, description="Return logits instead of probabilities.")
    model: Name | None = Field(None, description="A model's id; by default the first classifier.")

    @property
    def is_batch(self) -> bool:
        """Whether the response is a list, with one entry per text."""
        return isinstance(self.inputs, list) and isinstance(self.inputs[0], list)

    def texts(self) -> list[str]:
        """The texts.

        Raises:
            ApiError: there are pairs of texts, which no model here reads.
        """
        given: list[Any] = [self.inputs] if isinstance(self.inputs, str) else list(self.inputs)
        sequences: list[list[str]] = given if self.is_batch else [given]
        if any(len(each) > 1 for each in sequences):
            raise bad_value('Pairs of texts are not supported; a batch is [["one"], ["two"]].', "inputs")
        return [each[0] for each in sequences]


@router.post("/predict")
async def predict(request: Request, body: PredictRequest) -> Any:
    """Label a text, or each text of a batch: every label with its score, the most likely first."""
    state = state_of(request)
    texts = body.texts()
    served = state.models.of_kind(ServedClassifier, body.model)
    check_texts(texts, state.limits, "inputs")
    options = ClassifyOptions(too_long="cut" if body.truncate else "error")

    def work(job: RequestJob) -> list[dict[str, float]]:
        if body.raw_scores:
            return served.raw_scores(job, texts, options)
        return [each.probabilities for each in served.classify(job, texts, options)]

    results = [
        [{"score": score, "label": label} for label, score in sorted(each.items(), key=lambda one: -one[1])]
        for each in await state.executor.run(request, work)
    ]
    return results if body.is_batch else results[0]
