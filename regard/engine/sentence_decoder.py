"""Sentences to outputs that contain what they must: glossary phrases, and what is copied verbatim.

A sentence is decoded with its required phrases (`phrases/decoder.py`). An
output that lacks a URL or code is decoded again with placeholders for them (`document/verbatim.py`); if code
is still missing, the text around it is translated. An output that changes a number of its source is
corrected, or the change is reported (`numbers.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from regard.engine.document.verbatim import (
    WithPlaceholders,
    around_exact,
    exact,
    verbatim,
    with_placeholders,
)
from regard.engine.engines.protocol import Engines, Request, Search, has_new_loop
from regard.engine.numbers import CheckedSource
from regard.engine.options import TranslateOptions
from regard.engine.phrases.decoder import PhraseDecoder, Piece, encoded
from regard.engine.phrases.glossary import Glossary, Phrase, read_glossary
from regard.engine.results import Aligner, Result, joined
from regard.engine.streams import TextStream
from regard.text.code_lines import without_breaks
from regard.text.vocabularies.vocabulary import Vocabulary, whole_characters

N_BEST = 8
"""Outputs that are searched where the best one changes a number."""
NOT_ABSURD = 3.0
"""An output with stand-ins for numbers may score this much lower than the one that it replaces."""


class Requirements:
    """What the output of a sentence must contain."""

    def __init__(self, options: TranslateOptions, *, translating: bool) -> None:
        """`translating`: whether an output says all that its source says; a summary may omit things."""
        given = options.glossary
        terms = read_glossary(given) if isinstance(given, str | Path) else given
        self._glossary = Glossary(terms, options.keep)
        self._translating, self._complete = translating, translating and not options.sample
        self._numbers = translating and options.check_numbers

    def phrases(self, source: str) -> list[Phrase]:
        """Phrases required by the glossary, or by `keep`."""
        return self._glossary.phrases(source) if self._glossary else []

    def verbatim(self, source: str) -> list[str]:
        """What must be copied as it is, without duplicates."""
        return list(dict.fromkeys(verbatim(source))) if self._complete else self.exact(source)

    def exact(self, source: str) -> list[str]:
        """Code and formulas, which come out byte for byte."""
        return exact(source) if self._translating else []

    def values(self, piece: Piece) -> CheckedSource | None:
        """The values of a sentence that its output must have; None if there are none."""
        return (CheckedSource(piece.text, piece.direction) or None) if self._numbers else None

    @property
    def corrects_numbers(self) -> bool:
        """Whether outputs with changed numbers are corrected; sampled outputs stay as they were drawn."""
        return self._complete


Wrong = tuple[Piece, CheckedSource, Result]
"""A sentence, its values, and its best output, which has others."""


class SentenceDecoder:
    """Decodes sentences with one set of options."""

    def __init__(
        self,
        engines: Engines,
        subwords: Vocabulary,
        search: Search,
        requirements: Requirements,
        *,
        max_tokens: int,
        aligner: Aligner | None,
        placer: Callable[[], Aligner | None],
    ) -> None:
        """`max_tokens` is the limit of an output; see `Translator` for the others."""
        self._engines, self._subwords, self._search = engines, subwords, search
        self._required, self._most = requirements, max_tokens
        self._decode = PhraseDecoder(
            engines,
            subwords,
            search,
            requirements.phrases,
            max_tokens=max_tokens,
            aligner=aligner,
            placer=placer,
        )

    def __call__(self, sentences: list[Piece]) -> list[list[Result]]:
        """The outputs of each sentence, the best first."""
        outputs = self._decode(sentences)
        lost = [self._lost(each.text, best) for each, (best, *_) in zip(sentences, outputs, strict=True)]
        again = [i for i, each in enumerate(lost) if each]
        for i, results in zip(
            again, self._retried_with_placeholders([sentences[i] for i in again]), strict=True
        ):
            best, *others = outputs[i]
            outputs[i] = results or [replace(best, missing=(*best.missing, *lost[i])), *others]
        outputs = [self._with_code(each, results) for each, results in zip(sentences, outputs, strict=True)]
        return self._with_numbers(sentences, outputs)

    def requires_anything_of(self, piece: Piece) -> bool:
        """Whether the output of a sentence must contain something."""
        required = self._required.phrases(piece.text) or self._required.verbatim(piece.text)
        return bool(required or (self._required.corrects_numbers and self._required.values(piece)))

    def stream(self, sentence: Piece) -> TextStream[Result]:
        """The greedy or sampled output of a sentence as it is decoded, without scores or a second attempt."""
        assert sentence.ids is not None, "text that stays as it is is not decoded"
        search = replace(self._search, beam_size=1, n_best=1)
        request = Request(ids=sentence.ids, prefix=sentence.prefix)
        engine = self._engines.choose(request, search)
        ids: list[int] = []

        def tokens() -> Iterator[int]:
            for token in engine.stream(request, search):
                ids.append(token)
                yield token

        def result(text: str) -> Result:
            finished = ids[-1:] == [self._subwords.eos_id] or not request.ids
            written = tuple(ids[:-1] if finished else ids)
            return Result(
                text=text,
                tokens=tuple(self._subwords.pieces(written)),
                engine=engine.name,
                unfinished=not finished,
                repetitive=has_new_loop(request, written),
                numbers=values.reported(text) if (values := self._required.values(sentence)) else (),
            )

        pieces = whole_characters(self._subwords, tokens())
        return TextStream((without_breaks(piece) for piece in pieces), result)

    # --- numbers -------------------------------------------------------------------------------------------

    def _with_numbers(self, sentences: list[Piece], outputs: list[list[Result]]) -> list[list[Result]]:
        """The outputs, corrected where the best one changes a number; what remains changed is reported."""
        checked = {i: values for i, each in enumerate(sentences) if (values := self._required.values(each))}
        for i, values in checked.items():
            outputs[i] = [replace(each, numbers=values.reported(each.text)) for each in outputs[i]]
        if self._search.shortlist and self._required.corrects_numbers:
            self._search_among_all(sentences, outputs, checked)
        partly_right = partial(self._put_right, partly=True)
        for candidates in (self._put_right, self._next_best, self._with_stand_ins, partly_right):
            wrong = [i for i in checked if outputs[i][0].numbers]
            if not wrong or not self._required.corrects_numbers:
                break
            found = candidates([(sentences[i], checked[i], outputs[i][0]) for i in wrong])
            for i, results in zip(wrong, found, strict=True):
                most = len(outputs[i][0].numbers) - 1 if candidates is partly_right else 0
                if better := self._corrected(checked[i], sentences[i], outputs[i][0], results, most):
                    reported = checked[i].reported(better.text)
                    outputs[i] = [replace(better, numbers=reported), *outputs[i][1:]]
        return outputs

    def _search_among_all(
        self, sentences: list[Piece], outputs: list[list[Result]], checked: dict[int, CheckedSource]
    ) -> None:
        """Replace outputs that change a number by those of a search without a shortlist, if these are better.

        A word that is not among the candidates, such as the name of a month, may be all that is wrong.
        """
        wrong = [i for i in checked if outputs[i][0].numbers]
        search = replace(self._search, shortlist=False)
        found = self._decode.decoded([sentences[i] for i in wrong], repeated=False, search=search)
        for i, results in zip(wrong, found, strict=True):
            best, *others = outputs[i]
            fewer = len(best.numbers) - 1
            if better := self._corrected(checked[i], sentences[i], best, results, fewer):
                outputs[i] = [replace(better, numbers=checked[i].reported(better.text)), *others]

    def _corrected(
        self, values: CheckedSource, sentence: Piece, best: Result, candidates: list[Result], most: int
    ) -> Result | None:
        """The best candidate that changes at most this many values, and lacks and adds nothing else."""
        n_added = values.n_added(best.text) if most else 0
        fine = [
            each
            for each in candidates
            if len(values.changes(each.text)) <= most
            and values.n_added(each.text) <= n_added
            and Counter(each.missing) <= Counter(best.missing)
            and len(self._lost(sentence.text, each)) <= len(self._lost(sentence.text, best))
        ]
        return max(fine, key=lambda each: each.score, default=None)

    def _put_right(self, wrong: list[Wrong], *, partly: bool = False) -> list[list[Result]]:
        """The best outputs, with the right values where the changed ones stand; see `corrected`."""
        found = [
            None if piece.prefix else values.corrected(best.text, partly=partly)
            for piece, values, best in wrong
        ]
        texts = [[text] if text and self._decode.fits(text) else [] for text in found]
        return self._decode.all_as_results(
            [piece for piece, *_ in wrong], texts, [best for *_, best in wrong]
        )

    def _next_best(self, wrong: list[Wrong]) -> list[list[Result]]:
        """The outputs of a wider search, among all tokens, as they are and with the right values."""
        sentences = [piece for piece, *_ in wrong]
        beam_size = max(N_BEST, self._search.beam_size)
        search = replace(self._search, n_best=N_BEST, beam_size=beam_size, shortlist=False)
        found = self._decode.decoded(sentences, repeated=False, search=search)
        right = [
            [text for each in results if (text := values.corrected(each.text)) and self._decode.fits(text)]
            for (_, values, _), results in zip(wrong, found, strict=True)
        ]
        texts = [[] if piece.prefix else each for piece, each in zip(sentences, right, strict=True)]
        others = self._decode.all_as_results(sentences, texts, [results[0] for results in found])
        return [[*results, *more] for results, more in zip(found, others, strict=True)]

    def _with_stand_ins(self, wrong: list[Wrong]) -> list[list[Result]]:
        """Outputs of sources with small numbers in place of the values, which are put in again."""
        texts: list[list[str]] = [[] for _ in wrong]
        others = {
            i: other
            for i, (piece, values, best) in enumerate(wrong)
            if not piece.prefix and (other := values.with_stand_ins(best.numbers))
        }
        read = encoded(self._subwords, [each.text for each in others.values()])
        pieces = {
            i: wrong[i][0]._replace(text=others[i].text, ids=(*wrong[i][0].direction.tag, *ids))
            for i, ids in zip(others, read, strict=True)
            if len(ids) <= self._most
        }
        for i, results in zip(pieces, self._decode([*pieces.values()]), strict=True):
            usable = (each.text for each in results if each.score > wrong[i][2].score - NOT_ABSURD)
            restored = map(others[i].restored, usable)
            texts[i] = [each for each in restored if each and self._decode.fits(each)]
        return self._decode.all_as_results(
            [piece for piece, *_ in wrong], texts, [best for *_, best in wrong]
        )

    # --- verbatim copies -----------------------------------------------------------------------------------

    def _lost(self, source: str, best: Result) -> list[str]:
        lost = [each for each in self._required.verbatim(source) if each not in best.text]
        return list(dict.fromkeys([*lost, *self._lost_code(source, best)]))

    def _lost_code(self, source: str, result: Result) -> list[str]:
        """Code and formulas that occur less often than in the source."""
        code = self._required.exact(source)
        return [each for each in dict.fromkeys(code) if result.text.count(each) < code.count(each)]

    def _with_code(self, sentence: Piece, results: list[Result]) -> list[Result]:
        """The outputs that have all code and formulas; if none has, the text around them is translated."""
        if not self._required.exact(sentence.text):
            return results
        complete = [each for each in results if not self._lost_code(sentence.text, each)]
        return complete or self._translated_around_code(sentence) or results

    def _translated_around_code(self, sentence: Piece) -> list[Result]:
        pieces = around_exact(sentence.text)
        bodies = [each.strip() for each in pieces[::2] if any(map(str.isalnum, each))]
        read = encoded(self._subwords, bodies)
        if any(len(ids) > self._most for ids in read):
            return []
        prefixes = [sentence.prefix, *[()] * len(bodies)]
        asked = [
            sentence._replace(text=body, ids=(*sentence.direction.tag, *ids), prefix=prefix)
            for body, ids, prefix in zip(bodies, read, prefixes, strict=False)
        ]
        outputs = iter(self._decode(asked))
        text, place, placed = "", 0, []
        for i, piece in enumerate(pieces):
            if i % 2 or not any(map(str.isalnum, piece)):
                text += piece
            else:
                best, body = next(outputs)[0], piece.strip()
                start = piece.index(body)
                text += piece[:start]
                links = tuple(link.moved(place + start, len(text)) for link in best.alignment)
                placed.append(replace(best, alignment=links))
                text += best.text + piece[start + len(body) :]
            place += len(piece)
        return [joined(text, placed, 1)]

    def _retried_with_placeholders(self, sentences: list[Piece]) -> list[list[Result]]:
        """Outputs of each sentence that lost nothing; an empty list where the retry failed."""
        outputs: list[list[Result]] = [[] for _ in sentences]
        without = {
            i: text for i, each in enumerate(sentences) if (text := with_placeholders(each.text)) is not None
        }
        read = encoded(self._subwords, [each.text for each in without.values()])
        pieces = {
            i: sentences[i]._replace(text=without[i].text, ids=(*sentences[i].direction.tag, *ids))
            for i, ids in zip(without, read, strict=True)
            if len(ids) <= self._most
        }
        for i, results in zip(pieces, self._decode([*pieces.values()]), strict=True):
            outputs[i] = self._restored(sentences[i], without[i], results)
        return outputs

    def _restored(self, sentence: Piece, without: WithPlaceholders, results: list[Result]) -> list[Result]:
        """Outputs with the placeholders replaced; they keep the scores of the search that ranked them."""
        texts = {
            each: text
            for each in results
            if (text := without.restored(each.text)) and self._decode.fits(text)
        }
        outputs = self._decode.as_results(sentence, [*texts.values()], results[0])
        return [
            replace(new, score=old.score, log_prob=old.log_prob)
            for old, new in zip(texts, outputs, strict=True)
        ]
