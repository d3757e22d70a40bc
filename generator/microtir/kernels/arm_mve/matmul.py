"""Products of two matrices that are known when a model runs: the second is packed for each stack.

Its columns lie in scratch as the weights of a dense layer do, behind the constants of their sums.
The rows of the first matrix are read where they are, or gathered where they lie as columns.  Sums
are of stored values: the first zero point is part of a column's constant, and the second one times
the sum of a row is added to all sums of the row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from microtir import te
from microtir.config import Feature
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.arm_mve import gemm_kernels, moves, requantise
from microtir.kernels.arm_mve.linear import BYTES, steps_of
from microtir.kernels.arm_mve.requantise import BIAS, LANES, MULTIPLIER, SHIFT, WORDS
from microtir.kernels.common import counted, macro_kernel, micro_kernel, refusals
from microtir.kernels.common.float_edges import halves
from microtir.kernels.common.layer import Layer, Rows
from microtir.kernels.common.made_once import made_once, of_node
from microtir.kernels.common.matrices import place_of, stacked, stacks_of
from microtir.kernels.common.micro_kernel import call
from microtir.kernels.common.moves import Mover
from microtir.kernels.common.statements import at, load, loop, seq, store
from microtir.measure.printed import Printed, printed
from microtir.operators.common.linear import params_of
from microtir.operators.matmul.definition import BatchMatmul, matrices
from microtir.plan.ir import Calls, Layout, Refusal
from microtir.rewrite.facts.moves import Axis
from microtir.schedule import KernelDescription
from microtir.tir import ir

_WORD = 4
_GROUP = WORDS * LANES * _WORD  # bytes of the constants of four columns
_LARGEST = 4095  # of offsets, depths and columns
_LARGEST_PRODUCT, _LARGEST_SUM = 255 * 255, 1 << 30
_COUNTS = (macro_kernel.Count(gemm_kernels.PIXELS, "pair"), macro_kernel.Count(1, "row"))


@dataclass(frozen=True, slots=True)
class _Form:
    """A layer: matrices (rows, depth) and (depth, columns).

    Attributes:
        multiplier, shift: of all sums.
        pitch: bytes from a column of the second matrix to the next one.
        step: bytes from a value of a column to the next one.
        zero_points: of both matrices.
        gathers: whether rows of the first matrix lie as columns.
    """

    stacks: int
    rows: int
    depth: int
    columns: int
    rescaling: requantise.Rescaling
    multiplier: int
    shift: int
    pitch: int
    step: int
    zero_points: tuple[int, int]
    gathers: bool

    @staticmethod
    @of_node
    def of(node: Node) -> _Form | None:
        """Return the form of a layer; None: its factor does not fit."""
        op, (x, y) = node.attributes(BatchMatmul), node.inputs
        (_, depth), (_, columns) = matrices(node)
        params, largest = params_of(node), np.array([depth * _LARGEST_PRODUCT])
        if largest[0] >= _LARGEST_SUM:
            return None
        constants = requantise.constants_of(params, np.zeros(1, np.int64), largest)
        if constants is None:
            return None
        _, multiplier, shift = map(int, constants[0])
        return _Form(
            *stacks_of(node), depth, columns, requantise.Rescaling.of(params), multiplier, shift,
            *((depth, 1) if op.adj_y else (1, columns)),
            (x.type.quant.zero_point, y.type.quant.zero_point), op.adj_x,
        )  # fmt: skip

    @property
    def groups(self) -> int:
        return -(-self.columns // LANES)

    @property
    def steps(self) -> int:
        return steps_of(self.depth)

    @property
    def whole(self) -> int:
        """Return the vectors that hold values of theirs alone."""
        return self.depth // BYTES

    @property
    def place(self) -> int:
        """Return where values begin in a vector that is not whole; behind others they end it."""
        return BYTES - self.depth % BYTES if self.whole else 0

    @property
    def constants(self) -> int:
        return self.groups * _GROUP

    @property
    def packed(self) -> int:
        return self.constants + self.groups * self.steps * LANES * BYTES

    @property
    def scratch(self) -> int:
        """Return the bytes of packed columns, and of rows that are gathered."""
        return self.packed + self.gathers * gemm_kernels.PIXELS * self.depth

    @property
    def gathering(self) -> Mover:
        return moves.gathered_elements(Axis(self.depth, self.rows, 1), DType.INT8)

    def printed(self) -> Printed:
        return printed("kernels/mve/columns.j2", self.values())

    def values(self) -> dict[str, object]:
        first, second = self.zero_points
        parts = [n for n in (min(self.depth % BYTES, 8), self.depth % BYTES - 8) if n > 0]
        return {
            "in_rows": self.step == 1,
            "whole": str(self.whole or ""),
            "rest": str(self.depth % BYTES or ""),
            "place": str(self.place),
            "halves": [(str(n), str(self.place + 8 * half)) for half, n in enumerate(parts)],
            "pitch": str(self.pitch),
            "step": str(self.step),
            "columns": str(self.columns),
            "lanes": str(self.groups * LANES),
            "behind": str((self.steps - 1) * LANES * BYTES),
            "zero_point": halves(first),
            "base": halves(first * second * self.depth),
            "multiplier": halves(self.multiplier),
            "shift": halves(self.shift),
        }

    def instructions(self) -> int:
        """Return the instructions that pack the columns of a stack, and multiply its rows."""
        lanes = self.groups * LANES
        turns = {"le lr, 2b": lanes * self.whole, "bne 1b": lanes, "bne 3b": self.groups}
        less = self.zero_points[1]
        moved = self.gathers and self.rows * self.gathering.instructions
        products = sum(
            times * gemm_kernels.instructions(rows, self.depth, self.columns, self.rescaling, less)
            for times, rows in self.calls()
        )
        return self.printed().instructions(turns) + moved + products

    def calls(self) -> list[tuple[int, int]]:
        return macro_kernel.times_of(self.rows, _COUNTS)


class Matmul(counted.Counted):
    """Two rows by four columns at a time."""

    name = "matmul_s8_2x4_mve"
    operators = (BatchMatmul,)
    needs = Feature.MVE
    cycles = 145
    measured_on, family = "cortex-m55", "matmul_2x4_mve"

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it: other types, or sizes."""
        if any(tensor.dtype is not DType.INT8 for tensor in node.inputs):
            return Refusal.TYPES
        form = _Form.of(node)
        if form is None:
            return Refusal.FORM
        lines = form.depth, form.columns, form.rows if form.gathers else 1
        fits = min(lines) > 0 and max(lines) * LANES <= _LARGEST
        return None if fits else Refusal.SIZES

    def scratch_bytes(self, node: Node, _calls: Calls) -> int:
        return _form(node).scratch

    def printed(self, node: Node, _calls: Calls) -> int:
        form = _form(node)
        return form.stacks * form.instructions()

    def around(self, node: Node, _calls: Calls) -> Mapping[str, int]:
        form = _form(node)
        rows = sum(times for times, _ in form.calls())
        gathered = form.stacks * form.rows * form.gathers
        return {"stack": form.stacks, "rows": form.stacks * rows, "gathered": gathered}

    def code_bytes(self, node: Node) -> int:
        """Return the bytes of the kernels; other layers may use the same."""
        form = _form(node)
        sizes, less = (form.depth, form.columns, form.rescaling), form.zero_points[1]
        products = sum(gemm_kernels.code_size(rows, *sizes, less) for _, rows in form.calls())
        return form.printed().bytes + products

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Return the layer function: columns are packed for a stack, then rows are multiplied."""
        form, source = _form(layer.node), _Matrices(layer)
        type_ = layer.node.output.type
        y = layer.output_buffer((form.stacks, form.rows, form.columns))
        product = macro_kernel.Product(
            lambda rows: multiply(form, rows),
            (at(source.packed, 0, form.constants), at(source.packed, 0, 0)),
        )
        sink = macro_kernel.Nhwc(Rows(y, type_, Layout.whole(type_)))
        tile = macro_kernel.Tile(_COUNTS, (product,))
        return macro_kernel.macro_kernel(
            layer, name, form.rows, source, tile, sink, (0, form.stacks)
        )


def _form(node: Node) -> _Form:
    return refusals.asked(_Form.of(node))


class _Matrices(macro_kernel.Source):
    """The rows of the first matrix of a stack; the second one is packed into scratch.

    Rows of the first one that lie as columns are gathered behind it.
    """

    def __init__(self, layer: Layer) -> None:
        self._node, self._form = layer.node, _form(layer.node)
        self._matrices = stacked(layer)
        # One row, so that whoever follows rows of buffers sees one span of bytes.
        shape = (1, self._form.scratch)
        self.scratch = self.packed = ir.Buffer("scratch", shape, DType.INT8, alignment=_WORD)

    def row(self, row: te.Expr) -> ir.Stmt:
        """Emit what packs the second matrix of a stack."""
        second = at(self._matrices[1], place_of(self._node, 1, row), 0, 0)
        weights = at(self.packed, 0, self._form.constants)
        return call(pack(self._form), second, at(self.packed, 0, 0), weights)

    def block(self, pixel: macro_kernel.Pixel, count: int) -> ir.Stmt:
        form, place = self._form, place_of(self._node, 0, pixel.row)
        return seq(*(
            call(form.gathering.kernel, at(self._matrices[0], place, 0, pixel.column + n),
                 at(self.packed, 0, form.packed + n * form.depth))
            for n in range(count * form.gathers)
        ))  # fmt: skip

    def at(self, pixel: macro_kernel.Pixel, _count: int) -> ir.BufferArgument:
        if self._form.gathers:
            return at(self.packed, 0, self._form.packed)
        return at(self._matrices[0], place_of(self._node, 0, pixel.row), pixel.column, 0)


# --- micro-kernels --------------------------------------------------------------------------------


@made_once
def pack(form: _Form) -> KernelDescription:
    """Pack the columns of a matrix; behind the last one it is there again, up to a whole group.

    Returns:
        Parameters: the first value of the first column; constants (groups, bytes) and weights
        (groups, steps, columns of a group, bytes of a vector).
    """
    reach = (form.columns - 1) * form.pitch + (form.depth - 1) * form.step + 1
    x = ir.Buffer("x", (reach,), DType.INT8)
    constants = ir.Buffer("constants", (form.groups, _GROUP), DType.INT8, alignment=_WORD)
    weights = ir.Buffer("weights", _packed_shape(form), DType.INT8, alignment=_WORD)
    total = ir.Buffer("total", (), DType.INT32, ir.Scope.LOCAL)
    first, second = form.zero_points
    base = te.as_expr(first * second * form.depth, DType.INT32)

    def lane(group: te.Expr, number: te.Expr) -> ir.Stmt:
        column = te.minimum(group * LANES + number, form.columns - 1)

        def value(step: te.Expr, place: te.Expr, offset: int) -> ir.Stmt:
            loaded = load(x, column * form.pitch + (step * BYTES + place) * form.step)
            return seq(
                store(weights, (group, step, number, place + offset), loaded),
                store(total, (), load(total) + te.cast(DType.INT32, loaded)),
            )

        def nothing(place: te.Expr) -> ir.Stmt:
            return store(weights, (group, form.whole, number, place), 0)

        before = loop("n", 0, BYTES, nothing) if form.steps > form.whole else seq()
        sums = seq(store(total, (), 0), before, _each_value(form, value))
        words = (
            (BIAS, base - load(total) * first),
            (MULTIPLIER, te.as_expr(form.multiplier, DType.INT32)),
            (SHIFT, te.as_expr(form.shift, DType.INT32)),
        )
        stored = (
            store(constants, (group, (word * LANES + number) * _WORD + byte),
                  te.cast(DType.INT8, value >> 8 * byte))
            for word, value in words for byte in range(_WORD)
        )  # fmt: skip
        return ir.Allocate(total, seq(sums, *stored))

    name = f"columns{form.columns}_{form.depth}_{form.pitch}_{form.step}_{first}_{second}"
    return micro_kernel.describe(
        f"{name}_{form.multiplier}_{form.shift}".replace("-", "m"),
        (f"Packs {form.columns} columns of {form.depth} values, and the constants of their sums",),
        (x, constants, weights),
        (constants, weights),
        loop("group", 0, form.groups, lambda group: loop(
            "lane", 0, LANES, lambda number: lane(group, number)
        )),
        "kernels/mve/columns.j2",
        form.values(),
        stack_bytes=36,
        needs=Feature.MVE,
    )  # fmt: skip


def _packed_shape(form: _Form) -> tuple[int, ...]:
    return form.groups, form.steps, LANES, BYTES


def _each_value(form: _Form, some: Callable[[te.Expr, te.Expr, int], ir.Stmt]) -> ir.Stmt:
    """Emit `some` for the values of a column: vector, place in it, how much later weights lie."""
    last, left = te.as_expr(form.whole, DType.INT32), form.depth % BYTES

    def vector(step: te.Expr) -> ir.Stmt:
        return loop("n", 0, BYTES, lambda n: some(step, n, 0))

    rest = loop("n", 0, left, lambda n: some(last, n, form.place)) if left else seq()
    return seq(loop("step", 0, form.whole, vector) if form.whole else seq(), rest)


@made_once
def multiply(form: _Form, rows: int) -> KernelDescription:
    """Multiply two rows, or one, by all columns.

    Returns:
        Parameters: rows (rows, depth), weights and constants as `pack` leaves them; outputs
        (rows, columns).
    """
    x = ir.Buffer("x", (rows, form.depth), DType.INT8)
    weights = ir.Buffer("weights", _packed_shape(form), DType.INT8, alignment=_WORD)
    constants = ir.Buffer("constants", (form.groups, _GROUP), DType.INT8, alignment=_WORD)
    y = ir.Buffer("y", (rows, form.columns), DType.INT8)
    total = ir.Buffer("total", (), DType.INT32, ir.Scope.LOCAL)
    less = form.zero_points[1]

    def output(row: te.Expr, column: te.Expr) -> ir.Stmt:
        group, lane = column // LANES, column % LANES

        def product(step: te.Expr, place: te.Expr, offset: int) -> ir.Stmt:
            a = te.cast(DType.INT32, load(x, row, step * BYTES + place))
            b = te.cast(DType.INT32, load(weights, group, step, lane, place + offset))
            return store(total, (), load(total) + a * (b - less))

        bytes_ = (
            te.cast(DType.INT32, load(constants, group, lane * _WORD + n)) for n in range(_WORD)
        )
        *low, high = ((b & 255 if n < _WORD - 1 else b) << (8 * n) for n, b in enumerate(bytes_))
        bias = low[0] | low[1] | low[2] | high
        factors = [te.as_expr(n, DType.INT32) for n in (form.multiplier, form.shift)]
        value = form.rescaling.apply(load(total), factors)
        stored = store(y, (row, column), value)
        return ir.Allocate(total, seq(store(total, (), bias), _each_value(form, product), stored))

    return micro_kernel.describe(
        f"multiply{rows}_{form.depth}x{form.columns}_{form.rescaling.name}_{less}_{form.multiplier}"
        f"_{form.shift}".replace("-", "m"),
        (f"Matrix product: {rows} x {form.columns} outputs of {form.depth} products",),
        (x, weights, constants, y),
        (y,),
        loop("row", 0, rows, lambda row: loop(
            "column", 0, form.columns, lambda column: output(row, column)
        )),
        f"kernels/mve/gemm{rows}.j2",
        gemm_kernels.template_values(
            form.depth, form.depth, form.columns, form.rescaling, form.columns, less
        ),
        stack_bytes=gemm_kernels.stack_bytes(rows, form.depth, form.rescaling, less),
        needs=Feature.MVE,
    )  # fmt: skip
