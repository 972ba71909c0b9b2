"""The torch engine: any encoder-decoder model, or an ensemble, on any device that torch supports."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import Any, TypeVar

import torch
from torch import Tensor

from regard.bundle.bundle import Bundle, Description
from regard.decode.beam import Observer, beam_search
from regard.decode.constraints import Constraints
from regard.decode.hypothesis import Hypothesis
from regard.decode.phrases import PhraseGuide, Phrases
from regard.decode.sampling import Sampling, sampler
from regard.decode.shortlist import Shortlist
from regard.decode.step import States, Step, ensemble, log_mean_exp
from regard.decode.walk import Choose, likeliest, stream, walk
from regard.engine.engines.captured import CapturedSearches
from regard.engine.engines.protocol import NO_REPEAT, NOTHING, Request, Search, with_second_attempt
from regard.engine.loading import TORCH_DTYPES, load_onto, shortlist_of
from regard.errors import RequestError
from regard.exchange.ctranslate2.weights_file import Quantisation
from regard.host import free_gpu_memory
from regard.model.fast.kernels import has_fixed_shapes
from regard.model.fast.packed_weights import prepare, ready_to_run, shared_copy
from regard.model.taps import is_recording
from regard.model.transformer import Transformer
from regard.packing import Packed, pack, unpack
from regard.text.vocabularies.vocabulary import Vocabulary

Job = TypeVar("Job")
Output = TypeVar("Output")
MOST_BANKS = 12
"""Maximum number of hypotheses that phrases add to the beam."""
BATCH_TOKENS, MOST_BATCH_TOKENS = 4096, 131_072
"""Tokens of a batch, times its beam size: on CPUs, whose caches are small, and at most on GPUs."""
WORTH_A_CORE = 16
"""Minimum number of rows for batches to run side by side: with 1 row, in turn was faster (32 ms, not 41)."""
LOGITS = 8 * 1024 * 1024
"""Maximum number of logits computed at once when scoring."""


class TorchEngine:
    """One encoder-decoder model, or an ensemble with one vocabulary, that decodes and scores.

    The models are moved to the device and set to evaluation mode.
    """

    name = "torch"
    queues = False

    def __init__(
        self,
        models: Sequence[Transformer],
        *,
        bos: int,
        eos: int,
        device: torch.device | str = "cpu",
        batch_tokens: int | None = None,
        shortlist: Shortlist | None = None,
    ) -> None:
        if not models:
            raise RequestError("an engine needs at least one model", code="no_model")
        sizes = {model.config.vocab_size for model in models}
        if len(sizes) > 1:
            raise RequestError(
                f"models of one ensemble share a vocabulary; these have {sorted(sizes)} tokens",
                code="ensemble_mismatch",
            )
        self.models = [ready_to_run(model.to(device).eval()) for model in models]
        """The models that run: usually copies that share weights; recordings of the originals reach them."""
        self._bos, self._eos, self._device = bos, eos, device
        self._batch_tokens = batch_tokens or default_batch_tokens(self.models, torch.device(device))
        self._vocab_size = sizes.pop()
        self._shortlist = shortlist if len(models) == 1 else None
        self._max_length = min(model.config.max_length for model in models)
        self._captured = CapturedSearches(self.models[0], eos) if self._can_capture() else None
        self._one_search = Lock()

    @property
    def lanes(self) -> int:
        """Number of batches that run side by side: one per core, or one on another device."""
        return cores(self._device)

    def batch_capacity(self, search: Search) -> int:
        """Best number of input tokens in one batch, padding included."""
        return max(1, self._batch_tokens // _width(Request(ids=()), search))

    def lane(self) -> TorchEngine:
        """This engine for one of several threads that run a batch each."""
        if torch.device(self._device).type == "cpu":
            torch.set_num_threads(1)  # of this thread
        return self

    def express(self) -> TorchEngine | None:
        """This engine for one thread more; None on a GPU, whose captured searches cannot run side by side."""
        return self.lane() if torch.device(self._device).type == "cpu" else None

    def unsupported(self, search: Search, requests: Sequence[Request]) -> str | None:
        """Why it cannot run these requests; None if it can."""
        if search.beam_size < 1 or search.n_best < 1 or search.length_penalty < 0:
            return "`beam_size` and `n_best` must be at least 1, `length_penalty` at least 0"
        if not search.sample and search.n_best > search.beam_size:
            return f"`n_best={search.n_best}` needs a `beam_size` of at least {search.n_best}"
        if search.sample and any(request.phrases for request in requests):
            return "`glossary` and `keep` need beam search; remove `sample`"
        for i, request in enumerate(requests):
            try:
                self._check(request, search)
            except RequestError as error:
                return str(error) if len(requests) == 1 else f"request {i}: {error}"
        return None

    @torch.inference_mode()
    def decode(
        self, requests: Sequence[Request], search: Search, observer: Observer | None = None
    ) -> list[tuple[Hypothesis, ...]]:
        """The hypotheses of each request, the best first; they do not depend on the rest of the batch.

        An observer is called at each step of the beam search for a single request, and of a second attempt.
        """
        if problem := self.unsupported(search, requests):
            raise RequestError(problem, code="unsupported_request")
        if observer is not None and (search.sample or len(requests) != 1):
            raise RequestError(
                "only the beam search for a single request can be observed", code="unsupported_request"
            )
        decode = partial(self._decode, search=search, observer=observer)
        with self._one_search if self._captured else nullcontext():
            return with_second_attempt(requests, decode(requests), partial(decode, no_repeat=NO_REPEAT))

    @torch.inference_mode()
    def score(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> list[tuple[float, ...]]:
        """Log-probability of each token of each target, given its source, and of the end token."""
        if len(sources) != len(targets):
            counts = f"{len(sources)} sources and {len(targets)} targets"
            raise RequestError(f"{counts}: give one target per source", code="pair_count_mismatch")
        for i, pair in enumerate(zip(sources, targets, strict=True)):
            try:
                self._check_readable(*pair)
            except RequestError as error:
                raise RequestError(f"pair {i}: {error}", code=error.code) from None
        scores: list[tuple[float, ...]] = [()] * len(sources)
        lengths = [max(map(len, pair)) + 1 for pair in zip(sources, targets, strict=True)]
        batches = list(self._batches(lengths, rows=1))

        def scored(batch: list[int]) -> list[Tensor]:
            return self._score([sources[i] for i in batch], [targets[i] for i in batch])

        for batch, results in zip(batches, run_on_cores(scored, batches, self._device), strict=True):
            for i, of_one in zip(batch, results, strict=True):
                scores[i] = tuple(of_one.tolist())
        return scores

    @torch.inference_mode()
    def stream(self, request: Request, search: Search) -> Iterator[int]:
        """Tokens of one output as they are decoded; the last is the end token, unless it was cut off."""
        if problem := self.unsupported(search, [request]):
            raise RequestError(problem, code="unsupported_request")
        if request.phrases:
            raise RequestError(
                "required phrases need beam search, which cannot stream: call decode",
                code="unsupported_request",
            )
        if not request.ids:
            return
        constraints = self._constraints([request], search, no_repeat=0)
        step, state = self._start([request], constraints, beams=1)
        yield from stream(step, state, constraints, self._choose([request], search))

    def _check(self, request: Request, search: Search) -> None:
        """Raise RequestError for a request that cannot be decoded."""
        self._check_readable(request.ids, request.prefix, *(way for ways in request.phrases for way in ways))
        constraints = self._constraints([request], search, no_repeat=0)
        if request.phrases:
            PhraseGuide([Phrases(request.phrases)], constraints)

    def _check_readable(self, *sequences: Sequence[int]) -> None:
        """Raise RequestError for tokens without an embedding or a position."""
        for ids in sequences:
            if len(ids) + 1 > self._max_length:
                raise RequestError(
                    f"{len(ids) + 1} tokens, including the one that starts or ends the text; the model reads "
                    f"at most {self._max_length}",
                    code="too_long",
                )
            for token in ids:
                if not 0 <= token < self._vocab_size:
                    raise RequestError(
                        f"no token {token}; the vocabulary ends at {self._vocab_size - 1}",
                        code="unknown_token",
                    )

    def _decode(
        self,
        requests: Sequence[Request],
        search: Search,
        no_repeat: int = 0,
        observer: Observer | None = None,
    ) -> list[tuple[Hypothesis, ...]]:
        """Decode in batches of equal beam width and similar length."""
        outputs: list[tuple[Hypothesis, ...]] = [(NOTHING,)] * len(requests)
        widths = {i: _width(request, search) for i, request in enumerate(requests) if request.ids}
        jobs: list[tuple[int, list[int]]] = []
        for width in set(widths.values()):
            these = [i for i, needed in widths.items() if needed == width]
            batches = self._batches([len(requests[i].ids) + 1 for i in these], rows=width)
            jobs += [(width, [these[i] for i in batch]) for batch in batches]

        def searched(job: tuple[int, list[int]]) -> list[tuple[Hypothesis, ...]]:
            width, places = job
            return self._search([requests[i] for i in places], search, width, no_repeat, observer)

        rows = max((width * len(places) for width, places in jobs), default=0)
        # With few rows, most time is spent in Python, which runs on one core at a time.
        by_job = run_on_cores(searched, jobs, self._device) if rows >= WORTH_A_CORE else map(searched, jobs)
        for (_, places), bests in zip(jobs, by_job, strict=True):
            for i, best in zip(places, bests, strict=True):
                outputs[i] = best
        return outputs

    def _batches(self, lengths: Sequence[int], rows: int) -> Iterator[list[int]]:
        """Indices of sequences of similar length, in batches within the token budget at `rows` rows each.

        There are at least as many batches as cores, if there are enough sequences.
        """
        share = -(-rows * sum(lengths) // cores(self._device))
        budget = min(self._batch_tokens, share)
        batch: list[int] = []
        for i in sorted(range(len(lengths)), key=lengths.__getitem__):
            if batch and (len(batch) + 1) * rows * lengths[i] > budget:
                yield batch
                batch = []
            batch.append(i)
        if batch:
            yield batch

    def _search(
        self,
        requests: list[Request],
        search: Search,
        width: int,
        no_repeat: int,
        observer: Observer | None,
    ) -> list[tuple[Hypothesis, ...]]:
        """Hypotheses for one batch, with `width` rows per request."""
        alpha, n = search.length_penalty, search.n_best
        watched = observer is not None or is_recording(self.models[0])
        if self._captured is not None and not (watched or no_repeat or _is_constrained(requests, search)):
            memory = self.models[0].encode(self._inputs(requests))
            constraints = self._constraints(requests, search, 0)
            return self._captured.search(memory, constraints, width=width, alpha=alpha, n_best=n)
        among = None if watched else self._among(requests, search, no_repeat)
        if search.sample or (width == 1 and observer is None):
            rows = [request for request in requests for _ in range(n)]
            constraints = self._constraints(rows, search, no_repeat, among)
            step, state = self._start(rows, constraints, beams=1, among=among)
            outputs = walk(step, state, constraints, self._choose(rows, search), alpha)
            if among is not None:
                outputs = among.restored(outputs)
            groups = (outputs[i : i + n] for i in range(0, len(outputs), n))
            return [tuple(sorted(group, key=lambda one: -one.score)) for group in groups]
        constraints = self._constraints(requests, search, no_repeat, among)
        guide = None
        if any(request.phrases for request in requests):
            guide = PhraseGuide([Phrases(request.phrases) for request in requests], constraints)
        step, state = self._start(requests, constraints, beams=width, among=among)
        found = beam_search(
            step, state, constraints, width=width, alpha=alpha, n_best=n, guide=guide, observer=observer
        )
        return found if among is None else [tuple(among.restored(each)) for each in found]

    def _among(self, requests: Sequence[Request], search: Search, no_repeat: int) -> _Candidates | None:
        """The candidates of a batch; None if all tokens are."""
        if self._shortlist is None or not all(search.uses_shortlist(one, no_repeat) for one in requests):
            return None
        ids_C = torch.from_numpy(self._shortlist.candidates([one.ids for one in requests]))
        return _Candidates(ids_C, self.models[0])

    def _constraints(
        self, requests: Sequence[Request], search: Search, no_repeat: int, among: _Candidates | None = None
    ) -> Constraints:
        # One position is for the token that starts an output; a prefix always fits.
        longest = [min(len(one.ids) + search.extra_length, self._max_length - 1) for one in requests]
        limits = (max(1, limit, len(one.prefix)) for limit, one in zip(longest, requests, strict=True))
        prefixes = tuple(request.prefix for request in requests)
        return Constraints(
            bos=self._bos if among is None else among.place_of(self._bos),
            eos=self._eos if among is None else among.place_of(self._eos),
            limits=tuple(limits),
            min_length=search.min_length,
            prefixes=prefixes if any(prefixes) else (),
            no_repeat=no_repeat,
            device=self._device,
        )

    def _start(
        self,
        requests: Sequence[Request],
        constraints: Constraints,
        beams: int,
        among: _Candidates | None = None,
    ) -> tuple[Step[Any], Any]:
        """The step function of all models, and their initial state."""
        inputs, capacity = self._inputs(requests), max(constraints.limits)
        states = [model.start(model.encode(inputs), capacity, beams) for model in self.models]
        if len(states) == 1:
            return self.models[0].step if among is None else among.step, states[0]
        return ensemble([model.step for model in self.models]), States(tuple(states))

    def _can_capture(self) -> bool:
        """One model on a GPU whose steps have fixed shapes."""
        on_gpu = torch.device(self._device).type == "cuda"
        return on_gpu and len(self.models) == 1 and has_fixed_shapes(self.models[0].config, "captured steps")

    def _inputs(self, requests: Sequence[Request]) -> Packed:
        return pack([[*request.ids, self._eos] for request in requests], self._device)

    def _choose(self, requests: Sequence[Request], search: Search) -> Choose:
        """How the next token is chosen without a beam; equal requests are sampled independently."""
        if not search.sample:
            return likeliest
        sampling = Sampling(
            temperature=search.temperature, top_k=search.top_k, top_p=search.top_p, min_p=search.min_p
        )
        n = search.n_best
        seeds = [_seed(search.seed, request, i % n) for i, request in enumerate(requests)]
        return sampler(sampling, seeds, self._max_length, self._device)

    def _score(self, sources: list[Sequence[int]], targets: list[Sequence[int]]) -> list[Tensor]:
        """Log-probabilities of the targets; every model reads all pairs as one packed batch."""
        inputs = pack([[*ids, self._eos] for ids in sources], self._device)
        outputs = pack([[self._bos, *ids] for ids in targets], self._device)
        wanted = pack([[*ids, self._eos] for ids in targets], self._device).ids_N
        rows = max(1, LOGITS // self._vocab_size)
        by_model = []
        for model in self.models:
            states_TD = model.decode(outputs, model.encode(inputs))
            slices = zip(states_TD.split(rows), wanted.split(rows), strict=True)
            log_probs = [
                model.output_probabilities.log_probs(states).gather(1, ids[:, None])[:, 0]
                for states, ids in slices
            ]
            by_model.append(torch.cat(log_probs))
        return unpack(log_mean_exp(by_model), outputs.boundaries)


class _Candidates:
    """A search among some tokens: for it, they are the vocabulary, with numbers from 0."""

    def __init__(self, ids_C: Tensor, model: Transformer) -> None:
        self._ids_C, self._model = ids_C, model
        self._output = model.output_probabilities.among(ids_C)
        prepare(self._output, model.compute_dtype)

    def place_of(self, token: int) -> int:
        """The number of a token here."""
        return int(torch.searchsorted(self._ids_C, token))

    def step(self, places_R: Tensor, cache: Any) -> tuple[Tensor, Any]:
        """A step of the model: numbers in, log-probabilities of numbers out, (R, C)."""
        return self._model.step(self._ids_C[places_R], cache, self._output)

    def restored(self, found: Sequence[Hypothesis]) -> list[Hypothesis]:
        """Hypotheses with the tokens of the model."""
        return [replace(one, ids=tuple(self._ids_C[list(one.ids)].tolist())) for one in found]


def cores(device: torch.device | str) -> int:
    """Number of batches that can run side by side: torch's threads on a CPU, otherwise 1."""
    return torch.get_num_threads() if torch.device(device).type == "cpu" else 1


