"""A loaded decoder-only model: continues texts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

from regard.engine.options import GenerateOptions, options_of
from regard.engine.results import Continuation
from regard.engine.streams import TextStream
from regard.tasks.loaded import LoadedModel

if TYPE_CHECKING:
    from regard.engine.generator import Generator


class LoadedGenerator(LoadedModel):
    """A model that continues texts."""

    verb = "generate"

    @overload
    def generate(self, prompts: str, **options: Any) -> Continuation: ...
    @overload
    def generate(self, prompts: Sequence[str], **options: Any) -> list[Continuation]: ...
    def generate(self, prompts: str | Sequence[str], **options: Any) -> Continuation | list[Continuation]:
        """Continue a text, or each text of a list.

        Args:
            prompts: how a text begins; it may be empty.
            options: the fields of `GenerateOptions`: `max_tokens`, `temperature`, `top_k`, `top_p`, `min_p`,
                `seed`, `stop`, `past_length`.

        Raises:
            RequestError: an option cannot be satisfied, or several models were loaded.
        """
        chosen, generator = options_of(GenerateOptions, options), self.generator
        if isinstance(prompts, str):
            return generator.generate(prompts, chosen)
        return [generator.generate(prompt, chosen) for prompt in prompts]

    def continue_text(self, prompt: str, **options: Any) -> TextStream[Continuation]:
        """The continuation of a text in pieces of whole characters, as they are generated.

        After the last piece, `result` of the stream is the `Continuation`, with the reason why it ended.

        Raises:
            RequestError: see `generate`; before the first piece.
        """
        return self.generator.stream(prompt, options_of(GenerateOptions, options))

    @cached_property
    def generator(self) -> Generator:
        """The model as a generator of texts, loaded on first use.

        Raises:
            RequestError: several models were loaded.
        """
        from regard.engine.generator import Generator

        model: Any = self.bundle.model
        return Generator(model, self.subwords)
