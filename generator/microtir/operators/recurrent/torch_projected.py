"""Emit LSTMs whose output of each step is a product with a matrix, which ONNX has not."""

from __future__ import annotations

from collections.abc import Sequence

from microtir.graph.ir import Tensor
from microtir.operators.common.onnx_parts import along
from microtir.operators.common.onnx_values import Value, tensors_of
from microtir.operators.common.torch_operands import TorchNode


def projected_lstm(
    node: TorchNode, x: Tensor, weights: Sequence[Sequence[Tensor]], h: Tensor, cell: Tensor
) -> tuple[Tensor, ...]:
    """Return the outputs (T, N, D * P) of one layer in D directions, and the states behind it.

    Args:
        node: which is read.
        x: inputs (T, N, I).
        weights: of each direction those of inputs (4 H, I) and of states (4 H, P), two biases
            (4 H,) if there are any, and the matrix (P, H) of the outputs.
        h: the output before the first step (D, N, P).
        cell: the cells before it (D, N, H).
    """
    lists, ends = [], []
    for number, own in enumerate(weights):
        start = tuple(
            node.reshaped(along(node.first, s, 0, number, 1), s.shape[1:]) for s in (h, cell)
        )
        h_last, cell_last, outputs = _direction(node, x, own, start, is_reverse=bool(number))
        lists.append(outputs)
        ends.append((h_last, cell_last))
    states = (
        node.onnx("Concat", *(node.reshaped(one, (1, *one.shape)) for one in pair), axis=0)
        for pair in zip(*ends, strict=True)
    )
    return node.onnx("Concat", *lists, axis=2), *states


def _direction(
    node: TorchNode,
    x: Tensor,
    weights: Sequence[Tensor],
    start: tuple[Tensor, ...],
    *,
    is_reverse: bool,
) -> tuple[Tensor, ...]:
    """Return both states behind one direction, and the outputs of all steps (T, N, P)."""
    of_inputs, of_states, *biases, matrix = weights
    steps, batch, size = x.shape
    sums = _product(node, node.reshaped(x, (steps * batch, size)), of_inputs)
    for bias in biases:
        sums = node.onnx("Add", sums, bias)
    sums = node.reshaped(sums, (steps, batch, of_inputs.shape[0]))

    def step(values: Sequence[Value]) -> tuple[Value, ...]:
        h, cell, inputs = (tensor for value in values for tensor in tensors_of(value))
        gates = node.onnx("Add", inputs, _product(node, h, of_states))
        entry, forget, proposal, out = node.onnx_tensors(
            "Split", gates, axis=1, num_outputs=4, outputs=4
        )
        rest = node.onnx("Mul", node.onnx("Sigmoid", forget), cell)
        added = node.onnx("Mul", node.onnx("Sigmoid", entry), node.onnx("Tanh", proposal))
        new = node.onnx("Add", rest, added)
        seen = node.onnx("Mul", node.onnx("Sigmoid", out), node.onnx("Tanh", new))
        result = _product(node, seen, matrix)
        return result, new, result

    flag = (int(is_reverse),)
    return node.onnx_tensors(
        "Scan", *start, sums, num_scan_inputs=1, scan_input_directions=flag,
        scan_output_directions=flag, body=step, outputs=3,
    )  # fmt: skip


def _product(node: TorchNode, x: Tensor, weights: Tensor) -> Tensor:
    return node.onnx("Gemm", x, weights, transB=1)
