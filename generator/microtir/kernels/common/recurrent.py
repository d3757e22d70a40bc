"""LSTMs as loops over time, around whatever multiplies the weights of the gates.

The new states are parameters that hold the states all along: they begin as copies of the old ones,
and a step changes them.  So old and new states may lie in the same memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

import numpy as np

from microtir import te
from microtir.dtype import DType
from microtir.graph.ir import Array, Node
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.packing import bytes_of
from microtir.kernels.common.statements import at, each, load, loop, seq, store
from microtir.operators.recurrent import definition as recurrent
from microtir.operators.recurrent.formula import LstmStep, finished_gates, lstm_step
from microtir.te.program import constants_of
from microtir.tir import ir, visitor


@dataclass(frozen=True, slots=True)
class Sequences:
    """The parameters of an LSTM's function: inputs, outputs of all steps, and states."""

    extents: recurrent.LstmExtents
    op: recurrent.Lstm
    x: te.Tensor
    y: ir.Buffer
    hidden_before: ir.Buffer | float
    cell_before: ir.Buffer | float
    hidden: ir.Buffer
    cell: ir.Buffer

    @staticmethod
    def of(layer: Layer) -> Sequences:
        op = layer.node.attributes(recurrent.Lstm)
        x, (hidden_before, cell_before) = layer.whole(0), (_begin(layer, n) for n in (1, 2))
        y, hidden, cell = (layer.output_buffer() for _ in range(3))
        return Sequences(
            recurrent.lstm_extents(layer.node), op, x, y,
            hidden_before, cell_before, hidden, cell,
        )  # fmt: skip

    @property
    def begins(self) -> list[ir.Buffer]:
        """Return the constants, or the memory, that states begin with."""
        states = self.hidden_before, self.cell_before
        return [state for state in states if isinstance(state, ir.Buffer)]

    def place(self, step: te.Expr, n: te.Expr, i: te.Expr) -> tuple[te.Expr, te.Expr, te.Expr]:
        """Return where the element of a step of a sequence lies in x."""
        return (step, n, i) if self.op.time_major else (n, step, i)

    def shown_at(self, step: te.Expr, n: te.Expr, i: te.Expr) -> tuple[te.Expr, te.Expr, te.Expr]:
        """Return where the element of a step of a sequence lies in y."""
        return self.place(te.as_expr(0, DType.INT32) if self.op.last_only else step, n, i)

    def over_time(self, step: Callable[[te.Expr], ir.Stmt]) -> ir.Stmt:
        """Emit all steps, with the states of before."""
        return seq(
            _copied(self.hidden_before, self.hidden),
            _copied(self.cell_before, self.cell),
            loop("step", 0, self.extents.steps, step),
        )

    def shown(self, step: te.Expr, n: te.Expr) -> ir.Stmt:
        """Emit the last statement for a step of a sequence: what it shows is its hidden state."""
        return loop(
            "unit", 0, self.extents.units,
            lambda i: store(self.hidden, (n, i), load(self.y, *self.shown_at(step, n, i))),
        )  # fmt: skip

    def units(
        self, step: te.Expr, n: te.Expr, first: te.Expr, count: int, parts: StepAt
    ) -> ir.Stmt:
        """Emit the new cells of some units, and what they show.

        Args:
            step: the number of the step.
            n: the number of the sequence.
            first: of the units.
            count: how many they are, at most; there are none behind the last.
            parts: says how units are computed, at a step of a sequence.
        """
        batch, steps, _, units = self.extents
        old = te.placeholder(self.cell.shape, self.cell.dtype, "cell")
        number, sequence = te.var("step", 0, steps - 1), te.var("n", 0, batch - 1)
        begin = te.var("first", 0, units - 1)
        computed = parts(number, sequence, begin)
        new_cell = te.compute(
            (count,),
            lambda i: computed.cell(old[sequence, begin + i], i),
            "new_cell",
            axes=("i",),
            ranges={0: (0, te.minimum(count, units - begin))},
            store=lambda i: (sequence, begin + i),
            buffer_shape=self.cell.shape,
        )
        shown = te.compute(
            (count,),
            lambda i: computed.hidden(new_cell[i], i),
            "shown",
            axes=("i",),
            ranges={0: (0, te.minimum(count, units - begin))},
            store=lambda i: self.shown_at(number, sequence, begin + i),
            buffer_shape=self.y.shape,
        )
        body = te.create_schedule((new_cell, shown)).primfunc(name="units").body
        replacements: dict[ir.Param, visitor.Replacement] = {
            number.var: step.node,
            sequence.var: n.node,
            begin.var: first.node,
            # Each cell is read only where it is then written.
            old.buffer: self.cell,
            new_cell.buffer: self.cell,
            shown.buffer: self.y,
        }
        return visitor.substitute(body, replacements)


