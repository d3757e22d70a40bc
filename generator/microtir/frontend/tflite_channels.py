"""Tensors with a scale for each channel that an operator of TFLite moves: integers are copied."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from microtir.dtype import DType
from microtir.frontend.support import node_problems
from microtir.graph.ir import Array, Node, Tensor, TensorType
from microtir.operators.common.unlike_scales import Moved
from microtir.rewrite.reference import evaluate

_MOST_ELEMENTS = 1 << 22  # of a tensor whose scales are followed


def moves_scales_of_channels(node: Node, moved: Moved) -> bool:
    """Return whether a reference copies integers of a type, whatever scales of channels say."""
    dtype, copies = node.inputs[0].dtype, moved.compared is None and not moved.litert_rescales
    return copies and moved.takes(dtype) and dtype not in moved.refused_by_micro


def scales_follow(node: Node) -> bool:
    """Return whether each element of the outputs has the scale and zero point that it came with.

    The operator is evaluated on numbers of scales instead of values, once in their order and once
    in reverse, which tells operators apart that choose by value.  A 0 that it adds is the real 0.
    """
    numbers: dict[tuple[float, int], int] = {}
    data = [t for t in (*node.inputs, *node.outputs) if t.dtype is node.inputs[0].dtype]
    if any(t.type.quantization is None or t.type.elements > _MOST_ELEMENTS for t in data):
        return False
    if any(t.data is None and t not in data for t in node.inputs):
        return False  # which elements are picked is known in the run alone
    marks = {t: _marks(t, numbers) for t in data}
    floats = {t: Tensor("", TensorType(t.shape, DType.FLOAT32)) for t in marks}
    inputs, outputs = (tuple(floats.get(t, t) for t in ts) for ts in (node.inputs, node.outputs))
    told = replace(node, inputs=inputs, outputs=outputs)
    if any(node_problems(told, "")):
        return False  # they are told elsewhere
    adds_zero = not any(zero_point for _, zero_point in numbers)
    for sign in (np.float32(1), np.float32(-1)):
        values = [sign * marks[t] if t in marks else np.asarray(t.data) for t in node.inputs]
        for tensor, result in zip(node.outputs, evaluate(told, values), strict=True):
            is_added = (result == 0) & adds_zero
            if tensor in marks and not ((result == sign * marks[tensor]) | is_added).all():
                return False
    return True


def _marks(tensor: Tensor, numbers: dict[tuple[float, int], int]) -> Array:
    """Return for each element the number of its scale and zero point, from 1 on."""
    quant = tensor.type.quant
    pairs = zip(quant.scales, quant.zero_points, strict=True)
    marks = [numbers.setdefault(pair, len(numbers) + 1) for pair in pairs]
    extents = [1] * len(tensor.shape)
    if quant.axis is not None:
        extents[quant.axis] = -1
    return np.broadcast_to(np.array(marks, np.float32).reshape(extents), tensor.shape)
