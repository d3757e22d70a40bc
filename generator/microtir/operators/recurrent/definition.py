"""Define recurrent layers by their attributes and rules.

What a layer remembers is an input, the old value, and an output, the new one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Node, SumRange, Tensor, TensorType
from microtir.graph.operator import Operator
from microtir.operators.common import attributes, linear, multiplier, quantization, sigmoid_table
from microtir.operators.common.problem import Problem
from microtir.operators.common.shapes import Shape, input_shape, require
from microtir.operators.common.sums import Interval, any_value, joined
from microtir.operators.common.types import TypeRule, TypeSignature
from microtir.operators.definition import ACTIVATIONS, Definition, Trait

_F32, _I8, _I16, _I32, _I64 = (
    DType.FLOAT32, DType.INT8, DType.INT16, DType.INT32, DType.INT64,
)  # fmt: skip


# --- SVDF -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Svdf(Operator):
    """A filter of features and then one of time, from a singular value decomposition.

    Inputs: x (B, I), memory (B, F*M), weights of features (F, I), of time (F, M), perhaps a bias
    (U,). Each of the F filters keeps M features, the newest one last. Outputs: (B, U), U = F /
    `rank`, and the memory.  `asymmetric` is what one of floats with weights of int8 says of how its
    inputs are quantised, if they are.
    """

    rank: int = 1
    activation: attributes.Activation = attributes.Activation.NONE  # of floats
    asymmetric: bool = False


class SvdfExtents(NamedTuple):
    """Extents of an SVDF: batch, width of an input, filters, steps that are kept, units."""

    batch: int
    width: int
    filters: int
    length: int
    units: int


def svdf_extents(node: Node) -> SvdfExtents:
    """Return the extents of an SVDF."""
    (batch, width), (filters, length) = node.inputs[0].shape, node.inputs[3].shape
    return SvdfExtents(batch, width, filters, length, filters // node.attributes(Svdf).rank)


@dataclass(frozen=True, slots=True)
class SvdfParams:
    """The rescaling of integer SVDF: sums over inputs for the memory, sums over time for y."""

    feature: multiplier.QuantizedMultiplier
    time: multiplier.QuantizedMultiplier


def svdf_params(node: Node) -> SvdfParams:
    """Derive the multipliers of integer SVDF; products and quotients are rounded to float32."""
    x, memory, features, time = (np.float32(t.type.quant.scale) for t in node.inputs[:4])
    output = np.float32(node.outputs[0].type.quant.scale)
    return SvdfParams(
        multiplier.quantize_multiplier(float(x * features / memory)),
        multiplier.quantize_multiplier(float(memory * time / output)),
    )


def _svdf_shapes(node: Node) -> tuple[Shape, ...]:
    batch, width = input_shape(node, 0, 2)
    filters, depth = input_shape(node, 2, 2)
    length = input_shape(node, 3, 2)[1]
    rank = node.attributes(Svdf).rank
    require(depth == width, f"weights of shape {(filters, depth)} for {width} inputs")
    require(rank > 0 and filters % rank == 0, f"rank {rank} of {filters} filters", "a divisor")
    _require_shape(node, 3, (filters, length))
    _require_shape(node, 1, (batch, filters * length))
    if len(node.inputs) > 4:
        _require_shape(node, 4, (filters // rank,))
    return ((batch, filters // rank), node.inputs[1].shape)[: len(node.outputs)]


def _svdf_multipliers(node: Node) -> Iterator[Problem]:
    params = svdf_params(node)
    yield from multiplier.check_shift(params.feature)
    yield from multiplier.check_shift(params.time)


class SvdfSums(NamedTuple):
    """Bounds of the sums of features, and of those of time with the bias."""

    features: SumRange
    time: SumRange


def svdf_sums(node: Node, x: Interval) -> SvdfSums | None:
    """Bound the sums of an integer SVDF whose first input holds `x`; None if weights vary."""
    features, time = (tensor.data for tensor in node.inputs[2:4])
    if features is None or time is None:
        return None
    units = len(time) // node.attributes(Svdf).rank
    zero, memory = node.inputs[0].type.quant.zero_point, node.inputs[1].type
    bias = node.inputs[4].data if len(node.inputs) > 4 else None
    held, rows = any_value(memory.dtype), time.reshape(units, -1)
    return SvdfSums(
        linear.sums_of_rows(features, None, zero, x),
        linear.sums_of_rows(rows, bias, memory.quant.zero_point, held),
    )


def _svdf_sums(node: Node, inputs: Sequence[Interval]) -> SumRange | None:
    sums = svdf_sums(node, inputs[0])
    return None if sums is None else joined(*sums)


def _svdf_macs(node: Node) -> int:
    batch = node.inputs[0].shape[0]
    return batch * (node.inputs[2].type.elements + node.inputs[3].type.elements)


def _svdf_terms(node: Node) -> int:
    return max(node.inputs[0].shape[1], node.attributes(Svdf).rank * node.inputs[3].shape[1])


# --- UNIDIRECTIONAL_SEQUENCE_LSTM -----------------------------------------------------------------

GATES = 4


@dataclass(frozen=True, slots=True)
class Lstm(Operator):
    """A long short-term memory, over sequences of T steps.

    Inputs: x (B, T, I), hidden state (B, U), cells (B, U), and of the input, forget, cell and
    output gates the weights for x (U, I), those for the hidden state (U, U), and biases (U,).
    Outputs: the hidden state behind each step (B, T, U), and both states behind the last one.
    `time_major`: T before B in x and in the first output. Cells are clamped to `cell_clip` on both
    sides, if that is above 0. `last_only`: the first output has one step, the last. `asymmetric`:
    as that of SVDF.
    """

    name: ClassVar[str] = "unidirectional_sequence_lstm"
    time_major: bool = False
    cell_clip: float = 0.0
    last_only: bool = False
    asymmetric: bool = False


class Gate(NamedTuple):
    """The weights of a gate for inputs and for the hidden state, and its bias."""

    weights: Tensor
    recurrent: Tensor
    bias: Tensor


def gates_of(node: Node) -> tuple[Gate, ...]:
    """Return the input, forget, cell and output gates of an LSTM."""
    parts = (node.inputs[n : n + GATES] for n in range(3, 3 + 3 * GATES, GATES))
    return tuple(Gate(*tensors) for tensors in zip(*parts, strict=True))


class LstmExtents(NamedTuple):
    """Extents of an LSTM: sequences, steps of each, inputs of a step, units."""

    batch: int
    steps: int
    inputs: int
    units: int


def lstm_extents(node: Node) -> LstmExtents:
    """Return the extents of an LSTM."""
    op, (first, second, inputs) = node.attributes(Lstm), node.inputs[0].shape
    batch, steps = (second, first) if op.time_major else (first, second)
    return LstmExtents(batch, steps, inputs, node.inputs[1].shape[1])


@dataclass(frozen=True, slots=True)
class LstmParams:
    """The rescaling of an LSTM of integers.

    Sums of a gate become arguments of scale 2^-12, gates are of scale 2^-15.
    """

    inputs: tuple[multiplier.QuantizedMultiplier, ...]  # of each gate, for sums over inputs
    recurrent: tuple[multiplier.QuantizedMultiplier, ...]  # and for sums over the hidden state
    forget: multiplier.QuantizedMultiplier  # forget gate times cell
    added: multiplier.QuantizedMultiplier  # input gate times cell gate
    hidden: multiplier.QuantizedMultiplier  # output gate times TANH of the cell
    cell_scaling: sigmoid_table.SigmoidScaling
    cell_range: tuple[int, int]  # what new cells are clamped to


_ARGUMENT_SCALE, _GATE_SCALE = 2.0**-12, 2.0**-15
_LARGEST_CELL_EXPONENT = 2


def lstm_params(node: Node) -> LstmParams:
    """Derive the parameters of an integer LSTM, from scales in double.

    TANH takes the scale of the cells to the nearest power of two; products do not.
    """
    op = node.attributes(Lstm)
    x, hidden, cell = (tensor.type.quant.scale for tensor in node.inputs[:3])
    cell_range = DType.INT16.min, DType.INT16.max
    if op.cell_clip > 0.0:
        limit = int(min(op.cell_clip / cell, float(DType.INT16.max)))
        cell_range = -limit, limit
    return LstmParams(
        tuple(_argument(x, gate.weights.type) for gate in gates_of(node)),
        tuple(_argument(hidden, gate.recurrent.type) for gate in gates_of(node)),
        multiplier.quantize_multiplier(_GATE_SCALE * cell / cell),
        multiplier.quantize_multiplier(_GATE_SCALE * _GATE_SCALE / cell),
        multiplier.quantize_multiplier(_GATE_SCALE * _GATE_SCALE / hidden),
        sigmoid_table.power_of_two_scaling(_exponent(cell)),
        cell_range,
    )


def _argument(scale: float, weights: TensorType) -> multiplier.QuantizedMultiplier:
    return multiplier.quantize_multiplier(scale * weights.quant.scale / _ARGUMENT_SCALE)


def _exponent(scale: float) -> int:
    return int(np.rint(np.log2(scale)))


def _lstm_shapes(node: Node) -> tuple[Shape, ...]:
    input_shape(node, 0, 3)
    input_shape(node, 1, 2)
    batch, _, inputs, units = lstm_extents(node)
    for index in (1, 2):
        _require_shape(node, index, (batch, units))
    for number in range(GATES):
        _require_shape(node, 3 + number, (units, inputs))
        _require_shape(node, 3 + GATES + number, (units, units))
        _require_shape(node, 3 + 2 * GATES + number, (units,))
    op, y = node.attributes(Lstm), [*node.inputs[0].shape[:2], units]
    if op.last_only:
        y[0 if op.time_major else 1] = 1
    return (tuple(y), (batch, units), (batch, units))[: len(node.outputs)]


def _lstm_multipliers(node: Node) -> Iterator[Problem]:
    """Check factors, the scale of the cells, and sums of 64 bits."""
    exponent = _exponent(node.inputs[2].type.quant.scale)
    if not -30 <= exponent <= _LARGEST_CELL_EXPONENT:
        legal = f"2^-30 to 2^{_LARGEST_CELL_EXPONENT}"
        yield Problem(f"the scale of its cells is near 2^{exponent}", legal, node.inputs[2])
        return
    params, is_long = lstm_params(node), node.inputs[0].dtype is _I16
    for factor in (*params.inputs, *params.recurrent):
        yield from multiplier.check_shift(
            factor, *([multiplier.MAX_REDUCED_SHIFT] if is_long else ())
        )
    yield from multiplier.check_shift(params.added, 1)
    yield from multiplier.check_shift(params.hidden, 1)
    if is_long:
        for gate in gates_of(node):
            yield from linear.check_long_sums(gate.weights.shape[1], gate.bias.data)
            yield from linear.check_long_sums(gate.recurrent.shape[1], None)


def gate_sums(node: Node, x: Interval) -> tuple[SumRange, ...] | None:
    """Bound the sums of all gates over an input that holds `x`, then those over the hidden state.

    None if weights vary.  Biases count with inputs.
    """
    hidden = any_value(node.inputs[1].dtype)
    zero, hidden_zero = (tensor.type.quant.zero_point for tensor in node.inputs[:2])
    over_inputs, over_hidden = [], []
    for gate in gates_of(node):
        weights, recurrent, bias = (tensor.data for tensor in gate)
        if weights is None or recurrent is None or bias is None:
            return None
        over_inputs.append(linear.sums_of_rows(weights, bias, zero, x))
        over_hidden.append(linear.sums_of_rows(recurrent, None, hidden_zero, hidden))
    return *over_inputs, *over_hidden


def _lstm_sums(node: Node, inputs: Sequence[Interval]) -> SumRange | None:
    sums = gate_sums(node, inputs[0])
    return None if sums is None else joined(*sums)


def _lstm_macs(node: Node) -> int:
    batch, steps, inputs, units = lstm_extents(node)
    return batch * steps * GATES * units * (inputs + units)


def _lstm_terms(node: Node) -> int:
    _, _, inputs, units = lstm_extents(node)
    return inputs + units


def _require_shape(node: Node, index: int, shape: Shape) -> None:
    actual = node.inputs[index].shape
    require(actual == shape, f"input {index} has the shape {actual}", f"{shape}")


# --- rules ----------------------------------------------------------------------------------------


_SVDF_TYPES = TypeRule(
    (
        TypeSignature((_F32,), _F32, (_F32,)),
        TypeSignature((_F32, _F32, _I8, _I8, _F32), _F32, (_F32,)),
        TypeSignature((_I8, _I8, _I8, _I8, _I32), _I8, (_I8,)),
        TypeSignature((_I8, _I16, _I8, _I16, _I32), _I8, (_I16,)),
    )
)
_LSTM_TYPES = TypeRule(
    (
        TypeSignature((_F32,), _F32, (_F32, _F32)),
        TypeSignature((_F32, _F32, _F32, *[_I8] * (2 * GATES), _F32), _F32, (_F32, _F32)),
        TypeSignature((*[_F32] * (3 + GATES), *[_I8] * GATES, _F32), _F32, (_F32, _F32)),
        TypeSignature((*[_F32] * 3, *[_I8] * GATES, _F32), _F32, (_F32, _F32)),
        TypeSignature((_I8, _I8, _I16, *[_I8] * (2 * GATES), _I32), _I8, (_I8, _I16)),
        TypeSignature((_I16, _I16, _I16, *[_I8] * (2 * GATES), _I64), _I16, (_I16, _I16)),
    )
)


def _lstm_quantization(node: Node) -> Iterator[Problem]:
    if not node.inputs[0].dtype.is_float:
        yield from quantization.SYMMETRIC_WEIGHTS.check(node)
        return
    for tensor in node.inputs[3 : 3 + 2 * GATES]:
        quant = tensor.type.quantization
        if tensor.dtype.is_float:
            continue
        if quant is None:
            yield Problem("it is not quantised", "a scale, or one per unit", tensor)
        elif quant.axis not in (None, 0):
            yield Problem(f"it is quantised along axis {quant.axis}", "axis 0", tensor)
        elif any(quant.zero_points):
            yield Problem("it has a zero point that is not 0", "0", tensor)


_LSTM_QUANTIZATION = quantization.QuantizationRule(
    _lstm_quantization,
    f"{quantization.SYMMETRIC_WEIGHTS.words}; beside floats one scale, or one per unit",
)

DEFINITIONS = (
    Definition(
        Svdf,
        types=_SVDF_TYPES,
        quantization=quantization.SYMMETRIC_WEIGHTS,
        shapes=_svdf_shapes,
        inputs=(4, 5),
        outputs=2,
        multipliers=_svdf_multipliers,
        sums=_svdf_sums,
        terms=_svdf_terms,
        macs=_svdf_macs,
        traits=frozenset({Trait.KEEPS}),
        limits=f"constant weights; of floats {ACTIVATIONS}",
    ),
    Definition(
        Lstm,
        types=_LSTM_TYPES,
        quantization=_LSTM_QUANTIZATION,
        shapes=_lstm_shapes,
        inputs=(3 + 3 * GATES, 3 + 3 * GATES),
        outputs=3,
        multipliers=_lstm_multipliers,
        sums=_lstm_sums,
        terms=_lstm_terms,
        macs=_lstm_macs,
        traits=frozenset({Trait.KEEPS}),
        label="lstm",
        limits="constant weights; no peepholes, projection, layer normalisation or joined gates",
    ),
)
