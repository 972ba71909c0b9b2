"""When two texts count as one: written alike but for case, width, spaces and punctuation.

Only comparison uses these forms. What a model reads and writes is the text as it stands: `Subwords`
normalises nothing but canonically equivalent spellings (NFC).
"""

from __future__ import annotations

import re
from unicodedata import normalize

# To `re`, marks are no part of a word; in the scripts from Hebrew to Myanmar, and in Khmer, they are vowels.
# So those blocks stay whole, with what punctuation they have of their own.
_SIGNS = re.compile(r"[^\w\n\u0300-\u036f\u0590-\u109f\u1780-\u1aff\u3099\u309a]+")
_ASCII_SIGNS = bytes(i for i in range(128) if not chr(i).isalnum() and chr(i) != "\n")


def comparison_forms(texts: list[str]) -> list[str]:
    """The form in which each text is compared; of one that is all punctuation, the text itself.

    Many texts are done in one sweep, which is several times as fast; none of them may hold a line break.
    """
    if not texts:
        return []
    together = "\n".join(texts).encode().translate(None, _ASCII_SIGNS).decode()
    if not together.isascii():
        # Signs go first: without full-width punctuation, text is mostly normal, and that is soon seen.
        together = normalize("NFKC", _SIGNS.sub("", together))
    forms = together.casefold().split("\n")
    assert len(forms) == len(texts), "a text to be compared holds a line break"
    return [form or text for form, text in zip(forms, texts, strict=True)]


def composed(text: str) -> str:
    """A text with letters and their accents composed where Unicode has a sign for both (NFC)."""
    return text if text.isascii() else normalize("NFC", text)
