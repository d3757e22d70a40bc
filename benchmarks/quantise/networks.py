"""Small networks of the shapes of MLPerf Tiny: their layers, and the same as a file in ONNX.

A network is a tuple of layers.  Its weights are a flat list of arrays, in the order of the layers:
of a convolution (out, in / groups, rows, columns) or dense layer (out, in) without a bias where a
normalisation follows, which has scale, shift, mean and variance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from benchmarks.quantise.tasks import TASKS, Array, Task

NORM_EPSILON = 1e-5


@dataclass(frozen=True, slots=True)
class Conv:
    """A convolution with a padding that keeps the size, a batch normalisation and a ReLU."""

    channels: int
    kernel: int = 3
    stride: int = 1
    is_depthwise: bool = False
    has_relu: bool = True


@dataclass(frozen=True, slots=True)
class Residual:
    """Layers whose result is added to what they are given, with a ReLU behind."""

    layers: tuple[Layer, ...]


@dataclass(frozen=True, slots=True)
class GlobalAverage:
    """The mean of each channel."""


@dataclass(frozen=True, slots=True)
class Dense:
    """A dense layer."""

    units: int
    has_relu: bool = False


Layer: TypeAlias = "Conv | Residual | GlobalAverage | Dense"


@dataclass(frozen=True, slots=True)
class Network:
    """A network for a task."""

    name: str
    task: Task
    layers: tuple[Layer, ...]
    epochs: int

    @property
    def units(self) -> int:
        """Return the outputs, those of its last layer."""
        *_, last = self.layers
        assert isinstance(last, Dense)
        return last.units


def _separable(channels: int) -> tuple[Layer, ...]:
    return Conv(channels, is_depthwise=True), Conv(channels, kernel=1)


_RESIDUAL = Residual((Conv(16), Conv(16, has_relu=False)))

NETWORKS: Mapping[str, Network] = MappingProxyType(
    {
        network.name: network
        for network in (
            Network(
                "keywords_ds_cnn", TASKS["keywords"],
                (
                    Conv(64, kernel=5, stride=2), *_separable(64), *_separable(64),
                    *_separable(64), *_separable(64), GlobalAverage(), Dense(10),
                ), 12,
            ),
            Network(
                "digits_ds_cnn", TASKS["digits"],
                (Conv(16), *_separable(16), *_separable(16), GlobalAverage(), Dense(10)), 40,
            ),
            Network(
                "digits_resnet", TASKS["digits"],
                (Conv(16), _RESIDUAL, Conv(32, stride=2), GlobalAverage(), Dense(10)), 40,
            ),
            Network("wine_mlp", TASKS["wine"], (Dense(16, has_relu=True), Dense(3)), 100),
            Network(
                "breast_cancer_mlp", TASKS["breast_cancer"],
                (Dense(24, has_relu=True), Dense(16, has_relu=True), Dense(2)), 60,
            ),
            Network(
                "diabetes_mlp", TASKS["diabetes"],
                (Dense(32, has_relu=True), Dense(16, has_relu=True), Dense(1)), 30,
            ),
        )
    }
)  # fmt: skip
"""The networks by name."""


def onnx_file(network: Network, weights: Sequence[Array]) -> bytes:
    """Return a network as a model in ONNX, whose first dimension is a batch of any size."""
    from onnx import TensorProto, helper

    writer = _Writer(iter(weights))
    result = writer.layers("x", network.layers)
    shape: list[int | str] = ["batch", *network.task.shape]
    graph = helper.make_graph(
        writer.nodes,
        network.name,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(result, TensorProto.FLOAT, ["batch", network.units])],
        writer.constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(model.SerializeToString())


@dataclass
class _Writer:
    """Nodes and constants while a model is written."""

    weights: Iterator[Array]
    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)

    def layers(self, x: str, layers: Sequence[Layer]) -> str:
        """Write layers, and return the name of their result."""
        for layer in layers:
            match layer:
                case Conv():
                    x = self._conv(x, layer)
                case Residual(layers=inner):
                    x = self._node("Relu", self._node("Add", self.layers(x, inner), x))
                case GlobalAverage():
                    x = self._node("Flatten", self._node("GlobalAveragePool", x))
                case Dense():
                    dense = self._node("Gemm", x, *self._next(2), transB=1)
                    x = self._node("Relu", dense) if layer.has_relu else dense
        return x

    def _conv(self, x: str, layer: Conv) -> str:
        (weights,) = self._next(1)
        y = self._node(
            "Conv", x, weights,
            kernel_shape=[layer.kernel] * 2, strides=[layer.stride] * 2,
            pads=[layer.kernel // 2] * 4, group=layer.channels if layer.is_depthwise else 1,
        )  # fmt: skip
        y = self._node("BatchNormalization", y, *self._next(4), epsilon=NORM_EPSILON)
        return self._node("Relu", y) if layer.has_relu else y

    def _node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        from onnx import helper

        name = f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], name, **attributes))
        return name

    def _next(self, count: int) -> list[str]:
        from onnx import numpy_helper

        names = []
        for _ in range(count):
            name = f"w{len(self.constants)}"
            array = np.ascontiguousarray(next(self.weights), np.float32)
            self.constants.append(numpy_helper.from_array(array, name))
            names.append(name)
        return names
