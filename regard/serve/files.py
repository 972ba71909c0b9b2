"""Files that clients send: how they are read, and what their translations are called; no name is opened."""

from __future__ import annotations

import re
from collections.abc import Callable

from regard.serve.html.pages import translate_pages
from regard.serve.http.errors import Refusal, bad_value
from regard.serve.served import Catalogue
from regard.serve.translating import Asked, Translated, translate
from regard.serve.work.job import Job

FORMATS: dict[str, Callable[[Catalogue, Job, Asked], list[Translated]]] = {
    ".txt": translate,
    ".html": translate_pages,
    ".htm": translate_pages,
}
"""How each kind of file is translated, by the end of its name."""


def kind_of(name: str) -> str:
    """The end of a file's name, in small letters.

    Raises:
        Refusal: nobody here reads such files.
    """
    kind = next((each for each in FORMATS if name.lower().endswith(each)), None)
    if kind is None:
        raise bad_value(f"Files are {', '.join(FORMATS)}, by the end of their names.", "file")
    return kind


def text_of(content: bytes) -> str:
    """The text of a file.

    Raises:
        Refusal: it is not in UTF-8.
    """
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"The file is no text in UTF-8: byte {error.start + 1} does not belong there."
        raise Refusal(400, "bad_file", message, param="file") from None


def renamed(name: str, target: str) -> str:
    """What the translation of a file is called: its own name without folders, and the language."""
    kind = kind_of(name)
    stem = re.split(r"[/\\]", name)[-1][: -len(kind)]
    known = re.sub(r"[^\w.-]+", "_", stem).strip("._")[:80] or "file"
    return f"{known}_{re.sub('[^A-Za-z-]', '', target)}{kind}"
