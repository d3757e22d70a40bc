"""Softmax and its logarithm over rows of int8: powers are looked up in a table of 256.

A micro-kernel finds the largest element of a row and adds up the powers of the differences to it.
What follows from the sum is computed once for a row, and another micro-kernel looks up once more
and makes the outputs of it.  Tables begin with the largest difference, so that an element is added
to where they are read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from microtir import te
from microtir.config import Feature
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.common import packing, refusals
from microtir.kernels.common.kernel import Kernel
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.made_once import made_once
from microtir.kernels.common.micro_kernel import call, describe
from microtir.kernels.common.statements import at, each, load, seq, store
from microtir.measure.printed import number, printed
from microtir.operators.softmax import definition, formula
from microtir.plan.ir import Calls, Refusal
from microtir.schedule import KernelDescription
from microtir.tir import ir, visitor

LONGEST = 256  # elements of a row: the shift of a quotient is at most 31
_QUAD = 4
_DIFFERENCES = 256
_STRAIGHT = 8  # quads that have no loop
_LOG_SUMS = 1 << 29  # logarithms of sums of rows in Q5 are below
_LAYER = 20  # instructions around all rows


@dataclass(frozen=True, slots=True)
class Tables:
    """Numbers that are looked up of a difference: its power, and what its output is made of."""

    powers: npt.NDArray[np.int64]
    results: npt.NDArray[np.int64]

    @staticmethod
    def of(node: Node) -> Tables | None:
        """Return the tables, the largest difference first; None if the results do not fit."""
        op, x = node.op, node.inputs[0].type
        if isinstance(op, definition.Softmax):
            powers = _powers(definition.softmax_params(op, x))
            return Tables(powers, powers)
        params = definition.log_softmax_params(x)
        results = formula.log_results(params)
        lowest = formula.least_difference(params, _LOG_SUMS)
        is_least = results[np.arange(_DIFFERENCES) >= -lowest] == formula.LEAST_RESULT
        return Tables(_powers(params), results[::-1]) if is_least.all() else None

    def buffers(self) -> tuple[ir.Buffer, ir.Buffer]:
        powers = packing.constant("powers", self.powers.astype(np.int32))
        if self.results is self.powers:
            return powers, powers
        return powers, packing.constant("results", self.results.astype(np.int32))


def _powers(
    params: definition.SoftmaxParams | definition.LogSoftmaxParams,
) -> npt.NDArray[np.int64]:
    powers = formula.exponentials(params.multiplier, params.difference_min).astype(np.int64)
    return np.pad(powers, (0, _DIFFERENCES - len(powers)))[::-1]


class Powers(Kernel):
    """Rows of int8, of 4 to 256 elements.

    Args:
        name: of the kernel.
        needs: the instruction set.
        folder: of its templates.
        between: instructions of a row between the two micro-kernels, of softmax and its logarithm.
    """

    operators = (definition.Softmax, definition.LogSoftmax)

    def __init__(self, name: str, needs: Feature, folder: str, between: tuple[int, int]) -> None:
        self.name, self.needs = name, needs
        self._feature, self._folder, self._between = needs, folder, between

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it: other types, one row, one that is short or long."""
        x = node.inputs[0]
        if any(tensor.dtype is not DType.INT8 for tensor in (x, node.output)):
            return Refusal.TYPES
        if x.shape[-1] < _QUAD:
            return Refusal.FEW_CHANNELS
        if x.shape[-1] > LONGEST:
            return Refusal.SIZES
        if x.type.elements == x.shape[-1]:
            return Refusal.ONE_ROW
        return None if Tables.of(node) is not None else Refusal.SCALES

    def window(self, _node: Node) -> None:
        """Return None: rows are counted over all of them."""
        return

    def instructions(self, node: Node, _calls: Calls) -> int:
        width, is_log = node.inputs[0].shape[-1], _is_log(node)
        turns = _turns(width)
        bodies = (printed(*of).instructions(turns) for of in self._templates(width, is_log))
        return _LAYER + node.inputs[0].type.elements // width * (
            sum(bodies) + self._between[is_log]
        )

    def code_bytes(self, node: Node) -> int:
        bodies = self._templates(node.inputs[0].shape[-1], _is_log(node))
        return sum(printed(*of).bytes for of in bodies)

    def weight_bytes(self, node: Node) -> int:
        return (1 + _is_log(node)) * _DIFFERENCES * DType.INT32.bytes

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Emit two calls for each row, and between them what follows from the sum."""
        node = layer.node
        width, is_log = node.inputs[0].shape[-1], _is_log(node)
        tables = refusals.asked(Tables.of(node))
        powers, results = tables.buffers()
        shape = node.inputs[0].type.elements // width, width
        x, y = layer.whole(0, shape).buffer, layer.output_buffer(shape)
        top, total = (ir.Buffer(name, (1,), DType.INT32, ir.Scope.LOCAL) for name in _SUMS)
        factors = ir.Buffer("factors", (_FACTORS,), DType.INT32, ir.Scope.LOCAL)

        def row(number: te.Expr) -> ir.Stmt:
            return seq(
                call(_sums(self._feature, self._folder, width), at(x, number, 0), at(powers, 0),
                     at(top, 0), at(total, 0)),
                _factors(top, total, factors, is_log),
                call(_outputs(self._feature, self._folder, width, is_log), at(x, number, 0),
                     at(results, 0), at(factors, 0), at(y, number, 0)),
            )  # fmt: skip

        body = each("row", shape[0], row)
        for local in (top, total, factors):
            body = ir.Allocate(local, body)
        return layer.function(name, None, body)

    def _templates(self, width: int, is_log: bool) -> tuple[tuple[str, Mapping[str, object]], ...]:
        return _sums_printed(self._folder, width), _outputs_printed(self._folder, width, is_log)


def _is_log(node: Node) -> bool:
    return isinstance(node.op, definition.LogSoftmax)


_SUMS = "top", "total"
_FACTORS = 3


def _factors(top: ir.Buffer, total: ir.Buffer, factors: ir.Buffer, is_log: bool) -> ir.Stmt:
    """Emit what outputs are computed with: the largest element, and what follows from the sum."""
    sums = te.placeholder((1,), DType.INT32, "sums")
    followed = formula.log_of_sum if is_log else formula.scale_of_sum
    values = te.compute((1,), lambda i: followed(sums[i]), "value", axes=("i",))
    shift = 0 if is_log else formula.shift_of_sum(load(total, 0), DType.INT8)
    return seq(
        _body((values,), {sums.buffer: total, values.buffer: factors}),
        store(factors, (1,), load(top, 0)),
        store(factors, (2,), shift),
    )


def _body(
    outputs: tuple[te.Tensor, ...], replaced: Mapping[ir.Param, visitor.Replacement]
) -> ir.Stmt:
    return visitor.substitute(te.create_schedule(outputs).primfunc(name="row").body, replaced)


def _values(width: int) -> dict[str, object]:
    quads, single = divmod(width, _QUAD)
    turns, rest = (0, quads) if quads <= _STRAIGHT else divmod(quads, _QUAD)
    return {
        "width": str(width),
        "turns": str(turns) if turns else "",
        "rest": str(rest) if rest else "",
        "back": str(width - _QUAD) if single else "",
        "single": str(single) if single else "",
    }


def _turns(width: int) -> Mapping[str, int]:
    """Return how often loops of either instruction set run."""
    turns = number(_values(width), "turns")
    return {
        "bne 1b": turns, "bne 2b": turns, "letp lr, 1b": -(-width // 16),
        "letp lr, 2b": -(-width // _QUAD),
    }  # fmt: skip


def _sums_printed(folder: str, width: int) -> tuple[str, Mapping[str, object]]:
    return f"{folder}/powers.j2", _values(width)


def _outputs_printed(folder: str, width: int, is_log: bool) -> tuple[str, Mapping[str, object]]:
    return f"{folder}/powers_outputs.j2", {**_values(width), "is_log": is_log}


@made_once
def _sums(needs: Feature, folder: str, width: int) -> KernelDescription:
    """Reduce a row; parameters: the row, powers, the largest element, the sum of powers."""
    x = te.placeholder((width,), DType.INT8, "x")
    table = te.placeholder((_DIFFERENCES,), DType.INT32, "table", alignment=4)
    k = te.reduce_axis(0, width, "k")
    top = te.compute((1,), lambda _: te.cast(DType.INT32, te.max(x[k], k)), "top", axes=("i",))

    def power(largest: te.Expr) -> te.Expr:
        place = te.minimum(te.cast(DType.INT32, x[k]) + (_DIFFERENCES - 1) - largest, 255)
        return formula.summand(table[te.maximum(place, 0)])

    total = te.compute((1,), lambda i: te.sum(power(top[i]), k), "total", axes=("i",))
    template, values = _sums_printed(folder, width)
    params = tuple(tensor.buffer for tensor in (x, table, top, total))
    return describe(
        f"powers_{width}", (f"Largest of {width} elements, and the sum of powers",),
        params, params[2:], _body((top, total), {}), template, values, stack_bytes=36, needs=needs,
    )  # fmt: skip


@made_once
def _outputs(needs: Feature, folder: str, width: int, is_log: bool) -> KernelDescription:
    """Make a row of outputs; parameters: the row, the table, factors, the outputs."""
    x = te.placeholder((width,), DType.INT8, "x")
    table = te.placeholder((_DIFFERENCES,), DType.INT32, "table", alignment=4)
    factors = te.placeholder((_FACTORS,), DType.INT32, "factors", alignment=4)
    computed: Callable[..., te.Expr] = formula.log_output if is_log else formula.quotient

    def output(i: te.Expr) -> te.Expr:
        place = te.cast(DType.INT32, x[i]) + (_DIFFERENCES - 1) - te.clamp(factors[1], -128, 127)
        return computed(table[te.clamp(place, 0, _DIFFERENCES - 1)], factors[0], factors[2])

    y = te.compute((width,), output, "y", axes=("i",))
    what = "Logarithms" if is_log else "Quotients"
    template, values = _outputs_printed(folder, width, is_log)
    return describe(
        f"{what.lower()}_{width}", (f"{what} of {width} powers",),
        tuple(tensor.buffer for tensor in (x, table, factors, y)), (y.buffer,),
        _body((y,), {}), template, values, stack_bytes=36, needs=needs,
    )  # fmt: skip
