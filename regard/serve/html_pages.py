"""Whole pages of HTML, translated: what stands between their tags, and nothing else."""

from __future__ import annotations

from dataclasses import replace

from regard.engine.result import Result
from regard.serve.html_text import escaped, parts, plain
from regard.serve.job import Job
from regard.serve.served import Catalogue
from regard.serve.translating import Asked, Translated, translate, way


def translate_pages(catalogue: Catalogue, job: Job, asked: Asked) -> list[Translated]:
    """The text between the tags of each page, in the language that the whole page is in.

    Raises:
        Refusal: a language cannot be told, or there is no model for it.
        RegardError: what is asked for cannot be done.
    """
    return [_page(catalogue, job, replace(asked, texts=[page])) for page in asked.texts]


def _page(catalogue: Catalogue, job: Job, asked: Asked) -> Translated:
    (page,) = asked.texts
    found = parts(page)
    texts = [plain(part.raw) for part in found if part.is_text]
    how = way(catalogue, replace(asked, texts=["\n".join(texts)]), 0)
    if how.model is None or not texts:
        return Translated(Result(text=page), how)
    results = translate(catalogue, job, replace(asked, texts=texts, source=how.source))
    ranked = []
    for rank in range(asked.options.get("n_best", 1)):
        outputs = iter(_of_rank(each.result, rank) for each in results)
        ranked.append("".join(escaped(next(outputs)) if part.is_text else part.raw for part in found))
    best, *others = (Result(text=text) for text in ranked)
    return Translated(replace(best, alternatives=tuple(others)), how)


def _of_rank(result: Result, rank: int) -> str:
    every = [result, *result.alternatives]
    return every[min(rank, len(every) - 1)].text
