"""The text of a file, and its encoding, so that the translation is written in the same one."""

from __future__ import annotations

import codecs
from typing import NamedTuple

from regard.errors import CorpusError
from regard.text.files import NOT_TEXT
from regard.text.files.lines import not_utf_8

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class DecodedText(NamedTuple):
    """A text, and how it is encoded."""

    text: str
    encoding: str = "utf-8"
    mark: bytes = b""
    """The byte order mark before it."""

    def encoded(self, text: str, errors: str = "strict") -> bytes:
        """Another text in the same encoding."""
        return self.mark + text.encode(self.encoding, errors)


def decoded(content: bytes, encoding: str = "utf-8") -> DecodedText:
    """The text of a file in UTF-8, in UTF-16 with a byte order mark, or in a declared encoding.

    Raises:
        CorpusError: it is in another encoding, or no text.
    """
    if kind := next((kind for sign, kind in NOT_TEXT.items() if content.startswith(sign)), None):
        raise CorpusError(f"is {kind}, not text", code="not_text")
    mark, encoding = next((each for each in _MARKS if content.startswith(each[0])), (b"", encoding))
    try:
        return DecodedText(content[len(mark) :].decode(encoding), encoding, mark)
    except UnicodeDecodeError as error:
        if encoding == "utf-8":
            problem = not_utf_8(content, len(mark) + error.start, 1, "line").replace(":", " ", 1)
        else:
            problem = f"byte {len(mark) + error.start + 1} is not {encoding}"
        raise CorpusError(problem, code="not_utf_8") from None
