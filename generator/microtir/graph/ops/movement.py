"""Operators that move elements without computing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from microtir.graph.ops.base import Operator


@dataclass(frozen=True, slots=True)
class Pad(Operator):
    """PAD and PADV2. The new elements hold `value`, as stored (the zero point for PAD)."""

    name: ClassVar[str] = "pad"
    before: tuple[int, ...] = ()  # per axis
    after: tuple[int, ...] = ()
    value: float = 0.0  # an integral number for integer tensors


@dataclass(frozen=True, slots=True)
class Concatenation(Operator):
    """Along `axis` (non-negative); never rescales."""

    name: ClassVar[str] = "concatenation"
    axis: int = 0


@dataclass(frozen=True, slots=True)
class Reshape(Operator):
    """RESHAPE, SQUEEZE and EXPAND_DIMS: same elements, the shape of the output tensor."""

    name: ClassVar[str] = "reshape"


@dataclass(frozen=True, slots=True)
class Transpose(Operator):
    """Axis i of the output is axis `permutation[i]` of the input."""

    name: ClassVar[str] = "transpose"
    permutation: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Split(Operator):
    """Equal parts along `axis` (non-negative), one per output."""

    name: ClassVar[str] = "split"
    axis: int = 0


@dataclass(frozen=True, slots=True)
class StridedSlice(Operator):
    """SLICE and STRIDED_SLICE with masks resolved: element i of an axis is begin + i * stride.

    Axes that a shrink mask drops have extent 1 here; the output tensor's shape leaves them out.
    """

    name: ClassVar[str] = "strided_slice"
    begin: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()  # may be negative
    extent: tuple[int, ...] = ()  # elements taken per input axis


@dataclass(frozen=True, slots=True)
class PlaceColumns(Operator):
    """Puts an image at columns of a wider one that JoinColumns makes; of no model file.

    The elements stay as they are; where they lie is the joined image's memory.
    """

    name: ClassVar[str] = "place_columns"
    column: int = 0  # of the joined image, where the first of the input goes
    width: int = 0  # of the joined image


@dataclass(frozen=True, slots=True)
class JoinColumns(Operator):
    """The image whose columns are those of the inputs in turn, each made by a PlaceColumns.

    No code: every input lies where it has to.
    """

    name: ClassVar[str] = "join_columns"


@dataclass(frozen=True, slots=True)
class ReadRows(Operator):
    """Takes the rows of an input from the application one by one; of no model file."""

    name: ClassVar[str] = "read_rows"


@dataclass(frozen=True, slots=True)
class WriteRows(Operator):
    """Gives the rows of an output to the application one by one; of no model file."""

    name: ClassVar[str] = "write_rows"
