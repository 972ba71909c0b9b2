"""A process that runs the calls of requests, so that they do not hold the interpreter of the event loop.

A regular expression over 100,000 characters, or a large JSON document, holds an interpreter for a tenth of a
second, and no thread of the same process runs meanwhile. The process has the models without their weights:
what it needs of an engine it asks of the server, whose schedulers share the engines among all requests.

Messages are pickled; the first eight bytes are the number of the call, so that the thread that receives them
need not read them. Both sides are the same program, and nobody else has the pipe.
"""

from __future__ import annotations

import atexit
import gc
import itertools
import multiprocessing
import os
import pickle
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from multiprocessing.connection import Connection
from queue import Empty, SimpleQueue
from typing import Any, Literal

from regard.cancellation import cancellable
from regard.errors import RegardError
from regard.host import return_freed_memory, share_freed_memory, step_back
from regard.serve.http.errors import busy, client_gone, shutting_down
from regard.serve.work.jobs import RequestJob
from regard.serve.work.pool import Pool
from regard.serve.work.turns import Turns

ENDING_S = 10.0
"""Seconds for a cancelled call to end; then the process is ended: nothing else ends a regular expression."""
TURN_S = 5.0
"""Seconds after which a call does not keep others waiting; several large ones at a time take much memory."""
MOST_CALLS = 256
"""Threads of the process; most calls wait for engines."""
TRIM_S = 5.0
"""Seconds without messages until freed memory is returned to the system."""
NUMBER_BYTES = 8
AT_REST: list[Callable[[], object]] = []
"""What the process calls before it returns memory: to forget what was kept for the next calls."""

Kind = Literal["start", "ask", "answer", "piece", "done", "failed", "cancel"]
Message = tuple[Kind, Any]
Answer = Callable[..., Any]
"""Answers what a call asks of the server: `answer(what, *arguments)`."""


class CallError(Exception):
    """A bug in a call: the name of its exception, and where it was."""

    def __init__(self, name: str, places: str) -> None:
        super().__init__(name, places)
        self.name, self.places = name, places


class _Pipe:
    """One end of the connection, for messages about calls; several threads may send."""

    def __init__(self, connection: Connection) -> None:
        self._connection, self._sending = connection, threading.Lock()

    def send(self, number: int, kind: Kind, content: Any) -> None:
        """Send a message, if the other side lives."""
        data = number.to_bytes(NUMBER_BYTES) + pickle.dumps((kind, content), pickle.HIGHEST_PROTOCOL)
        try:
            with self._sending:
                self._connection.send_bytes(data)
        except OSError:
            pass  # who receives notices it, too

    def receive(self) -> tuple[int, bytes]:
        """The number of a call, and a message as bytes.

        Raises:
            EOFError: the other side has ended.
        """
        try:
            data = self._connection.recv_bytes()
        except OSError:
            raise EOFError from None
        return int.from_bytes(data[:NUMBER_BYTES]), data

    def is_quiet(self, seconds: float) -> bool:
        """Whether nothing arrives within some seconds."""
        return not self._connection.poll(seconds)


def _message(data: bytes) -> Message:
    message: Message = pickle.loads(memoryview(data)[NUMBER_BYTES:])
    return message


# --- the side of the server ---------------------------------------------------------------------------------


class WorkProcess:
    """Runs calls in a process of its own, which is started when needed, and again if it has ended."""

    def __init__(self, begin: Callable[[], object]) -> None:
        """Make it; `begin` is called in the process, and its result is the first argument of all calls."""
        self._begin = begin
        self._channel: _Channel | None = None
        self._opening, self._closed = threading.Lock(), False

    def start(self) -> None:
        """Start the process, if it does not run."""
        self._open_channel()

    def run(self, job: RequestJob, answer: Answer, function: Callable[..., Any], *arguments: Any) -> Any:
        """The result of `function(context, job, *arguments)` in the process.

        Raises:
            ApiError: the job was cancelled, or the process ended.
            RegardError: what the call raises.
        """
        (result,) = self._results(job, answer, partial(_one, function), arguments)
        return result

    def stream(
        self, job: RequestJob, answer: Answer, function: Callable[..., Iterable[Any]], *arguments: Any
    ) -> Iterator[Any]:
        """What `function(context, job, *arguments)` yields in the process; see `run`."""
        return self._results(job, answer, function, arguments)

    def close(self) -> None:
        """End the process at once; its calls fail."""
        with self._opening:
            self._closed = True
            if self._channel is not None:
                self._channel.end()

    def _results(
        self, job: RequestJob, answer: Answer, function: Callable[..., Iterable[Any]], arguments: Any
    ) -> Iterator[Any]:
        call = _Call(self._open_channel(), job)
        try:
            call.send("start", (function, arguments, job.client))
            while (message := call.next())[0] != "done":
                kind, content = message
                if kind == "failed":
                    raise content
                if kind == "ask":
                    call.send("answer", _outcome(partial(answer, *content)))
                else:
                    yield content
        finally:
            call.end()

    def _open_channel(self) -> _Channel:
        with self._opening:
            if self._closed:
                raise shutting_down()
            if self._channel is None or self._channel.has_ended:
                self._channel = _Channel(self._begin)
            return self._channel


