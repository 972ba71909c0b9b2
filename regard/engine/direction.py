"""The direction of a translation: source and target language, and the language tag that the model reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from regard.config import TaskConfig
from regard.engine.document.layout import Part
from regard.errors import RequestError
from regard.text.detection import (
    Detected,
    is_in,
    is_written_like,
    language_among,
    other_language,
    words_by_script,
)
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
    """Language tag before the tokens of every input; empty if the model uses none."""

    @property
    def adds_spaces(self) -> bool:
        """Whether the target language puts spaces between sentences and the source language does not."""
        return self.target is not None and _unspaced(self.source) and not _unspaced(self.target)

    @property
    def drops_spaces(self) -> bool:
        """Whether the source language puts spaces between sentences and the target language does not."""
        return self.source is not None and _unspaced(self.target) and not _unspaced(self.source)

    @property
    def without_spaces(self) -> bool:
        """Whether outputs are written without spaces."""
        return _unspaced(self.target)


class Directions:
    """The directions of a model: one, or both between two languages."""

    def __init__(self, task: TaskConfig, subwords: Vocabulary) -> None:
        self.known = tuple(
            Direction(source, target, (subwords.tag_id(target),) if task.has_tags and target else ())
            for source, target in task.directions
        )

    def requested(self, source: str | None, target: str | None) -> Direction | None:
        """The direction between two languages; None if it has to be detected for each text.

        Raises:
            RequestError: the model does not have this direction.
        """
        wanted = [(known_code(code) or code) if code else None for code in (source, target)]
        fitting = [each for each in self.known if _fits(each, *wanted)]
        if not fitting:
            raise RequestError(self._mismatch(*wanted), code="unknown_direction")
        return fitting[0] if len(fitting) == 1 else None

    def detect(self, text: str) -> Direction:
        """The direction of a text by its script; the first one for a text without letters.

        Raises:
            RequestError: the script does not decide it.
        """
        if len(self.known) == 1:
            return self.known[0]
        languages = [each.source or "" for each in self.known]
        language = language_among(text, languages)
        if language is None and words_by_script(text):
            shown = text.strip() if len(text.strip()) <= 40 else f"{text.strip()[:40]}…"
            names = " or ".join(languages)
            raise RequestError(
                f"cannot detect whether {shown!r} is {names}; give the target language with `to`",
                code="unclear_language",
            )
        return next((each for each in self.known if each.source == language), self.known[0])

    def of_document(self, beginning: str) -> Direction | None:
        """The direction of a document by its beginning; None if that is in another language or shows none."""
        languages = [each.source or "" for each in self.known]
        if other_language(beginning, languages) is not None:
            return None
        language = language_among(beginning, languages, most=len(beginning))
        return next((each for each in self.known if language and each.source == language), None)

    def unexpected(self, document: Sequence[Part]) -> dict[int, Detected]:
        """The sentences of a document, by index, that are in none of the source languages."""
        sources = [each.source for each in self.known if each.source]
        return unexpected_sentences(document, sources) if len(sources) == len(self.known) else {}

    def already_translated(self, text: str, direction: Direction) -> bool:
        """Whether a text is in the target language already."""
        languages = [each.target or "" for each in self.known]
        return (
            len(languages) > 1
            and is_in(text, direction.target or "", languages)
            and other_language(text, languages) is None
        )

    def _mismatch(self, source: str | None, target: str | None) -> str:
        if len(self.known) > 1:
            ways = " and ".join(f"from {each.source} into {each.target}" for each in self.known)
            requested = " ".join(
                f"{way} {code}" for way, code in (("from", source), ("into", target)) if code
            )
            return f"the model translates {ways}, not {requested}"
        (only,) = self.known
        requested_and_known = {"from": (source, only.source), "into": (target, only.target)}
        return "; ".join(
            f"the model translates {way} {has}, not {way} {wanted}"
            for way, (wanted, has) in requested_and_known.items()
            if wanted and has and wanted != (known_code(has) or has)
        )


def unexpected_sentences(document: Sequence[Part], languages: Sequence[str]) -> dict[int, Detected]:
    """The sentences of a document, by index, that are in none of several languages, with their languages.

    If the document as a whole is, so are its short sentences, which alone leave it in doubt.
    """
    texts = {i: part.text for i, part in enumerate(document) if part.translated}
    whole = other_language("\n".join(texts.values()), languages) if texts else None
    found = {}
    for i, text in texts.items():
        other = other_language(text, languages) if len(texts) > 1 else whole
        if other is None and whole is not None and is_written_like(text, whole.language):
            other = whole
        if other is not None:
            found[i] = other
    return found


def _fits(direction: Direction, source: str | None, target: str | None) -> bool:
    """Whether the requested languages do not contradict the known ones; either may be None."""
    pairs = ((source, direction.source), (target, direction.target))
    return all(not wanted or not has or wanted == (known_code(has) or has) for wanted, has in pairs)


def _unspaced(language: str | None) -> bool:
    return (language or "").split("-")[0] in UNSPACED
