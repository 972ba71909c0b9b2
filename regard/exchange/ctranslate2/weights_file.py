"""CTranslate2's weights file, `model.bin`: named arrays, optionally quantised, and aliases of shared ones.

The layout is that of CTranslate2's own `ctranslate2.specs`, which is not used because it imports torch where
torch is installed. A test compares the two byte by byte.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, Literal, assert_never

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Quantisation = Literal["float32", "int8", "int16", "float16", "bfloat16"]

BINARY_VERSION = 6
SPECIFICATION, REVISION = b"TransformerSpec", 7

# numpy has no bfloat16: its bits are stored as unsigned integers, which the format uses for nothing else.
TYPE_NUMBERS = {"float32": 0, "int8": 1, "int16": 2, "int32": 3, "float16": 4, "uint16": 5}


def quantised(variables: Mapping[str, Array], quantisation: Quantisation) -> dict[str, Array]:
    """The variables in a quantisation; an array under several names stays one array.

    With integers, matrices become integers with a scale and other arrays stay; with floats, all arrays are
    rounded. Arrays without a dimension are settings, and stay.
    """
    rounded: dict[int, tuple[Array, Array | None]] = {}
    result: dict[str, Array] = {}
    for name, array in variables.items():
        if id(array) not in rounded:
            rounded[id(array)] = _quantise(array, quantisation, is_matrix=name.endswith("/weight"))
        value, scale = rounded[id(array)]
        result[name] = value
        if scale is not None:
            result[f"{name}_scale"] = scale
    return result


def _quantise(array: Array, quantisation: Quantisation, *, is_matrix: bool) -> tuple[Array, Array | None]:
    if array.ndim == 0:
        return array, None
    match quantisation:
        case "float32":
            return array, None
        case "float16":
            return array.astype(np.float16), None
        case "bfloat16":
            return _bfloat16(array), None
        case "int8":  # one scale per row
            return _integers(array, np.abs(array).max(axis=1), 127, np.int8) if is_matrix else (array, None)
        case "int16":  # one scale; 10 bits, so that sums of products fit into 32
            return _integers(array, np.abs(array).max(), 1 << 10, np.int16) if is_matrix else (array, None)
        case other:
            assert_never(other)


def _integers(
    matrix: Array, largest: Any, most: int, dtype: type[np.signedinteger[Any]]
) -> tuple[Array, Array]:
    """Rows as integers up to `most`, and the scale that they were multiplied by."""
    # A row of zeros, or almost, has no finite scale.
    scale = np.asarray(np.float32(most) / np.where(largest > 1e-30, largest, np.float32(most)), np.float32)
    return np.rint(matrix * scale[..., None]).astype(dtype), scale


def _bfloat16(array: Array) -> Array:
    """The upper halves of float32 numbers, rounded to nearest, ties to even."""
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def to_bytes(variables: Mapping[str, Array]) -> bytes:
    """The content of `model.bin`; an array under several names is written once, under the first name."""
    first: dict[int, str] = {}
    for name in sorted(variables):
        first.setdefault(id(variables[name]), name)
    written = sorted(first.values())
    # CTranslate2 finds the scale of an alias by itself.
    aliases = [
        (name, first[id(array)])
        for name, array in sorted(variables.items())
        if name not in first.values() and not name.endswith("_scale")
    ]
    parts = [struct.pack("<I", BINARY_VERSION), _text(SPECIFICATION), struct.pack("<I", REVISION)]
    parts.append(struct.pack("<I", len(written)))
    for name in written:
        array = variables[name]
        shape = struct.pack(f"<B{array.ndim}I", array.ndim, *array.shape)
        kind = struct.pack("<BI", TYPE_NUMBERS[array.dtype.name], array.nbytes)
        parts += [_text(name.encode()), shape, kind, array.tobytes()]
    parts.append(struct.pack("<I", len(aliases)))
    parts += [_text(alias.encode()) + _text(name.encode()) for alias, name in aliases]
    return b"".join(parts)


def _text(text: bytes) -> bytes:
    return struct.pack("<H", len(text) + 1) + text + b"\0"
