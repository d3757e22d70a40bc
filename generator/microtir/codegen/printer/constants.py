"""Prints weights and tables as C arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from microtir.codegen.printer.c_types import C_TYPES, float_literal, integer_literal
from microtir.codegen.printer.layout import INDENT, WIDTH
from microtir.codegen.printer.names import UniqueNames
from microtir.dtype import DType
from microtir.measure import ConstantData

FILE_HEADER = 16
"""Bytes before the arrays in a file of parameters: magic, identity, size, checksum."""

_PER_LINE = (16, 12, 8, 6, 4, 3, 2, 1)


@dataclass(frozen=True, slots=True)
class ConstantArray:
    """An array of constants in C; `users` are the names of the functions that read it.

    `pool` is the number of its constant pool. `offset` is its place in what a run is given, in
    bytes of the file of parameters or of the pool; None if it is an array of the code.
    """

    name: str
    dtype: DType
    data: npt.NDArray[np.generic]  # flat
    alignment: int
    users: tuple[str, ...] = ()
    pool: int | None = None
    offset: int | None = None

    @property
    def declaration(self) -> str:
        """Return the array with its type, without value or storage class."""
        return f"const {C_TYPES[self.dtype]} {self.name}[{self.data.size}]"

    @property
    def needs_math_header(self) -> bool:
        """Return whether a value is a macro of <math.h>."""
        return self.dtype.is_float and not bool(np.isfinite(self.data).all())

    @property
    def bytes(self) -> int:
        return int(self.data.size) * self.dtype.bytes

    @property
    def end(self) -> int:
        """Return the byte behind it in the file or the pool."""
        assert self.offset is not None
        return self.offset + self.bytes


def named_arrays(
    constants: Iterable[ConstantData], prefix: str, names: UniqueNames
) -> dict[ConstantData, ConstantArray]:
    """Return the arrays of a program as C has them.

    Args:
        constants: in the order of the file.
        prefix: what every name of the file begins with.
        names: the names of the file, which grows by those of the arrays.
    """
    return {
        c: ConstantArray(names.fresh(f"{prefix}_{c.name}"), c.dtype, c.data, c.alignment, c.users)
        for c in constants
    }


def one_after_another(arrays: Iterable[ConstantArray], start: int) -> Iterator[ConstantArray]:
    """Yield arrays with their aligned places in a file, from byte `start` on."""
    end = start
    for array in arrays:
        offset = -(-end // array.alignment) * array.alignment
        yield replace(array, offset=offset)
        end = offset + array.bytes


def write_arrays(data: bytearray, arrays: Iterable[ConstantArray]) -> None:
    """Write arrays to their places in a file or a pool; numbers are little-endian there."""
    for array in arrays:
        values = array.data.astype(np.dtype(array.dtype.value).newbyteorder("<"))
        data[array.end - array.bytes : array.end] = values.tobytes()


def value_lines(data: npt.NDArray[np.generic]) -> list[str]:
    """Return values as lines of aligned columns, ready to stand between braces."""
    dtype = DType(data.dtype.name)
    if dtype.is_float:
        cells = [float_literal(float(v), dtype) for v in data]
    else:
        # tolist() gives Python ints, which format several times faster than numpy's.
        cells = [integer_literal(v, dtype) for v in data.astype(np.int64).tolist()]
    width = max(map(len, cells), default=0)
    room = WIDTH - len(INDENT)
    per_line = next((n for n in _PER_LINE if n * (width + 2) <= room + 1), 1)
    rows = [cells[i : i + per_line] for i in range(0, len(cells), per_line)]
    return [", ".join(cell.rjust(width) for cell in row) + "," for row in rows]
