"""A real server on loopback, in a thread of this process; and an engine that waits until it is told."""

from __future__ import annotations

import gc
import threading
from contextlib import contextmanager

import httpx

from regard.engine.engines.protocol import Engines
from regard.serve.http.app import create_app
from regard.serve.http.dependencies import AppState
from regard.serve.http.limits import Limits
from regard.serve.http.metrics import Metrics
from regard.serve.http.server import Server, listen
from regard.serve.models import ModelRegistry, ServedTranslator, load_models
from tests.engine.echo import Echo

PATIENCE_S = 120
"""Seconds that a test waits for what must happen: many, because a busy machine may be slow."""


class Running:
    """Where a server listens, and what is behind it."""

    def __init__(self, state, server, port):
        self.state, self.server, self.port = state, server, port
        self.url = f"http://127.0.0.1:{port}"
        self.http = httpx.Client(base_url=self.url, timeout=PATIENCE_S, trust_env=False)

    def post(self, path, **body):
        return self.http.post(path, json=body)

    def get(self, path, **query):
        return self.http.get(path, params=query)


@contextmanager
def running(registry, metrics=None, *, limits=None, keys=None, **options):
    limits = limits or Limits(errors_a_second=10_000)  # tests send many requests that get errors
    state = AppState(registry, metrics or Metrics(), limits=limits, keys=keys)
    started = threading.Event()
    server = Server(create_app(state, **options), state, started.set)
    socket = listen("127.0.0.1", 0)
    thread = threading.Thread(target=server.run, args=([socket],))
    thread.start()
    assert started.wait(PATIENCE_S), "the server did not start"
    found = Running(state, server, socket.getsockname()[1])
    try:
        yield found
    finally:
        found.http.close()
        server.stop()
        thread.join(PATIENCE_S)
        socket.close()
        assert not thread.is_alive(), "the server did not stop"
        del server, thread, found
        gc.collect()  # a resource that was left open is reported for this test, not for a later one


@contextmanager
def serving(folders, **options):
    """A server of the models in some folders, loaded as options say."""
    registry = load_models(folders, Metrics(), **options)
    try:
        with running(registry) as found:
            yield found
    finally:
        registry.close()


class Gated(Echo):
    """Gives back what it is asked, once it is let go on: one batch, or one token of a stream, at a time."""

    def __init__(self):
        super().__init__()
        self.batches = []
        self.began, self.go_on = threading.Semaphore(0), threading.Semaphore(0)
        self.ended = threading.Semaphore(0)

    def decode(self, requests, search):
        self.batches.append([len(request.ids) for request in requests])
        self._wait()
        return super().decode(requests, search)

    def stream(self, request, search):
        try:
            for token in super().stream(request, search):
                self._wait()
                yield token
        finally:
            self.ended.release()

    def let_all(self):
        self.go_on.release(10_000)

    def _wait(self):
        self.began.release()
        assert self.go_on.acquire(timeout=PATIENCE_S), "nobody let the engine go on"


def gated_registry(folder, model, engine):
    """A model whose engine is gated, as a server has it."""
    model = model.with_engines(Engines([lambda: engine]))
    return ModelRegistry([ServedTranslator("gated", folder, model, Metrics())])
