"""What continues texts: the decoder alone, a prompt read at once and then one token after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import takewhile

import torch
from torch import Tensor

from regard.decode.sampling import Sampling, drawing
from regard.decode.walk import Choose, likeliest
from regard.engine.document.characters import characters
from regard.engine.generation import Continuation, Finish, Generation, Stopping, unseen_characters
from regard.errors import ConfigError, RequestError
from regard.model.fast.cache import Cache
from regard.model.language_model import LanguageModel
from regard.packing import pack
from regard.text.vocabularies.vocabulary import Vocabulary


@dataclass(slots=True)
class _Written:
    """Tokens that were added so far."""

    ids: list[int] = field(default_factory=list)
    log_probs: list[float] = field(default_factory=list)
    ended: bool = False


class Generator:
    """A language model that continues texts. May be used by several threads, one text each."""

    def __init__(self, model: LanguageModel, subwords: Vocabulary) -> None:
        self.model, self.subwords = model.eval(), subwords
        self.device = model.output_probabilities.weight.device

    def generate(
        self, prompt: str, options: Generation, wanted: Callable[[], bool] = lambda: True
    ) -> Continuation:
        """Continue a text, for as long as it is wanted.

        Raises:
            RequestError: it would grow past the trained length, and that is an error; or options are wrong.
        """
        ids, written, stopping = self._encoded(prompt), _Written(), Stopping(options.stop)
        pieces = self._pieces(ids, options, written, stopping)
        text = "".join(takewhile(lambda _: wanted(), pieces))
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

    def stream(self, prompt: str, options: Generation) -> Iterator[str]:
        """What is added to a text, piece by piece as it is found, each made of whole characters.

        Raises:
            RequestError: see `generate`; before the first piece.
        """
        ids = self._encoded(prompt)
        options.room(len(ids), self.model.config.max_length)
        return self._pieces(ids, options, _Written(), Stopping(options.stop))

    def ids(self, prompt: list[int], options: Generation) -> list[int]:
        """The token ids that are added to those of a prompt.

        Raises:
            RequestError: see `generate`.
        """
        return list(self._tokens(prompt, options, _Written()))

    @torch.inference_mode()
    def log_probs_after(self, prompt: str) -> Tensor:
        """The log-probability of every token to be the next: what the first is drawn from."""
        read = self.subwords.begun(self._encoded(prompt))
        log_probs_1V, _ = self._read(read[-self.model.config.max_length :])
        return log_probs_1V[0]

    def _encoded(self, prompt: str) -> list[int]:
        if not isinstance(prompt, str):
            raise RequestError(f"a prompt is a text, and this is {type(prompt).__name__}")
        ids: list[int] = self.subwords.encode_one(prompt).tolist()
        return ids

    def _pieces(
        self, ids: list[int], options: Generation, written: _Written, stopping: Stopping
    ) -> Iterator[str]:
        """The text that tokens make, without the prompt's."""
        before = len(self.subwords.decode(ids))

        def tokens() -> Iterator[int]:
            yield from ids
            yield from self._tokens(ids, options, written)

        def added() -> Iterator[str]:
            told = 0
            for piece in characters(self.subwords, tokens()):
                told += len(piece)
                if told > before:
                    yield piece[-(told - before) :] if told - before < len(piece) else piece

        return stopping(added())

    @torch.inference_mode()
    def _tokens(self, prompt: list[int], options: Generation, written: _Written) -> Iterator[int]:
        """Tokens as they are found, without the one that ends a text."""
        model, longest = self.model, self.model.config.max_length
        room = options.room(len(prompt), longest)
        choose = _choice(options, room, self.device)
        read = self.subwords.begun(prompt)
        # A window that has slid begins in the middle of a text, as windows do in training.
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
        """Log-probabilities after a text, and a cache to go on from."""
        cache = self.model.start(1, self.model.config.max_length)
        log_probs_NV, cache = self.model.extend(pack([ids], self.device), cache)
        return log_probs_NV[-1:], cache


def _choice(options: Generation, n_steps: int, device: torch.device) -> Choose:
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
        raise RequestError("; ".join(error.problems)) from None
    return drawing(sampling, [options.seed], n_steps, device)
