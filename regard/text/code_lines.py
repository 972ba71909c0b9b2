"""The lines of a text, and those that belong to blocks of code or to formulas."""

from __future__ import annotations

import re

_BREAK = re.compile("(\r\n|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029])")
_FENCE = re.compile(r"(?:\s|[>*+-]\s|\d{1,3}[.)]\s)*(`{3,}(?=[^`]*\Z)|~{3,})")
_FORMULA = re.compile(r"(?:\s|>\s)*(\$\$|\\\[|\\begin\{([A-Za-z]+\*?)\})")
_INDENTED = re.compile(r"(?: {4}| {0,3}\t)[ \t]*(?=\S)")
# What shows that a line is code; and what shows it unless the line ends like a sentence.
_CODE_SIGN = re.compile(
    r"[{}=<>|\\]|\w_\w|\$[A-Za-z_({]|&&|::|;\s*\Z|\s(?:#|//|/\*)|\A\s*(?:#|//|/\*|--|>>>|@\w)"
)
_CODE_WORD = re.compile(
    r"\w\(|\s--?\w|:\s*\Z|\A\s*(?:import|from|def|class|return|if|for|while|else|try|with|let|const|var|func|fn|"
    r"print|echo|sudo|cd|ls|git|pip|npm|apt|make|docker|python3?|regard|select|SELECT)\b"
)
_SENTENCE_END = re.compile(r"[.,!?。，！？…]\s*\Z")


class CodeLines:
    """Tells the lines of code blocks and formulas of one document, which are given to it one after another.

    A fence, of backticks or tildes, and a formula of several lines last until they are closed, or to the end.
    Indented code begins after an empty line, with a line that looks like code.
    """

    def __init__(self) -> None:
        self._closed_by: re.Pattern[str] | None = None
        self._after_blank, self._indented = True, False

    def is_code(self, line: str) -> bool:
        """Whether the next line stays as it is."""
        if self._closed_by is not None:
            if self._closed_by.search(line):
                self._closed_by = None
            return True
        formula: re.Match[str] | None = None
        if fence := _FENCE.match(line):
            mark = fence[1]
            self._closed_by = re.compile(rf"\A(?:\s|>\s?)*{mark[0]}{{{len(mark)},}}\s*\Z")
        elif formula := _FORMULA.match(line):
            end = re.escape(
                f"\\end{{{formula[2]}}}" if formula[2] else {"$$": "$$", "\\[": "\\]"}[formula[1]]
            )
            if re.compile(end).search(line, formula.end()):
                formula = None  # all on one line: the sentence around it is translated
            else:
                self._closed_by = re.compile(end)
        blank = not line.strip()
        if not blank:
            begins = self._after_blank and _looks_like_code(line)
            self._indented = _INDENTED.match(line) is not None and (self._indented or begins)
        self._after_blank = blank
        return fence is not None or formula is not None or self._indented


def _looks_like_code(line: str) -> bool:
    if _CODE_SIGN.search(line):
        return True
    return _CODE_WORD.search(line) is not None and not _SENTENCE_END.search(line)


def split_lines(text: str) -> list[str]:
    """The lines of a text; every second element is a line break."""
    return _BREAK.split(text)


def without_breaks(text: str) -> str:
    """Replace line breaks by spaces: a model may output one, but the number of lines must not change."""
    return _BREAK.sub(" ", text)
