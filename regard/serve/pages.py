"""Pages of HTML: each is translated as a document, in one direction."""

from __future__ import annotations

from dataclasses import replace

from regard.documents.html import read_text
from regard.engine.results import Result
from regard.serve.models import ModelRegistry
from regard.serve.translation import (
    TextsToTranslate,
    Translated,
    choose_model,
    options_for,
    translator_for,
)
from regard.serve.work.jobs import RequestJob


def translate_pages(models: ModelRegistry, job: RequestJob, request: TextsToTranslate) -> list[Translated]:
    """Translate pages; the language is detected for a whole page.

    Raises:
        ApiError: a language cannot be detected, or there is no model for it.
        RegardError: an option cannot be satisfied.
    """
    return [_page(models, job, replace(request, texts=[page])) for page in request.texts]


def _page(models: ModelRegistry, job: RequestJob, request: TextsToTranslate) -> Translated:
    (page,) = request.texts
    document = read_text(page)
    text = "\n".join(segment.text for segment in document.segments)
    choice = choose_model(models, replace(request, texts=[text]), 0)
    if choice.model is None or not document.segments:
        return Translated(Result(text=page, unexpected_language=choice.unexpected), choice)
    has_tags = any(segment.tags for segment in document.segments)
    model = translator_for(models, choice, job, request, aligning=has_tags)
    results = model.translator(**options_for(choice, request)).marked(document.segments)
    ranked = [
        document.written(
            [each.ranked[min(rank, len(each.ranked) - 1)] for each in results], choice.target or ""
        )
        for rank in range(request.options.get("n_best", 1))
    ]
    unexpected = next(filter(None, (each.result.unexpected_language for each in results)), "")
    best, *others = (Result(text=each.decode(), unexpected_language=unexpected) for each in ranked)
    return Translated(replace(best, alternatives=tuple(others)), choice)
