"""Threads that run calls, and that never delay the end of the process."""

from __future__ import annotations

import _thread
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")


class Pool:
    """At most `size` threads, started when needed.

    They are daemons. Python waits for the threads of a `ThreadPoolExecutor` at exit, so one call that does
    not end would keep a stopped server alive.
    """

    def __init__(self, size: int, name: str, begin: Callable[[], None] = lambda: None) -> None:
        """Make a pool; every thread calls `begin` first."""
        self._size, self._name, self._begin = size, name, begin
        self._calls: SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = SimpleQueue()
        self._idle, self._starting = threading.Semaphore(0), threading.Lock()
        self._n_threads, self._n_running = 0, 0

    def submit(self, call: Callable[[], T]) -> Future[T]:
        """The result of a call, once a thread has run it; a future that is cancelled in time never runs."""
        future: Future[T] = Future()
        self._calls.put((future, call))
        if not self._idle.acquire(blocking=False):
            with self._starting:
                if self._n_threads < self._size:
                    self._n_threads += 1
                    # `Thread.start` would wait until the thread runs: long, if others hold the interpreter.
                    _thread.start_new_thread(self._run, ())
        return future

    @property
    def is_busy(self) -> bool:
        """Whether a call runs."""
        return self._n_running > 0

    def _run(self) -> None:
        threading.current_thread().name = self._name
        self._begin()
        while True:
            future, call = self._next_call()
            if future.set_running_or_notify_cancel():
                with self._starting:
                    self._n_running += 1
                try:
                    future.set_result(call())
                except BaseException as error:
                    future.set_exception(error)
                finally:
                    with self._starting:
                        self._n_running -= 1
            del future, call  # not kept alive until the next call

    def _next_call(self) -> tuple[Future[Any], Callable[[], Any]]:
        try:
            return self._calls.get_nowait()
        except Empty:
            self._idle.release()
            return self._calls.get()