def run_on_cores(
    work: Callable[[Job], Output], jobs: Sequence[Job], device: torch.device | str
) -> list[Output]:
    """The results of jobs, run on one core each; in turn while activations are recorded.

    `work` must not change what other jobs read. Batches are independent, so cores with one each need not wait
    for each other after every operation, as they do when they share one. (CTranslate2 calls this replicas.)
    """
    n_threads = min(cores(device), len(jobs))
    if n_threads < 2 or is_recording():
        return [work(job) for job in jobs]

    def without_gradients(job: Job) -> Output:
        with torch.inference_mode():  # which applies to one thread
            return work(job)

    # torch's number of threads is a setting of each thread; but a new thread takes the value that was set
    # last, by any thread.
    before = torch.get_num_threads()
    try:
        with ThreadPoolExecutor(n_threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            return list(pool.map(without_gradients, jobs))
    finally:
        torch.set_num_threads(before)


def default_batch_tokens(models: Sequence[Transformer], device: torch.device) -> int:
    """On a GPU, as many tokens as fit into a quarter of its free memory, by a cautious estimate."""
    if device.type != "cuda":
        return BATCH_TOKENS
    bytes_per_token = 0.0
    for model in models:
        config, itemsize = model.config, model.compute_dtype.itemsize
        keys_and_values = 2 * config.decoder_layers * config.d_model * itemsize
        log_probs = 3 * 4 * config.vocab_size / 16  # per row, and a row has about 16 tokens or more
        bytes_per_token += 4 * keys_and_values + log_probs
    return max(BATCH_TOKENS, min(MOST_BATCH_TOKENS, int(free_gpu_memory(device) / 4 / bytes_per_token)))


def _is_constrained(requests: Sequence[Request], search: Search) -> bool:
    """Whether anything but the model decides the next token."""
    return search.sample or search.min_length > 0 or any(one.prefix or one.phrases for one in requests)


def _width(request: Request, search: Search) -> int:
    """Rows per request: phrases need room for hypotheses that contain more or fewer of them."""
    if search.sample:
        return search.n_best
    return search.beam_size + min(Phrases(request.phrases).n_tokens, MOST_BANKS)


def _seed(seed: int, request: Request, i: int) -> int:
    """A seed for the i-th output of a request; it does not depend on the rest of the batch."""
    decisive = repr((seed, request.ids, request.prefix, i)).encode()
    return int.from_bytes(hashlib.blake2b(decisive, digest_size=8).digest()) >> 1


def open_engine(
    described: Sequence[Description],
    subwords: Vocabulary,
    *,
    threads: int | None,
    quantisation: Quantisation | None,
    device: str,
    bundle: Callable[[], Bundle] | None = None,
) -> TorchEngine:
    """The engine for a model folder, or for several as an ensemble; by default at bfloat16 on GPUs."""
    if threads is not None:
        torch.set_num_threads(threads)
    bundles = [load_onto(each.folder, device) for each in described] if bundle is None else [bundle()]
    # A copy: the model itself keeps its precision, and recordings of the model reach the copy.
    transformers = [shared_copy(each.model) for each in bundles if isinstance(each.model, Transformer)]
    device = str(transformers[0].output_probabilities.weight.device)
    if quantisation not in TORCH_DTYPES:
        quantisation = "bfloat16" if torch.device(device).type == "cuda" else "float32"
    for model in transformers:
        model.compute_dtype = getattr(torch, quantisation)
    # On GPUs, steps are captured, and the scores of all tokens cost less than choosing some.
    shortlist = shortlist_of(described[0]) if len(described) == 1 and device == "cpu" else None
    return TorchEngine(
        transformers, bos=subwords.bos_id, eos=subwords.eos_id, device=device, shortlist=shortlist
    )
