"""Subtitles, SubRip (.srt) and WebVTT (.vtt): the texts of cues are translated; everything else stays.

The libraries for these formats write what they understood: `srt` numbers the cues anew and drops empty ones,
`webvtt-py` moves styles and drops the text of the header. So the texts are replaced where they stand. Tests
read the results with both.

A text of several lines is translated as one, and wrapped again. Texts of different cues are never joined:
each must be readable while its cue is shown.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from regard.documents.reading import DecodedText, decoded
from regard.documents.trimming import InlineText, Trimmed, has_words, trimmed
from regard.documents.wrapping import is_wide, width, wrapped
from regard.errors import CorpusError
from regard.text.marked import Marked

COMFORTABLE = 42
"""Columns of a line; a text of one line is written in two if it is wider."""
SHORTEST = 10
"""Columns; no lines shorter than this are made."""

_LINE = re.compile(r"([^\r\n]*)(\r\n|\n|\r|\Z)")
_TIME = r"-?(?:\d+:)?\d{1,2}:\d{1,2}(?:[,.]\d{1,3})?"
_TIMES = re.compile(rf"\s*{_TIME}\s*-->\s*{_TIME}(?:\s.*)?")
_DAMAGED_TIMES = re.compile(r"\s*-?\d+:\d\S*\s*-+>")
_TAG = re.compile(
    r"<(?P<end>/)?(?P<name>i|b|u|s|em|strong|font|c|v|lang|ruby|rt)(?:[.\s][^<>\n]*)?>"
    r"|<[\d:.]+>|\{\\[^{}\n]*\}|\{/?[ibusy](?::[^{}\n]*)?\}",
    re.IGNORECASE,
)
_MARK = re.compile(r"\s*(?:[-–—‐](?!\d)\s*|[♪♫#]+\s*|>>+\s*)")
"""Before what another person says, or before a song."""
_NOTES = re.compile(r"\s*[♪♫#]+\s*\Z")


@dataclass(frozen=True, slots=True)
class _Text:
    """A text of a cue: all of it, or what one person says."""

    start: int
    end: int
    """Its place in the file."""
    lines: int
    edges: Trimmed


class Subtitles:
    """A file with subtitles."""

    notes: Sequence[str] = ()

    def __init__(self, file: DecodedText, texts: Sequence[_Text], escape: Callable[[str], str]) -> None:
        self._file, self._texts, self._escape = file, texts, escape
        # The first line break; a file whose line breaks differ keeps them outside of translations.
        ends = _LINE.match(file.text)
        self._line_break = (ends[2] if ends else "") or "\n"
        self.segments: Sequence[Marked] = [each.edges.inner for each in texts]

    def written(self, translations: Sequence[Marked], language: str = "") -> bytes:  # noqa: ARG002
        """The file with translations. It does not name a language."""
        pieces, place = [], 0
        for text, translation in zip(self._texts, translations, strict=True):
            if translation == text.edges.inner:
                continue
            count = _lines(translation.text, text.lines)
            lines = text.edges.around(wrapped(translation, count, self._line_break))
            pieces += [self._file.text[place : text.start], lines.written(self._escape)]
            place = text.end
        return self._file.encoded("".join([*pieces, self._file.text[place:]]))


def read(content: bytes) -> Subtitles:
    """Read subtitles of either format.

    Raises:
        CorpusError: there are no cues, or the times of one are damaged; the message names the line.
    """
    file = decoded(content)
    lines = [(match[1], match.start(), match.end(1)) for match in _LINE.finditer(file.text)]
    is_vtt = re.match(r"WEBVTT(?:[ \t\r\n]|\Z)", file.text) is not None
    for number, (line, _, _) in enumerate(lines, 1):
        if _DAMAGED_TIMES.match(line) and not _TIMES.fullmatch(line):
            problem = f"line {number}: the times of a subtitle are damaged: {line.strip()[:60]}"
            raise CorpusError(problem, code="damaged_file")
    if file.text.strip() and not is_vtt and not any(_TIMES.fullmatch(line) for line, _, _ in lines):
        problem = "line 1: is not a subtitle file: there are no times (00:00:01,000 --> 00:00:02,000)"
        raise CorpusError(problem, code="damaged_file")
    groups = (group for cue in _cues(lines, is_vtt) for group in _groups(cue, lines))
    found = [_text(group, lines, is_vtt) for group in groups]
    spoken = [each for each in found if has_words(each.edges.inner.text)]
    return Subtitles(file, spoken, _escaped if is_vtt else str)


_Lines = Sequence[tuple[str, int, int]]
"""Lines with their places, without line breaks."""


def _cues(lines: _Lines, is_vtt: bool) -> Iterator[range]:
    """The lines of text of each cue."""
    # Where the next line that is not empty is: texts of SubRip may have empty lines.
    filled = len(lines)
    next_filled = [filled] * (len(lines) + 1)
    for i in range(len(lines) - 1, -1, -1):
        filled = i if lines[i][0].strip() else filled
        next_filled[i] = filled
    i = 0
    while i < len(lines):
        i += 1
        if not _TIMES.fullmatch(lines[i - 1][0]):
            continue
        start = i
        while i < len(lines) and not _ends(lines, i if is_vtt else next_filled[i], is_vtt):
            i += 1
        yield range(start, i)


def _ends(lines: _Lines, i: int, is_vtt: bool) -> bool:
    """Whether the text of a cue ends before this line: at an empty one, or at the number of the next cue."""
    if i == len(lines):
        return True
    line = lines[i][0]
    if is_vtt or _TIMES.fullmatch(line):
        return not line or _TIMES.fullmatch(line) is not None
    following = lines[i + 1][0] if i + 1 < len(lines) else ""
    return line.strip().isdecimal() and _TIMES.fullmatch(following) is not None


def _groups(cue: range, lines: _Lines) -> list[list[int]]:
    """The lines of a cue that are one text: a dash, a voice or an empty line begins another one."""
    groups: list[list[int]] = []
    for i in cue:
        bare = _TAG.sub("", lines[i][0])
        if not bare.strip():
            groups.append([])
        elif not groups or _MARK.match(bare) or re.match(r"<v[.\s]", lines[i][0]):
            groups.append([i])
        else:
            groups[-1].append(i)
    return [group for group in groups if group]


def _text(group: list[int], lines: _Lines, is_vtt: bool) -> _Text:
    found = InlineText()
    for i in group:
        line = lines[i][0]
        if found.text and (first := _TAG.sub("", line).lstrip()):
            found.text = found.text.rstrip()
            joined = is_wide(found.text[-1]) and is_wide(first[0])
            found.add_text("" if joined else " ")
            line = line.lstrip()
        _add_line(found, line, is_vtt)
    return _Text(lines[group[0]][1], lines[group[-1]][2], len(group), trimmed(found.marked))


def _add_line(found: InlineText, line: str, is_vtt: bool) -> None:
    """Append a line; marks at its edges are tags."""
    place, is_start = 0, not found.text
    for match in [*_TAG.finditer(line), None]:
        text = line[place : match.start() if match else len(line)]
        if is_start and (mark := _MARK.match(text)):
            found.add_tag(mark[0])
            text = text[mark.end() :]
        is_start = is_start and not text.strip()
        end = _NOTES.search(text)
        text = text[: end.start()] if end else text
        found.add_text(html.unescape(text) if is_vtt else text)
        if end:
            found.add_tag(end[0])
        if match is None:
            break
        place, name = match.end(), (match["name"] or "").lower()
        found.add_tag(match[0], opens="" if match["end"] else name, closes=name if match["end"] else "")


def _lines(text: str, lines: int) -> int:
    """Into how many lines a translation is wrapped."""
    columns = width(text)
    fewest = -(-columns // COMFORTABLE)
    return max(min(lines, max(1, columns // SHORTEST)), min(fewest, max(lines, 2)))


def _escaped(text: str) -> str:
    return html.escape(text, quote=False).replace("\xa0", "&nbsp;")
