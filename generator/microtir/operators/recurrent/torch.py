"""Read PyTorch's recurrent layers, as ONNX's: their gates stand in another order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from microtir.graph.ir import Tensor
from microtir.operators.common.onnx_parts import along
from microtir.operators.common.torch_operands import TorchNode, TorchReader
from microtir.operators.common.torch_rows import readers
from microtir.operators.recurrent.torch_projected import projected_lstm


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of layer.

    Args:
        operator: of ONNX.
        gates: where each gate of ONNX stands in PyTorch.
        states: how many it keeps from step to step.
        functions: of its gates, where they are not the usual ones.
    """

    operator: str
    gates: tuple[int, ...]
    states: int = 1
    functions: tuple[str, ...] = ()


_LSTM = _Kind("LSTM", (0, 3, 1, 2), 2)  # input, output, forget, cell of input, forget, cell, output
_GRU = _Kind("GRU", (1, 0, 2))  # update, reset, new of reset, update, new
_TANH, _RELU = _Kind("RNN", (0,), 1, ("Tanh",)), _Kind("RNN", (0,), 1, ("Relu",))


def _in_order(node: TorchNode, kind: _Kind, x: Tensor) -> Tensor:
    """Return the rows of weights or biases gate by gate as ONNX has them."""
    if len(kind.gates) == 1:
        return x
    size = node.extent(x, 0) // len(kind.gates)
    parts = [along(node.first, x, 0, gate * size, size) for gate in kind.gates]
    return node.onnx("Concat", *parts, axis=0)


def _stacked(node: TorchNode, parts: Sequence[Tensor]) -> Tensor:
    """Return tensors of all directions with a first axis of these."""
    return node.onnx("Concat", *(node.reshaped(x, (1, *x.shape)) for x in parts), axis=0)


def _of_directions(
    node: TorchNode, kind: _Kind, x: Tensor, weights: Sequence[Sequence[Tensor]], *states: Tensor
) -> tuple[Tensor, ...]:
    """Return the results of one layer in one direction or both: (T, N, D * H), and states.

    Args:
        node: which is read.
        kind: of the layer.
        x: its inputs (T, N, I).
        weights: of each direction those of inputs and states, and biases if there are any.
        states: before the first step, each (D, N, H).
    """
    ordered = [[_in_order(node, kind, one) for one in own] for own in weights]
    of_inputs, of_states = (_stacked(node, [own[n] for own in ordered]) for n in (0, 1))
    biases = None
    if len(weights[0]) > 2:
        biases = _stacked(node, [node.onnx("Concat", *own[2:4], axis=0) for own in ordered])
    results = node.onnx_tensors(
        kind.operator, x, of_inputs, of_states, biases, None, *states,
        direction="bidirectional" if len(weights) > 1 else "forward", outputs=1 + kind.states,
        hidden_size=of_states.shape[-1], activations=kind.functions * len(weights),
        **({"linear_before_reset": 1} if kind is _GRU else {}),
    )  # fmt: skip
    steps, directions, batch, size = results[0].shape
    moved = node.onnx("Transpose", results[0], perm=(0, 2, 1, 3))
    return node.reshaped(moved, (steps, batch, directions * size)), *results[1:]


def _starts(node: TorchNode, kind: _Kind) -> tuple[Tensor, ...]:
    """Return the states before the first step, each (layers * directions, N, H)."""
    if kind is _LSTM:
        return node.tensors("hx", kind.states)
    return (node.tensor("hx"),)


def _layers(kind: _Kind) -> Callable[[TorchNode], tuple[Tensor, ...]]:
    """Return what reads layers on top of each other, each in one direction or both."""

    def read(node: TorchNode) -> tuple[Tensor, ...]:
        x, is_batch_first = node.tensor("input"), node.flag("batch_first")
        if node.flag("train", False) and node.number("dropout", 0.0):
            raise node.unsupported(
                "it drops elements at random", "inference", "call model.eval() before the export"
            )
        if is_batch_first:
            x = node.onnx("Transpose", x, perm=(1, 0, 2))
        directions = 2 if node.flag("bidirectional") else 1
        count = node.integer("num_layers") * directions
        parameters, starts = node.tensors("params"), _starts(node, kind)
        each = len(parameters) // count if count > 0 else 0
        if each not in (2, 3, 4, 5) or each * count != len(parameters) or len(starts) < kind.states:
            raise node.malformed(f"{len(parameters)} parameters of {count} layers")
        ends: list[list[Tensor]] = [[] for _ in starts]
        for first in range(0, count, directions):
            own = [
                parameters[(first + n) * each : (first + n + 1) * each] for n in range(directions)
            ]
            states = [along(node.first, start, 0, first, directions) for start in starts]
            run = projected_lstm if each in (3, 5) else _plain(kind)
            x, *last = run(node, x, own, *states)
            for end, state in zip(ends, last, strict=True):
                end.append(state)
        if is_batch_first:
            x = node.onnx("Transpose", x, perm=(1, 0, 2))
        return x, *(node.onnx("Concat", *end, axis=0) for end in ends)

    return read


def _plain(kind: _Kind) -> Callable[..., tuple[Tensor, ...]]:
    return lambda node, x, weights, *states: _of_directions(node, kind, x, weights, *states)


def _cell(kind: _Kind) -> Callable[[TorchNode], Tensor | tuple[Tensor, ...]]:
    """Return what reads one step of a layer."""

    def read(node: TorchNode) -> Tensor | tuple[Tensor, ...]:
        x = node.tensor("input")
        weights = [node.tensor(name) for name in ("w_ih", "w_hh")]
        weights += [node.tensor(name) for name in ("b_ih", "b_hh") if node.has(name)]
        starts = [node.reshaped(start, (1, *start.shape)) for start in _starts(node, kind)]
        line = node.reshaped(x, (1, *x.shape))
        _, *states = _of_directions(node, kind, line, [weights], *starts)
        results = tuple(node.reshaped(state, state.shape[1:]) for state in states)
        return results if kind.states > 1 else results[0]

    return read


_LAYERS = "input hx params has_biases num_layers dropout train bidirectional batch_first"
_CELL = "input hx w_ih w_hh b_ih b_hh"

TORCH_READERS: tuple[TorchReader, ...] = tuple(
    row
    for name, kind in (("lstm", _LSTM), ("gru", _GRU), ("rnn_tanh", _TANH), ("rnn_relu", _RELU))
    for row in (
        *readers(_layers(kind), _LAYERS, f"{name}.input"),
        *readers(_cell(kind), _CELL, f"{name}_cell"),
    )
)
