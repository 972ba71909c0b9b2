"""Tokens as CTranslate2 finds them, one by one, until it is done with them.

Its own `generate_tokens` ends when the last token has been heard. Only then does CTranslate2's thread let go
of the callback that told them, for which it needs the interpreter; where that is ending by then, the whole
process is aborted. So the end here is that the callback is gone.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from queue import SimpleQueue
from threading import Event
from typing import Any

import ctranslate2


class _Callback:
    """Hears of every token, and says whether nobody listens any more."""

    def __init__(self, heard: SimpleQueue[int | None], left: Event) -> None:
        self._heard, self._left = heard, left

    def __call__(self, step: ctranslate2.GenerationStepResult) -> bool:
        self._heard.put(step.token_id)
        return self._left.is_set()


def steps(
    translator: ctranslate2.Translator, source: Sequence[str], prefix: Sequence[str], **options: Any
) -> Iterator[int]:
    """Each token of one output, the end among them, greedily; whoever stops listening stops the search."""
    heard: SimpleQueue[int | None] = SimpleQueue()
    left = Event()
    callback = _Callback(heard, left)
    weakref.finalize(callback, heard.put, None)
    (result,) = translator.translate_batch(
        [source], [prefix], beam_size=1, callback=callback, asynchronous=True, **options
    )
    del callback
    try:
        while (token := heard.get()) is not None:
            yield token
        result.result()
    except GeneratorExit:
        left.set()
        while heard.get() is not None:
            pass
        raise
