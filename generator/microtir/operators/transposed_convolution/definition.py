"""Define TRANSPOSE_CONV by its attributes and rules."""

from __future__ import annotations

import math
from dataclasses import dataclass

from microtir.graph.ir import Node
from microtir.operators.common import attributes, linear
from microtir.operators.common.shapes import Shape, check_bias, input_shape, require
from microtir.operators.common.types import WEIGHTED_TRANSPOSED
from microtir.operators.definition import weighted


@dataclass(frozen=True, slots=True)
class TransposeConv(linear.WeightedOperator):
    """Inputs: image (N, H, W, I), weights (O, KH, KW, I), optional bias (O,).

    Each pixel, times the weights, is added to a window of the output (N, OH, OW, O): that of pixel
    (y, x) begins at (y * stride - before) in rows and columns.  What lies outside the output is
    lost; where no window reaches, the bias alone is left.
    """

    strides: tuple[int, int] = (1, 1)  # rows, columns
    before: tuple[int, int] = (0, 0)
    activation: attributes.Activation = attributes.Activation.NONE


def _shape(node: Node) -> tuple[Shape, ...]:
    op = node.attributes(TransposeConv)
    image, weights, output = input_shape(node, 0, 4), input_shape(node, 1, 4), node.output.shape
    require(
        weights[3] == image[3],
        f"weights {weights} for an image of {image[3]} channels",
        f"(O, KH, KW, {image[3]})",
    )
    require(min(op.strides) >= 1 and min(op.before) >= 0, "attributes", "strides from 1")
    check_bias(node, weights[0])
    # Windows of several output sizes begin alike, so the declared one counts.
    rows, columns = output[1:3] if len(output) == 4 else (1, 1)
    return ((image[0], rows, columns, weights[0]),)


def _terms(node: Node) -> int:
    """Count the products of the output element that most windows reach."""
    op = node.attributes(TransposeConv)
    _, *taps, depth = node.inputs[1].shape
    reach = (-(-count // stride) for count, stride in zip(taps, op.strides, strict=True))
    return depth * math.prod(reach)


def _macs(node: Node) -> int:
    """Count a product of each pixel with all weights, inside of the output or not."""
    pixels = math.prod(node.inputs[0].shape[:3])
    return pixels * node.inputs[1].type.elements


DEFINITIONS = (weighted(TransposeConv, _shape, _terms, macs=_macs, types=WEIGHTED_TRANSPOSED),)
