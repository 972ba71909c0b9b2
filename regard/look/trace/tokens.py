"""A text as a model reads or writes it: tokens with their spans in the text, and the words that they form.

Spans count characters of `Tokens.text` and are contiguous: together the tokens spell the text. A character
that is spelt in bytes belongs to all tokens that have some of its bytes, so it is always shown whole.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate, chain, groupby
from typing import Any

from regard.errors import RequestError
from regard.text.vocabularies.vocabulary import Vocabulary

SPACE = "▁"
"""How SentencePiece writes a space."""
_SHOWN_SPACE = "␣"
"""How a token that is only a space is displayed."""
_NUMBERS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
_SPECIAL = re.compile(
    r"</?s>|\[CLS\]|<2[^<>]+>|"  # ours
    r"\[(?:SEP|PAD|MASK)\]|<(?:pad|mask|\|endoftext\|)>|>>[^<>]+<<"  # of models from elsewhere
)
_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
_BYTES = re.compile(f"(?:{_BYTE.pattern})+")
_UNKNOWN, _UNKNOWN_TEXT = "<unk>", " ⁇ "
"""Never the result of encoding, but a model may write it; SentencePiece decodes it to this text."""

# Scripts without spaces between words, such as Chinese or Thai: every token is a word.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1780-\u17ff\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]"
)
_INSIDE_WORDS = "'’-"

Spelt = tuple[str, list[tuple[int, int]]]
"""A text, and the span of each token in it."""


def token_ids(ids: Sequence[int], vocab_size: int) -> tuple[int, ...]:
    """Token ids from outside, checked.

    Raises:
        RequestError: one of them is not in the vocabulary; it could crash an accelerator.
    """
    for each in ids:
        if not hasattr(each, "__index__") or not 0 <= each < vocab_size:
            what = f"no token {each!r}; tokens are numbered 0 to {vocab_size - 1}"
            raise RequestError(what, code="unknown_token")
    return tuple(map(int, ids))


@dataclass(frozen=True, slots=True)
class Token:
    """One subword of a text."""

    id: int
    piece: str
    """As the vocabulary writes it."""
    text: str
    """As it is displayed: without its space, or `␣`; the bytes of one character as `é₁` and `é₂`."""
    start: int
    end: int
    """The span of its characters, including its space."""
    special: bool
    """Whether it stands for no text: `<s>`, `</s>`, `[CLS]`, a language tag."""
    word: int
    """The index of its word."""


@dataclass(frozen=True, slots=True)
class Word:
    """Consecutive tokens that form a word."""

    text: str
    first: int
    last: int
    """Indices of its first and its last token."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of one side, and the text that they spell."""

    text: str
    tokens: tuple[Token, ...]

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, i: int) -> Token:
        return self.tokens[i]

    @property
    def ids(self) -> tuple[int, ...]:
        """The ids that the model read."""
        return tuple(token.id for token in self.tokens)

    @property
    def texts(self) -> list[str]:
        """The display text of each token."""
        return [token.text for token in self.tokens]

    @property
    def words(self) -> list[Word]:
        """Subwords joined to words; in a script without spaces, token by token."""
        words = []
        for _, group in groupby(enumerate(self.tokens), key=lambda each: each[1].word):
            members = [*group]
            (first, head), (last, tail) = members[0], members[-1]
            text = head.text if head.special else self.text[head.start : tail.end].strip()
            words.append(Word(text or head.text, first, last))
        return words

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {"text": self.text, "tokens": [asdict(token) for token in self.tokens]}

    @staticmethod
    def from_json(values: dict[str, Any]) -> Tokens:
        """Undo `to_json`."""
        return Tokens(values["text"], tuple(Token(**token) for token in values["tokens"]))


def read_tokens(subwords: Vocabulary, ids: Sequence[int]) -> Tokens:
    """The tokens of ids, including special ones, with their spans in the text."""
    pieces = subwords.pieces(ids)
    text, spans = "", []
    for in_bytes, run in groupby(pieces, key=lambda piece: bool(_BYTES.fullmatch(piece))):
        some = [*run]
        spelt, places = _letters(some) if in_bytes else _plain(some, at_start=not text)
        spans += [(len(text) + start, len(text) + end) for start, end in places]
        text += spelt
    special = [bool(_SPECIAL.fullmatch(piece)) for piece in pieces]
    numbers = _numbers(spans)
    words = _word_numbers(text, spans, special)
    tokens = [
        Token(int(i), piece, _display(text[start:end], piece) + number, start, end, is_special, word)
        for i, piece, (start, end), is_special, word, number in zip(
            ids, pieces, spans, special, words, numbers, strict=True
        )
    ]
    return Tokens(text, tuple(tokens))


