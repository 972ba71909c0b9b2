"""A loaded decoder-only model: continues texts."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from regard.tasks.loaded import LoadedModel

if TYPE_CHECKING:
    from regard.engine.generator import Generator


class LoadedGenerator(LoadedModel):
    """A model that continues texts: see `LoadedModel.generate` and `continue_text`."""

    verb = "generate"

    @cached_property
    def generator(self) -> Generator:
        """The model as a generator of texts, loaded on first use.

        Raises:
            RequestError: several models were loaded.
        """
        from regard.engine.generator import Generator

        model: Any = self.bundle.model
        return Generator(model, self.subwords)
