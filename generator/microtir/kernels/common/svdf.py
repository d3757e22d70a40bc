"""SVDFs around whatever multiplies the weights of features, several filters at a time.

The new memory is a parameter that may lie where the old one lies: it is moved by one feature before
the newest ones are put behind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from microtir import te
from microtir.dtype import DType
from microtir.graph.ir import Array, Node
from microtir.kernels.common import packing, unrolling
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.micro_kernel import call
from microtir.kernels.common.recurrent import MakeProduct, accumulated
from microtir.kernels.common.statements import at, each, load, loop, seq, store
from microtir.operators.common.weighted import WeightedArithmetic
from microtir.operators.recurrent.definition import SvdfExtents, svdf_extents, svdf_params
from microtir.operators.recurrent.formula import SvdfFinish, svdf_finish
from microtir.schedule import KernelDescription
from microtir.te.program import constants_of
from microtir.tir import ir, visitor

_MOST_ROWS = 32  # filters of a block, whose sums lie on the stack
_TOGETHER = 8  # filters that micro-kernels compute at once
_UNROLLED = 4  # products with the weights of time
_MOVED = 8  # features at a time


@dataclass(frozen=True, slots=True)
class Blocks:
    """Filters that are computed together: `count` blocks of `rows`; the last may be padded."""

    rows: int
    count: int


def blocks_of(node: Node) -> Blocks:
    """Return blocks that pad least, and of these the largest."""
    filters = svdf_extents(node).filters
    sizes = range(_MOST_ROWS, 0, -_TOGETHER)
    rows = min(sizes, key=lambda size: -(-filters // size) * size)
    return Blocks(rows, -(-filters // rows))


class OverTime(Protocol):
    """A micro-kernel for memories of int16, which computes outputs of them."""

    def kernel(self, node: Node) -> KernelDescription:
        """Return it; parameters: features, weights, what sums begin with, outputs."""

    def instructions(self, node: Node) -> int:
        """Return the instructions of a call."""


def has_short_memory(node: Node) -> bool:
    """Return whether a memory of int16 is as it lies what weights of int16 are multiplied with."""
    memory, weights = (node.inputs[n].type for n in (1, 3))
    is_short = memory.dtype is weights.dtype is DType.INT16 and memory.quant.zero_point == 0
    return is_short and node.outputs[0].dtype is DType.INT8 and svdf_params(node).time.shift < 0


def block_cost(
    node: Node, per_product: float, per_pass: int, over_time: OverTime | None = None
) -> int:
    """Return the instructions of a step.

    Args:
        node: the SVDF.
        per_product: of a weight of features and an element of the input.
        per_pass: of what is done for every eight filters besides.
        over_time: takes the place of loops over a memory of int16.
    """
    batch, width, filters, length, units = svdf_extents(node)
    blocks = blocks_of(node)
    features = blocks.rows * blocks.count * (width * per_product + per_pass / _TOGETHER)
    if over_time is not None and has_short_memory(node):
        along = over_time.instructions(node)
    else:
        along = filters * length * _TIME + units * _UNIT
    return int(batch * (features + along + filters * (length * _MOVE + _FILTER)))


_MOVE, _TIME = 2.4, 5
_FILTER, _UNIT = 19, 24
"""Instructions to move a feature, to multiply it, to finish a sum of features, and one of time."""


def scratch_bytes(node: Node, padding: int) -> int:
    """Return the bytes of a copy of the input, if its length is no multiple of `padding`."""
    width = svdf_extents(node).width
    return -(-width // padding) * padding if width % padding else 0


def feature_weights(node: Node, padding: int) -> Array:
    """Return the weights of features as (blocks, rows, K), with zeros behind filters and K.

    Args:
        node: the SVDF.
        padding: K becomes a multiple of it.
    """
    extents, blocks = svdf_extents(node), blocks_of(node)
    more = (0, blocks.rows * blocks.count - extents.filters), (0, -extents.width % padding)
    padded: Array = np.pad(node.inputs[2].values, more)
    return padded.reshape(blocks.count, blocks.rows, -1)


@dataclass(frozen=True, slots=True)
class _Svdf:
    """The parameters of an SVDF's function; features of a filter follow each other."""

    extents: SvdfExtents
    finish: SvdfFinish
    x: ir.Buffer
    before: ir.Buffer
    y: ir.Buffer
    after: ir.Buffer
    over_time: OverTime | None

    @staticmethod
    def of(layer: Layer, over_time: OverTime | None) -> _Svdf:
        x, before = layer.whole(0).buffer, layer.whole(1).buffer
        y, after = layer.output_buffer(), layer.output_buffer()
        by = over_time if has_short_memory(layer.node) else None
        return _Svdf(svdf_extents(layer.node), svdf_finish(layer), x, before, y, after, by)

    def moved(self, n: te.Expr) -> ir.Stmt:
        """Emit the memory without the oldest features; a new one follows those of each filter."""
        if self.extents.length == 1:
            return seq()
        turns, rest = divmod(self.extents.filters * self.extents.length - 1, _MOVED)

        def some(first: te.Expr, count: int) -> ir.Stmt:
            places = (first + n for n in range(count))
            return seq(*(store(self.after, (n, i), load(self.before, n, i + 1)) for i in places))

        behind = some(te.as_expr(turns * _MOVED, DType.INT32), rest)
        return seq(each("turn", turns, lambda turn: some(turn * _MOVED, _MOVED)), behind)

    def newest(self, n: te.Expr, first: te.Expr, sums: ir.Buffer) -> ir.Stmt:
        """Emit the newest features of the filters from `first` on, of sums of products."""
        _, _, filters, length, _ = self.extents
        (rows,) = sums.shape
        assert isinstance(rows, int)
        features = self.finish.features
        row_sums = te.placeholder((rows,), sums.dtype, "sums")
        image, begin = te.var("n", 0, self.extents.batch - 1), te.var("first", 0, filters - 1)
        stored = te.compute(
            (rows,),
            lambda i: self.finish.newest(features.start(begin + i) + row_sums[i], begin + i),
            "newest",
            axes=("i",),
            ranges={0: (0, te.minimum(rows, filters - begin))},
            store=lambda i: (image, (begin + i) * length + (length - 1)),
            buffer_shape=self.after.shape,
        )
        body = te.create_schedule(stored).primfunc(name="newest").body
        replaced: dict[ir.Param, visitor.Replacement] = {
            image.var: n.node,
            begin.var: first.node,
            row_sums.buffer: sums,
            stored.buffer: self.after,
        }
        return visitor.substitute(body, replaced)

    def outputs_by(self, by: OverTime, n: te.Expr, weights: Array) -> ir.Stmt:
        time, units = self.finish.time, self.extents.units
        assert isinstance(time, WeightedArithmetic)
        of_time = packing.constant("time_weights", weights.reshape(units, -1))
        kernel = by.kernel(self.finish.node)
        start = at(time.bias.buffer, 0)
        return call(kernel, at(self.after, n, 0), at(of_time, 0, 0), start, at(self.y, n, 0))

    def outputs(self, n: te.Expr, weights: Array) -> ir.Stmt:
        if self.over_time is not None:
            return self.outputs_by(self.over_time, n, weights)
        batch, _, filters, length, units = self.extents
        terms, time = filters * length // units, self.finish.time
        memory = te.placeholder(self.after.shape, self.after.dtype, "kept")
        of_time = te.constant(weights.reshape(units, terms), "time_weights")
        image = te.var("n", 0, batch - 1)

        def output(unit: te.Expr) -> te.Expr:
            i = te.reduce_axis(0, terms, "i")
            term = time.product(memory[image, unit * terms + i], of_time[unit, i])
            return self.finish.output(te.sum(term, i, init=time.start(unit)), unit)

        y = te.compute(
            (units,), output, "y", axes=("unit",),
            store=lambda unit: (image, unit), buffer_shape=self.y.shape,
        )  # fmt: skip
        steps = te.create_schedule(y)
        unrolling.unroll_by(steps, steps.loop(y, "i"), terms, _UNROLLED)
        replaced: dict[ir.Param, visitor.Replacement] = {
            image.var: n.node,
            memory.buffer: self.after,
            y.buffer: self.y,
        }
        return visitor.substitute(steps.primfunc(name="outputs").body, replaced)


