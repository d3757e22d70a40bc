"""Random small networks: what sizes of code are fitted to, and estimates are tried on.

A network is a chain of convolutions, depthwise convolutions, windows, sums with what went in
before, and elementwise functions, behind which stand a mean, fully connected layers and a softmax.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Graph, Node, Quantization, SourceLocation, Tensor, TensorType
from microtir.graph.operator import Operator
from microtir.module.ir_module import IRModule
from microtir.operators.activations.definition import Logistic
from microtir.operators.arithmetic.definition import Add
from microtir.operators.common.attributes import Activation, Padding2D
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.movement.definition import Reshape
from microtir.operators.pooling.definition import AveragePool2D, MaxPool2D
from microtir.operators.softmax.definition import Softmax

_SCALE, _WEIGHT = 0.05, 0.01
_SHARES = (0.4, 0.25, 0.15, 0.1, 0.1)


def network(seed: int) -> IRModule:
    """Make the network of a number: int8, or float32 where it is odd."""
    return _Net(np.random.default_rng([36, seed]), bool(seed % 2)).made()


@dataclass(slots=True)
class _Net:
    rng: np.random.Generator
    is_float: bool
    nodes: list[Node] = field(default_factory=list)
    image: Tensor = field(init=False)

    def made(self) -> IRModule:
        """Draw the layers and return their model."""
        side, channels = 2 * int(self.rng.integers(4, 11)), int(self.rng.integers(1, 5))
        first = self.image = Tensor("x", self.type((1, side, side, channels)))
        self.convolution()
        blocks = (self.convolution, self.depthwise, self.pool, self.residual, self.logistic)
        for choice in self.rng.choice(len(blocks), int(self.rng.integers(1, 7)), p=_SHARES):
            blocks[choice]()
        self.head()
        return IRModule(graph=Graph("drawn", (first,), (self.image,), tuple(self.nodes)))

    def type(self, shape: tuple[int, ...], quantization: Quantization | None = None) -> TensorType:
        """Return the type of an activation."""
        if self.is_float:
            return TensorType(shape, DType.FLOAT32)
        return TensorType(shape, DType.INT8, quantization or Quantization((_SCALE,), (0,)))

    def add(self, op: Operator, *inputs: Tensor, like: TensorType) -> None:
        """Add a node, whose output becomes `image`."""
        number = len(self.nodes)
        self.image = Tensor(f"t{number}", like)
        source = SourceLocation("drawn", number, op.name.upper())
        self.nodes.append(Node(op, inputs, (self.image,), f"n{number}", source))

    def weights(self, shape: tuple[int, ...], axis: int) -> tuple[Tensor, Tensor]:
        """Return weights and a bias for each index of an axis."""
        number, outputs = len(self.nodes), shape[axis]
        if self.is_float:
            data = self.rng.standard_normal(shape).astype(np.float32)
            bias = self.rng.standard_normal(outputs).astype(np.float32)
            kinds = TensorType(shape, DType.FLOAT32), TensorType((outputs,), DType.FLOAT32)
        else:
            data = self.rng.integers(-127, 128, shape).astype(np.int8)
            bias = self.rng.integers(-900, 900, outputs).astype(np.int32)
            zeros = (0,) * outputs
            scales = tuple(_WEIGHT * (1 + n % 7 / 8) for n in range(outputs))
            sums = Quantization(tuple(s * _SCALE for s in scales), zeros, 0)
            kinds = (
                TensorType(shape, DType.INT8, Quantization(scales, zeros, axis)),
                TensorType((outputs,), DType.INT32, sums),
            )
        return Tensor(f"w{number}", kinds[0], data), Tensor(f"b{number}", kinds[1], bias)

    def convolution(self) -> None:
        """Add a CONV_2D of one or of 3 x 3 pixels, every second of which halves the image."""
        _, height, width, depth = self.image.shape
        channels, size = int(self.rng.integers(2, 33)), int(self.rng.choice([1, 1, 3]))
        halves = size == 3 and height % 2 == 0 < height // 4 and bool(self.rng.integers(2))
        step = 1 + halves
        padding = Padding2D(0, 1, 0, 1) if halves else Padding2D(*[size // 2] * 4)
        activation = (Activation.NONE, Activation.RELU, Activation.RELU6)[self.rng.integers(3)]
        op = Conv2D((step, step), padding=padding, activation=activation)
        weights = self.weights((channels, size, size, depth), 0)
        like = self.type((1, height // step, width // step, channels))
        self.add(op, self.image, *weights, like=like)

    def depthwise(self) -> None:
        """Add a DEPTHWISE_CONV_2D of 3 x 3 pixels."""
        op = DepthwiseConv2D((1, 1), padding=Padding2D(1, 1, 1, 1), activation=Activation.RELU)
        weights = self.weights((1, 3, 3, self.image.shape[-1]), 3)
        self.add(op, self.image, *weights, like=self.image.type)

    def pool(self) -> None:
        """Add windows of 2 x 2, where the image has as many."""
        _, height, width, channels = self.image.shape
        if height % 2 == 0:
            op = (MaxPool2D, AveragePool2D)[self.rng.integers(2)]((2, 2), (2, 2))
            like = replace(self.image.type, shape=(1, height // 2, width // 2, channels))
            self.add(op, self.image, like=like)

    def residual(self) -> None:
        """Add a depthwise convolution and a sum of it with what went in."""
        before = self.image
        self.depthwise()
        self.add(Add(), before, self.image, like=before.type)

    def logistic(self) -> None:
        """Add 1 / (1 + e^-x)."""
        like = self.type(self.image.shape, Quantization((1 / 256,), (-128,)))
        self.add(Logistic(), self.image, like=like)

    def head(self) -> None:
        """Add a mean over pixels, fully connected layers and a softmax."""
        _, height, width, channels = self.image.shape
        if height > 1 and bool(self.rng.integers(4)):
            pool = AveragePool2D((height, width), (1, 1))
            like = replace(self.image.type, shape=(1, 1, 1, channels))
            self.add(pool, self.image, like=like)
        flat = int(np.prod(self.image.shape))
        self.add(Reshape(), self.image, like=replace(self.image.type, shape=(1, flat)))
        for _ in range(int(self.rng.integers(1, 4))):
            outputs = int(self.rng.integers(2, 41))
            weights = self.weights((outputs, self.image.shape[-1]), 0)
            op = FullyConnected()
            self.add(op, self.image, *weights, like=self.type((1, outputs)))
        like = self.type(self.image.shape, Quantization((1 / 256,), (-128,)))
        self.add(Softmax(), self.image, like=like)
