"""An engine that returns what it reads, and a loaded model around it."""

from pathlib import Path

from regard.bundle.bundle import Description
from regard.config import DecodingConfig, ModelConfig, TaskConfig
from regard.decode.hypothesis import Hypothesis
from regard.engine.engines.protocol import Engines
from regard.errors import RequestError
from regard.tasks.loaded.translator import LoadedTranslator

END = 2
"""The end token of our vocabularies."""


class Echo:
    name, lanes, queues = "echo", 1, True

    def __init__(self):
        self.requests = []

    def batch_capacity(self, _search):
        return 100

    def lane(self):
        return self

    def express(self):
        return None

    def unsupported(self, _search, _requests):
        return None

    def decode(self, requests, search):
        self.requests += requests
        return [tuple(self._output(each, i) for i in range(search.n_best)) for each in requests]

    def score(self, _sources, targets):
        return [(0.0,) * (len(ids) + 1) for ids in targets]

    def stream(self, request, _search):
        yield from (*request.ids, END)

    def _output(self, request, i):
        ids = (*request.prefix, *request.ids)
        return Hypothesis(ids=ids, token_log_probs=(-1.0,) * (len(ids) + 1), score=-1.0 - i, finished=True)


class _WithoutWeights(LoadedTranslator):
    def aligner(self):
        raise RequestError("there are no weights to look at")


def translator_with(engine, subwords, *, max_length=21, task=None):
    """A loaded translator without a model folder; `engine` makes the engine that runs it."""
    described = Description(
        folder=Path("echo"),
        format=1,
        regard="",
        config=ModelConfig(vocab_size=subwords.vocab_size, max_length=max_length),
        decoding=DecodingConfig(),
        task=task or TaskConfig(),
        n_parameters=0,
        dtype="float32",
        weights_hash="",
        files={},
        metrics={},
    )
    return _WithoutWeights([described], subwords=subwords).with_engines(Engines([engine]))
