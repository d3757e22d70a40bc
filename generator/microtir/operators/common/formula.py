"""The formula of a layer: its outputs as tensor expressions, and its answers to planning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from microtir import te
from microtir.graph.ir import Array, Node
from microtir.operators.common.rows import Extents, RowWindow
from microtir.tir.ir import PrimFunc

Windows: TypeAlias = Callable[[Node], RowWindow | None]
"""The input rows behind an output row; None if the formula gives all of its output at once."""


class InputRows(Protocol):
    """An input as rows of (W, C), wherever they lie."""

    @property
    def extents(self) -> Extents:
        """Return the input as images."""

    def at(self, row: te.ExprLike, column: te.ExprLike, channel: te.ExprLike) -> te.Expr:
        """Return the stored element of a row of the tensor."""


class Elements(Protocol):
    """Values that are read by their places: of a tensor, or unpacked where they are read."""

    def __getitem__(self, indices: te.ExprLike | tuple[te.ExprLike, ...]) -> te.Expr: ...


class FormulaContext(Protocol):
    """The operator that a formula is written for: its node, its inputs, and places for its outputs.

    A formula that asks for `image` and gives `rows` works on rows that lie anywhere, and on a range
    of them; one that asks for `whole` and gives `tensor` sees tensors in their own shapes.
    """

    @property
    def node(self) -> Node:
        """Return the operator with the types of its tensors."""

    @property
    def takes_row_range(self) -> bool:
        """Return whether some rows of the output are asked for, and not all."""

    @property
    def sums_fit(self) -> bool:
        """Return whether INT32 holds all sums of the node."""

    @property
    def weights(self) -> te.Tensor:
        """Return input 1, a constant."""

    @property
    def packed_weights(self) -> Elements | None:
        """Return input 1 where the kernel keeps it in fewer bits."""

    @property
    def bias(self) -> te.Tensor | None:
        """Return input 2, a constant, if there is one."""

    def data(self, position: int) -> Array:
        """Return the values of a constant input."""

    def image(self, position: int, *, flat: bool = False) -> InputRows:
        """Return an input as rows, of (1, W * C) if they are `flat`."""

    def whole(self, position: int, shape: tuple[int, ...] | None = None) -> te.Tensor:
        """Return an input as a whole tensor, in its own shape or in another of equal size."""

    def rows(
        self, element: Callable[[te.Expr, te.Expr, te.Expr], te.ExprLike], *, flat: bool = False
    ) -> te.Tensor:
        """Give the output row by row: `element(row, column, channel)`.

        Rows are of (1, W * C) if they are `flat`.
        """

    def columns(
        self, element: Callable[[te.Expr, te.Expr, te.Expr], te.ExprLike], first: int, width: int
    ) -> te.Tensor:
        """Give the output as `rows` does, from a column on of an image of `width` columns."""

    def tensor(
        self,
        element: Callable[..., te.ExprLike],
        shape: tuple[int, ...] | None = None,
        order: tuple[int, ...] | None = None,
        place: Callable[..., Sequence[te.ExprLike]] | None = None,
    ) -> te.Tensor:
        """Give the next output as a whole tensor: `element(i, j, ...)` over its shape.

        Loops go over the axes in `order`, the first one outermost; by default as they stand.
        The element of (i, j, ...) lies at `place(i, j, ...)`; by default there.
        """


def whole(_node: Node) -> RowWindow | None:
    """Compute the output in one call."""
    return None


def same_row(_node: Node) -> RowWindow | None:
    """Compute output row r from row r of every input."""
    return RowWindow()


def same_row_if(keeps_rows: Callable[[Node], bool]) -> Windows:
    """Return `same_row` where that holds, else the whole output in one call."""
    return lambda node: RowWindow() if keeps_rows(node) else None


@dataclass(frozen=True, slots=True)
class Formula:
    """The formula by which an operator is computed on any target.

    Args:
        compute: gives the outputs.
        rows: the input rows behind an output row.
    """

    compute: Callable[[FormulaContext], None]
    rows: Windows = same_row


@dataclass(frozen=True, slots=True, eq=False)
class WrittenFunction:
    """The function of an operator that is written as a whole, by a user or in TIR.

    Args:
        build: writes the function of a node, of a given name; parameters are the inputs that are
            not constant, each once, and then the outputs.
        scratch_bytes: workspace of one call of `build`'s function, which then has a parameter more.
        cost: estimated instructions of a node; without it, some for each element of the outputs.
    """

    build: Callable[[Node, str], PrimFunc]
    scratch_bytes: Callable[[Node], int] = lambda _node: 0
    cost: Callable[[Node], int] | None = None
