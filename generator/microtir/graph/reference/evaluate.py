"""Evaluate one node, or a whole graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from microtir.errors import UsageError
from microtir.graph.ir import Array, Graph, Node, Tensor
from microtir.graph.ops import (
    Add,
    AveragePool2D,
    CastTo,
    Concatenation,
    Conv2D,
    Custom,
    DepthwiseConv2D,
    Dequantize,
    FullyConnected,
    HardSwish,
    JoinColumns,
    LeakyRelu,
    Logistic,
    LogSoftmax,
    Maximum,
    MaxPool2D,
    Mean,
    Minimum,
    Mul,
    Operator,
    Pad,
    PlaceColumns,
    Quantize,
    ReadRows,
    Relu,
    Reshape,
    ResizeBilinear,
    ResizeNearestNeighbor,
    Softmax,
    Split,
    StridedSlice,
    Sub,
    Tanh,
    Transpose,
    WriteRows,
)
from microtir.graph.reference import custom, movement, pointwise, reduction, resize, spatial

Observer: TypeAlias = Callable[[Node, tuple[Array, ...]], None]
"""Called with each node and its outputs, in the order of execution."""

_Kernel: TypeAlias = "Callable[..., Array | tuple[Array, ...]]"

_KERNELS: Mapping[type[Operator], _Kernel] = MappingProxyType(
    {
        Conv2D: spatial.conv_2d,
        DepthwiseConv2D: spatial.depthwise_conv_2d,
        FullyConnected: reduction.fully_connected,
        AveragePool2D: spatial.average_pool_2d,
        MaxPool2D: spatial.max_pool_2d,
        Mean: reduction.mean,
        Add: pointwise.add,
        Sub: pointwise.add,
        Mul: pointwise.mul,
        Minimum: pointwise.minimum,
        Maximum: pointwise.maximum,
        Relu: pointwise.relu,
        LeakyRelu: pointwise.leaky_relu,
        HardSwish: pointwise.hard_swish,
        Logistic: pointwise.logistic,
        Tanh: pointwise.tanh,
        Softmax: reduction.softmax,
        LogSoftmax: reduction.log_softmax,
        Pad: movement.pad,
        Concatenation: movement.concatenation,
        Reshape: movement.reshape,
        PlaceColumns: movement.unchanged,
        JoinColumns: movement.join_columns,
        ReadRows: movement.unchanged,
        WriteRows: movement.unchanged,
        Transpose: movement.transpose,
        Split: movement.split,
        StridedSlice: movement.strided_slice,
        ResizeNearestNeighbor: resize.resize_nearest_neighbor,
        ResizeBilinear: resize.resize_bilinear,
        Quantize: pointwise.quantize,
        Dequantize: pointwise.dequantize,
        CastTo: pointwise.cast_to,
        Custom: custom.custom,
    }
)
"""The meaning of each operator: (operator, node, *inputs) -> output or outputs."""


def evaluate(node: Node, inputs: Sequence[Array]) -> tuple[Array, ...]:
    """Outputs of a node of a verified graph.

    Args:
        node: the operator with the types of its tensors.
        inputs: one array per input of the node, constants included, of its shape and type.
    """
    result = _KERNELS[type(node.op)](node.op, node, *inputs)
    outputs = result if isinstance(result, tuple) else (result,)
    for tensor, array in zip(node.outputs, outputs, strict=True):
        assert array.shape == tensor.shape, f"{node.name}: {array.shape} for {tensor.shape}"
        assert array.dtype == tensor.dtype.value, f"{node.name}: {array.dtype}"
    return outputs


def execute(
    graph: Graph, inputs: Mapping[str, Array], observe: Observer | None = None
) -> dict[str, Array]:
    """Run a verified graph.

    Args:
        graph: the graph.
        inputs: an array for each input of the graph, by name, of exactly its shape and type.
        observe: is shown each node with its outputs as soon as they are computed.

    Returns:
        The outputs of the graph by name.

    Raises:
        UsageError: an input is missing, unknown, or of another shape or type.
    """
    values: dict[Tensor, Array] = _checked_inputs(graph, inputs)
    for node in graph.nodes:
        operands = [value_of(tensor, values) for tensor in node.inputs]
        outputs = evaluate(node, operands)
        values.update(zip(node.outputs, outputs, strict=True))
        if observe is not None:
            observe(node, outputs)
    return {tensor.name: value_of(tensor, values) for tensor in graph.outputs}


def value_of(tensor: Tensor, values: Mapping[Tensor, Array]) -> Array:
    """The array of a tensor: what was computed, or a constant."""
    return values[tensor] if tensor.data is None else tensor.data


def _checked_inputs(graph: Graph, inputs: Mapping[str, Array]) -> dict[Tensor, Array]:
    expected = [tensor.name for tensor in graph.inputs]
    if sorted(expected) != sorted(inputs):
        raise UsageError(
            f"got inputs {sorted(inputs)}",
            where=f"inputs of {graph.name}",
            legal=f"exactly {sorted(expected)}",
        )
    values = {}
    for tensor in graph.inputs:
        array = np.asarray(inputs[tensor.name])
        if array.shape != tensor.shape or array.dtype != tensor.dtype.value:
            raise UsageError(
                f"got an array of {array.dtype} {array.shape}",
                where=f"input '{tensor.name}' of {graph.name}",
                legal=f"{tensor.dtype.value} {tensor.shape}",
            )
        values[tensor] = array
    return values
