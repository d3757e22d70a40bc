"""Products of two matrices that are known when a model runs: both are widened, then multiplied.

The columns of the second matrix are widened to int16 into scratch, less its zero point, and lie
four together, two values of each in turns; so do two rows of the first one, which are multiplied by
all columns.  No sum needs a correction, and no product an instruction that widens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from microtir import te
from microtir.config import Feature
from microtir.dtype import DType
from microtir.graph.ir import Node, Tensor
from microtir.kernels.arm_dsp.lines import Lines, pack
from microtir.kernels.common import counted, macro_kernel, micro_kernel, packing, refusals
from microtir.kernels.common.layer import Layer, Rows
from microtir.kernels.common.made_once import made_once, of_node
from microtir.kernels.common.matrices import place_of, stacked, stacks_of
from microtir.kernels.common.micro_kernel import call
from microtir.kernels.common.requantise import Rescaling, rescaling_of
from microtir.kernels.common.statements import at, load, loop, seq, store
from microtir.measure.printed import Printed, printed
from microtir.operators.common.linear import params_of
from microtir.operators.matmul.definition import BatchMatmul, matrices
from microtir.plan.ir import Calls, Layout, Refusal
from microtir.schedule import KernelDescription
from microtir.tir import ir

_ROWS, _COLUMNS = 2, 4  # of a block
_REACH = 4095  # largest offset of a store
_LARGEST = 0xFFFF  # what MOVW loads
_TURN = 4  # steps of a turn of a loop
_STRAIGHT = 8  # the most steps that are printed without a loop
_WORDS = 3  # multiplier, rounding and shift
_LARGEST_PRODUCT, _LARGEST_SUM = 255 * 255, 1 << 30
_LOADS = {1: "ldr {}, [{}], #4", 2: "ldrd {}, {}, [{}], #8"}
_COUNTS = (macro_kernel.Count(_ROWS, "pair"), macro_kernel.Count(1, "row"))


@dataclass(frozen=True, slots=True)
class _Form:
    """A layer: matrices (rows, depth) and (depth, columns), and how the lines of both lie."""

    stacks: int
    rows: int
    columns: int
    rescaling: Rescaling
    words: tuple[int, int, int]  # multiplier, rounding, shift
    first: Lines
    second: Lines

    @staticmethod
    @of_node
    def of(node: Node) -> _Form | None:
        """Return the form of a layer; None: its factor does not fit the sequence."""
        op, (x, y) = node.attributes(BatchMatmul), node.inputs
        (_, depth), (_, columns) = matrices(node)
        stacks, rows = stacks_of(node)
        params = params_of(node)
        clamps = params.output_zero_point, params.activation_min, params.activation_max
        factor, *others = set(params.multipliers)
        largest = depth * _LARGEST_PRODUCT
        if others or largest >= _LARGEST_SUM:
            return None
        sequence = rescaling_of(factor, largest, *clamps)

        def lines(tensor: Tensor, count: int, *, by_step: bool) -> Lines:
            pitch, step = (1, tensor.shape[-1]) if by_step else (depth, 1)
            return Lines(count, depth, pitch, step, tensor.type.quant.zero_point)

        first = lines(x, min(rows, _ROWS), by_step=op.adj_x)
        second = lines(y, min(columns, _COLUMNS), by_step=not op.adj_y)
        return sequence and _Form(stacks, rows, columns, *sequence, first, second)

    @property
    def packed(self) -> int:
        """Return the values of a second matrix, widened."""
        return self.block(1).blocks * self.second.elements

    def lines(self, rows: int) -> Lines:
        """Return so many rows of the first matrix."""
        return replace(self.first, count=rows)

    def block(self, rows: int) -> _Block:
        return _Block(rows, self.first.steps, self.columns, self.rescaling)

    def calls(self) -> list[tuple[int, int]]:
        return macro_kernel.times_of(self.rows, _COUNTS)


class Matmul(counted.Counted):
    """Two rows by four columns at a time."""

    name = "matmul_s8_2x4_dsp"
    operators = (BatchMatmul,)
    needs = Feature.DSP
    cycles = 130
    measured_on, family = "cortex-m4", "matmul_2x4_dsp"

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it: other types, or strides that loads do not reach."""
        if any(tensor.dtype is not DType.INT8 for tensor in node.inputs):
            return Refusal.TYPES
        form = _Form.of(node)
        if form is None:
            return Refusal.FORM
        fits = form.first.fits and form.second.fits and form.columns + _COLUMNS <= _REACH
        return None if fits and 2 * form.packed <= _LARGEST else Refusal.SIZES

    def scratch_bytes(self, node: Node, _calls: Calls) -> int:
        """Return the bytes of the second matrix and of two rows, widened."""
        form = _form(node)
        return (form.packed + form.first.elements) * DType.INT16.bytes

    def printed(self, node: Node, _calls: Calls) -> int:
        form = _form(node)
        of_stack = form.block(1).blocks * form.second.instructions() + sum(
            times * (form.lines(rows).instructions() + form.block(rows).instructions())
            for times, rows in form.calls()
        )
        return form.stacks * of_stack

    def around(self, node: Node, _calls: Calls) -> Mapping[str, int]:
        form = _form(node)
        rows = sum(times for times, _ in form.calls())
        return {"columns": form.stacks * form.block(1).blocks, "rows": form.stacks * rows}

    def code_bytes(self, node: Node) -> int:
        form = _form(node)
        of_rows = (b for _, n in form.calls() for b in (form.lines(n), form.block(n)))
        return sum(body.printed().bytes for body in (form.second, *of_rows))

    def packed_bytes(self, node: Node) -> int:
        return self.weight_bytes(node) + _WORDS * DType.INT32.bytes

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Return the layer function: columns are widened for a stack, rows for a product."""
        form, source = _form(layer.node), _Matrices(layer)
        words = packing.constant("constants", np.array(form.words, np.int64).astype(np.int32))
        type_ = layer.node.output.type
        y = layer.output_buffer((form.stacks, form.rows, form.columns))
        product = macro_kernel.Product(
            lambda rows: products(form.block(rows)), (source.columns, at(words, 0))
        )
        tile = macro_kernel.Tile(_COUNTS, (product,))
        sink = macro_kernel.Nhwc(Rows(y, type_, Layout.whole(type_)))
        return macro_kernel.macro_kernel(
            layer, name, form.rows, source, tile, sink, (0, form.stacks)
        )


def _form(node: Node) -> _Form:
    return refusals.asked(_Form.of(node))


class _Matrices(macro_kernel.Source):
    """The second matrix of a stack in scratch, and behind it the rows of a product."""

    def __init__(self, layer: Layer) -> None:
        self.node, self.form = layer.node, _form(layer.node)
        self.matrices = stacked(layer)
        # One row, so that whoever follows rows of buffers sees one span of bytes.
        shape = (1, self.form.packed + self.form.first.elements)
        self.scratch = self.widened = ir.Buffer("scratch", shape, DType.INT16, alignment=4)
        self.columns = at(self.widened, 0, 0)

    def row(self, row: te.Expr) -> ir.Stmt:
        """Emit the second matrix of a stack, some columns at a time."""
        form, lines = self.form, self.form.second
        counts = (macro_kernel.Count(lines.count, "columns", overlaps=True),)
        (columns,) = macro_kernel.cut(form.columns, counts)

        def block(number: te.Expr) -> ir.Stmt:
            source = self._line(1, lines, row, columns.begin(number))
            return call(pack(lines), source, at(self.widened, 0, number * lines.elements))

        return loop("columns", 0, columns.times, block)

    def block(self, pixel: macro_kernel.Pixel, count: int) -> ir.Stmt:
        lines = self.form.lines(count)
        source = self._line(0, lines, pixel.row, pixel.column)
        return call(pack(lines), source, self.at(pixel, count))

    def at(self, _pixel: macro_kernel.Pixel, _count: int) -> ir.BufferArgument:
        return at(self.widened, 0, self.form.packed)

    def _line(
        self, number: int, lines: Lines, row: te.Expr, line: te.ExprLike
    ) -> ir.BufferArgument:
        """Return where a line of a stack begins."""
        place = place_of(self.node, number, row)
        return at(self.matrices[number], place, *((line, 0) if lines.step == 1 else (0, line)))


# --- micro-kernels --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Block:
    """Some rows times all columns, `at_once` of them a turn."""

    rows: int
    steps: int
    columns: int
    rescaling: Rescaling

    @property
    def at_once(self) -> int:
        return min(self.columns, _COLUMNS)

    @property
    def blocks(self) -> int:
        return -(-self.columns // self.at_once)

    @property
    def _loop(self) -> tuple[int, int]:
        """Return turns of a loop behind the first step, and steps that are left."""
        return divmod(self.steps - 1, _TURN if self.steps > _STRAIGHT else self.steps)

    def printed(self) -> Printed:
        return printed("kernels/products.j2", self.values())

    def instructions(self) -> int:
        turns = {"bne 2b": self._loop[0] * self.blocks, "bne 1b": self.blocks}
        return self.printed().instructions(turns)

    def values(self) -> dict[str, object]:
        turns, rest = self._loop
        looped = (1 + turns * _TURN) * self.rows * DType.INT32.bytes if turns else ""
        values, groups = ("r8", "r9")[: self.rows], []
        for first in range(0, self.at_once, 2):
            words = ("r10", "lr")[: self.at_once - first]
            places = [(row, n) for row in range(self.rows) for n in range(len(words))]
            products = [
                {
                    "sum": f"r{row * self.at_once + first + n}",
                    "value": values[row],
                    "word": words[n],
                }
                for row, n in places
            ]
            groups.append({"load": _LOADS[len(words)].format(*words, "r12"), "products": products})
        outputs = [(row, n) for row in range(self.rows) for n in range(self.at_once)]
        return {
            "load": _LOADS[self.rows].format(*values, "r11"), "groups": groups,
            "sums": [
                {"register": f"r{number}", "offset": str(row * self.columns + n)}
                for number, (row, n) in enumerate(outputs)
            ],
            "rows": str(self.rows), "at_once": str(self.at_once),
            "last": str(self.columns - self.at_once),
            "turn": str(_TURN), "rest": str(rest or ""),
            "loop_bytes": str(looped),
            "column_bytes": str(self.blocks * self.at_once * self.steps * DType.INT32.bytes),
            "rescaling": self.rescaling.values(),
        }  # fmt: skip


@made_once
def products(block: _Block) -> KernelDescription:
    """Multiply rows by columns.

    Returns:
        Parameters: rows (steps, rows, 2) int16; columns (blocks, steps, columns of a block, 2)
        int16; multiplier, rounding and shift; outputs (rows, columns).
    """
    steps, at_once = block.steps, block.at_once
    x = ir.Buffer("x", (steps, block.rows, 2), DType.INT16, alignment=4)
    columns = ir.Buffer("columns", (block.blocks, steps, at_once, 2), DType.INT16, alignment=4)
    words = ir.Buffer("constants", (_WORDS,), DType.INT32)
    y = ir.Buffer("y", (block.rows, block.columns), DType.INT8)
    total = ir.Buffer("total", (), DType.INT32, ir.Scope.LOCAL)

    def output(number: te.Expr, row: te.Expr, n: te.Expr) -> ir.Stmt:
        def product(step: te.Expr, half: te.Expr) -> ir.Stmt:
            pair = load(x, step, row, half), load(columns, number, step, n, half)
            a, b = (te.cast(DType.INT32, value) for value in pair)
            return store(total, (), load(total) + a * b)

        sums = loop("step", 0, steps, lambda step: loop("half", 0, 2, partial(product, step)))
        first = te.minimum(number * at_once, block.columns - at_once)
        value = block.rescaling.rescale(load(total) * 2, *(load(words, n) for n in range(_WORDS)))
        stored = store(y, (row, first + n), value)
        return ir.Allocate(total, seq(store(total, (), 0), sums, stored))

    return micro_kernel.describe(
        f"products_{block.rows}x{block.columns}_{block.steps}_{block.rescaling.name}",
        (f"Matrix product: {block.rows} x {block.columns} outputs, {at_once} columns at a time",),
        (x, columns, words, y),
        (y,),
        loop("block", 0, block.blocks, lambda number: loop(
            "row", 0, block.rows, lambda row: loop("n", 0, at_once, partial(output, number, row))
        )),
        "kernels/products.j2",
        block.values(),
        stack_bytes=60,
    )  # fmt: skip