def packed_bytes(node: Node, make: MakeProduct, padding: int = 1) -> int:
    """Return the bytes of the constants of what `emit_blocks` gives."""
    product, finish = make(feature_weights(node, padding)), svdf_finish(Layer.alone(node))
    features, time = finish.features, finish.time
    sums = te.placeholder((1,), accumulated(node.inputs[0].dtype), "sums")
    of_memory, of_time = (
        te.placeholder((1,), t.dtype, "kept") for t in (node.inputs[1], node.inputs[3])
    )
    newest = te.compute((1,), lambda i: finish.newest(features.start(i) + sums[i], i), "newest")
    term = te.compute(
        (1,), lambda i: time.start(i) + time.product(of_memory[i], of_time[i]), "term"
    )
    output = te.compute((1,), lambda i: finish.output(term[i], i), "output")
    rest = node.inputs[3].type.bytes + packing.bytes_of(*constants_of((newest, output)))
    return packing.bytes_of(product.weights) + rest


def emit_blocks(
    layer: Layer, name: str, make: MakeProduct, padding: int = 1, over_time: OverTime | None = None
) -> ir.PrimFunc:
    """Return the function of an SVDF whose features are multiplied block by block.

    Args:
        layer: whose function it is.
        name: of the function.
        make: makes the products.
        padding: inputs are given in multiples of so many elements.
        over_time: takes the place of loops over a memory of int16.
    """
    svdf, blocks = _Svdf.of(layer, over_time), blocks_of(layer.node)
    batch, width = svdf.extents[:2]
    product, dtype = make(feature_weights(layer.node, padding)), layer.node.inputs[0].dtype
    sums = ir.Buffer("sums", (blocks.rows,), accumulated(dtype), scope=ir.Scope.LOCAL)
    size = scratch_bytes(layer.node, padding)
    scratch = ir.Buffer("scratch", (size,), dtype, alignment=4) if size else None

    def block(n: te.Expr, number: te.Expr) -> ir.Stmt:
        vector = at(svdf.x, n, 0) if scratch is None else at(scratch, 0)
        return seq(
            product.call(number, vector, at(sums, 0)), svdf.newest(n, number * blocks.rows, sums)
        )

    def step(n: te.Expr) -> ir.Stmt:
        return seq(
            *([] if scratch is None else [_padded(svdf.x, n, width, scratch)]),
            svdf.moved(n),
            each("block", blocks.count, lambda number: block(n, number)),
            svdf.outputs(n, layer.data(3)),
        )

    return layer.function(name, scratch, ir.Allocate(sums, each("n", batch, step)))


def _padded(x: ir.Buffer, n: te.Expr, width: int, scratch: ir.Buffer) -> ir.Stmt:
    """Emit a copy of an input with zeros behind, which meet weights that are 0."""
    (size,) = scratch.shape
    return seq(
        loop("i", 0, width, lambda i: store(scratch, (i,), load(x, n, i))),
        loop("i", width, te.as_expr(size, DType.INT32), lambda i: store(scratch, (i,), 0)),
    )
