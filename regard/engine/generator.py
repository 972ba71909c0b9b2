"""Text generation: the decoder alone reads a prompt at once, and then adds one token after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import takewhile

import torch
from torch import Tensor

from regard.decode.sampling import Sampling, sampler
from regard.decode.walk import Choose, likeliest
from regard.engine.options import GenerateOptions
from regard.engine.results import Continuation, Finish
from regard.engine.streams import TextStream, UntilStop
from regard.errors import ConfigError, RequestError
from regard.model.fast.cache import Cache
from regard.model.language_model import LanguageModel
from regard.packing import pack
from regard.text.vocabularies.vocabulary import Vocabulary, unseen_characters, whole_characters


@dataclass(slots=True)
class _NewTokens:
    """Tokens that were added so far."""

    ids: list[int] = field(default_factory=list)
    log_probs: list[float] = field(default_factory=list)
    ended: bool = False


class Generator:
    """A language model that continues texts. May be used by several threads, with one text each."""

    def __init__(self, model: LanguageModel, subwords: Vocabulary) -> None:
        self.model, self.subwords = model.eval(), subwords
        self.device = model.output_probabilities.weight.device

    def generate(
        self, prompt: str, options: GenerateOptions, wanted: Callable[[], bool] = lambda: True
    ) -> Continuation:
        """Continue a text until it ends, or until `wanted` returns False.

        Raises:
            RequestError: it would grow past the trained length, or options are invalid.
        """
        stream = self.stream(prompt, options, wanted)
        for _ in stream:
            pass
        return stream.result

    def stream(
        self, prompt: str, options: GenerateOptions, wanted: Callable[[], bool] = lambda: True
    ) -> TextStream[Continuation]:
        """The continuation of a text in pieces of whole characters, as they are generated.

        Raises:
            RequestError: see `generate`; before the first piece.
        """
        ids, written, stopping = self._encoded(prompt), _NewTokens(), UntilStop(options.stop)
        options.room(len(ids), self.model.config.max_length)

        def result(text: str) -> Continuation:
            finish: Finish = "stop" if stopping.stopped else "end" if written.ended else "length"
            return Continuation(
                prompt=prompt,
                text=text,
                finish=finish,
                n_prompt_tokens=len(ids),
                tokens=tuple(self.subwords.pieces(written.ids)),
                token_scores=tuple(written.log_probs),
                unseen=unseen_characters(self.subwords, prompt),
            )

        return TextStream(self._pieces(ids, options, written, stopping, wanted), result)

    def ids(self, prompt: list[int], options: GenerateOptions) -> list[int]:
        """The token ids that continue those of a prompt.

        Raises:
            RequestError: see `generate`.
        """
        return list(self._tokens(prompt, options, _NewTokens()))

    @torch.inference_mode()
    def log_probs_after(self, prompt: str) -> Tensor:
        """The log-probability of every token to come next: the distribution of the first new token."""
        read = self.subwords.begun(self._encoded(prompt))
        log_probs_1V, _ = self._read(read[-self.model.config.max_length :])
        return log_probs_1V[0]

    def _encoded(self, prompt: str) -> list[int]:
        if not isinstance(prompt, str):
            raise RequestError(f"a prompt is a {type(prompt).__name__}, not a string", code="not_a_text")
        ids: list[int] = self.subwords.encode_one(prompt).tolist()
        return ids

    def _pieces(
        self,
        ids: list[int],
        options: GenerateOptions,
        written: _NewTokens,
        stopping: UntilStop,
        wanted: Callable[[], bool],
    ) -> Iterator[str]:
        """The text of the new tokens, up to a stop string, while it is wanted."""
        tokens = takewhile(lambda _: wanted(), self._tokens(ids, options, written))
        for piece in whole_characters(self.subwords, tokens, before=ids):
            if some := stopping.add(piece):
                yield some
            if stopping.stopped:
                return
        if rest := stopping.end():
            yield rest

    @torch.inference_mode()
    def _tokens(self, prompt: list[int], options: GenerateOptions, written: _NewTokens) -> Iterator[int]:
        """New tokens as they are generated, without the end token."""
        model, longest = self.model, self.model.config.max_length
        room = options.room(len(prompt), longest)
        choose = _choice(options, room, self.device)
        read = self.subwords.begun(prompt)
        # A window that slid begins in the middle of a text, as windows do in training.
        log_probs_1V, cache = self._read(read[-longest:])
        source_1 = torch.zeros(1, dtype=torch.int64, device=self.device)
        for t in range(room):
            token_1 = choose(log_probs_1V, source_1, t)
            token = int(token_1)
            if token == self.subwords.eos_id:
                written.ended = True
                return
            written.ids.append(token)
            written.log_probs.append(float(log_probs_1V[0, token]))
            yield token
            if t + 1 == room:
                return
            read.append(token)
            if cache.longest < longest:
                log_probs_1V, cache = model.step(token_1, cache)
            else:
                log_probs_1V, cache = self._read(read[-max(1, longest // 2) :])

    def _read(self, ids: list[int]) -> tuple[Tensor, Cache]:
        """Log-probabilities after a text, and the cache to continue from."""
        cache = self.model.start(1, self.model.config.max_length)
        log_probs_NV, cache = self.model.extend(pack([ids], self.device), cache)
        return log_probs_NV[-1:], cache


def _choice(options: GenerateOptions, n_steps: int, device: torch.device) -> Choose:
    if options.temperature == 0:
        return likeliest
    try:
        sampling = Sampling(
            temperature=options.temperature,
            top_k=options.top_k,
            top_p=options.top_p,
            min_p=options.min_p,
        )
    except ConfigError as error:
        raise RequestError("; ".join(error.problems), code="bad_option") from None
    return sampler(sampling, [options.seed], n_steps, device)
