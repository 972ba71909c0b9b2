"""OpenAI's routes, for its clients. A translator translates the prompt, or the last message of the user.

A model for conversations reads all messages.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from functools import partial
from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import JSONResponse, Response

from regard.data.reading.templates import TURNS, model_input
from regard.engine.options import GenerateOptions
from regard.engine.results import Continuation, Result
from regard.engine.streams import UntilStop
from regard.errors import RegardError
from regard.serve.http.dependencies import state_of
from regard.serve.http.errors import bad_value, stream_error
from regard.serve.http.middleware import request_id
from regard.serve.http.responses import event, event_stream
from regard.serve.http.schemas import Many
from regard.serve.models import (
    ModelRegistry,
    ServedClassifier,
    ServedGenerator,
    ServedModel,
    ServedTranslator,
    wrong_task,
)
from regard.serve.translation import (
    TextsToTranslate,
    Translated,
    check_options,
    check_texts,
    stream,
    translate,
)
from regard.serve.work.executor import client_of
from regard.serve.work.jobs import RequestJob
from regard.text.vocabularies.vocabulary import Vocabulary

WITHOUT_EFFECT: dict[str, tuple[Any, ...]] = {
    "best_of": (1,),
    "frequency_penalty": (0,),
    "presence_penalty": (0,),
    "logit_bias": ({},),
    "suffix": ("",),
    "top_logprobs": (0,),
    "tools": ([],),
    "functions": ([],),
    "response_format": ({"type": "text"},),
}
"""Fields that are not supported, and the values that need no support."""
Chunk = Callable[[int, str, str | None], dict[str, Any]]
"""Makes a chunk of a route: a piece of the text of one choice, or its finish reason."""

router = APIRouter(prefix="/v1", tags=["OpenAI"])


class StreamOptions(BaseModel):
    """Options of a stream."""

    include_usage: bool = False


class CompletionOptions(BaseModel):
    """Fields that both kinds of completion share; unknown fields are ignored.

    Fields whose effect a client would miss in the response are rejected.
    """

    model_config = ConfigDict(extra="allow")

    model: str = Field(min_length=1, max_length=200)
    max_tokens: int | None = Field(None, ge=1)
    n: int = Field(1, ge=1)
    stop: str | Many[str] | None = None
    temperature: float | None = Field(None, ge=0, le=2)
    """0 or none takes the most likely token; above 0, tokens are sampled."""
    top_p: float | None = Field(None, ge=0, le=1)
    """0 takes the most likely token, too."""
    seed: int | None = Field(None, ge=-(2**63), lt=2**63)
    stream: bool = False
    stream_options: StreamOptions | None = None
    logprobs: bool | int | None = None
    echo: bool | None = None

    def check(self) -> None:
        """Reject fields that are not supported."""
        if self.logprobs is not None and self.logprobs is not False:
            message = "logprobs is not supported: omit it. /api/v1/score has log-probabilities of pairs."
            raise bad_value(message, "logprobs")
        if self.echo:
            raise bad_value("echo is not supported: omit it, and prepend the prompt.", "echo")
        for name, value in (self.model_extra or {}).items():
            if name in WITHOUT_EFFECT and value is not None and value not in WITHOUT_EFFECT[name]:
                raise bad_value(f"{name} is not supported: omit it.", name)

    def options(self) -> dict[str, Any]:
        """The options of a translator."""
        options: dict[str, Any] = {"n_best": self.n}
        if self.temperature and self.top_p != 0:
            options |= {"sample": True, "temperature": self.temperature, "top_p": self.top_p or 1.0}
            options |= {"seed": self._seed(0)}
        return options

    def generation(self, choice: int) -> GenerateOptions:
        """The options of a generator, for one of several choices; tokens are sampled by default."""
        return GenerateOptions(
            max_tokens=self.max_tokens,
            temperature=0.0 if self.top_p == 0 else 1.0 if self.temperature is None else self.temperature,
            top_p=self.top_p or 1.0,
            seed=self._seed(choice),
            stop=self.stops,
        )

    def _seed(self, choice: int) -> int:
        """The seed of one of several choices; clients may send negative numbers."""
        return ((1 if self.seed is None else self.seed) + choice) % 2**63

    @property
    def stops(self) -> list[str]:
        """The stop strings."""
        return [stop for stop in ([self.stop] if isinstance(self.stop, str) else self.stop or []) if stop]


class CompletionRequest(CompletionOptions):
    """The body of `/v1/completions`."""

    prompt: str | Many[str]


class ChatMessage(BaseModel):
    """A message."""

    model_config = ConfigDict(extra="ignore")

    role: str
    content: str | Many[dict[str, Any]] | None = None

    def text(self) -> str:
        """Its text.

        Raises:
            ApiError: a part is not a text.
        """
        if isinstance(self.content, str):
            return self.content
        if other := [part for part in self.content or [] if not isinstance(part.get("text"), str)]:
            kind = other[0].get("type", "unknown")
            raise bad_value(f"A part of a message is of type {kind!r}; only text can be read.", "messages")
        return "".join(part["text"] for part in self.content or [])


class ChatRequest(CompletionOptions):
    """The body of `/v1/chat/completions`."""

    messages: Many[ChatMessage] = Field(min_length=1)
    max_completion_tokens: int | None = Field(None, ge=1)

    def source(self, served: ServedModel[Any]) -> str:
        """The last message of the user; for a model for conversations, all messages."""
        messages = [message for message in self.messages if message.role in ("user", "assistant")]
        by_user = [message for message in messages if message.role == "user"]
        if not by_user:
            raise bad_value("There is no message with the role user.", "messages")
        if served.task == "converse":
            return model_input(served.template, {TURNS: [message.text() for message in messages]})
        return by_user[-1].text()


@router.get("/models")
async def models(request: Request) -> Any:
    """Every model of this server."""
    return {"object": "list", "data": [_model(each) for each in state_of(request).models]}


@router.get("/models/{model}")
async def model(request: Request, model: str) -> Any:
    """One model."""
    return _model(state_of(request).models.named(model))


@router.post("/completions")
async def completions(request: Request, body: CompletionRequest) -> Response:
    """Translations or continuations of prompts."""
    prompts = [body.prompt] if isinstance(body.prompt, str) else body.prompt
    served, query = _checked(request, body, prompts)
    head = _head(request, served, "cmpl", "text_completion")
    if isinstance(served, ServedGenerator) and not body.stream:
        return await _generated(request, body, served, prompts, head)
    if body.stream:
        return _streamed(request, body, query, partial(_text_chunk, head))
    translations, usage = await _translations(request, body, served, query)
    choices = [
        {"index": i, "text": text, "logprobs": None, "finish_reason": reason}
        for i, (text, reason) in enumerate(translations)
    ]
    return JSONResponse({**head, "choices": choices, "usage": usage})


@router.post("/chat/completions")
async def chat(request: Request, body: ChatRequest) -> Response:
    """Translations of the last message of the user; or the reply of a model for conversations."""
    body.max_tokens = body.max_completion_tokens or body.max_tokens
    prompts = [body.source(state_of(request).models.named(body.model))]
    served, query = _checked(request, body, prompts)
    if not isinstance(served, ServedTranslator):
        raise wrong_task(served, "chat")
    if body.stream:
        head = _head(request, served, "chatcmpl", "chat.completion.chunk")
        return _streamed(request, body, query, partial(_chat_chunk, head))
    head = _head(request, served, "chatcmpl", "chat.completion")
    choices = []
    translations, usage = await _translations(request, body, served, query)
    for i, (text, reason) in enumerate(translations):
        message = {"role": "assistant", "content": text, "refusal": None}
        choices.append({"index": i, "message": message, "logprobs": None, "finish_reason": reason})
    return JSONResponse({**head, "choices": choices, "usage": usage})


def _checked(
    request: Request, body: CompletionOptions, prompts: list[str]
) -> tuple[ServedModel[Any], TextsToTranslate]:
    state = state_of(request)
    body.check()
    check_texts(prompts, state.limits, "prompt")
    options = body.options()
    check_options(options, state.limits)
    if not prompts:
        raise bad_value("There is no prompt.", "prompt")
    if body.stream and body.n > 1:
        raise bad_value("A stream has one choice: omit n or stream.", "n")
    served = state.models.named(body.model)
    if isinstance(served, ServedClassifier):
        raise wrong_task(served, "complete")
    return served, TextsToTranslate(texts=prompts, model=served.id, options=options)


async def _generated(
    request: Request,
    body: CompletionRequest,
    served: ServedGenerator,
    prompts: list[str],
    head: dict[str, Any],
) -> Response:
    """Continuations of prompts, `n` per prompt."""

    def work(job: RequestJob) -> list[list[Continuation]]:
        return [served.generate(job, prompts, body.generation(i)) for i in range(body.n)]

    by_choice = await state_of(request).executor.run(request, work)
    by_prompt = [each for texts in zip(*by_choice, strict=True) for each in texts]
    choices: list[dict[str, Any]] = []
    for i, text in enumerate(by_prompt):
        reason = _reason(unfinished=text.finish == "length")
        choices.append({"index": i, "text": text.text, "logprobs": None, "finish_reason": reason})
    return JSONResponse({**head, "choices": choices, "usage": _used(by_choice[0], by_prompt)})


async def _translations(
    request: Request, body: CompletionOptions, served: ServedModel[Any], query: TextsToTranslate
) -> tuple[list[tuple[str, str]], dict[str, int]]:
    """Every translation with its finish reason, up to a stop string or a limit; and the usage."""
    return await state_of(request).executor.process(request, _translated, body, served.id, query)


def _translated(
    models: ModelRegistry, job: RequestJob, body: CompletionOptions, model: str, query: TextsToTranslate
) -> tuple[list[tuple[str, str]], dict[str, int]]:
    served = models.named(model)
    translated = [each.result for each in translate(models, job, query)]
    ranked = (one for best in translated for one in (best, *best.alternatives))
    ended = [_ended(body, served, each) for each in ranked]
    return ended, _usage(served, query.texts, [text for text, _ in ended])


def _text_chunk(head: dict[str, Any], i: int, text: str, reason: str | None) -> dict[str, Any]:
    return {**head, "choices": [{"index": i, "text": text, "logprobs": None, "finish_reason": reason}]}


def _chat_chunk(head: dict[str, Any], i: int, text: str, reason: str | None) -> dict[str, Any]:
    delta = {"role": "assistant", "content": text} if reason is None else {}
    return {**head, "choices": [{"index": i, "delta": delta, "finish_reason": reason}]}


def _chunks(
    models: ModelRegistry,
    job: RequestJob,
    body: CompletionOptions,
    query: TextsToTranslate,
    chunk: Chunk,
) -> Iterator[dict[str, Any]]:
    """The chunks of a stream, and its usage if wanted."""
    served = models.named(body.model)
    # A generator keeps to the limits of the request by itself.
    limits = None if isinstance(served, ServedGenerator) else body
    choices = [StreamedChoice(served.model.subwords, limits) for _ in query.texts]
    continuations: list[Continuation] = []
    for i, piece in _arriving(models, job, served, body, query):
        was_open = choices[i].reason is None
        if text := choices[i].add(piece) if isinstance(piece, str) else choices[i].end(piece):
            yield chunk(i, text, None)
        if was_open and choices[i].reason is not None:
            yield chunk(i, "", choices[i].reason)
        if isinstance(piece, Continuation):
            continuations.append(piece)
        if all(each.reason for each in choices):
            break
    if body.stream_options and body.stream_options.include_usage:
        texts = [each.sent for each in choices]
        used = _used(continuations, continuations) if continuations else None
        last = chunk(0, "", None)
        yield {**last, "choices": [], "usage": used or _usage(served, query.texts, texts)}


def _arriving(
    models: ModelRegistry,
    job: RequestJob,
    served: ServedModel[Any],
    body: CompletionOptions,
    query: TextsToTranslate,
) -> Iterator[tuple[int, str | Result | Continuation]]:
    """Pieces of every text, and its end."""
    if isinstance(served, ServedGenerator):
        yield from served.stream(job, query.texts, body.generation(0))
        return
    for i, text, _, end in stream(models, job, query):
        yield i, end.result if isinstance(end, Translated) else text


def _streamed(request: Request, body: CompletionOptions, query: TextsToTranslate, chunk: Chunk) -> Response:
    state = state_of(request)
    state.executor.check(client_of(request))
    # A generator waits for its scheduler, which only this process has.
    apart = False if isinstance(state.models.named(body.model), ServedGenerator) else None
    chunks = state.executor.stream(request, _chunks, body, query, chunk, apart=apart)

    async def events() -> AsyncIterator[str]:
        try:
            async for each in chunks:
                yield event(each)
            yield "data: [DONE]\n\n"
        except RegardError as error:
            yield event({"error": {"type": "server_error", **stream_error(error, request.url.path)}})
        finally:
            await chunks.aclose()

    return event_stream(events())


class StreamedChoice:
    """A text that arrives in pieces, up to a stop string or a limit of tokens."""

    def __init__(self, subwords: Vocabulary, limits: CompletionOptions | None) -> None:
        self._subwords = subwords
        self._stop = UntilStop(limits.stops if limits else ())
        self._most = limits.max_tokens if limits else None
        self._bytes_left = 0  # bytes that fit whatever they are
        self.sent = ""
        self.reason: str | None = None
        """The finish reason; None while it continues."""

    def add(self, piece: str) -> str:
        """What can be sent, with one more piece."""
        if self.reason is not None:
            return ""
        new = self._fitting(self._stop.add(piece))
        if self._stop.stopped:
            self.reason = self.reason or _reason()
        return new

    def end(self, result: Result | Continuation) -> str:
        """What was held back, at the end of the text."""
        if self.reason is not None:
            return ""
        new = self._fitting(self._stop.end())
        cut_off = result.unfinished if isinstance(result, Result) else result.finish == "length"
        self.reason = self.reason or _reason(unfinished=cut_off)
        return new

    def _fitting(self, new: str) -> str:
        """As much of a text as fits into the limit of tokens."""
        if self._most is not None and (size := len(new.encode("utf-8", "replace"))) > self._bytes_left:
            ids = self._subwords.encode_one(self.sent + new)
            if len(ids) > self._most:
                self.reason = _reason(unfinished=True)
                cut = self._subwords.decode(ids[: self._most]).rstrip("\ufffd")
                new = cut[len(self.sent) :] if cut.startswith(self.sent) else ""
            # A byte is at most a token; half of them, as later text may change how earlier text is split.
            self._bytes_left = max(0, self._most - len(ids)) // 2
        elif self._most is not None:
            self._bytes_left -= size
        self.sent += new
        return new


def _ended(body: CompletionOptions, served: ServedModel[Any], translation: Result) -> tuple[str, str]:
    """A translation up to a stop string or a limit, and the finish reason."""
    choice = StreamedChoice(served.model.subwords, body)
    choice.add(translation.text)
    choice.end(translation)
    assert choice.reason is not None, "a text that has ended has a reason"
    return choice.sent, choice.reason


def _reason(*, unfinished: bool = False) -> str:
    """OpenAI's word for the reason why a text ends."""
    return "length" if unfinished else "stop"


def _model(served: ServedModel[Any]) -> dict[str, Any]:
    return {"id": served.id, "object": "model", "created": 0, "owned_by": "regard"}


def _head(request: Request, served: ServedModel[Any], prefix: str, kind: str) -> dict[str, Any]:
    name = f"{prefix}-{request_id(request)}"
    return {"id": name, "object": kind, "created": int(time.time()), "model": served.id}


def _usage(served: ServedModel[Any], prompts: Sequence[str], texts: Sequence[str]) -> dict[str, int]:
    read, written = (sum(map(len, served.model.subwords.encode([*each]))) for each in (prompts, texts))
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


def _used(prompts: Sequence[Continuation], written: Sequence[Continuation]) -> dict[str, int]:
    read = sum(each.n_prompt_tokens for each in prompts)
    tokens = sum(len(each.tokens) for each in written)
    return {"prompt_tokens": read, "completion_tokens": tokens, "total_tokens": read + tokens}
