"""Several files read in step: the first lines of all, the second lines of all, and so on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from regard.config.checking import counted
from regard.errors import CorpusError
from regard.text.files.lines import Block, OnInvalid, read_lines
from regard.text.files.opening import STDIN, name_of
from regard.text.files.parting import where_they_part
from regard.text.files.tally import Tally

_SHOWN = 40


def read_in_step(
    paths: Sequence[Path | str],
    repairs: Tally | None = None,
    *,
    names: Sequence[str] = (),
    on_invalid: OnInvalid = "refuse",
) -> Iterator[Block]:
    """The lines of several files in blocks of one column a file.

    Raises:
        CorpusError: a file cannot be read or is not UTF-8, or one has more lines than another. That is known,
            and said, when the shorter one ends.
    """
    repairs = Tally() if repairs is None else repairs
    names = names or [name_of(path) for path in paths]
    readers = [
        read_lines(path, repairs, name=name, on_invalid=on_invalid)
        for path, name in zip(paths, names, strict=True)
    ]
    held: list[Block | None] = [None] * len(readers)
    done = 0
    while True:
        held = [block or next(reader, None) for block, reader in zip(held, readers, strict=True)]
        blocks = [block for block in held if block is not None]
        if not blocks:
            return
        if len(blocks) < len(held):
            rest = [_lines_left(block, reader) for block, reader in zip(held, readers, strict=True)]
            raise CorpusError(_out_of_step(paths, names, [done + count for count in rest]))
        count = min(map(len, blocks))
        halves = [block.split(count) for block in blocks]
        spoilt = {i: why for head, _ in halves for i, why in head.spoilt.items()}
        yield Block(names[0], done + 1, tuple(head.columns[0] for head, _ in halves), spoilt)
        held = [tail or None for _, tail in halves]
        done += count


def _lines_left(held: Block | None, reader: Iterator[Block]) -> int:
    return (len(held) if held else 0) + sum(map(len, reader))


def _out_of_step(paths: Sequence[Path | str], names: Sequence[str], lines: Sequence[int]) -> str:
    """How many lines each file has, and where two of them seem to part."""
    short = min(range(len(lines)), key=lambda i: lines[i])
    long = max(range(len(lines)), key=lambda i: lines[i])
    if not lines[short]:
        return f"{names[short]}: the file is empty, while {names[long]} has {counted(lines[long], 'line')}"
    told = f"{names[short]}:{lines[short]}: "
    told += f"the file ends here, while {names[long]} goes on to line {lines[long]:,}"
    if all(map(_can_be_read_again, paths)):
        told += _parting(paths[short], paths[long], names[short], names[long], lines[long] - lines[short])
    return told


def _can_be_read_again(path: Path | str) -> bool:
    return str(path) != STDIN and Path(path).is_file()


def _parting(short: Path | str, long: Path | str, short_name: str, long_name: str, extra: int) -> str:
    def texts(path: Path | str) -> Iterator[str]:
        return (text for block in read_lines(path, on_invalid="drop") for text in block.columns[0])

    parting = where_they_part(lambda: texts(short), lambda: texts(long), extra)
    if parting is None:
        return "; where they part cannot be told from the texts"
    if parting.at_the_end:
        return "; up to there they seem to be in step"
    line = parting.line
    return (
        f"; they seem to part near line {line:,}:"
        f"\n  {short_name}:{line}: {_shown(parting.short)}"
        f"\n  {long_name}:{line}: {_shown(parting.long)}"
    )


def _shown(text: str) -> str:
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
