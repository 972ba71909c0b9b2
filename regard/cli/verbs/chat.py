"""`regard chat`: a conversation with a model, on a terminal or as JSONL."""

from __future__ import annotations

import json
import sys
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from regard.cli.shared.options import OwnModelsOption, RunFlags, with_flags, with_flags_of
from regard.cli.shared.reporting import print_lines
from regard.cli.shared.writing import load_models
from regard.config.checking import counted
from regard.errors import RequestError

if TYPE_CHECKING:  # the verb's help must not wait for engines
    from regard.engine.translator import OutputLine
    from regard.tasks.loaded.translator import LoadedTranslator
    from regard.text.files.lines import InputLine

PROMPT = "> "
FORM = '{"turns": ["Hello.", "Hi.", "How are you?"]}'


@with_flags_of
def chat(
    turns: Annotated[
        list[str] | None,
        typer.Argument(metavar="TURN", help="The turns so far; by default, from a terminal or as JSONL."),
    ] = None,
    *,
    models: OwnModelsOption = None,
    flags: RunFlags,
) -> None:
    """Converse with a model trained for it.

    On a terminal, type a turn and read the reply; an empty line begins a new conversation, and Ctrl-D ends.
    The model reads all turns so far, or as many of the last ones as fit. In a pipe, each line is a
    conversation, a JSON object with its turns; the same object is printed with the reply as one more turn.
    """
    from regard.cli.shared.input_lines import input_blocks

    talk = Conversations(load_models("chat", models, flags), flags.search())
    if turns:
        row, notes = talk.with_reply({"turns": turns})
        print(json.dumps(row, ensure_ascii=False) if flags.as_json else row["turns"][-1])
        _warn(notes)
    elif sys.stdin.isatty():
        talk.on_terminal()
    else:
        print_lines([talk.written(line) for line in block] for block in input_blocks(None))


class Conversations(NamedTuple):
    """Conversations with one model."""

    loaded: LoadedTranslator
    options: Mapping[str, Any]

    def with_reply(self, row: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
        """A conversation with one more turn, which the model writes; and warnings about it.

        Raises:
            RequestError: a field is missing, or the last turn alone is too long.
        """
        turns = row.get("turns")
        if not isinstance(turns, list) or not turns or not all(isinstance(turn, str) for turn in turns):
            raise RequestError(
                f"a conversation is a JSON object with a list of texts: {FORM}", code="bad_turns"
            )
        first = bisect_left(range(len(turns) - 1), True, key=lambda first: self._fits(row, turns[first:]))
        result = self.loaded.respond({**row, "turns": turns[first:]}, **self.options)
        dropped = counted(first, "turn does", "turns do")
        notes = (f"the first {dropped} not fit into what the model reads",) if first else ()
        return {**row, "turns": [*turns, result.text]}, notes

    def _fits(self, row: Mapping[str, Any], turns: Sequence[str]) -> bool:
        """Whether the model can read the last turns together."""
        text = json.dumps({**row, "turns": turns}, ensure_ascii=False)
        return len(self.loaded.read(text)) < self.loaded.max_length

    def written(self, line: InputLine) -> OutputLine:
        """The conversation in a line of JSONL, with the reply."""
        from regard.engine.translator import OutputLine
        from regard.text.files.formats.objects import json_object

        if line.problem is None and not line.text.strip():
            return OutputLine(line.text)
        problem = line.problem
        try:
            if problem is None:
                row, notes = self.with_reply(json_object(line.text))
                text = json.dumps(row, ensure_ascii=False)
                return OutputLine(text, notes=tuple(line.where + note for note in notes))
        except RequestError as error:
            problem = f"{line.where}{with_flags(error)}"
        return OutputLine(json.dumps({"error": problem}, ensure_ascii=False), notes=(problem,), failed=True)

    def on_terminal(self) -> None:
        """Converse until the input ends."""
        with suppress(ImportError):
            import readline  # noqa: F401 - edits the line that is typed
        print("regard: an empty line begins a new conversation, Ctrl-D ends", file=sys.stderr)
        turns: list[str] = []
        for turn in self._typed():
            if not turn.strip():
                turns = []
                continue
            try:
                row, notes = self.with_reply({"turns": [*turns, turn]})
            except RequestError as error:
                _warn([with_flags(error)])
                continue
            turns = row["turns"]
            print(turns[-1], flush=True)
            _warn(notes)

    @staticmethod
    def _typed() -> Iterator[str]:
        """The lines that are typed."""
        with suppress(EOFError):
            while True:
                yield input(PROMPT)
        print()


def _warn(notes: Iterable[str]) -> None:
    for note in notes:
        print(f"regard: {note}", file=sys.stderr, flush=True)
