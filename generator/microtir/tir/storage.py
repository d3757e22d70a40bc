"""Storage of values: integers that never change, and typed buffers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

import numpy.typing as npt

from microtir.dtype import DType

Array: TypeAlias = npt.NDArray[Any]


class Scope(Enum):
    """The memory in which a buffer lives, and so who allocates it."""

    PARAMETER = "parameter"  # passed in by the caller
    CONSTANT = "constant"  # weights and tables: `data` is set, lands in flash
    WORKSPACE = "workspace"  # placed by memory planning; only in the executor's main
    LOCAL = "local"  # registers or a small stack array of one function


@dataclass(frozen=True, slots=True, eq=False)
class Var:
    """An immutable integer. Two Vars are the same only if they are the same object.

    `low` and `high` (inclusive) are the declared range of a scalar parameter; callers are
    checked against it. Loop variables and Let-bound values have none: their range follows
    from the code.
    """

    name: str
    dtype: DType = DType.INT32
    low: int | None = None
    high: int | None = None


Dim: TypeAlias = "int | Var"


@dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """Row-major storage of `shape` elements; a rank-0 LOCAL buffer is a mutable scalar."""

    name: str
    shape: tuple[Dim, ...]
    dtype: DType
    scope: Scope = Scope.PARAMETER
    data: Array | None = None
    alignment: int = 1  # bytes, guaranteed to the kernel that reads it


Param: TypeAlias = Buffer | Var
