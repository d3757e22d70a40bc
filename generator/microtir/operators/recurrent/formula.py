"""Compute recurrent layers as tensor expressions: SVDF, and one step of an LSTM."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Protocol, TypeAlias

import numpy as np

from microtir import te
from microtir.dtype import DType
from microtir.graph.ir import Array, Node, SumRange, TensorType
from microtir.operators.common import sigmoid_table, sigmoid_table_formula, weighted
from microtir.operators.common.arithmetic import (
    Accumulator,
    ShortRequantisation,
    activate,
    requantise,
    requantise_small,
    sum_multipliers,
    wide,
)
from microtir.operators.common.fixed_point import INT16_MAX, multiply_by_quantized_multiplier
from microtir.operators.common.formula import FormulaContext
from microtir.operators.common.linear import LinearParams
from microtir.operators.common.multiplier import QuantizedMultiplier
from microtir.operators.common.sums import any_value
from microtir.operators.recurrent import definition as recurrent


class _Sums(Protocol):
    """The arithmetic of sums: their terms, their start, and the stored result."""

    def product(self, x: te.Expr, w: te.Expr) -> te.Expr:
        """Return one term of a sum."""

    def start(self, channel: te.Expr) -> te.Expr:
        """Return what a sum begins with."""

    def stored(self, total: te.Expr, channel: te.Expr) -> te.Expr:
        """Return what a sum that began like this is stored as."""


Factor: TypeAlias = "int | float | te.Tensor"
"""Factor of a sum: one number, or one for each channel."""


@dataclass(frozen=True, slots=True)
class _FloatSums:
    """Sums of floats; weights may be int8 of a scale, or of one for each channel.

    The bias comes last, as behind the sums of blocks: all kernels give the same bits then.
    """

    bias: te.Tensor | None = None
    scale: Factor = 1.0

    def product(self, x: te.Expr, w: te.Expr) -> te.Expr:
        return x * (te.cast(DType.FLOAT32, w) if w.dtype.is_int else w)

    def start(self, channel: te.Expr) -> te.Expr:
        return te.const(0.0, DType.FLOAT32)

    def stored(self, total: te.Expr, channel: te.Expr) -> te.Expr:
        scaled = total if _is_one(self.scale) else total * _of_channel(self.scale, channel)
        return scaled if self.bias is None else scaled + self.bias[channel]


def _scale(layer: FormulaContext, position: int) -> Factor:
    """Return what a step of constants of a float operator is worth: 1 where they are floats."""
    type_ = layer.node.inputs[position].type
    if type_.dtype.is_float:
        return 1.0
    if type_.quant.is_per_channel:
        return te.constant(np.array(type_.quant.scales, np.float32), "scales")
    return type_.quant.scale


def _is_one(factor: Factor) -> bool:
    return not isinstance(factor, te.Tensor) and factor == 1


def _of_channel(factor: Factor, channel: te.Expr) -> te.ExprLike:
    return factor[channel] if isinstance(factor, te.Tensor) else factor


# --- SVDF -----------------------------------------------------------------------------------------


def svdf(layer: FormulaContext) -> None:
    """Emit SVDF: the newest features; the output, which reads the old memory; the new memory."""
    node = layer.node
    batch, width, filters, length, _ = recurrent.svdf_extents(node)
    last, rank = length - 1, node.attributes(recurrent.Svdf).rank
    finish = svdf_finish(layer)
    features, time = finish.features, finish.time
    x, memory = layer.whole(0), layer.whole(1, (batch, filters, length))
    of_features = te.constant(layer.data(2), "features")
    of_time = te.constant(layer.data(3), "time_weights")

    def feature(n: te.Expr, number: te.Expr) -> te.Expr:
        i = te.reduce_axis(0, width, "i")
        term = features.product(x[n, i], of_features[number, i])
        return finish.newest(te.sum(term, i, init=features.start(number)), number)

    newest = te.compute((batch, filters), feature, "newest", axes=("n", "number"))

    def output(n: te.Expr, unit: te.Expr) -> te.Expr:
        part, age = te.reduce_axis(0, rank, "part"), te.reduce_axis(0, last, "age")
        number = unit * rank + part
        term = time.product(newest[n, number], of_time[number, last])
        total = te.sum(term, part, init=time.start(unit))
        if last:
            term = time.product(memory[n, number, age + 1], of_time[number, age])
            total = te.sum(term, (part, age), init=total)
        return finish.output(total, unit)

    def remembered(n: te.Expr, number: te.Expr, age: te.Expr) -> te.Expr:
        older = memory[n, number, te.minimum(age + 1, last)]
        return te.select(age < last, older, newest[n, number])

    layer.tensor(output)
    layer.tensor(remembered, (batch, filters, length))


@dataclass(frozen=True, slots=True)
class SvdfFinish:
    """The arithmetic of an SVDF: sums over inputs, sums over time, and their results.

    Args:
        features: the arithmetic of sums over inputs.
        time: that of sums over features.
        node: the operator.
    """

    features: _Sums
    time: _Sums
    node: Node

    def newest(self, total: te.Expr, number: te.Expr) -> te.Expr:
        """Return the newest feature of a filter, of a sum that began with `features.start`."""
        memory = self.node.inputs[1].type
        value = self.features.stored(total, number)
        return value if memory.dtype.is_float else _with_zero_point(value, memory.quant.zero_point)

    def output(self, total: te.Expr, unit: te.Expr) -> te.Expr:
        """Return an output, of a sum that began with `time.start`."""
        op, value = self.node.attributes(recurrent.Svdf), self.time.stored(total, unit)
        return activate(value, op.activation) if value.dtype.is_float else value


def svdf_finish(layer: FormulaContext) -> SvdfFinish:
    """Return the arithmetic of an SVDF."""
    is_float = layer.node.inputs[0].dtype.is_float
    return SvdfFinish(*(_float_svdf(layer) if is_float else _integer_svdf(layer)), layer.node)


def _float_svdf(layer: FormulaContext) -> tuple[_Sums, _Sums]:
    bias = te.constant(layer.data(4), "bias") if len(layer.node.inputs) > 4 else None
    return _FloatSums(scale=_scale(layer, 2)), _FloatSums(bias, _scale(layer, 3))


def _integer_svdf(layer: FormulaContext) -> tuple[_Sums, _Sums]:
    """Return the arithmetic of features, less the memory's zero point, and that of time."""
    node, params = layer.node, recurrent.svdf_params(layer.node)
    x, memory = (tensor.type for tensor in node.inputs[:2])
    bounds = recurrent.svdf_sums(node, any_value(x.dtype))
    assert bounds is not None, "weights are constant"
    y = node.outputs[0].type
    of_features, of_time = (layer.data(n).astype(np.int64) for n in (2, 3))
    of_time = of_time.reshape(y.channels, -1)
    bias = layer.data(4) if len(node.inputs) > 4 else np.zeros(y.channels)
    features = weighted.WeightedArithmetic.with_bias(
        _linear(x.quant.zero_point, 0, params.feature, memory.dtype),
        np.zeros(len(of_features), np.int64),
        of_features.sum(axis=1),
        Accumulator(not bounds.features.fits),
        memory.dtype,
    )
    time = weighted.WeightedArithmetic.with_bias(
        _linear(memory.quant.zero_point, y.quant.zero_point, params.time, y.dtype),
        bias.astype(np.int64),
        of_time.sum(axis=1),
        Accumulator(not bounds.time.fits),
        y.dtype,
    )
    return features, time


