"""Sums, means and extremes of integers over neighbouring axes.

Axes that are neighbours, and are all reduced or all stay, are one.  What is left is lines of
neighbours of so many channels.  With one channel a micro-kernel takes all lines; with several it
takes one line, some channels at a time.  Sums stay in registers and are rescaled there.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from math import prod
from typing import Protocol

import numpy as np

from microtir import te
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.graph.operator import Operator
from microtir.kernels.common import packing, refusals
from microtir.kernels.common.kernel import Kernel
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.made_once import made_once
from microtir.kernels.common.micro_kernel import call, describe
from microtir.kernels.common.statements import at, each, load, loop, seq, store
from microtir.measure.printed import Printed, number, printed
from microtir.operators.common.linear import LinearParams, rescales_in_float
from microtir.operators.common.rows import RowWindow
from microtir.operators.reduction import definition as reduction
from microtir.plan.ir import Calls, Refusal
from microtir.schedule import KernelDescription
from microtir.tir import ir

LONGEST_SUM = 256  # int8 numbers that 16 bits add up, more int16 ones than 32 bits take
_MOST = 0xFFFF  # lines, elements: what MOVW loads
_FARTHEST = 4095  # channels: what a load reaches
_CALL = 9  # instructions around a call


class Operation(Enum):
    SUM = "sum"
    MAX = "max"
    MIN = "min"


class Form(Protocol):
    """The sequence by which an instruction set rescales; part of the identity of a kernel."""

    @property
    def name(self) -> str:
        """Distinguish kernels."""

    def values(self) -> Mapping[str, object]:
        """Return what templates are given."""


_OPERATIONS: Mapping[type[Operator], Operation] = {
    reduction.ReduceMax: Operation.MAX,
    reduction.ReduceMin: Operation.MIN,
}


@dataclass(frozen=True, slots=True)
class Extents:
    """`lines` of `count` neighbours, of which those of a channel make one element."""

    lines: int
    count: int
    channels: int

    @property
    def is_rows(self) -> bool:
        """Return whether elements that make one are neighbours in memory."""
        return self.channels == 1

    @staticmethod
    def of(node: Node) -> Extents | None:
        """Return the extents of a reduction; None if kept axes lie between reduced ones."""
        op, shape = node.attributes(reduction.Reduction), node.inputs[0].shape
        axes = [axis for axis in op.axes if shape[axis] > 1]
        if not axes:
            return None
        first, last = min(axes), max(axes) + 1
        if any(shape[axis] > 1 and axis not in axes for axis in range(first, last)):
            return None
        return Extents(*map(prod, (shape[:first], shape[first:last], shape[last:])))


@dataclass(frozen=True, slots=True)
class Finish:
    """The rescaling of sums: the form of an instruction set, and the words that it is given."""

    form: Form
    words: tuple[int, ...]

    @property
    def constants(self) -> ir.Buffer:
        return packing.constant("constants", np.array([self.words], np.int32))


class Reductions(Kernel):
    """Reductions by micro-kernels.

    Attributes:
        columns, rows: templates, of several channels and of one.
        words: that a form is given.
        stack_bytes: that the templates push.
        inner_loop: the instruction that ends loops over pixels.
        types: of elements.
    """

    operators = (reduction.Mean, reduction.Sum, reduction.ReduceMax, reduction.ReduceMin)
    rescales_in_float = True
    columns: str
    rows: str
    words: int
    stack_bytes: int
    inner_loop: str
    types: tuple[DType, ...] = (DType.INT8,)

    @abstractmethod
    def rescaled(
        self, params: LinearParams, bias: int, largest: int, dtype: DType
    ) -> Finish | None:
        """Return how sums are rescaled; None if they do not fit.

        Args:
            params: with one multiplier.
            bias: of the zero point.
            largest: magnitude of a sum without it.
            dtype: of the results.
        """

    @abstractmethod
    def stored(self, form: Form, total: te.Expr, constants: ir.Buffer) -> te.Expr:
        """Return what is stored of a sum."""

    @abstractmethod
    def values(self, extents: Extents, operation: Operation, dtype: DType) -> Mapping[str, object]:
        """Return what the templates are given beside the finish."""

    @abstractmethod
    def turns_of_rows(self, extents: Extents, values: Mapping[str, object]) -> Mapping[str, int]:
        """Return how often the loops of `rows` run in a call."""

    def _turns_of_columns(self, values: Mapping[str, object]) -> Mapping[str, int]:
        """Return how often the loops of `columns` run in a call."""
        outer, parts = number(values, "turns_of_all"), number(values, "parts")
        whole, last = values["whole"], values["last"]
        assert isinstance(whole, Mapping) and isinstance(last, Mapping)
        return {
            "bne 1b": outer,
            "bpl 1b": outer,
            f"{self.inner_loop} 3b": outer * max(parts, 1) * number(whole, "turns"),
            "bne 4b": outer * parts,
            f"{self.inner_loop} 5b": outer * number(last, "turns"),
        }

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it: other types, axes between those that are reduced."""
        dtype = node.inputs[0].dtype
        if dtype not in self.types or node.output.dtype is not dtype:
            return Refusal.TYPES
        extents = Extents.of(node)
        if extents is None:
            return Refusal.SHAPES
        if max(extents.lines, extents.count) > _MOST:
            return Refusal.SIZES
        if extents.channels * dtype.bytes > _FARTHEST:
            return Refusal.SIZES
        fits = _operation(node) is not Operation.SUM or self._finish(node) is not None
        return None if fits else Refusal.SCALES

    def window(self, _node: Node) -> RowWindow | None:
        """Return None: lines may cross rows."""
        return None

    def instructions(self, node: Node, _calls: Calls) -> int:
        extents, body = _extents(node), self._printed(node)
        is_rows, values = extents.is_rows, self._values(extents, *self._kind(node))
        calls = 1 if is_rows else extents.lines
        turns = self.turns_of_rows(extents, values) if is_rows else self._turns_of_columns(values)
        return calls * (body.instructions(turns) + _CALL)

    def code_bytes(self, node: Node) -> int:
        return self._printed(node).bytes

    def packed_bytes(self, node: Node) -> int:
        finish = self._finish(node)
        return 0 if finish is None else packing.bytes_of(finish.constants)

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Emit a call for all lines, or for each."""
        node, extents, finish = layer.node, _extents(layer.node), self._finish(layer.node)
        x = layer.whole(0, (1, node.inputs[0].type.elements)).buffer
        y = layer.output_buffer((1, node.output.type.elements))
        kernel = self._kernel(extents, *self._kind(node))
        constants = () if finish is None else (at(finish.constants, 0, 0),)
        calls, step = (1, 0) if extents.is_rows else (extents.lines, extents.channels)
        body = each("line", calls, lambda line: call(
            kernel, at(x, 0, line * (extents.count * step)), at(y, 0, line * step), *constants,
        ))  # fmt: skip
        return layer.function(name, None, body)

    def _printed(self, node: Node) -> Printed:
        extents = _extents(node)
        return printed(self._template(extents), self._values(extents, *self._kind(node)))

    def _template(self, extents: Extents) -> str:
        return self.rows if extents.is_rows else self.columns

    def _values(
        self, extents: Extents, dtype: DType, operation: Operation, form: Form | None
    ) -> Mapping[str, object]:
        values = {**self.values(extents, operation, dtype), "operation": operation.value}
        return values if form is None else {**values, "rescaling": form.values()}

    def _finish(self, node: Node) -> Finish | None:
        """Return how a node rescales; None if it does not, or cannot."""
        op, x, y = node.op, node.inputs[0].type, node.output.type
        if not isinstance(op, reduction.Mean | reduction.Sum):
            return None
        params = reduction.sum_params(op, x, y)
        count, zero_point = params.count, params.input_zero_point
        factors = (reduction.float_sum(node).factor,) if rescales_in_float(node) else ()
        linear = LinearParams(
            zero_point, params.output_zero_point, (params.multiplier,), params.minimum,
            params.maximum, factors, op.rescaling,
        )  # fmt: skip
        return self.rescaled(linear, -count * zero_point, -count * x.dtype.min, x.dtype)

    def _kind(self, node: Node) -> tuple[DType, Operation, Form | None]:
        finish = self._finish(node)
        return node.output.dtype, _operation(node), None if finish is None else finish.form

    @made_once
    def _kernel(
        self, extents: Extents, dtype: DType, operation: Operation, form: Form | None
    ) -> KernelDescription:
        """Reduce lines; parameters: the first element, the output, the words of the form."""
        assert self.needs is not None
        lines = extents.lines if extents.is_rows else 1
        count, channels = extents.count, extents.channels
        x = ir.Buffer("x", (lines * count * channels,), dtype)
        y = ir.Buffer("y", (lines * channels,), dtype)
        constants = ir.Buffer("constants", (1, self.words), DType.INT32, alignment=4)
        name = f"{operation.value}_{lines}x{count}x{channels}"
        name += "" if dtype is DType.INT8 else f"_{dtype.value}"

        def element(line: te.Expr, channel: te.Expr) -> ir.Stmt:
            first, place = line * (count * channels) + channel, line * channels + channel
            if form is None:
                return _extreme(operation, x, y, (first, channels, count), place)
            total = ir.Buffer("total", (1,), DType.INT32, ir.Scope.LOCAL)
            result = self.stored(form, load(total, 0), constants)
            body = seq(_sum(total, x, first, channels, count), store(y, (place,), result))
            return ir.Allocate(total, body)

        return describe(
            f"reduce_{name}" if form is None else f"reduce_{name}_{form.name}",
            (f"{operation.value.capitalize()} of {count} elements of {channels} channels",),
            (x, y) if form is None else (x, y, constants),
            (y,),
            each("line", lines, lambda i: each("channel", channels, lambda c: element(i, c))),
            self._template(extents),
            self._values(extents, dtype, operation, form),
            stack_bytes=self.stack_bytes,
            needs=self.needs,
        )


def _sum(total: ir.Buffer, x: ir.Buffer, first: te.Expr, step: int, count: int) -> ir.Stmt:
    """Add up `count` elements from `first` on, `step` apart."""

    def add(k: te.Expr) -> ir.Stmt:
        value = te.cast(DType.INT32, load(x, first + k * step))
        return store(total, (0,), load(total, 0) + value)

    return seq(store(total, (0,), 0), loop("k", 0, count, add))


def _extreme(
    operation: Operation, x: ir.Buffer, y: ir.Buffer, line: tuple[te.Expr, int, int], place: te.Expr
) -> ir.Stmt:
    """Store the largest or smallest of elements: the first one, their step, their number."""
    first, step, count = line
    choose = te.maximum if operation is Operation.MAX else te.minimum

    def take(k: te.Expr) -> ir.Stmt:
        return store(y, (place,), choose(load(y, place), load(x, first + k * step)))

    return seq(store(y, (place,), load(x, first)), loop("k", 1, count, take))


def _operation(node: Node) -> Operation:
    return _OPERATIONS.get(type(node.op), Operation.SUM)


def _extents(node: Node) -> Extents:
    return refusals.asked(Extents.of(node))
