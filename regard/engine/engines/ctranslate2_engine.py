"""The CTranslate2 engine: the fast one on CPUs, without torch.

One replica of the model per core, with one thread each; batches of similar length keep all of them busy.

How CTranslate2's search differs from ours:

- It stops when `beam_size` hypotheses have ended, and ranks them only then, by log-probability over
  length ** penalty. So we request all ended hypotheses and rank them by the paper's
  ((5 + length) / 6) ** alpha.
- A batch has one length limit; ours belongs to the request. An output that does not end before its own limit
  is searched again with that limit, so that no limit depends on the rest of the batch.
- At int8, rounding depends on the shape of the batch, so a nearly undecided search may take another path in
  another batch; at float32 this was not observed.
- A prefix has probability 1 there, and the probability of forbidden tokens (an end before the minimum length,
  a repetition in a second attempt) is distributed over the others. Such hypotheses are scored once more.
- A stream numbers tokens within the shortlist (4.8), so streams search among all tokens.
- One random generator serves the whole process, so samples are not reproducible: sampling is unsupported.
"""

from __future__ import annotations

import json
import weakref
from collections import defaultdict
from collections.abc import Iterator, Sequence
from copy import copy
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Event
from typing import Any, NamedTuple

import ctranslate2

from regard.bundle.bundle import Description, describe_bundle
from regard.decode.hypothesis import Hypothesis, length_penalty
from regard.engine.engines.protocol import NO_REPEAT, NOTHING, Request, Search, with_second_attempt
from regard.errors import ConfigError, RequestError, ShapeError
from regard.exchange.ctranslate2.cache import converted
from regard.exchange.ctranslate2.convert import VOCABULARY
from regard.exchange.ctranslate2.weights_file import Quantisation
from regard.host import default_threads
from regard.text.vocabularies.vocabulary import Vocabulary

BATCH_TOKENS = 512
"""Input tokens of a batch, padding included: the fastest, both greedy and with 4 beams."""

USUAL_BEAM = 4
"""Beam size up to which a batch may have that many tokens."""

IMPOSSIBLE = -1e9
"""CTranslate2 keeps empty beams at -1e10."""


class _Candidate(NamedTuple):
    """An output of CTranslate2 before it is ranked by our penalty."""

    ids: tuple[int, ...]
    """With the end token, if there is one."""
    log_prob: float

    def score(self, search: Search) -> float:
        return self.log_prob / length_penalty(len(self.ids), search.length_penalty)