def step_bytes(sequences: Sequences, parts: StepAt) -> int:
    """Return the bytes of the constants of states, and of what makes units of their sums."""
    zero, old = te.as_expr(0, DType.INT32), te.placeholder((1,), sequences.cell.dtype, "old")
    step = parts(zero, zero, zero)
    cell = te.compute((1,), lambda i: step.cell(old[i], i), "cell")
    shown = te.compute((1,), lambda i: step.hidden(cell[i], i), "shown")
    return bytes_of(*sequences.begins, *constants_of((cell, shown)))


StepAt: TypeAlias = Callable[[te.Expr, te.Expr, te.Expr], LstmStep]
"""Function that gives the computation of units at a step of a sequence, from a unit on."""


# --- blocks of units ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Blocks:
    """Units that are computed together: `count` blocks of `pairs` pairs; the last may be padded.

    A row of a block is a gate of a unit; rows of a unit follow each other.
    """

    pairs: int
    count: int

    @property
    def units(self) -> int:
        return 2 * self.pairs

    @property
    def rows(self) -> int:
        return recurrent.GATES * self.units

    def matrix(self, gates: Sequence[Array]) -> Array:
        """Return the weights of all gates (units, K) as (blocks, rows, K)."""
        stacked = np.stack(gates, axis=1)
        units, _, width = stacked.shape
        padded = np.pad(stacked, [(0, self.count * self.units - units), (0, 0), (0, 0)])
        result: Array = padded.reshape(self.count, self.rows, width)
        return result


_MOST_PAIRS = 4
_CALLS = 50  # instructions around the two products of a block


