"""Normal forms of texts: for comparison, without case, width, spaces and punctuation; and NFC.

Models read and write text as it is: `Subwords` applies NFC only.
"""

from __future__ import annotations

import re
from unicodedata import normalize

# `re` does not count marks as letters, but from Hebrew to Myanmar, and in Khmer, they are vowels. So these
# blocks are kept, including their punctuation.
_SIGNS = re.compile(r"[^\w\n\u0300-\u036f\u0590-\u109f\u1780-\u1aff\u3099\u309a]+")
_ASCII_SIGNS = bytes(i for i in range(128) if not chr(i).isalnum() and chr(i) != "\n")


def comparison_forms(texts: list[str]) -> list[str]:
    """The form of each text for comparison; a text of punctuation only stays as it is.

    All texts are normalised together, which is several times faster; none may contain a line break.
    """
    if not texts:
        return []
    together = "\n".join(texts).encode().translate(None, _ASCII_SIGNS).decode()
    if not together.isascii():
        # Punctuation goes first: most text without full-width punctuation is already normal, which is fast.
        together = normalize("NFKC", _SIGNS.sub("", together))
    forms = together.casefold().split("\n")
    assert len(forms) == len(texts), "a text for comparison contains a line break"
    return [form or text for form, text in zip(forms, texts, strict=True)]


def composed(text: str) -> str:
    """A text in NFC: letters and accents composed where Unicode has a character for both."""
    return text if text.isascii() else normalize("NFC", text)
