"""Read ONNX's recurrent layers: an LSTM as the graph has it, others as loops over their steps.

What the inputs add to the gates is one product for all steps; a step then multiplies its state.
Few steps are written out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Array, Tensor, TensorType
from microtir.operators.common import onnx_functions, onnx_loops, onnx_quantized
from microtir.operators.common.onnx_arithmetic import add, choose, least, most, mul, sub
from microtir.operators.common.onnx_operands import MICROSOFT, OnnxNode, OnnxReader
from microtir.operators.common.onnx_parts import (
    along,
    backwards,
    filled,
    joined,
    reshaped,
    transposed,
)
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.indexing.definition import Gather
from microtir.operators.matmul.definition import BatchMatmul
from microtir.operators.recurrent.definition import Lstm

_MOST_STEPS = 1 << 9  # that are written out


@dataclass(frozen=True, slots=True)
class _Direction:
    """A layer in one direction: its weights, and how its functions are computed.

    Args:
        node: which is read.
        gates: how many rows of matrices stand for each element of the state.
        size: of the state.
        inputs: what the inputs of each step add to the gates.
        state: the matrix that multiplies the state.
        state_bias: what is added to that product.
        functions: of the gates.
        peepholes: what multiplies the cells for each gate, if anything does.
        is_rounded: whether the state is quantised by its own extremes in each step.
    """

    node: OnnxNode
    gates: int
    size: int
    inputs: Tensor
    state: Tensor
    state_bias: Tensor | None
    functions: Sequence[Callable[[Tensor], Tensor]]
    peepholes: Tensor | None = None
    is_rounded: bool = False

    def step_inputs(self, step: int) -> Tensor:
        one = along(self.node, self.inputs, 0, step, 1)
        return reshaped(self.node, one, *self.inputs.shape[1:])

    def of_state(self, h: Tensor, first: int = 0, count: int | None = None) -> Tensor:
        """Return what the state adds to some gates."""
        rows = (self.gates if count is None else count) * self.size
        weights = along(self.node, self.state, 0, first * self.size, rows)
        h = _rounded(self.node, h) if self.is_rounded else h
        product = _product(self.node, h, weights)
        if self.state_bias is None:
            return product
        return add(
            self.node, product, along(self.node, self.state_bias, 0, first * self.size, rows)
        )

    def gate(self, x: Tensor, number: int) -> Tensor:
        return along(self.node, x, 1, number * self.size, self.size)

    def limited(self, x: Tensor) -> Tensor:
        """Return what an activation is given: between both ends of an attribute."""
        if not self.node.has("clip"):
            return x
        end = self.node.number("clip")
        return least(self.node, most(self.node, x, -end), end)

    def activated(self, number: int, x: Tensor) -> Tensor:
        """Return one of the functions of a value."""
        return self.functions[number](self.limited(x))


def _product(node: OnnxNode, x: Tensor, weights: Tensor) -> Tensor:
    """Return x times the transpose of a matrix."""
    if weights.data is None or x.data is not None:
        return node.emit(BatchMatmul(adj_y=True), x, weights)
    return node.emit(FullyConnected(), x, weights, shape=(*x.shape[:-1], weights.shape[0]))


def _functions(
    node: OnnxNode, standard: Sequence[str], direction: int
) -> list[Callable[[Tensor], Tensor]]:
    """Return the functions of a direction; each takes its numbers from lists, in turn."""
    value = node.attributes.get("activations", ())
    names = [str(name) for name in value] if isinstance(value, tuple) else []
    count = len(standard)
    names = (names or [*standard, *standard])[direction * count : (direction + 1) * count]
    numbers = [
        node.list_of_numbers(name) if node.has(name) else ()
        for name in ("activation_alpha", "activation_beta")
    ]
    functions = []
    for number, name in enumerate(names):
        activation = onnx_functions.ACTIVATIONS.get(name)
        if activation is None:
            raise node.malformed(f"the activation {name!r}", ", ".join(onnx_functions.ACTIVATIONS))
        at = direction * count + number
        alpha, beta = (
            number[at] if at < len(number) else default
            for number, default in zip(numbers, (activation.alpha, activation.beta), strict=True)
        )
        functions.append(_bound(node, activation, alpha, beta))
    if len(functions) != count:
        raise node.malformed(f"{len(names)} activations", f"{count} for each direction")
    return functions


def _bound(
    node: OnnxNode, activation: onnx_functions.ElementFunction, alpha: float, beta: float
) -> Callable[[Tensor], Tensor]:
    return lambda x: activation.emit(node, x, alpha, beta)


@dataclass(frozen=True, slots=True)
class _Cell:
    """A kind of layer.

    Args:
        gates: of it.
        states: how many it keeps from step to step.
        functions: of one direction, if nothing is said.
        step: given a direction, its step's inputs and the states, the new states.
        bias_apart: whether what is added to the state's product stays apart from the inputs'.
        is_rounded: whether products are of values that are quantised by their own extremes.
    """

    gates: int
    states: int
    functions: tuple[str, ...]
    step: Callable[[_Direction, Tensor, tuple[Tensor, ...]], tuple[Tensor, ...]]
    bias_apart: bool = False
    is_rounded: bool = False


def _rnn_step(layer: _Direction, inputs: Tensor, states: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return (layer.activated(0, add(layer.node, inputs, layer.of_state(states[0]))),)


def _gru_step(layer: _Direction, inputs: Tensor, states: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Compute update and reset gates, then the new state of both."""
    node, (h,) = layer.node, states
    gates = add(node, along(node, inputs, 1, 0, 2 * layer.size), layer.of_state(h, 0, 2))
    update = layer.activated(0, layer.gate(gates, 0))
    reset = layer.activated(0, layer.gate(gates, 1))
    own = layer.gate(inputs, 2)
    if node.integer("linear_before_reset", 0):
        past = mul(node, reset, layer.of_state(h, 2, 1))
    else:
        past = layer.of_state(mul(node, reset, h), 2, 1)
    new = layer.activated(1, add(node, own, past))
    return (add(node, new, mul(node, update, sub(node, h, new))),)


