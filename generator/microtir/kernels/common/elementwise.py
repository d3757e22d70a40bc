"""Elementwise operators on stored elements or floats: a loop of an instruction set, and few lanes.

Lanes are as wide as an element: of integers, what they give is a stored element again.  An operand
is a run of elements, or one that repeats.  Runs are as long as all inputs allow; loops in C are
around them.
"""

from __future__ import annotations

import math
import operator
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from microtir import te
from microtir.config import Feature
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.graph.operator import Operator
from microtir.kernels.common import arithmetic, made_once, packing
from microtir.kernels.common.kernel import Kernel
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.micro_kernel import call, describe
from microtir.kernels.common.sigmoids import Sigmoid
from microtir.kernels.common.statements import at, each, load, loop, store
from microtir.measure.printed import printed
from microtir.operators import OPERATORS
from microtir.operators.activations.definition import Logistic, Relu, Tanh, relu_params
from microtir.operators.arithmetic.definition import (
    Add,
    BinaryArithmetic,
    Maximum,
    Minimum,
    Mul,
    Sub,
)
from microtir.operators.common.arithmetic import wide, within
from microtir.operators.common.broadcast import keeps_rows, merged
from microtir.operators.common.rows import RowWindow
from microtir.operators.conversion.definition import Quantize
from microtir.operators.definition import Trait
from microtir.operators.tables import has_table, results
from microtir.plan.ir import Calls, Refusal
from microtir.schedule import KernelDescription
from microtir.tir import ir

_WORD = 4
_LONGEST = 0xFFFF  # elements of a run: what MOVW loads
_LONG = 256  # elements that constants are repeated for, so that runs are longer
_TURN, _LOOPS, _ALONE = 7, 6, 2  # instructions of a loop in C, of all of them, of a call alone


class Lane(Enum):
    """Result of the elements at a place."""

    MINIMUM = "minimum"
    MAXIMUM = "maximum"
    CLAMP = "clamp"  # to two constants
    LOOK_UP = "look_up"  # an entry of a table, in the order of bytes without a sign
    FLIP = "flip"  # the sign bit, which turns a uint8 into an int8 of the same real value, and back
    ADD = "add"  # this and what follows are lanes of floats
    SUBTRACT = "sub"
    MULTIPLY = "mul"


_OF_TWO: Mapping[type[Operator], Lane] = MappingProxyType({
    Minimum: Lane.MINIMUM, Maximum: Lane.MAXIMUM, Add: Lane.ADD, Sub: Lane.SUBTRACT,
    Mul: Lane.MULTIPLY,
})  # fmt: skip
_SPELLED = str.maketrans("-.", "m_", "+")  # numbers, in names of C
_ENDLESS = (-math.inf, math.inf)


AnyLane: TypeAlias = "Lane | arithmetic.Form | Sigmoid"


@dataclass(frozen=True, slots=True)
class Run:
    """A run of elements; part of the identity of a micro-kernel.

    Attributes:
        lane: of each; a form, or a sigmoid, has lanes of 32 bits.
        source: type of the inputs, if the lane is none of arithmetic.
        dtype: type of the output.
        repeats: for each input, whether one element counts for all.
        count: of elements.
        ends: that results of floats are clamped to.
    """

    lane: AnyLane
    source: DType
    dtype: DType
    repeats: tuple[bool, ...]
    count: int
    ends: tuple[float, float] = _ENDLESS

    @property
    def name(self) -> str:
        kinds = "".join("xr"[repeats] for repeats in self.repeats)
        source = "" if self.source is self.dtype else f"{self.source.value}_"
        ends = "" if self.ends == _ENDLESS else "_{:g}_{:g}".format(*self.ends)
        ends = ends.translate(_SPELLED)
        return f"{self.lane.value}{self.count}_{source}{self.dtype.value}_{kinds}{ends}"


