"""Define CONV_3D by its attributes and rules."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.graph.operator import Operator
from microtir.operators.common import attributes, shapes
from microtir.operators.common.types import equal_types
from microtir.operators.definition import weighted

Triple: TypeAlias = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Conv3D(Operator):
    """Inputs: volume (N, D, H, W, I), weights (KD, KH, KW, I, O), optional bias (O,).

    Output (N, OD, OH, OW, O).  Padding counts as 0.
    """

    strides: Triple = (1, 1, 1)  # of depth, rows, columns
    dilations: Triple = (1, 1, 1)
    before: Triple = (0, 0, 0)  # padding
    after: Triple = (0, 0, 0)
    activation: attributes.Activation = attributes.Activation.NONE


def _shape(node: Node) -> tuple[shapes.Shape, ...]:
    op = node.attributes(Conv3D)
    volume, weights = shapes.input_shape(node, 0, 5), shapes.input_shape(node, 1, 5)
    shapes.require(
        weights[3] == volume[4],
        f"weights {weights} for a volume of {volume[4]} channels",
        f"(KD, KH, KW, {volume[4]}, O)",
    )
    shapes.check_bias(node, weights[4])
    extents = [
        shapes.positions(
            volume[axis + 1], weights[axis], op.strides[axis], op.dilations[axis],
            op.before[axis], op.after[axis],
        )
        for axis in range(3)
    ]  # fmt: skip
    return ((volume[0], *extents, weights[4]),)


def _terms(node: Node) -> int:
    return math.prod(node.inputs[1].shape[:4])


DEFINITIONS = (weighted(Conv3D, _shape, _terms, channel_axis=4, types=equal_types(DType.FLOAT32)),)
