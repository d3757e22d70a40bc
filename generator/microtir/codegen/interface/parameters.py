"""Lays out the file of weights: where each lies in it, what identifies it, and its bytes.

The layout is documented in runtime_crt/include/microtir/parameters.h.
"""

from __future__ import annotations

import binascii
import hashlib
from collections.abc import Iterable, Iterator, Sequence

from microtir.codegen.interface.parts import Draft
from microtir.codegen.printer.constants import FILE_HEADER, ConstantArray, write_arrays
from microtir.codegen.program import CProgram
from microtir.codegen.source_file import DataFile

_MAGIC = b"MTIP"
_ALIGNMENT = 4  # at least, so that the header's numbers are aligned


def file_name(program: CProgram) -> str:
    """Return what the file is called."""
    return f"{program.name}.params"


def alignment(arrays: Iterable[ConstantArray]) -> int:
    """Return what the file must be aligned to where it is read, in bytes."""
    return max((_ALIGNMENT, *(array.alignment for array in arrays)))


def file_size(arrays: Sequence[ConstantArray]) -> int:
    """Return the bytes of the file."""
    return max((FILE_HEADER, *(array.end for array in arrays)))


def identity(program: CProgram, code: Iterable[str]) -> str:
    """Return a number of the code that reads constants.

    Others for the same code may replace them.
    """
    digest = hashlib.sha256(program.name.encode())
    for text in code:
        digest.update(text.encode())
    for array in program.constants:
        digest.update(f"{array.declaration} {array.pool} {array.offset}".encode())
    return f"0x{digest.hexdigest()[:8]}"


def file_bytes(program: CProgram, number: str) -> bytes:
    """Return the file, whose identity is `number`; numbers in it are little-endian."""
    data = bytearray(file_size(program.constants))
    write_arrays(data, program.constants)
    checksum = binascii.crc32(data[FILE_HEADER:])
    numbers = (int(number, 16), len(data), checksum)
    data[:FILE_HEADER] = _MAGIC + b"".join(n.to_bytes(4, "little") for n in numbers)
    return bytes(data)


def data(draft: Draft) -> Iterator[DataFile]:
    """Yield the file."""
    yield DataFile(file_name(draft.program), file_bytes(draft.program, draft.identity))