def blocks_of(node: Node) -> Blocks:
    """Return blocks for which calls and padding cost least."""
    _, _, inputs, units = recurrent.lstm_extents(node)
    pairs = -(-units // 2)
    work = 2 * recurrent.GATES * (inputs + units)
    choices = (Blocks(n, -(-pairs // n)) for n in range(1, min(_MOST_PAIRS, pairs) + 1))
    return min(choices, key=lambda blocks: blocks.count * (blocks.pairs * work + _CALLS))


def block_cost(node: Node, per_product: float, per_pass: int) -> int:
    """Return the instructions of all steps.

    Args:
        node: the LSTM.
        per_product: of a weight and an element of a vector.
        per_pass: of what is done for every eight rows of a product besides.
    """
    batch, steps, inputs, units = recurrent.lstm_extents(node)
    blocks = blocks_of(node)
    passes = blocks.pairs * (2 * recurrent.GATES * (inputs + units) * per_product + 2 * per_pass)
    finished = _UNIT_OF_FLOAT if node.inputs[0].dtype.is_float else _UNIT
    return int(batch * steps * (blocks.count * (passes + _CALLS) + units * finished + 60))


_UNIT, _UNIT_OF_FLOAT = 285, 430
"""Instructions of a unit after its sums: they make its new cell and its output."""


class BlockProduct(Protocol):
    """Multiplies the rows of a block with a vector; `weights` are those of all blocks."""

    @property
    def weights(self) -> ir.Buffer: ...

    def call(self, block: te.Expr, vector: ir.BufferArgument, sums: ir.BufferArgument) -> ir.Stmt:
        """Emit the products of a block, whose sums are stored one after another."""


MakeProduct: TypeAlias = Callable[[Array], BlockProduct]
"""Makes the products of a matrix (blocks, rows, K)."""


def packed_bytes(node: Node, make: MakeProduct) -> int:
    """Return the bytes of the constants of what `emit_blocks` gives."""
    layer, products = Layer.alone(node), _products(node, make)
    units = step_bytes(Sequences.of(layer), _finished(layer)[1])
    return units + bytes_of(*(product.weights for product in products))


def _products(node: Node, make: MakeProduct) -> list[BlockProduct]:
    """Return the products with inputs, and those with the hidden state."""
    gates, blocks = recurrent.gates_of(node), blocks_of(node)
    sides = [gate.weights for gate in gates], [gate.recurrent for gate in gates]
    data = ([tensor.values for tensor in side] for side in sides)
    return [make(blocks.matrix(matrices)) for matrices in data]


def _finished(layer: Layer) -> tuple[te.Tensor, StepAt]:
    """Return a tensor for the sums of a block, and the units that are computed from them."""
    dtype = accumulated(layer.node.inputs[0].dtype)
    sums = te.placeholder((2, blocks_of(layer.node).rows), dtype, "sums")

    def parts(_step: te.Expr, _n: te.Expr, first: te.Expr) -> LstmStep:
        def sum_of(number: int, unit: te.Expr) -> te.Expr:
            side, gate = divmod(number, recurrent.GATES)
            return sums[side, (unit - first) * recurrent.GATES + gate]

        finished = finished_gates(layer, sum_of)
        return lstm_step(layer, lambda gate, i: finished(gate, first + i))

    return sums, parts


def emit_blocks(layer: Layer, name: str, make: MakeProduct) -> ir.PrimFunc:
    """Return the function of an LSTM whose gates are multiplied block by block.

    Args:
        layer: whose function it is.
        name: of the function.
        make: makes the products.
    """
    sequences, blocks = Sequences.of(layer), blocks_of(layer.node)
    products = _products(layer.node, make)
    own_sums, parts = _finished(layer)
    sums = replace(own_sums.buffer, scope=ir.Scope.LOCAL)

    def block(step: te.Expr, n: te.Expr, number: te.Expr) -> ir.Stmt:
        x = at(sequences.x.buffer, *sequences.place(step, n, te.as_expr(0, DType.INT32)))
        operands = x, at(sequences.hidden, n, 0)
        calls = (
            product.call(number, vector, at(sums, side, 0))
            for side, (product, vector) in enumerate(zip(products, operands, strict=True))
        )
        units = sequences.units(step, n, number * blocks.units, blocks.units, parts)
        return seq(*calls, visitor.substitute(units, {own_sums.buffer: sums}))

    def sequence(step: te.Expr, n: te.Expr) -> ir.Stmt:
        return seq(
            each("block", blocks.count, lambda number: block(step, n, number)),
            sequences.shown(step, n),
        )

    batch = sequences.extents.batch
    steps = sequences.over_time(lambda step: each("n", batch, lambda n: sequence(step, n)))
    return layer.function(name, None, ir.Allocate(sums, steps))


def accumulated(dtype: DType) -> DType:
    """Return the type of sums of products of a type."""
    return dtype if dtype.is_float else DType.INT32


def _begin(layer: Layer, position: int) -> ir.Buffer | float:
    """Return a state that steps begin with: its memory, or the number that all of it is."""
    data = layer.node.inputs[position].data
    if data is not None and data.size and (data == data.flat[0]).all():
        return float(data.flat[0])
    return layer.whole(position).buffer


def _copied(source: ir.Buffer | float, target: ir.Buffer) -> ir.Stmt:
    rows, columns = (te.as_expr(extent, DType.INT32) for extent in target.shape)

    def first(n: te.Expr, i: te.Expr) -> te.ExprLike:
        if isinstance(source, ir.Buffer):
            return load(source, n, i)
        return source if target.dtype.is_float else int(source)

    def row(n: te.Expr) -> ir.Stmt:
        return loop("unit", 0, columns, lambda i: store(target, (n, i), first(n, i)))

    return loop("n", 0, rows, row)
