"""Operators over images (N, H, W, C)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from microtir.graph.ops.base import Activation, Operator, Padding2D


@dataclass(frozen=True, slots=True)
class Conv2D(Operator):
    """Inputs: image (N, H, W, I), weights (O, KH, KW, I), optional bias (O,).

    Output (N, OH, OW, O). Padding counts as the zero point. Weights may be int8 under float
    activations (hybrid).
    """

    name: ClassVar[str] = "conv_2d"
    strides: tuple[int, int] = (1, 1)  # rows, columns
    dilations: tuple[int, int] = (1, 1)
    padding: Padding2D = Padding2D()
    activation: Activation = Activation.NONE


@dataclass(frozen=True, slots=True)
class DepthwiseConv2D(Operator):
    """Inputs: image (N, H, W, I), weights (1, KH, KW, I*M), optional bias (I*M,).

    Output channel c reads input channel c // depth_multiplier.
    """

    name: ClassVar[str] = "depthwise_conv_2d"
    strides: tuple[int, int] = (1, 1)
    dilations: tuple[int, int] = (1, 1)
    padding: Padding2D = Padding2D()
    depth_multiplier: int = 1
    activation: Activation = Activation.NONE


@dataclass(frozen=True, slots=True)
class Pool2D(Operator):
    """Base of the pooling operators; elements outside the image never count."""

    window: tuple[int, int] = (1, 1)
    strides: tuple[int, int] = (1, 1)
    padding: Padding2D = Padding2D()
    activation: Activation = Activation.NONE


@dataclass(frozen=True, slots=True)
class AveragePool2D(Pool2D):
    """Mean over the part of the window inside the image."""

    name: ClassVar[str] = "average_pool_2d"


@dataclass(frozen=True, slots=True)
class MaxPool2D(Pool2D):
    """Maximum over the part of the window inside the image; never rescales."""

    name: ClassVar[str] = "max_pool_2d"


@dataclass(frozen=True, slots=True)
class Resize(Operator):
    """Base of the resizing operators; the new size is that of the output tensor."""

    align_corners: bool = False
    half_pixel_centers: bool = False


@dataclass(frozen=True, slots=True)
class ResizeNearestNeighbor(Resize):
    name: ClassVar[str] = "resize_nearest_neighbor"


@dataclass(frozen=True, slots=True)
class ResizeBilinear(Resize):
    name: ClassVar[str] = "resize_bilinear"
