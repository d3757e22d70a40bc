"""Give back the operator of a TFLite file that a node of the graph was read of, or could be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Array, Node, Tensor, TensorType
from microtir.operators.common.attributes import Activation
from microtir.operators.common.tflite_schema import Options, TfliteActivation, TfliteType


@dataclass(frozen=True, slots=True)
class Written:
    """The operator of the file that a node becomes.

    Args:
        inputs: in the order of the file; None is one that is left out.
        options: its table.
        variables: positions of the inputs that keep their values, in the order in which their new
            values are outputs of the node, behind the first.
        intermediates: tensors that tell readers of scales in between, and hold nothing.
    """

    inputs: tuple[Tensor | None, ...]
    options: Options = Options()
    variables: tuple[int, ...] = ()
    intermediates: tuple[Tensor, ...] = ()


Write: TypeAlias = Callable[[Node], Written | None]
"""Gives the operator of a file, or None if this one does not say what the node computes."""


def as_it_is(node: Node) -> Written:
    """Write an operator that the file has no attributes for."""
    return Written(node.inputs)


def numbers(node: Node, what: str, values: Sequence[int]) -> Tensor:
    """Return an input that holds an attribute: a vector of int32."""
    return constant(node, what, np.array(values, np.int32).reshape(-1))


def number(node: Node, what: str, value: int) -> Tensor:
    """Return an input that holds an attribute: a scalar of int32."""
    return constant(node, what, np.array(value, np.int32))


def constant(node: Node, what: str, data: Array, type_: TensorType | None = None) -> Tensor:
    """Return a constant that the graph does not have, named after the output of a node."""
    type_ = type_ or TensorType(data.shape, DType(data.dtype.name))
    return Tensor(f"{node.outputs[0].name}/{what}", type_, data)


def activation(fused: Activation) -> TfliteActivation:
    """Return the option for an activation."""
    return TfliteActivation[fused.name]


def type_of(tensor: Tensor) -> TfliteType:
    """Return the option for the type of a tensor."""
    return TfliteType[tensor.dtype.value.upper()]


def pairs(before: Sequence[int], after: Sequence[int]) -> Array:
    """Return paddings as the format has them: a row for each axis."""
    return np.stack([np.array(before, np.int32), np.array(after, np.int32)], axis=-1)
