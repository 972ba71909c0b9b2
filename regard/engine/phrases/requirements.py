"""What the output of a sentence must contain: phrases that were asked for, and what is no language."""

from __future__ import annotations

from pathlib import Path

from regard.engine.document.verbatim import verbatim
from regard.engine.options import Options
from regard.engine.phrases.glossary import Glossary, Phrase, read_glossary


class Requirements:
    """What one way to translate asks of outputs."""

    def __init__(self, options: Options, *, translating: bool) -> None:
        """`translating`: whether an output says all that its source says; a summary may leave things out."""
        given = options.glossary
        terms = read_glossary(given) if isinstance(given, str | Path) else given
        self._glossary = Glossary(terms, options.keep)
        self._all_is_said = translating and not options.sample

    def phrases(self, source: str) -> list[Phrase]:
        """What a glossary, or `keep`, asks for."""
        return self._glossary.phrases(source) if self._glossary else []

    def verbatim(self, source: str) -> list[str]:
        """What has to come out as it went in; each once."""
        return list(dict.fromkeys(verbatim(source))) if self._all_is_said else []
