"""Define FULLY_CONNECTED by its attributes and rules."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from microtir.graph.ir import Node, TensorType
from microtir.graph.operator import Operator
from microtir.operators.common.attributes import Activation
from microtir.operators.common.linear import (
    LinearParams,
    linear_params,
)
from microtir.operators.common.multiplier import per_channel_multipliers
from microtir.operators.common.shapes import Shape, check_bias, input_shape, require
from microtir.operators.definition import weighted


@dataclass(frozen=True, slots=True)
class FullyConnected(Operator):
    """Inputs: (..., I) read as (rows, I), weights (O, I), optional bias (O,). Output rows of O."""

    name: ClassVar[str] = "fully_connected"
    activation: Activation = Activation.NONE


def fully_connected_params(
    op: FullyConnected, features: TensorType, weights: TensorType, output: TensorType
) -> LinearParams:
    """Derive the parameters of an int8 fully connected layer, from scales in double."""
    multipliers = per_channel_multipliers(features, weights, output)
    return linear_params(op.activation, features, output, multipliers)


def _fully_connected_shape(node: Node) -> tuple[Shape, ...]:
    weights = input_shape(node, 1, 2)
    elements = node.inputs[0].type.elements
    require(
        elements % weights[1] == 0,
        f"input of shape {node.inputs[0].shape} for weights {weights}",
        f"rows of {weights[1]} elements",
    )
    rows = elements // weights[1]
    check_bias(node, weights[0])
    # Leading dimensions may be kept or merged.
    shape = node.output.shape
    keeps = shape[-1:] == weights[:1] and math.prod(shape) == rows * weights[0]
    return (shape if keeps else (rows, weights[0]),)


def _terms(node: Node) -> int:
    return node.inputs[1].shape[1]


def _macs(node: Node) -> int:
    return node.inputs[0].type.elements * node.inputs[1].shape[0]


DEFINITIONS = (weighted(FullyConnected, _fully_connected_shape, _terms, macs=_macs),)
