"""OpenAI's routes, so that its clients work. A translator's source is the prompt, or the last message.

A model of conversations reads all that was said.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import JSONResponse, Response

from regard.data.reading.templates import TURNS, model_input
from regard.engine.options import GenerateOptions
from regard.engine.results import Continuation
from regard.errors import RegardError
from regard.serve.http.error_shapes import streamed_error
from regard.serve.http.errors import bad_value
from regard.serve.http.events import event, event_stream
from regard.serve.http.middleware import request_id
from regard.serve.served import CLASSIFY, GENERATE, TRANSLATE, Served, wrong_task
from regard.serve.service import admitted, service_of
from regard.serve.translating import Asked, check_options, check_texts, stream, translate
from regard.serve.work.job import Job
from regard.serve.work.lone_tasks import continued, streamed

Chunk = Callable[[int, str, str | None], dict[str, Any]]
"""A piece of the text of one choice, or why it ends, in the shape of a route."""

router = APIRouter(prefix="/v1", dependencies=[Depends(admitted)], tags=["OpenAI"])


class StreamOptions(BaseModel):
    """How to stream."""

    include_usage: bool = False


class Wanted(BaseModel):
    """What both kinds of completion may ask. What else clients send changes nothing here.

    But what they would look for in the answer and not find is refused.
    """

    model_config = ConfigDict(extra="ignore")

    model: str = Field(min_length=1, max_length=200)
    max_tokens: int | None = Field(None, ge=1)
    n: int = Field(1, ge=1)
    stop: str | list[str] | None = None
    temperature: float | None = Field(None, ge=0, le=2)
    """0, or none, for the likeliest; above it, tokens are drawn."""
    top_p: float | None = Field(None, ge=0, le=1)
    """0 for the likeliest, too."""
    seed: int | None = Field(None, ge=-(2**63), lt=2**63)
    stream: bool = False
    stream_options: StreamOptions | None = None
    logprobs: bool | int | None = None
    echo: bool | None = None

    def check(self) -> None:
        """Refuse what is not given here."""
        if self.logprobs is not None and self.logprobs is not False:
            told = (
                "Log-probabilities are not given here: leave logprobs out. /api/v1/score has those of pairs."
            )
            raise bad_value(told, "logprobs")
        if self.echo:
            raise bad_value("A prompt is not given back: leave echo out, and put it before the text.", "echo")

    def options(self) -> dict[str, Any]:
        """What the model is asked, in its own words."""
        found: dict[str, Any] = {"n_best": self.n}
        if self.temperature and self.top_p != 0:
            found |= {"sample": True, "temperature": self.temperature, "top_p": self.top_p or 1.0}
            found |= {"seed": self._seed(0)}
        return found

    def generation(self, choice: int) -> GenerateOptions:
        """What a generator is asked, for one of several choices: tokens are drawn unless told otherwise."""
        stops = [self.stop] if isinstance(self.stop, str) else self.stop or []
        return GenerateOptions(
            max_tokens=self.max_tokens,
            temperature=0.0 if self.top_p == 0 else 1.0 if self.temperature is None else self.temperature,
            top_p=self.top_p or 1.0,
            seed=self._seed(choice),
            stop=[stop for stop in stops if stop],
        )

    def _seed(self, choice: int) -> int:
        """Of one of several choices; clients may send numbers below 0, which ours are not."""
        return ((1 if self.seed is None else self.seed) + choice) % 2**63

    def stopped(self, text: str) -> str | None:
        """A text up to the first of the words that end it; None where it has none of them."""
        stops = [self.stop] if isinstance(self.stop, str) else self.stop or []
        places = [place for stop in stops if stop and (place := text.find(stop)) >= 0]
        return text[: min(places)] if places else None

    def ended(self, text: str, served: Served) -> tuple[str, str]:
        """A text up to where it was to end, and why it ends there."""
        text = text if (stopped := self.stopped(text)) is None else stopped
        if self.max_tokens is not None:
            ids = served.model.subwords.encode_one(text)
            if len(ids) > self.max_tokens:
                return served.model.subwords.decode(ids[: self.max_tokens]), "length"
        return text, "stop"

    @property
    def held(self) -> int:
        """Characters at the end of a stream that may still turn out to begin a word that ends it."""
        stops = [self.stop] if isinstance(self.stop, str) else self.stop or []
        return max((len(stop) - 1 for stop in stops if stop), default=0)


class Completion(Wanted):
    """What `/v1/completions` is asked."""

    prompt: str | list[str]


class Message(BaseModel):
    """What somebody says."""

    model_config = ConfigDict(extra="ignore")

    role: str
    content: str | list[dict[str, Any]] | None = None

    def text(self) -> str:
        """What of it is text."""
        if isinstance(self.content, str):
            return self.content
        return "".join(str(part.get("text", "")) for part in self.content or [])


class Chat(Wanted):
    """What `/v1/chat/completions` is asked."""

    messages: list[Message] = Field(min_length=1)
    max_completion_tokens: int | None = Field(None, ge=1)

    def source(self, served: Served) -> str:
        """The last thing that the user said; for a model of conversations, all that both said."""
        said = [message for message in self.messages if message.role in ("user", "assistant")]
        by_user = [message for message in said if message.role == "user"]
        if not by_user:
            raise bad_value("There is no message of the user.", "messages")
        if served.does == "converse":
            return model_input(served.template, {TURNS: [message.text() for message in said]})
        return by_user[-1].text()


@router.get("/models")
async def models(request: Request) -> Any:
    """Every model of this server."""
    return {"object": "list", "data": [_model(each) for each in service_of(request).catalogue]}


@router.get("/models/{model}")
async def model(request: Request, model: str) -> Any:
    """One of them."""
    return _model(service_of(request).catalogue.named(model))


@router.post("/completions")
async def completions(request: Request, body: Completion) -> Response:
    """Translations of one prompt or several."""
    prompts = [body.prompt] if isinstance(body.prompt, str) else body.prompt
    served, asked = _asked(request, body, prompts)
    head = _head(request, served, "cmpl", "text_completion")
    if served.task == GENERATE and not body.stream:
        return await _generated(request, body, served, prompts, head)
    if body.stream:

        def chunk(i: int, text: str, reason: str | None) -> dict[str, Any]:
            return {
                **head,
                "choices": [{"index": i, "text": text, "logprobs": None, "finish_reason": reason}],
            }

        return await _streamed(request, body, asked, head, chunk)
    found = await _found(request, asked)
    choices = []
    for i, text in enumerate(text for texts in found for text in texts):
        text, reason = body.ended(text, served)
        choices.append({"index": i, "text": text, "logprobs": None, "finish_reason": reason})
    return JSONResponse({**head, "choices": choices, "usage": _usage(served, prompts, choices)})


@router.post("/chat/completions")
async def chat(request: Request, body: Chat) -> Response:
    """Translations of the last message of the user; or what a model of conversations says next."""
    body.max_tokens = body.max_completion_tokens or body.max_tokens
    prompts = [body.source(service_of(request).catalogue.named(body.model))]
    served, asked = _asked(request, body, prompts)
    if served.task != TRANSLATE:
        raise wrong_task(served, "chat")
    if body.stream:
        head = _head(request, served, "chatcmpl", "chat.completion.chunk")

        def chunk(i: int, text: str, reason: str | None) -> dict[str, Any]:
            delta = {"role": "assistant", "content": text} if reason is None else {}
            return {**head, "choices": [{"index": i, "delta": delta, "finish_reason": reason}]}

        return await _streamed(request, body, asked, head, chunk)
    head = _head(request, served, "chatcmpl", "chat.completion")
    choices, texts = [], []
    for i, text in enumerate((await _found(request, asked))[0]):
        text, reason = body.ended(text, served)
        message = {"role": "assistant", "content": text, "refusal": None}
        choices.append({"index": i, "message": message, "logprobs": None, "finish_reason": reason})
        texts.append({"text": text})
    return JSONResponse({**head, "choices": choices, "usage": _usage(served, prompts, texts)})


def _asked(request: Request, body: Wanted, prompts: list[str]) -> tuple[Served, Asked]:
    service = service_of(request)
    body.check()
    check_texts(prompts, service.limits, "prompt")
    options = body.options()
    check_options(options, service.limits)
    if not prompts:
        raise bad_value("There is no prompt.", "prompt")
    if body.stream and body.n > 1:
        raise bad_value("A stream has one choice: leave out n or stream.", "n")
    served = service.catalogue.named(body.model)
    if served.task == CLASSIFY:
        raise wrong_task(served, "complete")
    return served, Asked(texts=prompts, model=served.id, options=options)


async def _generated(
    request: Request, body: Completion, served: Served, prompts: list[str], head: dict[str, Any]
) -> Response:
    """Prompts continued, each as often as asked for."""
    scheduler, generator = served.scheduler, served.model.generator

    def work(job: Job) -> list[list[Continuation]]:
        each = [body.generation(i) for i in range(body.n)]
        return [continued(scheduler, job, generator, prompts, options) for options in each]

    found = await service_of(request).desk.do(request, work)
    by_prompt = [each for texts in zip(*found, strict=True) for each in texts]
    choices: list[dict[str, Any]] = []
    for i, text in enumerate(by_prompt):
        reason = "length" if text.finish == "length" else "stop"
        choices.append({"index": i, "text": text.text, "logprobs": None, "finish_reason": reason})
    read = sum(each.n_prompt_tokens for each in found[0])
    written = sum(len(each.tokens) for each in by_prompt)
    usage = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
    return JSONResponse({**head, "choices": choices, "usage": usage})


async def _found(request: Request, asked: Asked) -> list[list[str]]:
    service = service_of(request)

    def work(job: Job) -> list[list[str]]:
        translated = translate(service.catalogue, job, asked)
        return [[each.result.text, *(one.text for one in each.result.alternatives)] for each in translated]

    return await service.desk.do(request, work)


async def _streamed(
    request: Request, body: Wanted, asked: Asked, head: dict[str, Any], chunk: Chunk
) -> Response:
    service = service_of(request)
    service.desk.check()
    served = service.catalogue.named(body.model)

    def work(job: Job) -> Iterator[tuple[int, str]]:
        if served.task == GENERATE:
            options, generator = body.generation(0), served.model.generator
            return streamed(served.scheduler, job, generator, list(asked.texts), options)
        return ((said.i, said.text) for said in stream(service.catalogue, job, asked))

    pieces = service.desk.stream(work)

    async def events() -> AsyncIterator[str]:
        streams = [Growing(body) for _ in asked.texts]
        try:
            async for i, piece in pieces:
                if text := streams[i].grow(piece):
                    yield event(chunk(i, text, None))
                if all(each.reason for each in streams):
                    break
            for i, each in enumerate(streams):
                if rest := each.end():
                    yield event(chunk(i, rest, None))
                yield event(chunk(i, "", each.reason))
            if body.stream_options and body.stream_options.include_usage:
                written = [{"text": each.given} for each in streams]
                usage = _usage(served, list(asked.texts), written)
                yield event({**head, "choices": [], "usage": usage})
            yield "data: [DONE]\n\n"
        except RegardError as error:
            yield event({"error": {"type": "server_error", **streamed_error(error, request.url.path)}})
        finally:
            await pieces.aclose()

    return event_stream(events())


class Growing:
    """A text that is streamed until it is to end."""

    def __init__(self, body: Wanted) -> None:
        self._body, self._text, self._n_pieces = body, "", 0
        self.given = ""
        self.reason: str | None = None
        """Why it ended; None as long as it goes on."""

    def grow(self, piece: str) -> str:
        """What of it can be given out now. A piece is a token, or a few that make up a character."""
        if self.reason is not None:
            return ""
        self._text += piece
        self._n_pieces += 1
        stopped = self._body.stopped(self._text)
        if stopped is not None:
            self._text, self.reason = stopped, "stop"
        elif self._n_pieces == self._body.max_tokens:
            self.reason = "length"
        return self._give(0 if self.reason else self._body.held)

    def end(self) -> str:
        """What was held back."""
        self.reason = self.reason or "stop"
        return self._give(0)

    def _give(self, held: int) -> str:
        new = self._text[len(self.given) : max(len(self.given), len(self._text) - held)]
        self.given += new
        return new


def _model(served: Served) -> dict[str, Any]:
    return {"id": served.id, "object": "model", "created": 0, "owned_by": "regard"}


def _head(request: Request, served: Served, prefix: str, kind: str) -> dict[str, Any]:
    name = f"{prefix}-{request_id(request)}"
    return {"id": name, "object": kind, "created": int(time.time()), "model": served.id}


def _usage(served: Served, prompts: list[str], choices: list[dict[str, Any]]) -> dict[str, int]:
    subwords = served.model.subwords
    read = sum(map(len, subwords.encode(prompts)))
    written = sum(map(len, subwords.encode([choice["text"] for choice in choices])))
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