def _linear(source: int, output: int, factor: QuantizedMultiplier, dtype: DType) -> LinearParams:
    """Return the parameters of sums with one factor that are clamped to a type."""
    return LinearParams(source, output, (factor,), dtype.min, dtype.max)


def _with_zero_point(value: te.Expr, zero_point: int) -> te.Expr:
    """Return a clamped value plus a zero point, which may push it out of its type: it wraps."""
    if not zero_point:
        return value
    span = 1 << 8 * value.dtype.bytes
    moved = wide(value) + (zero_point + span // 2)
    return te.cast(value.dtype, (moved & (span - 1)) - span // 2)


# --- UNIDIRECTIONAL_SEQUENCE_LSTM -----------------------------------------------------------------

Element: TypeAlias = "Callable[[te.Expr], te.Expr]"
"""An element of a vector."""

GateSums: TypeAlias = "Callable[[int, te.Expr], Sequence[te.Expr]]"
"""Function from a gate's number and a unit to the summands of the gate's argument.

Integers are in the type of arguments: each part was rescaled and clamped.
"""


class LstmStep(Protocol):
    """One step of an LSTM, computed unit by unit."""

    def cell(self, old: te.Expr, unit: te.Expr) -> te.Expr:
        """Return the new cell."""

    def hidden(self, cell: te.Expr, unit: te.Expr) -> te.Expr:
        """Return the new hidden state of a new cell; gates look at the old one."""


def lstm_step(layer: FormulaContext, gates: GateSums) -> LstmStep:
    """Return a step of an LSTM, given the sums of its gates."""
    node = layer.node
    if node.inputs[0].dtype.is_float:
        return _FloatStep(layer, gates)
    params = recurrent.lstm_params(node)
    return IntegerStep(gates, sigmoid_table_formula.SigmoidTable(), params, node.inputs[1].type)


def weighted_gates(layer: FormulaContext, x: Element, hidden: Element) -> GateSums:
    """Return the sums of the gates of a step, given its input and the old hidden state."""
    is_float = layer.node.inputs[0].dtype.is_float
    weights = [te.constant(layer.data(3 + n), "weights") for n in range(2 * recurrent.GATES)]
    sums = _float_gates(layer) if is_float else _integer_gates(layer)

    def sum_of(number: int, unit: te.Expr) -> te.Expr:
        matrix, arithmetic = weights[number], sums[number]
        source = x if number < recurrent.GATES else hidden
        i = te.reduce_axis(0, matrix.shape[1], "i")
        term = arithmetic.product(source(i), matrix[unit, i])
        total = te.sum(term, i, init=arithmetic.start(unit))
        return arithmetic.stored(total, unit)

    return lambda gate, unit: (sum_of(gate, unit), sum_of(gate + recurrent.GATES, unit))


def finished_gates(layer: FormulaContext, sums: Callable[[int, te.Expr], te.Expr]) -> GateSums:
    """Return the sums of gates from what others have added up.

    Args:
        layer: the operator.
        sums: of stored values times weights: of a gate over inputs, or over the hidden state,
            which follow with the numbers from `GATES` on; of a unit.
    """
    is_float = layer.node.inputs[0].dtype.is_float
    finish = _float_finish(layer) if is_float else _integer_finish(layer)
    starts = {number: part.start for number, part in enumerate(finish) if part.start.any()}
    table = te.constant(np.stack([*starts.values()], axis=1), "starts") if starts else None
    columns = list(starts)

    def finished(number: int, unit: te.Expr) -> te.Expr:
        part, total = finish[number], sums(number, unit)
        if not _is_one(part.factor):
            total = total * _of_channel(part.factor, unit)
        if table is not None and number in columns:
            total = total + table[unit, columns.index(number)]
        return part.apply(total)

    return lambda gate, unit: (finished(gate, unit), finished(gate + recurrent.GATES, unit))


@dataclass(frozen=True, slots=True, eq=False)
class _Finish:
    """The finishing step that turns a sum into a part of a gate's argument."""

    factor: Factor
    start: Array
    apply: Callable[[te.Expr], te.Expr]


def _float_finish(layer: FormulaContext) -> list[_Finish]:
    return [
        _Finish(_scale(layer, 3 + number), _start(layer, number), lambda total: total)
        for number in range(2 * recurrent.GATES)
    ]


def _integer_finish(layer: FormulaContext) -> list[_Finish]:
    node, params = layer.node, recurrent.lstm_params(layer.node)
    bounds = recurrent.gate_sums(node, any_value(node.inputs[0].dtype))
    assert bounds is not None, "weights are constant"
    make = _rescaled_long if node.inputs[0].dtype is DType.INT16 else _rescaled
    return [
        make(_start(layer, number), factor, bounds[number])
        for number, factor in enumerate((*params.inputs, *params.recurrent))
    ]


def _rescaled(start: Array, factor: QuantizedMultiplier, sums: SumRange) -> _Finish:
    """Return what rescales sums and clamps them to int16, if they may leave that."""
    ends = multiply_by_quantized_multiplier(np.array([sums.low, sums.high]), *factor)
    is_clamped = ends.min() < DType.INT16.min or ends.max() > DType.INT16.max
    short = ShortRequantisation.of(factor, max(-sums.low, sums.high))

    def apply(total: te.Expr) -> te.Expr:
        scaled = requantise(total, factor) if short is None else short.apply(total)
        return _int16(scaled) if is_clamped else scaled

    scale = 1 if short is None else short.scale
    return _Finish(scale, (start * scale).astype(np.int32), apply)


def _rescaled_long(start: Array, factor: QuantizedMultiplier, _sums: SumRange) -> _Finish:
    """Return what rescales sums with one rounding, as those of int16 are; INT32 holds them."""
    scaling = sum_multipliers((factor,), Accumulator(is_wide=False, wraps=False))

    def apply(total: te.Expr) -> te.Expr:
        return _int16(scaling.apply(total, te.as_expr(0, DType.INT32)))

    return _Finish(1, start.astype(np.int32), apply)


def _start(layer: FormulaContext, number: int) -> Array:
    """Return what is added to the sums of products: a bias, less the share of the zero point."""
    weights, over_inputs = layer.data(3 + number), number < recurrent.GATES
    bias = (
        layer.data(3 + 2 * recurrent.GATES + number)
        if over_inputs
        else np.zeros(len(weights), np.float32)
    )
    if layer.node.inputs[0].dtype.is_float:
        return bias.astype(np.float32)
    zero_point = layer.node.inputs[0 if over_inputs else 1].type.quant.zero_point
    start: Array = bias.astype(np.int64) - zero_point * weights.astype(np.int64).sum(axis=1)
    return start


def _float_gates(layer: FormulaContext) -> list[_Sums]:
    biases = [
        te.constant(layer.data(3 + 2 * recurrent.GATES + n), "bias") for n in range(recurrent.GATES)
    ]
    return [
        _FloatSums(bias, _scale(layer, 3 + number))
        for number, bias in enumerate((*biases, *[None] * recurrent.GATES))
    ]


def _integer_gates(layer: FormulaContext) -> list[_Sums]:
    node, params = layer.node, recurrent.lstm_params(layer.node)
    wraps = node.inputs[0].dtype is not DType.INT16
    accumulator = Accumulator.of(layer, wraps=wraps)
    sums: list[_Sums] = []
    for number, factor in enumerate((*params.inputs, *params.recurrent)):
        weights = layer.data(3 + number).astype(np.int64)
        is_input = number < recurrent.GATES
        bias = layer.data(3 + 2 * recurrent.GATES + number) if is_input else np.zeros(len(weights))
        zero_point = node.inputs[0 if is_input else 1].type.quant.zero_point
        sums.append(
            weighted.WeightedArithmetic.with_bias(
                _linear(zero_point, 0, factor, DType.INT16),
                bias.astype(np.int64),
                weights.sum(axis=1),
                accumulator,
                DType.INT16,
            )
        )
    return sums


_ADD, _KEEP, _CELL, _SHOW = range(recurrent.GATES)


class _FloatStep:
    def __init__(self, layer: FormulaContext, gates: GateSums) -> None:
        self._gates, self._clip = gates, layer.node.attributes(recurrent.Lstm).cell_clip

    def _argument(self, gate: int, unit: te.Expr) -> te.Expr:
        first, *more = self._gates(gate, unit)
        return reduce(operator.add, more, first)

    def cell(self, old: te.Expr, unit: te.Expr) -> te.Expr:
        add, keep = (_logistic(self._argument(gate, unit)) for gate in (_ADD, _KEEP))
        new = keep * old + add * te.tanh(self._argument(_CELL, unit))
        return te.clamp(new, -self._clip, self._clip) if self._clip > 0.0 else new

    def hidden(self, cell: te.Expr, unit: te.Expr) -> te.Expr:
        return _logistic(self._argument(_SHOW, unit)) * te.tanh(cell)


def _logistic(x: te.Expr) -> te.Expr:
    return te.const(1.0, DType.FLOAT32) / (te.exp(-x) + 1.0)


@dataclass(frozen=True, slots=True)
class IntegerStep:
    """Gates by a table of sigmoids, and products of int16.

    Args:
        gates: the sums of the gates.
        table: looks sigmoids up.
        params: of the rescaling.
        hidden: type of the hidden state.
    """

    _gates: GateSums
    _table: sigmoid_table_formula.Sigmoids
    _params: recurrent.LstmParams
    _hidden: TensorType

    def _argument(self, gate: int, unit: te.Expr) -> te.Expr:
        first, *more = (wide(part) for part in self._gates(gate, unit))
        return te.bind("argument", _int16(reduce(operator.add, more, first)))

    def cell(self, old: te.Expr, unit: te.Expr) -> te.Expr:
        params, table = self._params, self._table
        add = te.bind("add", table.logistic(self._argument(_ADD, unit), _ARGUMENT))
        keep = te.bind("keep", table.logistic(self._argument(_KEEP, unit), _ARGUMENT))
        new = te.bind("new", table.tanh(self._argument(_CELL, unit), _ARGUMENT))
        remembered = _int16(requantise_small(keep * wide(old), params.forget, LARGEST_PRODUCT))
        added = _int16(requantise_small(add * new, params.added, LARGEST_PRODUCT))
        return te.cast(DType.INT16, te.clamp(wide(remembered) + wide(added), *params.cell_range))

    def hidden(self, cell: te.Expr, unit: te.Expr) -> te.Expr:
        show = te.bind("show", self._table.logistic(self._argument(_SHOW, unit), _ARGUMENT))
        bent = te.bind("bent", self._table.tanh(cell, self._params.cell_scaling))
        scaled = requantise_small(show * bent, self._params.hidden, LARGEST_PRODUCT)
        low, high = self._hidden.dtype.min, self._hidden.dtype.max
        shown = te.clamp(scaled + self._hidden.quant.zero_point, low, high)
        return te.cast(self._hidden.dtype, shown)


LARGEST_PRODUCT = INT16_MAX * (INT16_MAX + 1)
"""The largest product of a gate, which is positive, and an int16."""

_ARGUMENT = sigmoid_table.power_of_two_scaling(-12)


def _int16(value: te.Expr) -> te.Expr:
    return te.cast(DType.INT16, te.clamp(value, DType.INT16.min, DType.INT16.max))