@dataclass(frozen=True, slots=True)
class Axis:
    """A loop around runs, and by how many elements inputs go on with each turn."""

    extent: int
    steps: tuple[int, ...]
    written: int


def form_of(run: Run) -> arithmetic.Form:
    """Return the form of a run of arithmetic."""
    assert isinstance(run.lane, arithmetic.Form)
    return run.lane


@made_once.of_node
def _arithmetic(node: Node) -> arithmetic.Arithmetic | None:
    return arithmetic.arithmetic_of(node)


def _computed(node: Node) -> arithmetic.Arithmetic | None:
    """Return the arithmetic of a node; None of what only clamps, or has no form."""
    has_form = isinstance(node.op, arithmetic.OPERATORS) and not node.output.dtype.is_float
    return _arithmetic(node) if has_form and not _only_clamps(node) else None


def _only_clamps(node: Node) -> bool:
    """Return whether a node is RELU or its like, of int16 of one scale."""
    x, y = node.inputs[0].type, node.output.type
    is_long = x.dtype is y.dtype is DType.INT16
    return isinstance(node.op, Relu) and is_long and x.quantization == y.quantization


def lane_of(node: Node) -> AnyLane | None:
    """Return what a node computes of an element, if it is one of the lanes."""
    if node.output.dtype.is_float:
        return Lane.CLAMP if isinstance(node.op, Relu) else _OF_TWO[type(node.op)]
    computed = _computed(node)
    if computed is not None:
        return computed.form
    if sigmoid := Sigmoid.of(node):
        return sigmoid
    if isinstance(node.op, Minimum | Maximum):
        return _OF_TWO[type(node.op)]
    if _only_clamps(node):
        return Lane.CLAMP
    if _converts_uint8(node):
        flipped = np.arange(1 << 8, dtype=np.uint8) ^ (1 << 7)
        is_flip = np.array_equal(_entries(node).view(np.uint8), flipped)
        return Lane.FLIP if is_flip else Lane.LOOK_UP
    if not has_table(node.op, node.inputs[0].type, node.output.type):
        return None
    entries = _entries(node)
    stored = np.roll(np.arange(DType.INT8.min, DType.INT8.max + 1), DType.INT8.min)
    is_clamp = np.array_equal(entries, np.clip(stored, entries.min(), entries.max()))
    return Lane.CLAMP if is_clamp else Lane.LOOK_UP


def _converts_uint8(node: Node) -> bool:
    """Return whether a node is QUANTIZE from or to uint8, which is a table, too."""
    dtypes = {node.inputs[0].dtype, node.output.dtype}
    return isinstance(node.op, Quantize) and DType.UINT8 in dtypes <= {DType.UINT8, DType.INT8}


def _ends(node: Node) -> tuple[float, float]:
    """Return what results of floats are clamped to."""
    if not node.output.dtype.is_float or isinstance(node.op, Minimum | Maximum):
        return _ENDLESS
    op = node.attributes(Relu, BinaryArithmetic)
    return (op.kind if isinstance(op, Relu) else op.activation).real_range


@made_once.of_node
def _entries(node: Node) -> ir.Array:
    """Return the results of a node with a table, in the order of bytes without a sign."""
    dtype = node.inputs[0].dtype
    table = results(node.op, node.inputs[0].type, node.output.type)
    return np.roll(table, dtype.min)


