"""Read the layers that make one tensor of several."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from microtir.frontend.keras.layer import KerasLayer, KerasReader
from microtir.graph.ir import Tensor
from microtir.graph.operator import Operator
from microtir.operators.arithmetic.definition import Add, Maximum, Minimum, Mul, Sub
from microtir.operators.common import onnx_arithmetic as arithmetic
from microtir.operators.common.onnx_parts import joined, reshaped, transposed
from microtir.operators.matmul.definition import BatchMatmul
from microtir.operators.normalization.definition import L2Normalize


def _broadcast(layer: KerasLayer) -> list[Tensor]:
    """Return the inputs with axes of 1 behind the batch, so that all have one rank."""
    rank = max((len(x.shape) for x in layer.inputs), default=0)
    return [
        reshaped(layer.node, x, x.shape[0], *(1,) * (rank - len(x.shape)), *x.shape[1:])
        if x.shape else x
        for x in layer.inputs
    ]  # fmt: skip


def _folded(op: Callable[[], Operator]) -> Callable[[KerasLayer], Tensor]:
    def read(layer: KerasLayer) -> Tensor:
        tensors = _broadcast(layer)
        if len(tensors) < 2:
            raise layer.malformed(f"it is called with {len(tensors)} tensors", "2 or more")
        return reduce(lambda a, b: layer.emit(op(), a, b), tensors)

    return read


def _average(layer: KerasLayer) -> Tensor:
    total = _folded(Add)(layer)
    return arithmetic.mul(layer.node, total, 1.0 / len(layer.inputs))


def _concatenate(layer: KerasLayer) -> Tensor:
    if not layer.inputs:
        raise layer.malformed("it is called without tensors")
    axis = layer.node.axis(layer.integer("axis", -1), len(layer.inputs[0].shape))
    return joined(layer.node, layer.inputs, axis)


def _dot(layer: KerasLayer) -> Tensor:
    """Read Dot: sums of products along one axis of each input, of each entry of the batch."""
    if len(layer.inputs) != 2:
        raise layer.malformed(f"it is called with {len(layer.inputs)} tensors", "2")
    axes = layer.integers("axes") * 2
    tensors = []
    for x, axis in zip(layer.inputs, axes[:2], strict=True):
        at = layer.node.axis(axis, len(x.shape))
        if not at:
            raise layer.malformed("it multiplies along the batch axis and adds", "axes from 1 on")
        others = [n for n in range(1, len(x.shape)) if n != at]
        moved = transposed(layer.node, x, (0, *others, at))
        if layer.flag("normalize"):
            moved = layer.emit(L2Normalize(), moved)
        tensors.append(moved)
    a, b = tensors
    rows, columns = a.shape[1:-1], b.shape[1:-1]
    flat = [reshaped(layer.node, x, x.shape[0], -(-x.type.elements // (x.shape[0] * x.shape[-1])),
                     x.shape[-1]) for x in tensors]  # fmt: skip
    product = layer.emit(BatchMatmul(adj_y=True), *flat)
    shape = (*rows, *columns) or (1,)
    return reshaped(layer.node, product, a.shape[0], *shape)


KERAS_READERS = (
    KerasReader("Add", _folded(Add), keeps_mask=True),
    KerasReader("Subtract", _folded(Sub), keeps_mask=True),
    KerasReader("Multiply", _folded(Mul), keeps_mask=True),
    KerasReader("Maximum", _folded(Maximum), keeps_mask=True),
    KerasReader("Minimum", _folded(Minimum), keeps_mask=True),
    KerasReader("Average", _average, keeps_mask=True),
    KerasReader("Concatenate", _concatenate, ("axis",)),
    KerasReader("Dot", _dot, ("axes", "normalize")),
)
