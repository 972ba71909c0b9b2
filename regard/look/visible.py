"""Text from anywhere, made fit to be shown: what would steer a terminal or break a file becomes a sign."""

import re

_UNFIT = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # control characters: an escape among them could repaint a terminal
    "\u2028-\u202e\u2066-\u2069"  # line separators, and marks that turn the direction of what follows
    "\ud800-\udfff\ufffe\uffff]"  # no characters at all; XML refuses them
)


def visible(text: str) -> str:
    """One line in which control characters are pictures (␛ for an escape) and the rest of the unfit is �."""
    return _UNFIT.sub(_sign, text)


def _sign(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else "�"
