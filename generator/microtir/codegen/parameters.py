"""Weights in a file of their own: where each lies in it, what identifies it, and its bytes.

The layout is documented in runtime_crt/include/microtir/parameters.h.
"""

from __future__ import annotations

import binascii
import hashlib
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from microtir.codegen.constants import ConstantArray
from microtir.codegen.program import Program

_MAGIC = b"MTIP"
_HEADER = 16  # bytes: magic, identity, size, checksum
_ALIGNMENT = 4  # at least, so that the header's numbers are aligned


def file_name(program: Program) -> str:
    """What the file is called."""
    return f"{program.name}.params"


def alignment(arrays: Iterable[ConstantArray]) -> int:
    """What the file must be aligned to where it is read, in bytes."""
    return max((_ALIGNMENT, *(array.alignment for array in arrays)))


def file_size(arrays: Sequence[ConstantArray]) -> int:
    """Bytes of the file."""
    places = offsets(arrays)
    return max((_HEADER, *(places[array.name] + array.bytes for array in arrays)))


def offsets(arrays: Sequence[ConstantArray]) -> Mapping[str, int]:
    """Where each array begins, in bytes from the start of the file."""
    places: dict[str, int] = {}
    end = _HEADER
    for array in arrays:
        places[array.name] = -(-end // array.alignment) * array.alignment
        end = places[array.name] + array.bytes
    return places


def identity(program: Program, code: Iterable[str]) -> str:
    """A number of the code that reads the file: other values for the same code may replace it."""
    digest = hashlib.sha256(program.name.encode())
    for text in code:
        digest.update(text.encode())
    for array in program.constants:
        digest.update(array.declaration.encode())
    return f"0x{digest.hexdigest()[:8]}"


def file_bytes(program: Program, number: str) -> bytes:
    """The file, whose identity is `number`; numbers in it are little-endian."""
    places = offsets(program.constants)
    data = bytearray(file_size(program.constants))
    for array in program.constants:
        values = array.data.astype(np.dtype(array.dtype.value).newbyteorder("<"))
        start = places[array.name]
        data[start : start + array.bytes] = values.tobytes()
    checksum = binascii.crc32(data[_HEADER:])
    numbers = (int(number, 16), len(data), checksum)
    data[:_HEADER] = _MAGIC + b"".join(n.to_bytes(4, "little") for n in numbers)
    return bytes(data)
