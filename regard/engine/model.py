"""A model that translates, scores and streams text; `regard.load` opens one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from pathlib import Path
from typing import Any, overload

from regard.config import DecodingConfig, TaskConfig
from regard.config.task import TEMPLATES
from regard.engine.aligner import Aligner
from regard.engine.direction import Directions
from regard.engine.engines.fallback import Engines
from regard.engine.options import Options
from regard.engine.result import Result, Score
from regard.engine.translator import Translator
from regard.errors import RequestError, TooLongError
from regard.text.vocabularies.vocabulary import Vocabulary

WINDOW_TEXTS = 4096
"""Texts of an iterator that are translated together: enough to sort by length and keep all cores busy …"""
WINDOW_CHARACTERS = 1 << 20
"""… and few enough to be held in memory, however long they are."""


class Model:
    """A loaded translator: text in, text out."""

    def __init__(
        self,
        engines: Engines,
        subwords: Vocabulary,
        *,
        max_length: int,
        decoding: DecodingConfig | None = None,
        task: TaskConfig | None = None,
        folders: Sequence[Path] = (),
        device: str = "auto",
    ) -> None:
        self.subwords = subwords
        self.max_length = max_length
        """Tokens that the model reads or writes, one for the end among them."""
        self.decoding, self.task = decoding or DecodingConfig(), task or TaskConfig()
        self.directions = Directions(self.task, subwords)
        self.folders, self.device = tuple(folders), device
        """Where it came from, and what torch is to run it on."""
        self._engines = engines
        self._aligned_by: Aligner | None = None

    @overload
    def translate(self, texts: str, **options: Any) -> Result: ...
    @overload
    def translate(self, texts: Sequence[str], **options: Any) -> list[Result]: ...
    @overload
    def translate(self, texts: Iterable[str], **options: Any) -> Iterator[Result]: ...
    def translate(
        self, texts: str | Iterable[str], **options: Any
    ) -> Result | list[Result] | Iterator[Result]:
        """Translate a text, a list of texts, or any number of texts as they come.

        A text may be a document: its sentences are translated, its layout stays.

        Args:
            texts: a text gives one result, a list a list, and an iterator an iterator, in the same order.
                Of an iterator, a few thousand texts are taken at a time.
            options: the fields of `Options`: `to`, `beam_size`, `n_best`, `glossary`, `keep` and others.

        Raises:
            RequestError: what is asked for cannot be done, or a text cannot be read.
        """
        translator = self.translator(**options)
        if isinstance(texts, str):
            return translator([texts])[0]
        results = (result for window in _windows(texts) for result in translator(window))
        return list(results) if isinstance(texts, Sequence) else results

    def stream(self, text: str, **options: Any) -> Iterator[str]:
        """The translation of a text, piece by piece as it is found, each made of whole characters.

        Tokens are the likeliest, or drawn; there is no beam, and no second try. A sentence with required
        phrases comes whole.
        """
        return self.translator(**options).stream(text)

    def score(self, sources: Sequence[str], targets: Sequence[str], *, to: str | None = None) -> list[Score]:
        """How likely each target is as the translation of its source, as it stands and in one piece.

        Args:
            sources: the texts to translate.
            targets: their translations.
            to: the language of the targets; where a model knows both directions, else each source tells.

        Raises:
            RequestError: the lists differ in length, a text is too long for the model, or its language does
                not fit.
        """
        if len(sources) != len(targets):
            raise RequestError(f"{len(sources)} sources and {len(targets)} targets: one of each is a pair")
        read = [self.read(text, to=to) for text in sources]
        encoded = [read, [tuple(ids.tolist()) for ids in self.subwords.outputs.encode(list(targets))]]
        for i, pair in enumerate(zip(*encoded, strict=True), start=1):
            if (longest := max(map(len, pair))) >= self.max_length:
                most = f"the model reads {self.max_length - 1:,} at most"
                raise TooLongError(f"pair {i}: a text has {longest:,} tokens, and {most}")
        scored = zip(encoded[1], self._engines.first.score(*encoded), strict=True)
        return [
            Score(log_prob=sum(each), tokens=tuple(self.subwords.pieces(ids)), token_scores=each)
            for ids, each in scored
        ]

    def read(self, text: str, *, to: str | None = None) -> tuple[int, ...]:
        """The tokens that the model reads of one text, in one piece; with a tag where it needs one.

        Raises:
            RequestError: the model does not translate into that language, or the text does not tell its own.
        """
        text = self.as_read(text)
        direction = self.directions.asked(None, to) or self.directions.of(text)
        return (*direction.tag, *self.subwords.encode_one(text).tolist())

    def as_read(self, text: str) -> str:
        """A text as the model was trained to read it."""
        return text

    @property
    def engines(self) -> Engines:
        """What runs it."""
        return self._engines

    def run_by(self, engines: Engines, aligner: Aligner | None = None) -> Model:
        """The same model, run by others; and its words aligned by others, where somebody is named for it."""
        other = copy(self)
        other._engines, other._aligned_by = engines, aligner
        return other

    def translator(self, **options: Any) -> Translator:
        """What translates lists of texts in one way: for those who call it many times."""
        try:
            asked = Options(**options)
        except TypeError as error:
            raise RequestError(f"{error}; the options are {', '.join(Options.__slots__)}") from None
        aligner = (self._aligned_by or self.aligner()) if asked.alignment else None
        return Translator(
            self._engines,
            self.subwords,
            asked,
            max_length=self.max_length,
            decoding=self.decoding,
            directions=self.directions,
            aligner=aligner,
            placer=self._placer,
            as_read=self.as_read if self.task.name in TEMPLATES else None,
        )

    def _placer(self) -> Aligner | None:
        """Who tells where phrases of a glossary belong; nobody where words cannot be aligned."""
        try:
            return self._aligned_by or self.aligner()
        except RequestError:
            return None

    def aligner(self) -> Aligner:
        """Who aligns words.

        Raises:
            RequestError: nobody can.
        """
        raise RequestError("words are aligned by looking inside: open the model with regard.load")


def _windows(texts: Iterable[str]) -> Iterator[list[str]]:
    window: list[str] = []
    characters = 0
    for text in texts:
        if not isinstance(text, str):
            raise RequestError(f"expected a text, got {type(text).__name__}: {text!r:.40}")
        window.append(text)
        characters += len(text)
        if len(window) >= WINDOW_TEXTS or characters >= WINDOW_CHARACTERS:
            yield window
            window, characters = [], 0
    if window:
        yield window
