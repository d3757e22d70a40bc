"""The constant arrays of a program: equal data once, whichever layers read it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from microtir.dtype import DType
from microtir.tir.ir import Buffer, PrimFunc, Scope
from microtir.tir.visitor import buffers_read


@dataclass(frozen=True, slots=True, eq=False)
class ConstantData:
    """One array of constants.

    `name` says which layer reads it first, and as what; C has a name that is unique.  `users` are
    the names of the functions that read it, `buffers` what they know it as.
    """

    name: str
    dtype: DType
    data: npt.NDArray[np.generic]  # flat
    alignment: int
    users: tuple[str, ...]
    buffers: tuple[Buffer, ...]

    @property
    def bytes(self) -> int:
        return int(self.data.size) * self.dtype.bytes


def constants_of(functions: Iterable[PrimFunc], alignment: int) -> tuple[ConstantData, ...]:
    """Return the constants that functions read, in order of first use; equal data is kept once.

    Args:
        functions: in printing order.
        alignment: least alignment in bytes of every array.
    """
    keys: dict[Buffer, tuple[DType, bytes]] = {}
    names: dict[tuple[DType, bytes], str] = {}
    users: dict[tuple[DType, bytes], dict[str, None]] = {}
    for function in functions:
        for buffer in buffers_read(function):
            if buffer.scope is Scope.CONSTANT:
                if buffer not in keys:
                    # By bytes, not by values: 0.0 and -0.0 are equal and not the same constant.
                    keys[buffer] = buffer.dtype, _flat(buffer).tobytes()
                key = keys[buffer]
                names.setdefault(key, f"{constant_stem(function)}_{buffer.name}")
                users.setdefault(key, {})[function.name] = None
    buffers: dict[tuple[DType, bytes], list[Buffer]] = {}
    for buffer, key in keys.items():
        buffers.setdefault(key, []).append(buffer)
    return tuple(
        ConstantData(
            name,
            key[0],
            _flat(buffers[key][0]),
            # aligned(n) on a variable also lowers its alignment, below what its type needs.
            max(alignment, key[0].bytes, *(b.alignment for b in buffers[key])),
            tuple(users[key]),
            tuple(buffers[key]),
        )
        for key, name in names.items()
    )


def _flat(buffer: Buffer) -> npt.NDArray[np.generic]:
    assert buffer.data is not None
    flat: npt.NDArray[np.generic] = np.ascontiguousarray(buffer.data, dtype=buffer.dtype.value)
    return flat.reshape(-1)


def constant_stem(function: PrimFunc) -> str:
    """Return what names of a function's constants begin with: `layer03` is enough for a layer."""
    if function.origin is None or function.origin.name is None:
        return function.name
    return function.origin.name.layer