class CTranslate2Engine:
    """A model folder, converted on first use, that decodes and scores on CPUs."""

    name = "ctranslate2"
    queues = True

    def __init__(
        self,
        model: Description | Path | str,
        *,
        bos: int,
        eos: int,
        quantisation: Quantisation = "int8",
        threads: int | None = None,
        batch_tokens: int = BATCH_TOKENS,
    ) -> None:
        """Load a model folder; `threads` replicas of it run side by side, by default one per core.

        Raises:
            BundleError: the model folder is damaged.
            ConfigError: CTranslate2 cannot express the model, or this CPU does not support the quantisation.
        """
        known = ctranslate2.get_supported_compute_types("cpu")
        if quantisation not in known:
            raise ConfigError(
                f"this CPU does not support {quantisation}; it supports {', '.join(sorted(known))}",
                code="unusable_quantisation",
            )
        described = model if isinstance(model, Description) else describe_bundle(model)
        self._eos, self._batch_tokens = eos, batch_tokens
        self._max_length = described.config.max_length
        self._n_replicas = threads or default_threads()
        path = converted(described, quantisation, bos=bos, eos=eos)
        self._tokens: list[str] = json.loads((path / VOCABULARY).read_bytes())
        self._ids = {token: i for i, token in enumerate(self._tokens)}
        self._open = partial(
            ctranslate2.Translator,
            str(path),
            compute_type=quantisation,
            intra_threads=1,
            max_queued_batches=-1,
        )
        self._translator = self._open(inter_threads=self._n_replicas)

    @property
    def lanes(self) -> int:
        """Number of batches that run side by side: one per replica."""
        return self._n_replicas

    def batch_capacity(self, search: Search) -> int:
        """Best number of input tokens in one batch, padding included; fewer if the beam is wide."""
        return self._batch_tokens * USUAL_BEAM // max(USUAL_BEAM, search.beam_size)

    def lane(self) -> CTranslate2Engine:
        """This engine for one of several threads that run a batch each."""
        one = copy(self)
        one._n_replicas = 1
        return one

    def express(self) -> CTranslate2Engine:
        """This engine for one thread more, with weights of its own: a translator shares its threads."""
        one = self.lane()
        one._translator = self._open(inter_threads=1)
        return one

    def unsupported(self, search: Search, requests: Sequence[Request]) -> str | None:
        """Why it cannot run these requests; None if it can."""
        if search.sample:
            return "CTranslate2 has one random generator for all requests, so samples are not reproducible"
        if search.n_best > search.beam_size:
            return f"CTranslate2 cannot return {search.n_best} hypotheses with `beam_size={search.beam_size}`"
        if any(request.phrases for request in requests):
            return "CTranslate2 does not support required phrases"
        longest = max((max(len(each.ids), len(each.prefix)) for each in requests), default=0)
        return self._too_long(longest)

    def decode(self, requests: Sequence[Request], search: Search) -> list[tuple[Hypothesis, ...]]:
        """The hypotheses of each request, the best first; the rest of the batch affects rounding at int8."""
        self._check(search, requests)
        again = partial(self._decode, search=search, no_repeat=NO_REPEAT)
        return with_second_attempt(requests, self._decode(requests, search), again)

    def score(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> list[tuple[float, ...]]:
        """Log-probability of each token of each target, given its source, and of the end token."""
        if len(sources) != len(targets):
            expected = f"one for each of {len(sources)} sources"
            raise ShapeError("targets", expected, len(targets), code="pair_count_mismatch")
        if reason := self._too_long(max(map(len, [*sources, *targets]), default=0)):
            raise RequestError(reason, code="unsupported_request")
        lengths = [max(pair) + 1 for pair in zip(map(len, sources), map(len, targets), strict=True)]
        running = []
        for batch in batches(lengths, self._batch_tokens, self._n_replicas):
            spelt = [[self._spell(side[i]) for i in batch] for side in (sources, targets)]
            running.append(
                (batch, self._translator.score_batch(*spelt, max_input_length=0, asynchronous=True))
            )
        found: dict[int, tuple[float, ...]] = {}
        for batch, results in running:
            found |= {i: tuple(each.result().log_probs) for i, each in zip(batch, results, strict=True)}
        return [found[i] for i in range(len(sources))]

    def stream(self, request: Request, search: Search) -> Iterator[int]:
        """Tokens of one greedy output as decoded; the last is the end token, unless it was cut off."""
        self._check(search, [request])
        if not request.ids:
            return
        limit = self._limit(request, search)
        yield from _tokens_as_decoded(
            self._translator,
            self._spell(request.ids),
            self._spell(request.prefix),
            max_input_length=0,
            max_decoding_length=limit,
            min_decoding_length=min(search.min_length, limit),
        )

    # --- checks --------------------------------------------------------------------------------------------

    def _check(self, search: Search, requests: Sequence[Request]) -> None:
        if reason := self.unsupported(search, requests):
            raise RequestError(reason, code="unsupported_request")

    def _too_long(self, n_tokens: int) -> str | None:
        if n_tokens < self._max_length:
            return None
        limit = f"model.max_length = {self._max_length:,}, one of them for the token that begins or ends it"
        return f"a sequence has {n_tokens:,} tokens; {limit}"

    def _limit(self, request: Request, search: Search) -> int:
        """Maximum number of output tokens: by the request and the positions, but at least the prefix."""
        limit = min(len(request.ids) + search.extra_length, self._max_length - 1)
        return max(limit, len(request.prefix))

    def _spell(self, ids: Sequence[int]) -> list[str]:
        try:
            if not ids or min(ids) >= 0:
                return list(map(self._tokens.__getitem__, ids))
        except IndexError:
            pass
        wrong = next(i for i in ids if not 0 <= i < len(self._tokens))
        expected = f"token ids from 0 to {len(self._tokens) - 1}"
        raise ShapeError("ids", expected, wrong, code="unknown_token")

    # --- searching -----------------------------------------------------------------------------------------

    def _decode(
        self, requests: Sequence[Request], search: Search, no_repeat: int = 0
    ) -> list[tuple[Hypothesis, ...]]:
        found = self._search(requests, search, no_repeat)
        forced = {i for i in found if self._is_forced(requests[i], search, no_repeat)}
        hypotheses = self._hypotheses(requests, found, forced, search)
        return [hypotheses.get(i, (NOTHING,)) for i in range(len(requests))]

    def _search(
        self, requests: Sequence[Request], search: Search, no_repeat: int
    ) -> dict[int, list[_Candidate]]:
        """All outputs of CTranslate2, by request."""
        limits = {i: self._limit(each, search) for i, each in enumerate(requests) if each.ids}
        # A prefix changes the search of its whole batch, so requests with one get batches of their own.
        has_prefix = {i: bool(requests[i].prefix) for i in limits}
        groups = [[i for i in limits if has_prefix[i] is it_has] for it_has in (False, True)]
        found: dict[int, list[_Candidate]] = {}
        while groups:
            again = defaultdict(list)
            for i, limit, result in self._run(requests, groups, limits, search, no_repeat):
                hypotheses = result.hypotheses  # a copy of all strings, made anew at each access
                if limits[i] < limit and max(map(len, hypotheses)) >= limits[i]:
                    again[limits[i], has_prefix[i]].append(i)
                    continue
                kept = None if self._is_forced(requests[i], search, no_repeat) else search.n_best
                found[i] = self._candidates(hypotheses, result.scores, search, kept)
            groups = list(again.values())
        return found

    def _run(
        self,
        requests: Sequence[Request],
        groups: list[list[int]],
        limits: dict[int, int],
        search: Search,
        no_repeat: int,
    ) -> Iterator[tuple[int, int, ctranslate2.TranslationResult]]:
        """Run each group in batches on all replicas; yields request, limit of its batch, and result."""
        running = []
        for group in groups:
            lengths = [len(requests[i].ids) for i in group]
            for places in batches(lengths, self._batch_tokens, self._n_replicas):
                batch = [group[place] for place in places]
                limit = max(limits[i] for i in batch)
                results = self._start([requests[i] for i in batch], limit, search, no_repeat)
                running += [(i, limit, result) for i, result in zip(batch, results, strict=True)]
        return ((i, limit, result.result()) for i, limit, result in running)

    def _start(self, batch: list[Request], limit: int, search: Search, no_repeat: int) -> list[Any]:
        prefixes = [self._spell(each.prefix) for each in batch]
        results: list[Any] = self._translator.translate_batch(
            [self._spell(each.ids) for each in batch],
            prefixes if any(prefixes) else None,
            beam_size=search.beam_size,
            num_hypotheses=search.beam_size,
            length_penalty=_their_penalty(search),
            return_scores=True,
            return_end_token=True,
            max_input_length=0,
            max_decoding_length=limit,
            min_decoding_length=min(search.min_length, limit),
            no_repeat_ngram_size=no_repeat,
            use_vmap=search.uses_shortlist(
                batch[0], no_repeat
            ),  # of a batch, all requests have a prefix, or none
            asynchronous=True,
        )
        return results

    def _is_forced(self, request: Request, search: Search, no_repeat: int) -> bool:
        """Whether the probabilities of CTranslate2's outputs are not the model's."""
        return bool(request.prefix) or search.min_length > 0 or no_repeat > 0

    def _candidates(
        self, hypotheses: list[list[str]], scores: list[float], search: Search, kept: int | None
    ) -> list[_Candidate]:
        """The best outputs by our penalty, the best first; `kept` is their number, None for all."""
        penalty = _their_penalty(search)
        log_probs = [score * len(each) ** penalty for each, score in zip(hypotheses, scores, strict=True)]
        ranks = [
            -log_prob / length_penalty(len(each), search.length_penalty)
            for each, log_prob in zip(hypotheses, log_probs, strict=True)
        ]
        order = [i for i in sorted(range(len(ranks)), key=ranks.__getitem__) if log_probs[i] > IMPOSSIBLE]
        return [
            _Candidate(tuple(map(self._ids.__getitem__, hypotheses[i])), log_probs[i]) for i in order[:kept]
        ]

    # --- ranking -------------------------------------------------------------------------------------------

    def _hypotheses(
        self,
        requests: Sequence[Request],
        found: dict[int, list[_Candidate]],
        forced: set[int],
        search: Search,
    ) -> dict[int, tuple[Hypothesis, ...]]:
        """Candidates as hypotheses, the best first; scored once more if requested or needed.

        For `forced` requests, CTranslate2's probabilities are not the model's.
        """
        again = set(found) if search.token_scores else forced
        pairs = [(requests[i].ids, self._unended(each.ids)) for i in found if i in again for each in found[i]]
        scored = iter(self.score([source for source, _ in pairs], [target for _, target in pairs]))
        hypotheses = {}
        for i, candidates in found.items():
            log_probs = [next(scored) if i in again else None for _ in candidates]
            ranked = [self._hypothesis(*each, search) for each in zip(candidates, log_probs, strict=True)]
            ranked.sort(key=lambda each: each.score, reverse=True)
            hypotheses[i] = tuple(ranked[: search.n_best])
        return hypotheses

    def _hypothesis(
        self, candidate: _Candidate, log_probs: tuple[float, ...] | None, search: Search
    ) -> Hypothesis:
        if log_probs is not None:
            known = log_probs[: len(candidate.ids)]  # one that was cut off has no end token
            return Hypothesis.of_tokens(candidate.ids, known, eos=self._eos, alpha=search.length_penalty)
        return Hypothesis(
            ids=self._unended(candidate.ids),
            token_log_probs=(),
            score=candidate.score(search),
            finished=candidate.ids[-1] == self._eos,
            total=candidate.log_prob,
        )

    def _unended(self, ids: tuple[int, ...]) -> tuple[int, ...]:
        return ids[:-1] if ids[-1] == self._eos else ids


def _their_penalty(search: Search) -> float:
    """CTranslate2's exponent that is closest to our penalty.

    More hypotheses than the beam size may end at once, and CTranslate2 then drops some by its own ranking.
    With 0.75 alpha, the best hypothesis was the same for 500 of 500 sentences, with alpha for 497, and with
    1, its default, for 441. At 0 it would stop at the first that ends.
    """
    return max(0.75 * search.length_penalty, 1e-3)


def batches(lengths: Sequence[int], budget: int, n_replicas: int) -> Iterator[list[int]]:
    """Indices of sequences of similar length, the longest first, in batches of about equal token counts.

    The number of batches is a multiple of the number of replicas, so that none waits for the last batch.
    """
    total = sum(lengths)
    rounds = -(-total // (budget * n_replicas))
    n_batches = min(len(lengths), rounds * n_replicas)
    batch: list[int] = []
    so_far = n_made = 0
    for place in sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True):
        batch.append(place)
        so_far += lengths[place]
        if so_far * n_batches >= total * (n_made + 1):
            yield batch
            batch, n_made = [], n_made + 1
    assert not batch, "the last sequence completes the last batch"


class _Callback:
    """Receives every token; returns True to stop the search."""

    def __init__(self, tokens: SimpleQueue[int | None], left: Event) -> None:
        self._tokens, self._left = tokens, left

    def __call__(self, step: ctranslate2.GenerationStepResult) -> bool:
        self._tokens.put(step.token_id)
        return self._left.is_set()


def _tokens_as_decoded(
    translator: ctranslate2.Translator, source: Sequence[str], prefix: Sequence[str], **options: Any
) -> Iterator[int]:
    """The tokens of one greedy output as they are decoded, with the end token; closing it stops the search.

    CTranslate2's `generate_tokens` ends after the last token, but only then does its thread release the
    callback, for which it needs the interpreter; if that is shutting down, the process is aborted. So this
    ends when the callback has been released.
    """
    tokens: SimpleQueue[int | None] = SimpleQueue()
    left = Event()
    callback = _Callback(tokens, left)
    weakref.finalize(callback, tokens.put, None)
    (result,) = translator.translate_batch(
        [source], [prefix], beam_size=1, callback=callback, asynchronous=True, **options
    )
    del callback
    try:
        while (token := tokens.get()) is not None:
            yield token
        result.result()
    except GeneratorExit:
        left.set()
        while tokens.get() is not None:
            pass
        raise


def open_engine(
    described: Sequence[Description],
    subwords: Vocabulary,
    *,
    threads: int | None,
    quantisation: Quantisation | None,
    device: str,  # noqa: ARG001 - it runs on CPUs
    bundle: object = None,  # noqa: ARG001 - it has weights of its own
) -> CTranslate2Engine:
    """The engine for a model folder; by default at int8 if the CPU supports it."""
    if quantisation is None:
        quantisation = "int8" if "int8" in ctranslate2.get_supported_compute_types("cpu") else "float32"
    return CTranslate2Engine(
        described[0], bos=subwords.bos_id, eos=subwords.eos_id, quantisation=quantisation, threads=threads
    )
