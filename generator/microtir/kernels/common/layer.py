"""The layer that a kernel is emitted for: its edges and its row range.

A row index counts the rows of the whole tensor (see `graph.ir`).  An edge turns it into the slot
that holds the row: the row itself for a whole tensor, floormod(row, R) for a ring of R slots.
A kernel that asks for `image` works on any layout; one that asks for `whole` sees the tensor in
its own shape and is offered for whole tensors only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeVar

from microtir import te
from microtir.dtype import DType
from microtir.graph.ir import Node, Tensor, TensorType
from microtir.kernels.common.packed_weights import PackedWeights
from microtir.operators.common.rows import Extents, RowWindow
from microtir.operators.streaming.definition import PlaceColumns
from microtir.plan.ir import Layout, LayoutKind
from microtir.rewrite.facts.sums import fits
from microtir.tir import ir
from microtir.tir.function import RowAccess, RowRange
from microtir.tir.ir import Array, Buffer, Param

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Edge:
    """An input as rows of (W, C): `storage` has shape (R, W, C)."""

    storage: te.Tensor
    type: TensorType
    layout: Layout

    @property
    def extents(self) -> Extents:
        return Extents.of(self.type)

    def at(self, row: te.ExprLike, column: te.ExprLike, channel: te.ExprLike) -> te.Expr:
        return self.storage[_slot(row, self.type, self.layout), column, channel]


def _slot(row: te.ExprLike, type_: TensorType, layout: Layout) -> te.Expr:
    index = te.as_expr(row)
    return index if layout.rows == type_.rows else index % layout.rows


@dataclass(frozen=True, slots=True)
class Rows:
    """A tensor for a kernel that is written in TIR.

    `buffer` has shape (R, W, C), or (R, C, columns) where rows are planes.
    """

    buffer: ir.Buffer
    type: TensorType
    layout: Layout
    first: te.ExprLike = 0  # channel that counts as the first one
    top: te.ExprLike = 0  # row that counts as the first one

    @property
    def is_whole(self) -> bool:
        """Return whether every row has a slot of its own, so that rows follow each other."""
        return self.layout.rows == self.type.rows

    def slot(self, row: te.Expr) -> te.ExprLike:
        return _slot(row + self.top, self.type, self.layout)

    def at(self, row: te.Expr, column: te.ExprLike, channel: te.ExprLike) -> ir.BufferArgument:
        """Return a pointer to an element of a row of the tensor, which is no row of planes."""
        assert self.layout.planes is None
        indices = self.slot(row), column, te.as_expr(channel, DType.INT32) + self.first
        handles = (te.as_expr(i, DType.INT32) for i in indices)
        return ir.BufferArgument(self.buffer, tuple(handle.node for handle in handles))

    def row(self, row: te.Expr) -> ir.BufferArgument:
        """Return a pointer to a row of the tensor, borders included."""
        handles = (te.as_expr(i, DType.INT32) for i in (self.slot(row), 0, 0))
        return ir.BufferArgument(self.buffer, tuple(handle.node for handle in handles))


@dataclass(slots=True)
class Layer:
    """One operator while its kernel is written; collects the parameters of its function."""

    node: Node
    layouts: Mapping[Tensor, Layout]
    takes_row_range: bool
    y0: te.ScalarVar
    y1: te.ScalarVar
    call_rows: int = 0  # of every call, if these are few
    packs_weights: bool = False
    _placeholders: dict[Tensor, te.Tensor] = field(default_factory=dict)
    _outputs: list[te.Tensor] = field(default_factory=list)
    _written: list[Buffer] = field(default_factory=list)  # outputs of kernels written in TIR

    @staticmethod
    def of(
        node: Node, layouts: Mapping[Tensor, Layout], takes_row_range: bool, call_rows: int = 0
    ) -> Layer:
        rows = node.outputs[0].type.rows
        y0, y1 = te.var("y0", low=0, high=rows), te.var("y1", low=0, high=rows)
        return Layer(node, layouts, takes_row_range, y0, y1, call_rows)

    @staticmethod
    def alone(node: Node) -> Layer:
        """Return a layer whose tensors are whole; for what does not depend on that."""
        tensors = (*node.activations, *node.outputs)
        return Layer.of(node, {t: Layout.whole(t.type) for t in tensors}, takes_row_range=False)

    @property
    def sums_fit(self) -> bool:
        return fits(self.node)

    # --- inputs -------------------------------------------------------------------------------

    def image(self, position: int, *, flat: bool = False) -> Edge:
        """Return input `position` as rows of (W, C), in the layout that the plan gave its edge.

        Rows are of (1, W * C) if they are `flat`.
        """
        tensor = self.node.inputs[position]
        layout = Layout.whole(tensor.type) if tensor.is_constant else self.layouts[tensor]
        assert layout.kind is LayoutKind.NHWC, "the only kind that tensor expressions read"
        return self._edge(tensor, layout, flat)

    def _edge(self, tensor: Tensor, layout: Layout, flat: bool = False) -> Edge:
        shape = (layout.rows, *layout.row_shape(tensor.type))
        if flat:
            shape = (layout.rows, 1, tensor.type.row_elements)
        return Edge(self._input(tensor, shape, layout), tensor.type, layout)

    def whole(self, position: int, shape: tuple[int, ...] | None = None) -> te.Tensor:
        """Return input `position` as a whole tensor, in its own shape or one of equal size."""
        tensor = self.node.inputs[position]
        return self._input(tensor, tensor.shape if shape is None else shape)

    @property
    def weights(self) -> te.Tensor:
        """Return input 1 of a linear operator, a constant."""
        return te.constant(self.data(1), "weights")

    @property
    def packed_weights(self) -> PackedWeights | None:
        """Return input 1 in four bits each, for a kernel that asks for that."""
        return PackedWeights.of(self.data(1)) if self.packs_weights else None

    @property
    def bias(self) -> te.Tensor | None:
        """Return input 2 of a linear operator as it is, a constant, if there is one."""
        return te.constant(self.data(2), "bias") if len(self.node.inputs) > 2 else None

    def _input(
        self, tensor: Tensor, shape: tuple[int, ...], layout: Layout | None = None
    ) -> te.Tensor:
        if tensor not in self._placeholders:
            if tensor.data is not None:
                self._placeholders[tensor] = te.constant(tensor.data.reshape(shape), "constant")
            else:
                names = list(dict.fromkeys(self.node.activations))
                number = names.index(tensor)
                name = "x" if len(names) == 1 else f"x{number}"
                dtype = tensor.dtype if layout is None else layout.dtype(tensor.type)
                alignment = 1 if layout is None else layout.alignment
                self._placeholders[tensor] = te.placeholder(shape, dtype, name, alignment=alignment)
        return self._placeholders[tensor]

    def data(self, position: int) -> Array:
        return self.node.inputs[position].values

    # --- outputs ------------------------------------------------------------------------------

    def rows(
        self, element: Callable[[te.Expr, te.Expr, te.Expr], te.ExprLike], *, flat: bool = False
    ) -> te.Tensor:
        """Return the output, computed row by row: `element(row, column, channel)`.

        Covers rows [y0, y1) if the layer takes a row range and all rows otherwise.  Rows are of
        (1, W * C) if they are `flat`.
        """
        type_ = self.node.output.type
        extents = Extents.of(type_)
        row = (1, type_.row_elements) if flat else (extents.width, extents.channels)
        return self._rows(element, row, 0, row[0])

    def columns(
        self, element: Callable[[te.Expr, te.Expr, te.Expr], te.ExprLike], first: int, width: int
    ) -> te.Tensor:
        """Compute as `rows` does, from column `first` on of an image of `width` columns."""
        extents = Extents.of(self.node.output.type)
        return self._rows(element, (extents.width, extents.channels), first, width)

    def _rows(
        self,
        element: Callable[[te.Expr, te.Expr, te.Expr], te.ExprLike],
        row: tuple[int, int],
        first: int,
        width: int,
    ) -> te.Tensor:
        tensor = self.node.output
        layout = self.layouts[tensor]
        output = te.compute(
            (tensor.type.rows, *row),
            element,
            "y",
            axes=("row", "col", "ch"),
            ranges={0: (self.y0, self.y1)} if self.takes_row_range else None,
            store=lambda y, col, ch: (
                _slot(y, tensor.type, layout),
                col + first if first else col,
                ch,
            ),
            buffer_shape=(layout.rows, width, row[1]),
        )
        self._outputs.append(output)
        return output

    def tensor(
        self,
        element: Callable[..., te.ExprLike],
        shape: tuple[int, ...] | None = None,
        order: tuple[int, ...] | None = None,
        place: Callable[..., Sequence[te.ExprLike]] | None = None,
    ) -> te.Tensor:
        """Return the next output as a whole tensor: `element(i, j, ...)` over its shape.

        Loops go over the axes in `order`, the first one outermost; by default as they stand.
        The element of (i, j, ...) lies at `place(i, j, ...)`; by default there.
        """
        number = len(self._outputs)
        tensor = self.node.outputs[number]
        name = "y" if len(self.node.outputs) == 1 else f"y{number}"
        shape = tensor.shape if shape is None else shape
        names = _AXES[len(shape)]
        axes = tuple(range(len(shape))) if order is None else order

        def in_order(function: Callable[..., _T]) -> Callable[..., _T]:
            return lambda *at: function(*(at[axes.index(axis)] for axis in range(len(axes))))

        output = te.compute(
            tuple(shape[axis] for axis in axes),
            in_order(element),
            name,
            axes=tuple(names[axis] for axis in axes),
            store=in_order(place or (lambda *at: at)),
            buffer_shape=shape,
        )
        self._outputs.append(output)
        return output

    # --- kernels written in TIR ---------------------------------------------------------------

    def input_rows(self, position: int) -> Rows:
        """Return input `position`, an activation, as rows of (W, C) or of planes."""
        tensor = self.node.inputs[position]
        edge = self._edge(tensor, self.layouts[tensor])
        return Rows(edge.storage.buffer, edge.type, edge.layout)

    def output_rows(self, width: int | None = None) -> Rows:
        """Return the output as rows of planes, or of (W, C) within an image of `width` columns."""
        tensor = self.node.output
        layout = self.layouts[tensor]
        row = layout.row_shape(tensor.type)
        shape = (layout.rows, *(row if width is None else (width, row[1])))
        dtype = layout.dtype(tensor.type)
        self._written.append(ir.Buffer("y", shape, dtype, alignment=layout.alignment))
        return Rows(self._written[-1], tensor.type, layout)

    def input_matrix(self, position: int, shape: tuple[int, ...]) -> Rows:
        """Return input `position`, an activation, as a matrix: each of its rows is a pixel.

        Where its shape is (1, pixels, channels), these are neighbours on one row.
        """
        type_ = self.node.inputs[position].type
        return Rows(self.whole(position, _pixels(shape)).buffer, type_, Layout.whole(type_))

    def output_matrix(self, shape: tuple[int, ...]) -> Rows:
        """Return the output as a matrix: its pixels are as those of `input_matrix`."""
        type_ = self.node.output.type
        self._written.append(Buffer("y", _pixels(shape), type_.dtype))
        return Rows(self._written[-1], type_, Layout.whole(type_))

    def output_buffer(self, shape: tuple[int, ...] | None = None) -> Buffer:
        """Return the next output as a whole tensor, in its own shape or in one of equal size."""
        number = len(self._written)
        type_ = self.node.outputs[number].type
        name = "y" if len(self.node.outputs) == 1 else f"y{number}"
        self._written.append(Buffer(name, type_.shape if shape is None else shape, type_.dtype))
        return self._written[-1]

    def function(self, name: str, scratch: ir.Buffer | None, body: ir.Stmt) -> ir.PrimFunc:
        """Return the layer function of `body`; `scratch` follows the outputs."""
        between = () if scratch is None else (scratch,)
        params = (*self.buffers(), *between, *self._row_parameters())
        return ir.PrimFunc(name, params, body, row_range=self.row_range, scratch=scratch)

    # --- the function -------------------------------------------------------------------------

    @property
    def outputs(self) -> tuple[te.Tensor, ...]:
        return tuple(self._outputs)

    def parameters(self) -> tuple[Param, ...]:
        """Return inputs that are not constant, outputs, then the row range."""
        return (*self.buffers(), *self._row_parameters())

    @property
    def row_range(self) -> RowRange | None:
        """Return the parameters for the rows of a call, if it takes some."""
        return RowRange(self.y0.var, self.y1.var) if self.takes_row_range else None

    def _row_parameters(self) -> tuple[ir.Var, ...]:
        return (self.y0.var, self.y1.var) if self.takes_row_range else ()

    def buffers(self) -> tuple[Buffer, ...]:
        """Return inputs that are not constant, then outputs."""
        inputs = [self._placeholders[t].buffer for t in dict.fromkeys(self.node.activations)]
        return (*inputs, *(y.buffer for y in self._outputs), *self._written)

    def row_accesses(self, windows: Sequence[RowWindow] | None) -> Mapping[Buffer, RowAccess]:
        """Return what a call for a row range touches of each parameter.

        `windows` as in Candidate.
        """
        op = self.node.op
        adds = isinstance(op, PlaceColumns) and op.column > 0  # columns are placed left to right
        accesses: dict[Buffer, RowAccess] = {}
        for tensor, window in zip(self.node.activations, windows or (), strict=windows is not None):
            low, high = _image_offsets(tensor.type, self.node.output.type, window.stride)
            accesses[self._placeholders[tensor].buffer] = RowAccess(
                window.stride, window.offset + low, window.extent + high - low, tensor.type.rows
            )
        for output in (*(y.buffer for y in self._outputs), *self._written) if windows else ():
            accesses[output] = RowAccess(1, 0, 1, self.node.output.type.rows, adds=adds)
        return MappingProxyType(accesses)


def _pixels(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (shape[0], 1, shape[1]) if len(shape) == 2 else shape


def _image_offsets(x: TensorType, y: TensorType, stride: int) -> tuple[int, int]:
    """Return the least and the most rows by which an image begins elsewhere than a window says.

    A window goes on by `stride` from the last row of an image to the first one of the next, while
    images of the input may have more rows than that, or fewer.
    """
    source, target = Extents.of(x), Extents.of(y)
    if source.images != target.images:
        return 0, 0
    ahead = (source.images - 1) * (source.height - target.height * stride)
    return min(ahead, 0), max(ahead, 0)


_AXES: dict[int, tuple[str, ...]] = {
    0: (),
    1: ("i",),
    2: ("row", "ch"),
    3: ("row", "col", "ch"),
    4: ("n", "row", "col", "ch"),
    5: ("i", "n", "row", "col", "ch"),
    6: ("i", "j", "n", "row", "col", "ch"),
    7: ("h", "i", "j", "n", "row", "col", "ch"),
    8: ("g", "h", "i", "j", "n", "row", "col", "ch"),
}
