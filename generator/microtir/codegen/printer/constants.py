"""Weights and tables as C arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from microtir.codegen.printer.c_types import C_TYPES, float_literal, integer_literal
from microtir.codegen.printer.layout import INDENT, WIDTH
from microtir.codegen.printer.names import UniqueNames
from microtir.tir.dtype import DType
from microtir.tir.ir import Buffer, PrimFunc, Scope
from microtir.tir.visitor import buffers_read

FILE_HEADER = 16
"""Bytes before the arrays in a file of parameters: magic, identity, size, checksum."""

_PER_LINE = (16, 12, 8, 6, 4, 3, 2, 1)


@dataclass(frozen=True, slots=True)
class ConstantArray:
    """One array of constants. `users` are the names of the functions that read it.

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
        """The array with its type, without value or storage class."""
        return f"const {C_TYPES[self.dtype]} {self.name}[{self.data.size}]"

    @property
    def bytes(self) -> int:
        return int(self.data.size) * self.dtype.bytes

    @property
    def end(self) -> int:
        """The byte behind it in the file or the pool."""
        assert self.offset is not None
        return self.offset + self.bytes


def constant_arrays(
    functions: Iterable[PrimFunc],
    stems: Mapping[PrimFunc, str],
    names: UniqueNames,
    alignment: int,
) -> tuple[tuple[ConstantArray, ...], dict[Buffer, ConstantArray]]:
    """The constants that functions read, in order of first use; equal data is kept once.

    Args:
        functions: in printing order.
        stems: what the names of a function's constants begin with.
        names: the names of the file, which grows by those of the arrays.
        alignment: least alignment in bytes of every array.
    """
    found: dict[tuple[DType, bytes], ConstantArray] = {}
    keys: dict[Buffer, tuple[DType, bytes]] = {}
    for function in functions:
        for buffer in _constants(function):
            assert buffer.data is not None
            data = np.ascontiguousarray(buffer.data, dtype=buffer.dtype.value).reshape(-1)
            # By bytes, not by values: 0.0 and -0.0 are equal and not the same constant.
            key = keys.setdefault(buffer, (buffer.dtype, data.tobytes()))
            known = found.get(key)
            if known is None:
                name = names.fresh(f"{stems[function]}_{buffer.name}")
                # aligned(n) on a variable also lowers its alignment, below what its type needs.
                known = ConstantArray(name, buffer.dtype, data, max(alignment, data.itemsize))
            found[key] = replace(
                known,
                alignment=max(known.alignment, buffer.alignment),
                users=tuple(dict.fromkeys((*known.users, function.name))),
            )
    return tuple(found.values()), {buffer: found[key] for buffer, key in keys.items()}


def one_after_another(arrays: Iterable[ConstantArray], start: int) -> Iterator[ConstantArray]:
    """Arrays with their places in a file, each aligned, the first at byte `start` or after it."""
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


def _constants(function: PrimFunc) -> tuple[Buffer, ...]:
    return tuple(b for b in buffers_read(function) if b.scope is Scope.CONSTANT)


def value_lines(data: npt.NDArray[np.generic]) -> list[str]:
    """Values as lines of aligned columns, ready to stand between braces."""
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
