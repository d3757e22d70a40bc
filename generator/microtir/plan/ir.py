"""Plan IR: what planning decides and lowering obeys.

Vocabulary
    candidate   one way to compute an operator: a kernel with the layouts it reads and writes
    layout      how the rows of a tensor lie in memory; belongs to the edge, not to the operator
    ring        a layout with fewer row slots than the tensor has rows
    group       consecutive operators that run together; one operator alone is a group, too
    storage     the tensor whose memory another tensor shares (a reshape is a view)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from microtir.graph.ir import Graph, Node, Tensor, TensorType


class LayoutKind(Enum):
    """Order of the elements inside one row; the row itself is always outermost."""

    NHWC = "nhwc"  # (W, C): the order of model inputs and outputs
    ROW_PLANAR = "row_planar"  # (C, W)
    ROW_INTERLEAVED = "row_interleaved"  # (W/4, C, 4)


@dataclass(frozen=True, slots=True)
class Layout:
    """Row y of a tensor lies in slot floormod(y, rows).

    `rows` equals the tensor's number of rows for a whole tensor and the window for a ring.
    """

    kind: LayoutKind
    rows: int

    @staticmethod
    def whole(type_: TensorType) -> Layout:
        """The plain layout of model inputs and outputs."""
        return Layout(LayoutKind.NHWC, type_.rows)

    def bytes(self, type_: TensorType) -> int:
        """Bytes that a tensor of `type_` takes in this layout."""
        return self.rows * type_.row_elements * type_.dtype.bytes


@dataclass(frozen=True, slots=True)
class RowWindow:
    """Input rows that output row y needs: [y*stride + offset, y*stride + offset + extent).

    Rows outside the image are not read. Rows of different images (N > 1) never mix.
    """

    stride: int = 1
    offset: int = 0
    extent: int = 1


class Kernel(Enum):
    """Families of kernels; the value is what metadata and `profile --explain` print."""

    DIRECT = "direct"  # naive loop nest, clipped at the borders
    TABLE = "table"  # 256-entry look-up
    VIEW = "view"  # no code: the output is the input's memory
    COPY = "copy"  # elements move, nothing is computed


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to compute an operator, described without emitting any TIR.

    `windows` holds, per non-constant input, the rows that one output row needs; None means that
    the kernel computes its whole output in one call. `cost` is an estimate in instructions.
    """

    kernel: Kernel
    input_layouts: tuple[LayoutKind, ...]
    output_layouts: tuple[LayoutKind, ...]
    windows: tuple[RowWindow, ...] | None
    scratch_bytes: int
    weight_bytes: int
    cost: int

    @property
    def takes_row_range(self) -> bool:
        return self.windows is not None


@dataclass(frozen=True, slots=True)
class PlannedOperator:
    """An operator with the kernel chosen for it."""

    node: Node
    candidate: Candidate


@dataclass(frozen=True, slots=True)
class Group:
    """Operators that run together. More than one: row by row, over ring layouts inside."""

    operators: tuple[PlannedOperator, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Every decision about a graph.

    `layouts` has an entry for each tensor that is not constant; `storage` maps a tensor to the
    tensor in whose memory it lives, itself unless it is a view.
    """

    graph: Graph
    groups: tuple[Group, ...]
    layouts: Mapping[Tensor, Layout]
    storage: Mapping[Tensor, Tensor]

    @property
    def operators(self) -> tuple[PlannedOperator, ...]:
        return tuple(op for group in self.groups for op in group.operators)
