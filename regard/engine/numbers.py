"""Checks that a translation has the values of its source, and puts right what it has instead.

An output is corrected in two ways that do not depend on the search: the changed value is replaced where it
stands ("14 billion people" becomes "1.4 billion people"); or the source is translated with a small number in
place of the value, which models copy, and then that number is replaced.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from regard.engine.direction import Direction
from regard.engine.results import NumberChange
from regard.text.normalisation import composed
from regard.text.numerals import Change, Numeral, added, changes, numerals, reads_words, rendered

_STAND_INS = (37, 43, 58, 64, 73, 86, 29, 47)
"""Numbers that models copy, and that mean nothing else."""


@dataclass(frozen=True, slots=True)
class WithStandIns:
    """A source with small numbers in place of its values."""

    text: str
    values: tuple[tuple[int, Numeral], ...]
    """Each small number, and the value that it stands for."""
    language: str | None
    """The target language."""

    def restored(self, output: str) -> str | None:
        """An output with the values in place of the small numbers; None if one is absent or occurs twice."""
        found = numerals(output, self.language)
        for number, value in self.values:
            places = [each for each in found if each.kind == "number" and each.amount == number]
            if len(places) != 1:
                return None
            written = _written(value, output, places[0], self.language)
            if written is None:
                return None
            output = output[: places[0].start] + written + output[places[0].end :]
            found = numerals(output, self.language)
        return output


class CheckedSource:
    """The values of one source text, and what outputs make of them."""

    def __init__(self, text: str, direction: Direction) -> None:
        self._text, self._target = composed(text), direction.target
        self._values: list[Numeral] = []
        if direction.source and direction.target:
            both = reads_words(direction.source) and reads_words(direction.target)
            language = direction.source if both else ""
            self._target = direction.target if both else ""
            self._values = numerals(self._text, language)

    def __bool__(self) -> bool:
        """Whether the text has values that its translation must have."""
        return any(each.sure for each in self._values)

    def changes(self, output: str) -> list[Change]:
        """The values that an output does not have."""
        return changes(self._values, numerals(output, self._target), (self._text, output))

    def n_added(self, output: str) -> int:
        """How many values an output has that the source does not have."""
        return len(added(self._values, numerals(output, self._target), (self._text, output)))

    def reported(self, output: str) -> tuple[NumberChange, ...]:
        """The values that an output does not have, as results report them."""
        return tuple(_reported(each) for each in self.changes(output)) if self else ()

    def corrected(self, output: str, *, partly: bool = False) -> str | None:
        """An output with every changed value put right where it stands; None if that is not possible.

        With `partly`, only values of the wrong size are put right, and others stay changed.
        """
        found = self.changes(output)
        pairs = [
            (each.source, each.target)
            for each in found
            if each.target is not None and _replaceable(each) and (each.same_digits or not partly)
        ]
        if not pairs or (len(pairs) < len(found) and not partly):
            return None
        for source, target in sorted(pairs, key=lambda pair: -pair[1].start):
            written = _written(source, output, target, self._target)
            if written is None or output[: target.start].endswith("."):
                return None
            output = output[: target.start] + written + output[target.end :]
        return output

    def with_stand_ins(self, changed: Sequence[NumberChange]) -> WithStandIns | None:
        """The source with small numbers in place of values that an output changed; None if impossible."""
        places = {(each.source_start, each.source_end) for each in changed}
        chosen = [each for each in self._values if (each.start, each.end) in places and each.kind == "number"]
        known = {each.amount for each in self._values}
        free = [number for number in _STAND_INS if number not in known]
        if not chosen or len(chosen) < len(places) or len(chosen) > len(free) or not self._target:
            return None
        text = self._text
        used = list(zip(free, chosen, strict=False))
        for number, value in reversed(used):
            text = text[: value.start] + str(number) + text[value.end :]
        return WithStandIns(text, tuple(used), self._target)


def _replaceable(change: Change) -> bool:
    """Whether what an output has instead of a value is certainly meant for it."""
    source, target = change.source, change.target
    return (
        target is not None
        and (target.sure or target.scaled)
        and (source.amount is None) == (target.amount is None)
    )


def _written(value: Numeral, output: str, place: Numeral, language: str | None) -> str | None:
    written = rendered(value, language or "", output[: place.start], output[place.end :])
    if written is None:
        return None
    currency = place.text[:1] if place.text[:1] in "$€£¥" else ""
    space = " " if place.text[:1] == " " else ""
    return space + currency + written


def _reported(change: Change) -> NumberChange:
    source, target = change.source, change.target
    return NumberChange(
        source=source.text,
        source_start=source.start,
        source_end=source.end,
        source_value=source.written,
        target=target.text if target else "",
        target_start=target.start if target else None,
        target_end=target.end if target else None,
        target_value=target.written if target else "",
    )
