"""Tensors with a scale for each channel that an operator of TFLite moves: integers are copied."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from microtir.dtype import DType
from microtir.frontend.support import node_problems
from microtir.graph.ir import Array, Node, Quantization, Tensor, TensorType
from microtir.operators.activations.definition import Relu
from microtir.operators.common.attributes import Activation
from microtir.operators.common.unlike_scales import Moved
from microtir.operators.pooling.definition import Pool2D
from microtir.rewrite.facts.rules import quantization
from microtir.rewrite.reference import evaluate

_MOST_ELEMENTS = 1 << 22  # of a tensor whose scales are followed


def clamps(node: Node) -> bool:
    """Return whether real bounds become stored ones, by one scale for all channels."""
    return isinstance(node.op, Relu) or (
        isinstance(node.op, Pool2D) and node.op.activation is not Activation.NONE
    )


def scales_of_channels(
    node: Node, data: Iterable[Tensor], moved: Moved, target: Tensor
) -> dict[Tensor, Quantization | None]:
    """Return for each tensor in which quantisation the operator itself computes.

    That is none for one that only moves what is stored, and else the first of each tensor, or of
    the one whose scale is the operator's.
    """
    if moved.has_own_scales:
        return {tensor: _first(tensor) for tensor in data}
    unquantised = {t: Tensor("", replace(t.type, quantization=None)) for t in data}
    inputs, outputs = (
        tuple(unquantised.get(t, t) for t in ts) for ts in (node.inputs, node.outputs)
    )
    needs_scale = any(quantization(replace(node, inputs=inputs, outputs=outputs)))
    first = next(filter(None, map(_first, (target, *data))))
    return dict.fromkeys(data, first if needs_scale else None)


def _first(tensor: Tensor) -> Quantization | None:
    quant = tensor.type.quantization
    return None if quant is None else Quantization(quant.scales[:1], quant.zero_points[:1])


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
