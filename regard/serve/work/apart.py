"""Engines for the process for large work: it asks the server, whose schedulers have the weights.

The process knows a model's vocabulary, languages and settings. Its translators have `AskingEngines`; for each
call, the server has `Answers`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from regard.engine.engines.protocol import Decoded, Engine, Engines, Request, Search
from regard.engine.results import Aligner, Ids, WordLink

if TYPE_CHECKING:
    from regard.serve.cache import BlobStore
    from regard.serve.work.jobs import RequestJob

Ask = Callable[..., Any]
"""Asks the server about the engines of a model: `ask(what, *arguments)`."""


class Models(Protocol):
    """The models of the server."""

    def named(self, name: str) -> Any:
        """The model with this id."""


class AskingEngines(Engines):
    """The engines of a model, for a call in the process."""

    def __init__(self, ask: Ask) -> None:
        super().__init__([])
        self._ask = ask

    def decode(self, requests: Sequence[Request], search: Search) -> list[Decoded]:
        """Have each request decoded."""
        decoded: list[Decoded] = self._ask("decode", requests, search)
        return decoded

    def choose(self, request: Request, search: Search) -> Engine:
        """An engine for a request; it has the name of the one that will run."""
        return _AskingEngine(self._ask, self._ask("name", request, search))

    @property
    def first(self) -> Engine:
        """The preferred engine."""
        return _AskingEngine(self._ask, self._ask("first_name"))


class _AskingEngine:
    """An engine of the server; only schedulers use the lanes of engines, and there are none here."""

    lanes, queues = 1, False

    def __init__(self, ask: Ask, name: str) -> None:
        self._ask, self.name = ask, name

    def batch_capacity(self, search: Search) -> int:
        """That of the preferred engine."""
        capacity: int = self._ask("batch_capacity", search)
        return capacity

    def lane(self) -> _AskingEngine:
        """Itself."""
        return self

    def express(self) -> None:
        """None: the scheduler has a lane for urgent items."""

    def unsupported(self, _search: Search, _requests: Sequence[Request]) -> str | None:
        """None: the lane's engines decide when the turn comes."""
        return None

    def decode(self, requests: Sequence[Request], search: Search) -> list[Any]:
        """The hypotheses of each request."""
        return [decoded.hypotheses for decoded in self._ask("decode", requests, search)]

    def score(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[tuple[float, ...]]:
        """Log-probability of each token of each target, and of the end token."""
        scores: list[tuple[float, ...]] = self._ask("score", sources, targets)
        return scores

    def stream(self, request: Request, search: Search) -> Iterator[int]:
        """Tokens of one output as they are decoded; closing the iterator stops the search."""
        self._ask("stream", request, search)
        try:
            while (token := self._ask("next_token")) is not None:
                yield token
        finally:
            self._ask("end_stream")


class AskingAligner:
    """Aligns words in the server."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self.about: str = ask("about_alignment")

    def __call__(self, pairs: Sequence[tuple[Ids, Ids]]) -> list[tuple[WordLink, ...]]:
        """The links of each pair."""
        links: list[tuple[WordLink, ...]] = self._ask("align", pairs)
        return links


class Answers:
    """Answers what a call in the process asks; engines wait for their turn at the scheduler."""

    def __init__(self, models: Models, traces: BlobStore, job: RequestJob) -> None:
        self._models, self._traces, self._job = models, traces, job
        self._stream: Iterator[int] = iter(())

    def __call__(self, what: str, name: str, *arguments: Any) -> Any:
        """The answer to a question about a model or a trace."""
        if what == "trace":
            return self._traces.get(name).content
        served: Any = self._models.named(name)
        if what in ("align", "about_alignment"):
            aligner: Aligner = served.aligner_for(self._job)
            return aligner(*arguments) if what == "align" else aligner.about
        engines: Engines = served.engines_for(self._job)
        match what:
            case "decode":
                return engines.decode(*arguments)
            case "name":
                return engines.choose(*arguments).name
            case "first_name":
                return engines.first.name
            case "batch_capacity":
                return engines.first.batch_capacity(*arguments)
            case "score":
                return engines.first.score(*arguments)
            case "stream":
                self._stream = engines.choose(*arguments).stream(*arguments)
            case "next_token":
                return next(self._stream, None)
            case "end_stream":
                close = getattr(self._stream, "close", lambda: None)
                close()
            case _:
                raise AssertionError(f"the process asks for {what!r}")
        return None
