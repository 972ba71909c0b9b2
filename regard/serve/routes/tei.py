"""The route of text-embeddings-inference that labels texts, so that its clients work."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, ConfigDict, Field

from regard.engine.options import ClassifyOptions
from regard.serve.http.errors import bad_value
from regard.serve.http.schemas import Name
from regard.serve.served import CLASSIFY
from regard.serve.service import admitted, service_of
from regard.serve.translating import check_texts
from regard.serve.work.job import Job
from regard.serve.work.lone_tasks import labelled, weighed

router = APIRouter(dependencies=[Depends(admitted)], tags=["text-embeddings-inference"])
Sequence = Annotated[list[str], Field(min_length=1)]


class Predict(BaseModel):
    """What `/predict` is asked."""

    model_config = ConfigDict(extra="ignore")

    inputs: str | Sequence | Annotated[list[Sequence], Field(min_length=1)] = Field(
        description="A text, perhaps in a list by itself; or a batch, with each text in a list by itself."
    )
    truncate: bool | None = Field(None, description="Read the beginning of a text that is too long.")
    truncation_direction: Literal["Right", "right"] = "Right"
    raw_scores: bool = Field(False, description="Scores as they are before they are made probabilities.")
    model: Name | None = Field(None, description="A model's id; by default the first that labels.")

    @property
    def is_batch(self) -> bool:
        """Whether there is an answer for each of several texts."""
        return isinstance(self.inputs, list) and isinstance(self.inputs[0], list)

    def texts(self) -> list[str]:
        """The texts.

        Raises:
            Refusal: one stands in a pair, which no model here reads.
        """
        given: list[Any] = [self.inputs] if isinstance(self.inputs, str) else list(self.inputs)
        sequences: list[list[str]] = given if self.is_batch else [given]
        if any(len(each) > 1 for each in sequences):
            raise bad_value(
                'Texts are read one by one, not in pairs: a batch is [["one"], ["two"]].', "inputs"
            )
        return [each[0] for each in sequences]


@router.post("/predict")
async def predict(request: Request, body: Predict) -> Any:
    """Label a text, or each of a batch: every label with its score, the likeliest first."""
    service = service_of(request)
    texts = body.texts()
    served = service.catalogue.for_task(CLASSIFY, body.model)
    check_texts(texts, service.limits, "inputs")
    options = ClassifyOptions(too_long="cut" if body.truncate else "error")

    def work(job: Job) -> list[dict[str, float]]:
        scheduler, classifier = served.scheduler, served.model.classifier
        if body.raw_scores:
            return weighed(scheduler, job, classifier, texts, options)
        return [each.probabilities for each in labelled(scheduler, job, classifier, texts, options)]

    found = [
        [{"score": score, "label": label} for label, score in sorted(each.items(), key=lambda one: -one[1])]
        for each in await service.desk.do(request, work)
    ]
    return found if body.is_batch else found[0]
