"""Messages of ICU with branches: `{n, plural, one {# file} other {# files}}`.

A branch is translated as a whole sentence, together with the text around the branches, since a piece of a
sentence has no translation. So text around branches moves into them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyicumessageformat import Parser

from regard.documents.strings import add_with_placeholders
from regard.documents.trimming import InlineText
from regard.text.marked import Marked

MAX_SENTENCES = 24
"""Maximum number of sentences of a message; one with more stays as it is."""
_BRANCHED = re.compile(r"\{\s*\w+\s*,\s*(?:plural|selectordinal|select)\s*,")
_KINDS = ("plural", "selectordinal", "select")


def has_branches(text: str) -> bool:
    """Whether a text looks like a message with branches."""
    return _BRANCHED.search(text) is not None


@dataclass(frozen=True, slots=True)
class Message:
    """A message with branches."""

    sentences: tuple[Marked, ...]
    """A sentence for each combination of branches."""
    frame: tuple[str, ...]
    """What is before the first sentence, between two, and after the last one."""

    def written(self, sentences: Sequence[Marked]) -> str:
        """The message with other sentences: choices inside of choices."""
        pieces = [self.frame[0]]
        for sentence, after in zip(sentences, self.frame[1:], strict=True):
            pieces += [sentence.written(_quoted), after]
        return "".join(pieces)


def message(text: str) -> Message | None:
    """The sentences of a message with branches; None if it cannot be understood or has too many."""
    try:
        parsed = Parser({"include_indices": True}).parse(text)
    except SyntaxError:
        return None
    sentences: list[Marked] = []
    frame = [""]
    try:
        for piece in _sentences(parsed, text):
            if isinstance(piece, str):
                frame[-1] += piece
            else:
                sentences.append(piece)
                frame.append("")
                if len(sentences) > MAX_SENTENCES:
                    return None
    except _UnsupportedError:
        return None
    return Message(tuple(sentences), tuple(frame))


class _UnsupportedError(Exception):
    """A message that cannot be written with other sentences."""


def _sentences(nodes: list[Any], text: str) -> Iterator[str | Marked]:
    """Sentences, and what is between them. A node is a text, or a dictionary that describes an argument."""
    place = next((i for i, node in enumerate(nodes) if _has_options(node)), None)
    if place is None:
        yield _sentence(nodes, text)
        return
    choice = nodes[place]
    if choice.get("offset"):  # then # is not the number
        raise _UnsupportedError
    yield f"{{{choice['name']}, {choice['type']},"
    for option, inside in choice["options"].items():
        branch = [*nodes[:place], *inside, *nodes[place + 1 :]]
        if any(map(_has_options, branch)):
            # Inside of another choice, # would be its number.
            branch = [{**node, "hash": False} if _is_hash(node) else node for node in branch]
        yield f" {option} {{"
        yield from _sentences(branch, text)
        yield "}"
    yield "}"


def _has_options(node: Any) -> bool:
    return isinstance(node, dict) and "options" in node


def _is_hash(node: Any) -> bool:
    return isinstance(node, dict) and "hash" in node


def _sentence(nodes: list[Any], text: str) -> Marked:
    found = InlineText()
    for node in nodes:
        if isinstance(node, str):
            if "#" in node:  # whether it is quoted depends on the choices around it
                raise _UnsupportedError
            add_with_placeholders(found, node, _quoted)
        elif _is_hash(node):
            found.add_tag("#" if node["hash"] else f"{{{node['name']}, number}}", is_word=True)
        else:
            found.add_tag(text[node["start"] : node["end"]], is_word=True)
    return found.marked


def _quoted(text: str) -> str:
    """A text in which apostrophes and braces stand for themselves."""
    return re.sub(r"[{}]+", r"'\g<0>'", text.replace("'", "''"))