def _lstm_step(layer: _Direction, inputs: Tensor, states: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Compute input, output, forget and cell gates, then the cell and the output."""
    node, (h, cell) = layer.node, states
    gates = add(node, inputs, layer.of_state(h))

    def gate(number: int, seen: Tensor) -> Tensor:
        value = layer.gate(gates, number)
        if layer.peepholes is not None:
            weights = along(node, layer.peepholes, 0, number * layer.size, layer.size)
            value = add(node, value, mul(node, seen, weights))
        return layer.activated(0, value)

    entry = gate(0, cell)
    forget = sub(node, 1.0, entry) if node.integer("input_forget", 0) else gate(2, cell)
    proposal = layer.activated(1, layer.gate(gates, 3))
    new = add(node, mul(node, forget, cell), mul(node, entry, proposal))
    return mul(node, gate(1, new), layer.functions[2](new)), new


_Step: TypeAlias = "Callable[[Tensor, tuple[Tensor, ...]], tuple[Tensor, ...]]"
"""Function from a step's summands for the gates, and the states, to the new states."""

_RNN = _Cell(1, 1, ("Tanh",), _rnn_step)
_GRU = _Cell(3, 1, ("Sigmoid", "Tanh"), _gru_step, bias_apart=True)
_LSTM = _Cell(4, 2, ("Sigmoid", "Tanh", "Tanh"), _lstm_step)


def _layer(cell: _Cell) -> Callable[[OnnxNode], tuple[Tensor, ...]]:
    def read(node: OnnxNode) -> tuple[Tensor, ...]:
        is_by_batch = bool(node.integer("layout", 0))
        x = node.input(0)
        x = transposed(node, x, (1, 0, 2)) if is_by_batch else x
        steps = x.shape[0]
        _check(node, cell, x, steps)
        ways = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
        way = node.word("direction", "forward")
        if way not in ways or node.input(1).shape[0] != len(ways[way]):
            raise node.malformed(f"the direction {way!r}, weights of {node.input(1).shape}")
        lists, ends = [], []
        run = _as_lstm if cell is _LSTM and _is_plain_lstm(node, x) else partial(_run, cell=cell)
        for number, is_reverse in enumerate(ways[way]):
            sequence, last = run(node, x=x, number=number, is_reverse=is_reverse)
            lists.append(sequence)
            ends.append(last)
        n, size = x.shape[1], ends[0][0].shape[-1]
        listed = joined(node, [reshaped(node, y, steps, 1, n, size) for y in lists], 1)
        finals = [
            joined(node, [reshaped(node, last[state], 1, n, size) for last in ends], 0)
            for state in range(cell.states)
        ]
        if is_by_batch:
            listed = transposed(node, listed, (2, 0, 1, 3))
            finals = [transposed(node, final, (1, 0, 2)) for final in finals]
        return (listed, *finals)

    return read


def _rounded(node: OnnxNode, x: Tensor) -> Tensor:
    """Return values that uint8 between their extremes stands for."""
    stored, scale, zero_point = onnx_quantized.dynamically_quantised(node, x)
    return onnx_quantized.dequantise(node, stored, onnx_quantized.Scaling(scale, zero_point))


def dynamic_lstm(node: OnnxNode) -> tuple[Tensor, ...]:
    """Read com.microsoft's DynamicQuantizeLSTM: weights of 8 bits, and all that meets them rounded.

    Its matrices are (inputs, gates), with one scale for each direction, or for each of its gates.
    """
    x = node.input(0)
    matrices = []
    for index, first in ((1, 8), (2, 10)):
        stored = node.known(index, "the weights").astype(np.float32)
        scale, zero_point = (
            node.known(at, name) for at, name in ((first, "the scales"), (first + 1, "the zeros"))
        )
        if stored.ndim != 3 or scale.size not in (stored.shape[0], stored[:, 0].size):
            raise node.malformed(f"scales of shape {scale.shape} for weights of {stored.shape}")
        shape = (stored.shape[0], 1, -1)
        values = (stored - zero_point.astype(np.float32).reshape(shape)) * scale.reshape(shape)
        matrices.append(node.constant(values.astype(np.float32).transpose(0, 2, 1)))
    inputs = (_rounded(node, x), *matrices, *node.inputs[3:8])
    return _layer(replace(_LSTM, is_rounded=True))(node.with_inputs(*inputs))


_PLAIN_FUNCTIONS = ("Sigmoid", "Tanh", "Tanh")
_GATE_ROWS = (0, 2, 3, 1)  # where ONNX has the input, forget, cell and output gates


def _is_plain_lstm(node: OnnxNode, x: Tensor) -> bool:
    """Return whether an LSTM is one of the graph: usual functions, known weights, whole sequences.

    The graph's clips cells, ONNX's what functions are given.
    """
    activations = node.attributes.get("activations", ())
    names = activations if isinstance(activations, tuple) else ()
    weights = (node.input(1), node.input(2), node.optional(3))
    return (
        x.dtype is DType.FLOAT32
        and x.data is None
        and all(tensor is None or tensor.data is not None for tensor in weights)
        and names in ((), _PLAIN_FUNCTIONS, _PLAIN_FUNCTIONS * 2)
        and not node.has("clip")
        and not node.integer("input_forget", 0)
        and node.optional(7) is None
        and set(_lengths(node, x)) == {x.shape[0]}
    )


def _as_lstm(
    node: OnnxNode, x: Tensor, number: int, *, is_reverse: bool
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Return the outputs of all steps and the states in the end of one direction."""
    steps, n, _ = x.shape
    weights, recurrent = (node.known(index, "the weights")[number] for index in (1, 2))
    size = recurrent.shape[-1]
    bias = np.zeros(8 * size, np.float32)
    if node.optional(3) is not None:
        bias = node.known(3, "the bias")[number]
    parts = (weights, recurrent, bias[: 4 * size] + bias[4 * size :])
    constants = [
        node.constant(part[gate * size : (gate + 1) * size].astype(np.float32))
        for part in parts
        for gate in _GATE_ROWS
    ]
    states = [_start(node, index, number, (n, size)) for index in (5, 6)]
    types = [TensorType(shape, DType.FLOAT32) for shape in ((steps, n, size), *[(n, size)] * 2)]
    sequence = backwards(node, x, 0) if is_reverse else x
    op = Lstm(time_major=True)
    outputs, *last = node.emitter.emit(op, (sequence, *states, *constants), types)
    return backwards(node, outputs, 0) if is_reverse else outputs, tuple(last)


def _check(node: OnnxNode, cell: _Cell, x: Tensor, steps: int) -> None:
    if len(x.shape) != 3:
        raise node.malformed(f"a sequence of shape {x.shape}", "three dimensions")
    lengths = _lengths(node, x)
    if len(lengths) != x.shape[1] or not all(1 <= length <= steps for length in lengths):
        raise node.malformed(
            f"lengths {lengths} of {x.shape[1]} sequences of up to {steps} steps",
            f"one for each, 1 to {steps}",
        )
    size, gates = node.input(2).shape[-1], cell.gates
    if node.input(2).shape[1:] != (gates * size, size):
        raise node.malformed(f"weights of the state of shape {node.input(2).shape}")


def _lengths(node: OnnxNode, x: Tensor) -> tuple[int, ...]:
    """Return how many steps each sequence of a batch has."""
    if node.optional(4) is None:
        return (x.shape[0],) * x.shape[1]
    return node.integers(4, "the lengths")


def _direction(node: OnnxNode, cell: _Cell, x: Tensor, number: int) -> _Direction:
    """Return one direction of a layer, with what the inputs add to all steps."""

    def of_direction(tensor: Tensor) -> Tensor:
        return reshaped(node, along(node, tensor, 0, number, 1), *tensor.shape[1:])

    weights, state = of_direction(node.input(1)), of_direction(node.input(2))
    inputs, state_bias = _product(node, x, weights), None
    if node.optional(3) is not None:
        bias = of_direction(node.input(3))
        rows = weights.shape[0]
        own, state_bias = (along(node, bias, 0, first, rows) for first in (0, rows))
        if not cell.bias_apart:
            own, state_bias = add(node, own, state_bias), None
        inputs = add(node, inputs, own)
    functions = _functions(node, cell.functions, number)
    peepholes = node.optional(7) if cell.states > 1 else None
    if peepholes is not None:
        peepholes = reshaped(node, along(node, peepholes, 0, number, 1), peepholes.shape[1])
    size, rounds = state.shape[1], cell.is_rounded
    return _Direction(
        node, cell.gates, size, inputs, state, state_bias, functions, peepholes, rounds
    )


def _where(node: OnnxNode, taken: Array, new: Tensor, old: Tensor) -> Tensor:
    """Return the rows of one tensor where they are taken, else those of another."""
    if taken.all():
        return new
    flags = node.constant(np.broadcast_to(taken[:, np.newaxis], new.shape))
    return choose(node, flags, new, old)


def _run(
    node: OnnxNode, x: Tensor, number: int, *, cell: _Cell, is_reverse: bool
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Return the outputs of all steps, (steps, N, size), and the states in the end."""
    layer = _direction(node, cell, x, number)
    n = x.shape[1]
    states = tuple(_start(node, index, number, (n, layer.size)) for index in (5, 6)[: cell.states])
    step = partial(cell.step, layer)
    return _repeated(layer, step, states, is_reverse) or _written_out(
        layer, step, states, is_reverse
    )


def _repeated(
    layer: _Direction, step: _Step, states: tuple[Tensor, ...], is_reverse: bool
) -> tuple[Tensor, tuple[Tensor, ...]] | None:
    """Return the same by a loop of the graph; None if its turns have to be written out."""
    node, (steps, n, _) = layer.node, layer.inputs.shape
    if layer.inputs.data is not None:
        return None
    lengths = np.array(_lengths(node, layer.inputs))
    taken = np.arange(steps)[:, np.newaxis, np.newaxis] < lengths[:, np.newaxis]

    def turn(number: Tensor, old: tuple[Tensor, ...]) -> onnx_loops.Turn:
        place = sub(node, node.scalar_like(steps - 1, number), number) if is_reverse else number
        new = step(node.emit(Gather(), layer.inputs, place), old)
        if taken.all():
            return onnx_loops.Turn(new, new[:1])
        flags = node.emit(Gather(), node.constant(taken), place)
        states_after = tuple(choose(node, flags, *pair) for pair in zip(new, old, strict=True))
        return onnx_loops.Turn(states_after, (choose(node, flags, new[0], 0.0),))

    results = node.emitter.repeat(onnx_loops.Loop(states, turn, steps, from_end=(is_reverse,)))
    if results is None:
        return None
    return reshaped(node, results.lists[0], steps, n, layer.size), results.states


def _written_out(
    layer: _Direction, step: _Step, states: tuple[Tensor, ...], is_reverse: bool
) -> tuple[Tensor, tuple[Tensor, ...]]:
    node, (steps, n, _) = layer.node, layer.inputs.shape
    lengths = np.array(_lengths(node, layer.inputs))
    if steps > _MOST_STEPS:
        raise node.unsupported(
            f"{steps} steps that have to be unrolled", f"up to {_MOST_STEPS}",
            "export the model with shorter sequences",
        )  # fmt: skip
    zeros = filled(node, (n, layer.size), 0)
    outputs = []
    for number in range(steps)[:: -1 if is_reverse else 1]:
        # Behind the end of a sequence its states stay, and its outputs are zeros.
        taken = number < lengths
        output = zeros
        if taken.any():
            new = step(layer.step_inputs(number), states)
            states = tuple(_where(node, taken, *pair) for pair in zip(new, states, strict=True))
            output = _where(node, taken, new[0], zeros)
        outputs.append(reshaped(node, output, 1, n, layer.size))
    return joined(node, outputs[::-1] if is_reverse else outputs, 0), states


def _start(node: OnnxNode, index: int, number: int, shape: tuple[int, int]) -> Tensor:
    """Return a state before the first step: an input, or zeros."""
    tensor = node.optional(index)
    if tensor is None:
        return filled(node, shape, 0)
    axis = 1 if node.integer("layout", 0) else 0
    return reshaped(node, along(node, tensor, axis, number, 1), *shape)


_ATTRIBUTES = (
    "activation_alpha", "activation_beta", "activations", "clip", "direction", "hidden_size",
    "layout",
)  # fmt: skip

_RANKS = (3, 3, 3)  # inputs, and weights of both kinds

ONNX_READERS = (
    OnnxReader("RNN", _layer(_RNN), (3, 6), _ATTRIBUTES, outputs=2, ranks=_RANKS),
    OnnxReader(
        "GRU",
        _layer(_GRU),
        (3, 6),
        (*_ATTRIBUTES, "linear_before_reset"),
        outputs=2,
        ranks=_RANKS,
    ),
    OnnxReader(
        "LSTM", _layer(_LSTM), (3, 8), (*_ATTRIBUTES, "input_forget"), outputs=3, ranks=_RANKS
    ),
    OnnxReader(
        "DynamicQuantizeLSTM",
        dynamic_lstm,
        (12, 12),
        (*_ATTRIBUTES, "input_forget"),
        outputs=3,
        domain=MICROSOFT,
        ranks=_RANKS,
    ),
)
