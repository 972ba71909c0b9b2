"""Which way a text is translated: from which language, into which, and how the model is told."""

from __future__ import annotations

from dataclasses import dataclass

from regard.config import TaskConfig
from regard.errors import RequestError
from regard.text.detection import is_in, language_among, words_by_script
from regard.text.languages import known_code
from regard.text.vocabularies.vocabulary import Vocabulary

UNSPACED = ("zh", "yue", "ja")
"""Languages that put no space between sentences."""


@dataclass(frozen=True, slots=True)
class Direction:
    """From one language into another."""

    source: str | None
    target: str | None
    tag: tuple[int, ...] = ()
    """What stands before the tokens of every input; empty where the model needs none."""

    @property
    def adds_spaces(self) -> bool:
        """Whether there are spaces between sentences of the outputs, and none between those of the inputs."""
        return self.target is not None and _unspaced(self.source) and not _unspaced(self.target)

    @property
    def drops_spaces(self) -> bool:
        """Whether there are spaces between sentences of the inputs, and none between those of the outputs."""
        return self.source is not None and _unspaced(self.target) and not _unspaced(self.source)

    @property
    def without_spaces(self) -> bool:
        """Whether outputs are written without spaces."""
        return _unspaced(self.target)


class Directions:
    """The directions in which a model translates: one, or both of two languages."""

    def __init__(self, task: TaskConfig, subwords: Vocabulary) -> None:
        self.known = tuple(
            Direction(source, target, (subwords.tag_id(target),) if task.has_tags and target else ())
            for source, target in task.directions
        )

    def asked(self, source: str | None, target: str | None) -> Direction | None:
        """The direction between languages that are asked for; None where it is left to each text.

        Raises:
            RequestError: the model does not translate so.
        """
        wanted = [(known_code(code) or code) if code else None for code in (source, target)]
        fitting = [each for each in self.known if _fits(each, *wanted)]
        if not fitting:
            raise RequestError(self._refusal(*wanted))
        return fitting[0] if len(fitting) == 1 else None

    def of(self, text: str) -> Direction:
        """The direction of a text, told by its letters; a text without letters goes the first way.

        Raises:
            RequestError: its letters do not tell.
        """
        if len(self.known) == 1:
            return self.known[0]
        languages = [each.source or "" for each in self.known]
        language = language_among(text, languages)
        if language is None and words_by_script(text):
            shown = text.strip() if len(text.strip()) <= 40 else f"{text.strip()[:40]}…"
            names = " or ".join(languages)
            raise RequestError(
                f"{shown!r} does not tell whether it is {names}; say which language is wanted with `to`"
            )
        return next((each for each in self.known if each.source == language), self.known[0])

    def has_arrived(self, text: str, direction: Direction) -> bool:
        """Whether a text is in the language that is wanted already."""
        languages = [each.target or "" for each in self.known]
        return len(languages) > 1 and is_in(text, direction.target or "", languages)

    def _refusal(self, source: str | None, target: str | None) -> str:
        if len(self.known) > 1:
            ways = " and ".join(f"from {each.source} into {each.target}" for each in self.known)
            asked = " ".join(f"{way} {code}" for way, code in (("from", source), ("into", target)) if code)
            return f"the model translates {ways}, not {asked}"
        (only,) = self.known
        asked_for = {"from": (source, only.source), "into": (target, only.target)}
        return "; ".join(
            f"the model translates {way} {has}, not {way} {wanted}"
            for way, (wanted, has) in asked_for.items()
            if wanted and has and wanted != (known_code(has) or has)
        )


def _fits(direction: Direction, source: str | None, target: str | None) -> bool:
    """Whether nothing that is asked for contradicts what is known."""
    pairs = ((source, direction.source), (target, direction.target))
    return all(not wanted or not has or wanted == (known_code(has) or has) for wanted, has in pairs)


def _unspaced(language: str | None) -> bool:
    return (language or "").split("-")[0] in UNSPACED
