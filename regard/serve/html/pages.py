"""Whole pages of HTML, translated: their paragraphs, each in one piece, and nothing else."""

from __future__ import annotations

from dataclasses import replace

from regard.engine.results import Result
from regard.serve.html.marks import marked
from regard.serve.html.paragraphs import Paragraph, paragraphs
from regard.serve.served import Catalogue
from regard.serve.translating import Asked, Translated, translate, way
from regard.serve.work.job import Job


def translate_pages(catalogue: Catalogue, job: Job, asked: Asked) -> list[Translated]:
    """The paragraphs of each page, in the language that the whole page is in.

    Raises:
        Refusal: a language cannot be told, or there is no model for it.
        RegardError: what is asked for cannot be done.
    """
    return [_page(catalogue, job, replace(asked, texts=[page])) for page in asked.texts]


def _page(catalogue: Catalogue, job: Job, asked: Asked) -> Translated:
    (page,) = asked.texts
    found = paragraphs(page)
    texts = [each.text for each in found if each.text]
    how = way(catalogue, replace(asked, texts=["\n".join(texts)]), 0)
    if how.model is None or not texts:
        return Translated(Result(text=page), how)
    # Only who has tags to put back has to know where each word comes from.
    options = {**asked.options, "alignment": any(each.marks for each in found)}
    results = translate(catalogue, job, replace(asked, texts=texts, source=how.source, options=options))
    ranked = []
    for rank in range(asked.options.get("n_best", 1)):
        outputs = iter(_of_rank(each.result, rank) for each in results)
        ranked.append("".join(_html(each, next(outputs)) if each.text else each.raw for each in found))
    best, *others = (Result(text=text) for text in ranked)
    return Translated(replace(best, alternatives=tuple(others)), how)


def _html(paragraph: Paragraph, result: Result) -> str:
    before, after = paragraph.outside
    html = marked(result.text, result.alignment, paragraph.marks, len(paragraph.text))
    return before + paragraph.with_code(html) + after


def _of_rank(result: Result, rank: int) -> Result:
    every = [result, *result.alternatives]
    return every[min(rank, len(every) - 1)]