def display_piece(piece: str) -> str:
    """A single piece as it is displayed: without its space, or `␣`; an ASCII byte as its character."""
    if (byte := _BYTE.fullmatch(piece)) and (code := int(byte[1], 16)) < 0x80:
        return visible(chr(code)).strip() or piece
    return piece.replace(SPACE, " ").strip() or piece.replace(SPACE, _SHOWN_SPACE)


def _plain(pieces: list[str], *, at_start: bool) -> Spelt:
    """The text of pieces. SentencePiece puts a space before every text; it is left out."""
    text, places = "", []
    for piece in pieces:
        spelt = _UNKNOWN_TEXT if piece == _UNKNOWN else piece.replace(SPACE, " ")
        if _SPECIAL.fullmatch(piece):
            spelt = ""
        elif at_start:
            spelt, at_start = spelt if piece == _UNKNOWN else spelt.removeprefix(" "), False
        places.append((len(text), len(text) + len(spelt)))
        text += spelt
    return text, places


def _letters(pieces: list[str]) -> Spelt:
    """The text of byte pieces; a byte that is part of no character is U+FFFD."""
    numbers = [[int(byte, 16) for byte in _BYTE.findall(piece)] for piece in pieces]
    data, text, letter_of = bytes(chain(*numbers)), "", list[int]()
    while (i := len(letter_of)) < len(data):
        width = next((n for n in (1, 2, 3, 4) if _is_letter(data[i : i + n])), 0)
        letter_of += [len(text)] * (width or 1)
        text += data[i : i + width].decode() if width else "\ufffd"
    ends = accumulate(map(len, numbers))
    places = zip(ends, numbers, strict=True)
    return text, [(letter_of[end - len(some)], letter_of[end - 1] + 1) for end, some in places]


def _is_letter(data: bytes) -> bool:
    try:
        return len(data.decode()) == 1
    except UnicodeDecodeError:
        return False


def _display(spelt: str, piece: str) -> str:
    return spelt.strip() or (_SHOWN_SPACE if spelt or piece == SPACE else piece)


def _numbers(spans: Sequence[tuple[int, int]]) -> list[str]:
    """The index of each token among those that spell one character together; empty for others."""
    found: list[str] = []
    for (start, end), run in groupby(spans):
        count = len([*run])
        shared = count > 1 and end > start
        found += [str(i).translate(_NUMBERS) if shared else "" for i in range(1, count + 1)]
    return found


def _word_numbers(text: str, spans: Sequence[tuple[int, int]], special: Sequence[bool]) -> list[int]:
    """The word of each token. A token that is only a space belongs to the word after it."""
    numbers: list[int] = []
    before = ""  # last character of the word so far
    for i, (start, end) in enumerate(spans):
        spelt = text[start:end]
        same_letter = i > 0 and spelt and spans[i - 1] == (start, end)
        fresh = (
            i == 0 or special[i] or special[i - 1] or spelt[:1].isspace() or _word_boundary(before, spelt[:1])
        )
        numbers.append((numbers[-1] if numbers else -1) + (1 if fresh and not same_letter else 0))
        before = spelt.strip()[-1:] if spelt.strip() else "" if fresh else before
    return numbers


def _word_boundary(before: str, after: str) -> bool:
    """Whether a word ends between two characters."""
    if not before or not after:
        return False
    if _UNSPACED.match(before) or _UNSPACED.match(after):
        return True
    return _in_word(before) != _in_word(after)


def _in_word(letter: str) -> bool:
    return letter.isalnum() or letter in _INSIDE_WORDS or "\u0300" <= letter <= "\u036f"


_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # control characters, which could change a terminal
    "\u2028-\u202e\u2066-\u2069"  # line separators and direction marks
    "\ud800-\udfff\ufffe\uffff]"  # not characters; invalid in XML
)


def visible(text: str) -> str:
    """A text that is safe to display on one line: control characters as symbols (␛), the rest as �."""
    return _UNSAFE.sub(_sign, text)


def _sign(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else "�"