class _Channel:
    """A running process."""

    def __init__(self, begin: Callable[[], object]) -> None:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(theirs, begin), daemon=True)
        self._process.start()
        theirs.close()
        self.pipe = _Pipe(ours)
        self._numbers, self._calls = itertools.count(), dict[int, SimpleQueue[bytes | None]]()
        self._lock, self.has_ended = threading.Lock(), False
        atexit.register(self.end)
        threading.Thread(target=self._receive, daemon=True, name="answers").start()

    def add(self) -> tuple[int, SimpleQueue[bytes | None]]:
        """The number of a new call, and its messages; None is for the end of the process."""
        with self._lock:
            number, messages = next(self._numbers), SimpleQueue[bytes | None]()
            self._calls[number] = messages
            if self.has_ended:
                messages.put(None)
            return number, messages

    def remove(self, number: int) -> None:
        """Forget a call."""
        with self._lock:
            self._calls.pop(number, None)

    def end(self) -> None:
        """End the process at once."""
        atexit.unregister(self.end)
        self._process.kill()
        self._process.join()

    def _receive(self) -> None:
        try:
            while True:
                number, data = self.pipe.receive()
                with self._lock:
                    messages = self._calls.get(number)
                if messages is not None:
                    messages.put(data)
        except EOFError:
            pass
        with self._lock:
            self.has_ended = True
            for messages in self._calls.values():
                messages.put(None)


class _Call:
    """A call in the process, as the thread sees it that waits for its result."""

    def __init__(self, channel: _Channel, job: RequestJob) -> None:
        self._channel, self._job = channel, job
        self._number, self._messages = channel.add()
        self._has_ended = False
        self._cancelled = job.expect(1)
        self._cancelled.all.add_done_callback(lambda _: self._messages.put(b""))
        self._until: float | None = None

    def send(self, kind: Kind, content: Any) -> None:
        """Send a message about it."""
        self._channel.pipe.send(self._number, kind, content)

    def next(self) -> Message:
        """Its next message; a cancelled call is given some time to end.

        Raises:
            ApiError: the process ended, or had to be ended.
        """
        while True:
            patience = None if self._until is None else max(0.0, self._until - time.monotonic())
            try:
                data = self._messages.get(timeout=patience)
            except Empty:
                self._channel.end()
                data = None
            if data is None:
                self._has_ended = True
                raise self._job.cancelled or busy("A process of this server has ended. Retry in a moment.")
            if data:
                message = _message(data)
                self._has_ended = message[0] in ("done", "failed")
                return message
            self._until = time.monotonic() + ENDING_S
            self.send("cancel", self._job.cancelled)

    def end(self) -> None:
        """Forget the call, and cancel it if it has not ended."""
        self._channel.remove(self._number)
        self._cancelled.arrived(0, None)
        if not self._has_ended:
            self.send("cancel", client_gone())


# --- the side of the process --------------------------------------------------------------------------------


class AskingJob(RequestJob):
    """A request in the process."""

    def __init__(self, client: str, turns: Turns, send: Callable[[Kind, Any], None]) -> None:
        super().__init__(client, turns)
        self.send = send
        """Sends a message about it."""
        self._answer = self.expect(0)

    def ask(self, what: str, *arguments: Any) -> Any:
        """The answer of the server; other calls have their turns meanwhile.

        Raises:
            ApiError: the job was cancelled.
            RegardError: what the server raises.
        """
        self._answer = self.expect(1)
        self.send("ask", (what, *arguments))
        with self.waiting():
            ((content, error),) = self._answer.all.result()
        if error is not None:
            raise error
        return content

    def answered(self, outcome: Any) -> None:
        """Take the answer."""
        self._answer.arrived(0, outcome)


def _work(connection: Connection, begin: Callable[[], object]) -> None:
    """The main function of the process, which ends with the server."""
    for each in (signal.SIGINT, signal.SIGTERM):  # the server finishes its requests first, and then ends this
        signal.signal(each, signal.SIG_IGN)
    share_freed_memory()
    step_back()
    pipe, context = _Pipe(connection), begin()
    gc.freeze()
    calls: dict[int, AskingJob] = {}
    turns, threads, has_worked = Turns(TURN_S), Pool(MOST_CALLS, "call"), False
    while True:
        while has_worked and pipe.is_quiet(TRIM_S):
            if not calls:
                has_worked = False
                for forget in AT_REST:
                    forget()
                return_freed_memory()
        try:
            number, data = pipe.receive()
        except EOFError:
            os._exit(0)
        has_worked = True
        kind, content = _message(data)
        if kind == "start":
            function, arguments, client = content
            calls[number] = job = AskingJob(client, turns, partial(pipe.send, number))
            threads.submit(partial(_run, job, partial(calls.pop, number), function, context, arguments))
        elif (found := calls.get(number)) is not None:
            (found.cancel if kind == "cancel" else found.answered)(content)


def _run(
    job: AskingJob, forget: Callable[[], object], function: Callable[..., Any], context: Any, arguments: Any
) -> None:
    def call() -> None:
        with cancellable(job.check), job.in_turn():
            for piece in function(context, job, *arguments):
                job.check()
                job.send("piece", piece)

    _, error = _outcome(call)
    forget()
    job.send("done" if error is None else "failed", error)


def _one(function: Callable[..., Any], *arguments: Any) -> Iterator[Any]:
    yield function(*arguments)


def _outcome(call: Callable[[], Any]) -> tuple[Any, Exception | None]:
    """What a call returns or raises; a bug without its arguments, which cannot always be pickled."""
    try:
        return call(), None
    except (RegardError, CallError) as error:
        return None, error.with_traceback(None)
    except Exception as error:
        return None, CallError(type(error).__name__, "".join(traceback.format_tb(error.__traceback__)))
