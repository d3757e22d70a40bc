"""Define FULLY_CONNECTED by its attributes and rules."""

from __future__ import annotations

import math
from dataclasses import dataclass

from microtir.graph.ir import Node
from microtir.operators.common import attributes, linear, shapes
from microtir.operators.common.images import by_memory
from microtir.operators.definition import weighted


@dataclass(frozen=True, slots=True)
class FullyConnected(linear.WeightedOperator):
    """Inputs: (..., I) read as (rows, I), weights (O, I), optional bias (O,). Output rows of O.

    `asymmetric` is what a float layer with int8 weights says of how its inputs are quantised, if
    they are.
    """

    activation: attributes.Activation = attributes.Activation.NONE
    asymmetric: bool = False


def _fully_connected_shape(node: Node) -> tuple[shapes.Shape, ...]:
    weights = shapes.input_shape(node, 1, 2)
    elements = node.inputs[0].type.elements
    shapes.require(
        elements % weights[1] == 0,
        f"input of shape {node.inputs[0].shape} for weights {weights}",
        f"rows of {weights[1]} elements",
    )
    rows = elements // weights[1]
    shapes.check_bias(node, weights[0])
    # Leading dimensions may be kept or merged.
    shape = node.output.shape
    keeps = shape[-1:] == weights[:1] and math.prod(shape) == rows * weights[0]
    return (shape if keeps else (rows, weights[0]),)


def _terms(node: Node) -> int:
    return node.inputs[1].shape[1]


def _macs(node: Node) -> int:
    return node.inputs[0].type.elements * node.inputs[1].shape[0]


DEFINITIONS = (
    weighted(FullyConnected, _fully_connected_shape, _terms, macs=_macs, one_image=by_memory),
)