def constants_of(node: Node) -> ir.Buffer | None:
    """Return what a lane reads beside the elements: a table, words of ends, or those of a form."""
    if computed := _computed(node):
        return packing.constant("words", computed.constants)
    if sigmoid := Sigmoid.of(node):
        return sigmoid.lines
    if _only_clamps(node):
        assert isinstance(node.op, Relu)
        params = relu_params(node.op, node.inputs[0].type, node.output.type)
        ends = np.array([params.activation_min, params.activation_max], np.int16)
        return packing.constant("ends", np.repeat(ends, _WORD // DType.INT16.bytes))
    lane = None if node.output.dtype.is_float else lane_of(node)
    if lane is Lane.LOOK_UP:
        return packing.constant("table", _entries(node))
    if lane is not Lane.CLAMP:
        return None
    entries = _entries(node)
    return packing.constant("ends", np.repeat([entries.min(), entries.max()], _WORD))


@made_once.of_node
def run_of(node: Node) -> tuple[Run, tuple[Axis, ...]]:
    """Return the runs of a node, and the loops around them; of a row, if it is called by rows."""
    lane = lane_of(node)
    assert lane is not None, "reject() was asked"
    if row := row_of(node):
        steps = tuple(0 if again else row.count for again in row.repeats)
        return row, (Axis(node.output.type.rows, steps, row.count),)
    shapes, result = merged([tensor.shape for tensor in node.inputs], node.output.shape)
    *outer, count = result or (1,)
    lasts = tuple((shape or (1,))[-1] for shape in shapes)
    repeats = tuple(last < count for last in lasts)
    run = Run(lane, node.inputs[0].dtype, node.output.dtype, repeats, count, _ends(node))
    axes = [
        Axis(
            extent,
            tuple(math.prod(s[n + 1 :]) if s[n] > 1 else 0 for s in shapes),
            math.prod(result[n + 1 :]),
        )
        for n, extent in enumerate(outer)
    ]
    return _longer(run, axes, [t.is_constant for t in node.inputs])


def _longer(
    run: Run, axes: list[Axis], is_constant: Sequence[bool]
) -> tuple[Run, tuple[Axis, ...]]:
    """Return runs that are several of these, where all that would repeat in them is constant."""
    if not axes:
        return run, ()
    *outer, inner = axes
    stays = [not any(axis.steps[n] for axis in axes) for n in range(len(is_constant))]
    follow = (
        inner.steps[n] == run.count or (stays[n] and (is_constant[n] or run.repeats[n]))
        for n in range(len(is_constant))
    )
    most = _LONG // run.count if run.count and all(follow) else 1
    times = max((n for n in range(1, most + 1) if inner.extent % n == 0), default=1)
    steps = tuple(step * times for step in inner.steps)
    longer = Axis(inner.extent // times, steps, inner.written * times)
    return replace(run, count=run.count * times), (*outer, longer)


def row_of(node: Node) -> Run | None:
    """Return the run of a row, where all inputs have that row, or one element for all of them."""
    lane = lane_of(node)
    assert lane is not None, "reject() was asked"
    constants = [t for t in node.inputs if t.is_constant]
    if not keeps_rows(node) or any(t.type.elements > 1 for t in constants):
        return None
    repeats = tuple(t.is_constant for t in node.inputs)
    elements = node.output.type.row_elements
    return Run(lane, node.inputs[0].dtype, node.output.dtype, repeats, elements, _ends(node))


class Elementwise(Kernel):
    """Runs of elements by micro-kernels of an instruction set."""

    operators = (
        Minimum,
        Maximum,
        *(record.op for record in OPERATORS if record.has(Trait.TABULATED)),
    )
    is_for_least_ram = False
    template: str
    stack_bytes: int
    types: tuple[DType, ...]
    without_lane = Refusal.NO_TABLE
    lanes: type[AnyLane] = Lane

    @abstractmethod
    def values(self, run: Run) -> Mapping[str, object]:
        """Return what the template is given."""

    @abstractmethod
    def turns(self, run: Run) -> Mapping[str, int]:
        """Return how often the loop of a run has a turn."""

    def reject(self, node: Node) -> Refusal | None:
        if node.output.dtype not in self.types:
            return Refusal.TYPES
        if not isinstance(lane_of(node), self.lanes):
            return self.without_lane
        run, _ = run_of(node)
        return None if 0 < run.count <= _LONGEST else Refusal.SIZES

    def window(self, node: Node) -> RowWindow | None:
        return None if row_of(node) is None else RowWindow()

    def instructions(self, node: Node, _calls: Calls) -> int:
        run, axes = run_of(node)
        calls = math.prod(axis.extent for axis in axes)
        return calls * self.of_run(run) + _around(axes, constants_of(node) is not None)

    def of_run(self, run: Run) -> int:
        return printed(self.template, self.values(run)).instructions(self.turns(run))

    def bytes_of_run(self, run: Run) -> int:
        return printed(self.template, self.values(run)).bytes

    def packed_bytes(self, node: Node) -> int:
        read = [_constant(node, n) for n, t in enumerate(node.inputs) if t.is_constant]
        return packing.bytes_of(constants_of(node), *read)

    def code_bytes(self, node: Node) -> int:
        return self.bytes_of_run(run_of(node)[0])

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Emit loops around runs, or a run for each row."""
        node, constants = layer.node, constants_of(layer.node)
        behind = () if constants is None else (at(constants, *(0,) * len(constants.shape)),)
        if layer.takes_row_range:
            return self._rows(layer, name, behind)
        run, axes = run_of(node)
        sources = [_source(layer, n) for n in range(len(node.inputs))]
        target = layer.output_buffer((1, node.output.type.elements))
        kernel = self.lane(run)

        def nest(
            left: tuple[Axis, ...], firsts: tuple[te.ExprLike, ...], to: te.ExprLike
        ) -> ir.Stmt:
            if not left:
                operands = (at(x, 0, first) for x, first in zip(sources, firsts, strict=True))
                return call(kernel, *operands, at(target, 0, to), *behind)
            axis, *inner = left

            def turn(i: te.Expr) -> ir.Stmt:
                moved = zip(firsts, axis.steps, strict=True)
                return nest(tuple(inner), tuple(f + i * s for f, s in moved), to + i * axis.written)

            return each(f"i{len(inner)}", axis.extent, turn)

        zero = te.as_expr(0, DType.INT32)
        return layer.function(name, None, nest(axes, (zero,) * len(sources), zero))

    def _rows(self, layer: Layer, name: str, behind: tuple[ir.BufferArgument, ...]) -> ir.PrimFunc:
        run, inputs = row_of(layer.node), layer.node.inputs
        assert run is not None, "window() says so"
        kernel = self.lane(run)
        operands = [_row(layer, position) for position in range(len(inputs))]
        y = layer.output_rows()

        def row(number: te.Expr) -> ir.Stmt:
            return call(kernel, *(x(number) for x in operands), y.at(number, 0, 0), *behind)

        return layer.function(name, None, loop("row", layer.y0, layer.y1, row))

    def lane(self, run: Run) -> KernelDescription:
        assert self.needs is not None
        return described(
            run, self.template, tuple(self.values(run).items()), self.stack_bytes, self.needs
        )


class Sigmoids(Elementwise):
    """LOGISTIC and TANH of int16 by lines of a table."""

    operators = (Logistic, Tanh)
    types = (DType.INT16,)
    lanes = Sigmoid


class Arithmetic(Elementwise):
    """The same of sums, products and squared differences, in lanes of 32 bits."""

    operators = arithmetic.OPERATORS
    types = (DType.INT8, DType.INT16)
    without_lane = Refusal.SCALES
    lanes = arithmetic.Form


def _around(axes: Sequence[Axis], has_constants: bool) -> int:
    """Return the instructions of loops in C around calls."""
    axes = [axis for axis in axes if axis.extent > 1]
    if not axes:
        return _ALONE
    turns, total = 1, _LOOPS
    for axis in axes:
        turns *= axis.extent
        total += _TURN * turns
    strides = {*axes[-1].steps, *([0] if has_constants else [])} - {axes[-1].written}
    return total + turns * sum(2 if stride else 1 for stride in strides)


def _constant(node: Node, position: int) -> ir.Buffer:
    """Return a constant input as one row; what all runs read alike is as long as they are."""
    run, axes = run_of(node)
    data = node.inputs[position].values
    slopes = arithmetic.slopes_of(node)
    data = data if slopes is None else slopes
    differs = run.repeats[position] or any(axis.steps[position] for axis in axes)
    times = 1 if differs else run.count // data.size
    return packing.constant("constant", np.tile(data.reshape(1, -1), times))


def _source(layer: Layer, position: int) -> ir.Buffer:
    """Return an input as one row."""
    tensor = layer.node.inputs[position]
    if tensor.is_constant:
        return _constant(layer.node, position)
    return layer.whole(position, (1, tensor.type.elements)).buffer


def _row(layer: Layer, position: int) -> Callable[[te.Expr], ir.BufferArgument]:
    """Return what points to an input's elements of a row: these, or the one that it has."""
    if layer.node.inputs[position].is_constant:
        element = _constant(layer.node, position)
        return lambda _row: at(element, 0, 0)
    rows = layer.input_rows(position)
    return lambda row: rows.at(row, 0, 0)


_COMBINED: Mapping[Lane, Callable[..., te.Expr]] = MappingProxyType({
    Lane.MINIMUM: te.minimum, Lane.MAXIMUM: te.maximum, Lane.CLAMP: lambda x: x,
    Lane.ADD: operator.add, Lane.SUBTRACT: operator.sub, Lane.MULTIPLY: operator.mul,
})  # fmt: skip


@made_once.made_once
def described(
    run: Run, template: str, values: tuple[tuple[str, object], ...], stack: int, needs: Feature
) -> KernelDescription:
    """Describe a run; parameters: the inputs, the output, and what the lane reads beside them."""
    lane, beside = run.lane, list[ir.Buffer]()
    about = (f"Computes {run.count} elements: {run.lane.value.replace('_', ' ')}",)
    if isinstance(lane, Sigmoid):
        params, body = lane.meaning(run.count)
        return describe(
            run.name, about, params, params[1:2], body, template, dict(values), stack, needs
        )
    sources = lane.sources if isinstance(lane, arithmetic.Form) else (run.source,) * 2
    inputs = tuple(
        ir.Buffer(f"x{n}", (1 if again else run.count,), sources[n])
        for n, again in enumerate(run.repeats)
    )
    y = ir.Buffer("y", (run.count,), run.dtype)
    word = _WORD // run.dtype.bytes
    if isinstance(lane, arithmetic.Form):
        beside = [ir.Buffer("words", (lane.constants,), DType.INT32)]
    elif lane is Lane.LOOK_UP:
        beside = [ir.Buffer("table", (1 << 8,), run.dtype)]
    elif lane is Lane.CLAMP and not run.dtype.is_float:
        beside = [ir.Buffer("ends", (2 * word,), run.dtype)]

    def element(i: te.Expr) -> ir.Stmt:
        x = [load(b, 0 if a else i) for b, a in zip(inputs, run.repeats, strict=True)]
        if isinstance(lane, arithmetic.Form):
            return lane.statement(
                x, lambda n: load(beside[0], n), lambda value: store(y, (i,), value)
            )
        return store(y, (i,), narrow(x))

    def narrow(x: Sequence[te.Expr]) -> te.Expr:
        assert isinstance(lane, Lane)
        if run.dtype.is_float:
            return within(_COMBINED[lane](*x), *run.ends)
        for own in beside:
            if lane is Lane.LOOK_UP:
                return load(own, wide(x[0]) & DType.UINT8.max)
            return te.clamp(x[0], load(own, 0), load(own, word))
        if lane is Lane.FLIP:
            return te.cast(run.dtype, wide(x[0]) + (run.dtype.min - run.source.min))
        return _COMBINED[lane](*x)

    return describe(
        run.name,
        about,
        (*inputs, y, *beside),
        (y,),
        loop("i", 0, run.count, element),
        template,
        dict(values),
        stack,
        needs,
    )
