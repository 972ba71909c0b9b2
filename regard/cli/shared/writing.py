"""What verbs share that run a model on texts: its loading, and the lines that it writes."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from regard.cli.shared.options import RunFlags
from regard.errors import ConfigError

if TYPE_CHECKING:  # the help of a verb must not wait for engines
    from regard.engine.translator import OutputLine
    from regard.tasks.loaded.translator import LoadedTranslator
    from regard.text.files.lines import InputLine

HOW_TO_TRAIN = {
    "summarise": "regard train --task summarise --builtin rooms --out runs/summaries",
    "answer": "regard train --task answer --builtin rooms --out runs/answers",
    "chat": "regard train --task converse --builtin rooms --out runs/chat",
    "generate": "regard train --task generate TEXT… --out RUN",
    "classify": "regard train --task classify TABLE… --out RUN",
}
"""A command that makes a model for a verb that has no bundled one."""
PART = 256
"""Most lines of a part of a block: enough to sort by length, and to keep all cores busy."""
SIDE_BY_SIDE = 3
"""Parts in work: one is decoded, one prepared, one corrected."""


def load_models(verb: str, models: Sequence[Path] | None, flags: RunFlags) -> LoadedTranslator:
    """The encoder-decoder models of a verb, loaded.

    Raises:
        ConfigError: none is named.
        RequestError: they are for another task.
    """
    from regard.loaded import load

    named = needed(verb, models)
    loaded = load(named, engine=flags.engine, device=flags.device, threads=flags.threads)  # type: ignore[arg-type]
    loaded.require(verb if verb in HOW_TO_TRAIN else "translate")
    return cast("LoadedTranslator", loaded)


def needed(verb: str, models: Sequence[Path] | None) -> list[Path]:
    """The models that are named.

    Raises:
        ConfigError: none is.
    """
    if models:
        return list(models)
    command = HOW_TO_TRAIN[verb]
    makes = "makes one in less than a minute" if "--builtin" in command else "trains one"
    raise ConfigError(
        f"name a model, as in `regard {verb} RUN`; `{command}` {makes}",
        code="no_model",
    )


def written(
    loaded: LoadedTranslator,
    blocks: Iterable[Sequence[InputLine]],
    options: Mapping[str, Any],
    *,
    scores: bool = False,
    as_json: bool = False,
) -> Generator[list[OutputLine]]:
    """What a model writes for lines, part by part; `options` are the fields of `TranslateOptions`."""
    from regard.engine.translator import LineTranslator

    translator = loaded.translator(**options)
    write = LineTranslator(translator, scores=scores, as_json=as_json)
    yield from _overlapped(write, blocks) if translator.overlaps else map(write, blocks)


def _overlapped(
    write: Callable[[Sequence[InputLine]], list[OutputLine]], blocks: Iterable[Sequence[InputLine]]
) -> Iterator[list[OutputLine]]:
    """Parts of each block in threads: while one is decoded, another one is read, checked or corrected.

    A block ends before the next is requested, since the next may not have been typed yet.
    """
    for block in blocks:
        n_parts = -(-len(block) // PART)
        if n_parts < 2:
            yield write(block)
            continue
        bounds = [len(block) * i // n_parts for i in range(n_parts + 1)]
        with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            yield from pool.map(write, [block[i:j] for i, j in pairwise(bounds)])
