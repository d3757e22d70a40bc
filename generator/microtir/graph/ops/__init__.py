"""All graph operators. The tuple `ALL` lists those of model formats, in the order of the docs."""

from __future__ import annotations

from microtir.graph.ops.base import Activation, Operator, Padding2D
from microtir.graph.ops.custom import Custom, CustomFunction
from microtir.graph.ops.movement import (
    Concatenation,
    JoinColumns,
    Pad,
    PlaceColumns,
    ReadRows,
    Reshape,
    Split,
    StridedSlice,
    Transpose,
    WriteRows,
)
from microtir.graph.ops.pointwise import (
    Add,
    BinaryArithmetic,
    CastTo,
    Dequantize,
    HardSwish,
    LeakyRelu,
    Logistic,
    Maximum,
    Minimum,
    Mul,
    Quantize,
    Relu,
    Sub,
    Tanh,
)
from microtir.graph.ops.reduction import FullyConnected, LogSoftmax, Mean, Softmax
from microtir.graph.ops.spatial import (
    AveragePool2D,
    Conv2D,
    DepthwiseConv2D,
    MaxPool2D,
    Pool2D,
    Resize,
    ResizeBilinear,
    ResizeNearestNeighbor,
)

ALL: tuple[type[Operator], ...] = (
    Conv2D, DepthwiseConv2D, FullyConnected, AveragePool2D, MaxPool2D, Mean, Add, Sub, Mul,
    Minimum, Maximum, Relu, LeakyRelu, HardSwish, Logistic, Tanh, Softmax, LogSoftmax, Pad,
    Concatenation, Reshape, Transpose, Split, StridedSlice, ResizeNearestNeighbor,
    ResizeBilinear, Quantize, Dequantize, CastTo,
)  # fmt: skip

__all__ = [
    "ALL", "Activation", "Add", "AveragePool2D", "BinaryArithmetic", "CastTo", "Concatenation",
    "Conv2D", "Custom", "CustomFunction", "DepthwiseConv2D", "Dequantize", "FullyConnected",
    "HardSwish", "JoinColumns", "LeakyRelu", "LogSoftmax", "Logistic", "MaxPool2D", "Maximum",
    "Mean", "Minimum", "Mul", "Operator", "Pad", "Padding2D", "PlaceColumns", "Pool2D", "Quantize",
    "ReadRows", "Relu", "Reshape", "Resize", "ResizeBilinear", "ResizeNearestNeighbor", "Softmax",
    "Split", "StridedSlice", "Sub", "Tanh", "Transpose", "WriteRows",
]  # fmt: skip
