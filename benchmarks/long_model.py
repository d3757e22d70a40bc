"""A model as deep as one likes, made without a file: what planning time is measured on.

Blocks as those of MobileNetV2 (Sandler et al. 2018): a convolution widens an image, a depthwise
one follows, another convolution narrows it, and what went in is added.  Every sixth block has two
branches instead, a convolution and an average of neighbours, which are concatenated.  Five stages
halve the image, of 96 x 96 at first, four times and a stem and a head stand around them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Graph, Node, Quantization, SourceLocation, Tensor, TensorType
from microtir.graph.operator import Operator
from microtir.module.ir_module import IRModule
from microtir.operators.arithmetic.definition import Add
from microtir.operators.common.attributes import Activation, Padding2D
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.movement.definition import Concatenation, Reshape
from microtir.operators.pooling.definition import AveragePool2D
from microtir.operators.softmax.definition import Softmax

OPERATORS = 500

_CHANNELS = (8, 16, 24, 40, 64)  # of each stage
_SHARES = (1, 2, 4, 4, 1)  # of the blocks that do not halve the image
_WIDER = 4  # times as many channels between the convolutions of a block
_BRANCHES = 6  # one of so many blocks has two
_OUTSIDE = 20  # operators of stem and head, and of the blocks that halve the image
_CLASSES = 10

_SCALE = float(np.float32(0.05))
_WEIGHTS = float(np.float32(0.01))
_SAME = Padding2D(1, 1, 1, 1)
_HALVED = Padding2D(0, 1, 0, 1)


def long_model(operators: int = OPERATORS) -> IRModule:
    """Make an int8 classifier of so many operators: `_OUTSIDE` and four for each block.

    Args:
        operators: in all; 20 + 4 n with n a multiple of 12.
    """
    shares, rest = divmod(operators - _OUTSIDE, 4 * sum(_SHARES))
    assert shares > 0 and not rest, "all stages get their share of the blocks"
    net = _Net()
    image = net.image = Tensor("image", _type((1, 96, 96, 3)))
    net.convolution(_CHANNELS[0] * 2, 3, stride=2)
    net.depthwise()
    net.convolution(_CHANNELS[0])
    number = 0
    for channels, share in zip(_CHANNELS, _SHARES, strict=True):
        if net.image.shape[-1] != channels:
            net.widened(channels, stride=2)
        for _ in range(share * shares):
            number += 1
            if number % _BRANCHES:
                net.residual()
            else:
                net.branches()
    net.head()
    graph = Graph("long", (image,), (net.image,), tuple(net.nodes))
    assert len(graph.nodes) == operators
    return IRModule(graph=graph)


def _type(shape: tuple[int, ...], dtype: DType = DType.INT8, scale: float = _SCALE) -> TensorType:
    return TensorType(shape, dtype, Quantization((scale,), (0,)))


@dataclass(slots=True)
class _Net:
    """Nodes made so far; the next one reads `image`."""

    nodes: list[Node] = field(default_factory=list)
    image: Tensor = field(init=False)
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def add(
        self, op: Operator, *inputs: Tensor, shape: tuple[int, ...], scale: float = _SCALE
    ) -> Tensor:
        """Add a node and return its output, which becomes `image`."""
        number = len(self.nodes)
        self.image = Tensor(f"t{number}", _type(shape, scale=scale))
        source = SourceLocation("long", number, op.name.upper())
        self.nodes.append(Node(op, inputs, (self.image,), f"n{number}", source))
        return self.image

    def weights(self, shape: tuple[int, ...], axis: int, outputs: int) -> tuple[Tensor, Tensor]:
        """Make weights with a scale for each output, and a bias."""
        scales = tuple(float(np.float32(_WEIGHTS * (1 + n % 7 / 8))) for n in range(outputs))
        zeros = (0,) * outputs
        kind = TensorType(shape, DType.INT8, Quantization(scales, zeros, axis))
        data = self.rng.integers(-127, 128, shape).astype(np.int8)
        sums = Quantization(tuple(float(np.float32(s * _SCALE)) for s in scales), zeros, 0)
        bias = self.rng.integers(-900, 900, outputs).astype(np.int32)
        number = len(self.nodes)
        return (
            Tensor(f"w{number}", kind, data),
            Tensor(f"b{number}", TensorType((outputs,), DType.INT32, sums), bias),
        )

    def convolution(
        self, channels: int, size: int = 1, stride: int = 1, *, active: bool = True
    ) -> Tensor:
        """Add a CONV_2D of size x size, with RELU if `active`."""
        image = self.image
        _, height, width, depth = image.shape
        weights = self.weights((channels, size, size, depth), 0, channels)
        op = Conv2D(
            strides=(stride, stride),
            padding=_HALVED if size > 1 else Padding2D(),
            activation=Activation.RELU if active else Activation.NONE,
        )
        return self.add(op, image, *weights, shape=(1, height // stride, width // stride, channels))

    def depthwise(self, stride: int = 1) -> Tensor:
        """Add a DEPTHWISE_CONV_2D of 3 x 3 and RELU."""
        image = self.image
        _, height, width, channels = image.shape
        weights = self.weights((1, 3, 3, channels), 3, channels)
        op = DepthwiseConv2D(
            strides=(stride, stride),
            padding=_SAME if stride == 1 else _HALVED,
            activation=Activation.RELU,
        )
        return self.add(op, image, *weights, shape=(1, height // stride, width // stride, channels))

    def widened(self, channels: int, stride: int = 1) -> Tensor:
        """Add a block that goes wide, is depthwise, and goes narrow again."""
        self.convolution(self.image.shape[-1] * _WIDER)
        self.depthwise(stride)
        return self.convolution(channels, active=False)

    def residual(self) -> Tensor:
        """Add such a block and, to its output, what went in."""
        before = self.image
        after = self.widened(before.shape[-1])
        return self.add(Add(), before, after, shape=before.shape)

    def branches(self) -> Tensor:
        """Add half of the channels by a convolution, the others by an average of neighbours."""
        before = self.image
        *_, channels = before.shape
        first = self.convolution(channels // 2)
        self.add(AveragePool2D((3, 3), (1, 1), _SAME), before, shape=before.shape)
        second = self.convolution(channels // 2)
        return self.add(Concatenation(axis=3), first, second, shape=before.shape)

    def head(self) -> Tensor:
        """Add the mean of all pixels, and a class."""
        image = self.convolution(2 * self.image.shape[-1])
        _, height, width, channels = image.shape
        pool = AveragePool2D((height, width), (1, 1))
        flat = self.add(pool, image, shape=(1, 1, 1, channels))
        flat = self.add(Reshape(), flat, shape=(1, channels))
        weights = self.weights((_CLASSES, channels), 0, _CLASSES)
        scores = self.add(FullyConnected(), flat, *weights, shape=(1, _CLASSES))
        y = Tensor("y", TensorType((1, _CLASSES), DType.INT8, Quantization((1 / 256,), (-128,))))
        source = SourceLocation("long", len(self.nodes), "SOFTMAX")
        self.nodes.append(Node(Softmax(), (scores,), (y,), "softmax", source))
        self.image = y
        return y
