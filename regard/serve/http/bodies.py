"""Checks of a request's body before it is parsed: content type, and the structure of JSON.

Parsing takes memory and time by the number of values, not of bytes: a body of 2 MB may have a million values.
Every check here is a few passes in C over the bytes, so it may run on the event loop.
"""

from __future__ import annotations

import re

from regard.serve.http.errors import ApiError, bad_value, too_large
from regard.serve.http.limits import Limits

JSON, FORM, MULTIPART = "application/json", "application/x-www-form-urlencoded", "multipart/form-data"
_STRING = re.compile(rb'"[^"]*"?')
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_FIRST, _SECOND = rb"\\u[dD][89abAB][0-9a-fA-F]{2}", rb"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_HALF_PAIR = re.compile(rb"%s(?!%s)|(?<!%s)%s" % (_FIRST, _SECOND, _FIRST, _SECOND))


def media_type(content_type: str) -> str:
    """The type in a Content-Type header, without its parameters."""
    return content_type.partition(";")[0].strip().lower()


def check_media_type(content_type: str, *, forms: bool) -> None:
    """Check that a body is of a type that the route reads; pages of other sites can send others.

    Raises:
        ApiError: it is not.
    """
    if media_type(content_type) in ((JSON, FORM, MULTIPART) if forms else (JSON,)):
        return
    raise ApiError(415, f"Send the header `Content-Type: {JSON}`.", code="not_json")


def check_json(body: bytes, limits: Limits) -> None:
    """Check that a JSON body is text, and not too large or too deep to parse.

    Raises:
        ApiError: it is not.
    """
    if b"\0" in body or not _is_utf8(body):  # Python's parser also takes UTF-16 and UTF-32
        raise ApiError(400, "The body is not JSON in UTF-8.", code="bad_json")
    # Without escaped backslashes and quotes, every quote begins or ends a string.
    plain = body.replace(rb"\\", b"  ").replace(rb"\"", b"  ")
    if plain.count(b'"') > 4 * limits.json_values + 2:  # a name and a value have two each
        raise _too_many_values(limits)
    structure = _STRING.sub(b"", plain)
    if sum(map(structure.count, (b",", b"[", b"{"))) > limits.json_values:
        raise _too_many_values(limits)
    depth = 0
    for bracket in structure.translate(None, _NOT_BRACKETS):
        depth += 1 if bracket in b"[{" else -1
        if depth > limits.json_depth:
            raise too_large(f"A body may have {limits.json_depth} lists or objects inside each other.")
    if _HALF_PAIR.search(plain):
        raise bad_value("A text contains half a surrogate pair, which is not a character.")


def _too_many_values(limits: Limits) -> ApiError:
    # Not a variable of its caller, whose traceback would keep the body until cycles are collected.
    return too_large(f"A body may have {limits.json_values:,} values; this one has more.")


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True
