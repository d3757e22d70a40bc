"""Declares and reads constants that lie in a flash which ordinary loads cannot reach (AVR).

There a `const` array is copied to RAM by the start-up code, which has a few kilobytes. So the
arrays go to a section that stays in flash, and every read of one is a macro of the weights header.
Other compilers see plain arrays through the same macros, so that the same C runs on a host.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from microtir.codegen.printer.c_types import C_TYPES
from microtir.codegen.printer.constants import ConstantArray
from microtir.codegen.program import CProgram
from microtir.config import Feature
from microtir.dtype import DType
from microtir.errors import UsageError

# An object may not be larger than half of what size_t counts, which has 16 bits there.
MAX_ARRAY_BYTES = 32767


@dataclass(frozen=True, slots=True)
class FlashReader:
    """A macro that reads one element: `far` on parts with over 64 KB of flash, `near` on others.

    Both expressions are about the parameters `array` and `index`.
    """

    name: str
    far: str
    near: str


def reads_from_flash(program: CProgram) -> bool:
    """Return whether the target's constants need reads of their own."""
    return (
        program.config.primary_target().has(Feature.AVR_PROGMEM) and not program.has_external_params
    )


def reader_names(program: CProgram) -> Mapping[DType, str]:
    """Return the macros that read elements of constants, by type; none for plain arrays."""
    if not reads_from_flash(program):
        return {}
    return {array.dtype: _reader_name(program.macro, array.dtype) for array in program.constants}


def flash_readers(program: CProgram) -> tuple[FlashReader, ...]:
    """Return the macros that the program's constants need; none where constants are plain arrays.

    Raises:
        UsageError: an array is too large, or of a type that such a target does not have.
    """
    if not reads_from_flash(program):
        return ()
    return tuple(_readers(program.macro, program.constants))


def _readers(macro: str, arrays: Iterable[ConstantArray]) -> Iterator[FlashReader]:
    seen: list[DType] = []
    for array in arrays:
        where = ", ".join(array.users)
        if array.bytes > MAX_ARRAY_BYTES:
            raise UsageError(
                f"a constant of {array.bytes} bytes is too large for an AVR",
                where=where,
                legal=f"at most {MAX_ARRAY_BYTES} bytes in one array",
            )
        if array.dtype is DType.FLOAT64:
            raise UsageError("64-bit floats are not supported on AVR", where=where, legal="float32")
        if array.dtype not in seen:
            seen.append(array.dtype)
            far = f"pgm_get_far_address(array) + (uint32_t)(index) * {array.dtype.bytes}u"
            yield FlashReader(
                _reader_name(macro, array.dtype),
                _read(array.dtype, "_far", far),
                _read(array.dtype, "", "&(array)[index]"),
            )


def _reader_name(macro: str, dtype: DType) -> str:
    return f"{macro}_READ_{dtype.value.upper()}"


def _read(dtype: DType, distance: str, address: str) -> str:
    """Return a read by the macros of avr-libc, which know sizes and no signs."""
    if dtype is DType.FLOAT32:
        return f"pgm_read_float{distance}({address})"
    if dtype.bytes == 8:
        low = f"(uint64_t)pgm_read_dword{distance}({address})"
        upper = address if distance else f"(const uint8_t *){address}"
        high = f"(uint64_t)pgm_read_dword{distance}({upper} + 4)"
        return f"(({C_TYPES[dtype]})({low} | {high} << 32))"
    size = {1: "byte", 2: "word", 4: "dword"}[dtype.bytes]
    return f"(({C_TYPES[dtype]})pgm_read_{size}{distance}({address}))"
