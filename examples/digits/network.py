"""The layers of the example in numpy: what each computes, and its gradient for training.

Images are NHWC, convolution weights are OHWI (depthwise: 1HWC), dense weights are [out, in]: the
orders of a TFLite file.  SAME padding puts the odd row and column behind the image, as TFLite does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.float64]
Shape: TypeAlias = tuple[int, ...]
Parameters: TypeAlias = Mapping[str, Array]
Value = TypeVar("Value")


class Layer(ABC):
    """One operator; a layer with parameters takes them as `weights` and `bias`."""

    name: str

    @abstractmethod
    def output_shape(self, shape: Shape) -> Shape:
        """Return shape of one output sample for one input sample."""

    @abstractmethod
    def forward(self, x: Array, parameters: Parameters) -> Array:
        """Return output for a batch."""

    @abstractmethod
    def backward(
        self, x: Array, y: Array, dy: Array, parameters: Parameters
    ) -> tuple[Array, dict[str, Array]]:
        """Return gradients of the input and of the parameters, from that of the output."""

    def weights_shape(self, shape: Shape) -> Shape | None:
        """Return shape of the weights for one input sample, or None without parameters."""
        return None

    def fan_in(self, shape: Shape) -> int:
        """Return inputs that one output sums over."""
        weights = self.weights_shape(shape)
        return 0 if weights is None else int(np.prod(weights[1:]))

    def macs(self, shape: Shape) -> int:
        """Return multiply-accumulate steps for one sample, padding included."""
        return self.fan_in(shape) * int(np.prod(self.output_shape(shape)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Convolution(Layer):
    """SAME padding, bias and ReLU; what one place of the kernel does is for the kinds to say."""

    name: str
    kernel: int
    stride: int = 1

    @abstractmethod
    def output_channels(self, shape: Shape) -> int:
        """Return channels of the output for one input sample."""

    @abstractmethod
    def meet(self, window: Array, tap: Array) -> Array:
        """Return what the pixels that one place of the kernel meets add to the output."""

    @abstractmethod
    def spread(self, dy: Array, tap: Array) -> Array:
        """Carry the slope at the output back to these pixels."""

    @abstractmethod
    def tap_slope(self, dy: Array, window: Array) -> Array:
        """Return the slope of the weights at one place of the kernel."""

    def output_shape(self, shape: Shape) -> Shape:
        rows, columns = (-(-extent // self.stride) for extent in shape[:2])
        return (rows, columns, self.output_channels(shape))

    def forward(self, x: Array, parameters: Parameters) -> Array:
        weights = parameters["weights"]
        y: Array = np.zeros((len(x), *self.output_shape(x.shape[1:]))) + parameters["bias"]
        padded = _pad(x, self.kernel, self.stride)
        for row, column, window in _windows(padded, y.shape, self.kernel, self.stride):
            y += self.meet(window, weights[:, row, column])
        return np.maximum(y, 0)

    def backward(
        self, x: Array, y: Array, dy: Array, parameters: Parameters
    ) -> tuple[Array, dict[str, Array]]:
        weights = parameters["weights"]
        dy = dy * (y > 0)
        padded = _pad(x, self.kernel, self.stride)
        d_padded = np.zeros_like(padded)
        d_weights = np.zeros_like(weights)
        targets = _windows(d_padded, y.shape, self.kernel, self.stride)
        sources = _windows(padded, y.shape, self.kernel, self.stride)
        for (row, column, target), (_, _, window) in zip(targets, sources, strict=True):
            target += self.spread(dy, weights[:, row, column])
            d_weights[:, row, column] = self.tap_slope(dy, window)
        gradients = {"weights": d_weights, "bias": dy.sum(axis=(0, 1, 2))}
        return _unpad(d_padded, x.shape, self.kernel, self.stride), gradients


@dataclass(frozen=True, slots=True, kw_only=True)
class Conv2D(Convolution):
    """Every output channel sums over all input channels."""

    channels: int

    def weights_shape(self, shape: Shape) -> Shape:
        return (self.channels, self.kernel, self.kernel, shape[2])

    def output_channels(self, shape: Shape) -> int:
        return self.channels

    def meet(self, window: Array, tap: Array) -> Array:
        return np.asarray(window @ tap.T)

    def spread(self, dy: Array, tap: Array) -> Array:
        return np.asarray(dy @ tap)

    def tap_slope(self, dy: Array, window: Array) -> Array:
        return np.tensordot(dy, window, axes=([0, 1, 2], [0, 1, 2]))


@dataclass(frozen=True, slots=True, kw_only=True)
class DepthwiseConv2D(Convolution):
    """Every output channel has a filter of its own over one input channel."""

    def weights_shape(self, shape: Shape) -> Shape:
        return (1, self.kernel, self.kernel, shape[2])

    def fan_in(self, shape: Shape) -> int:
        return self.kernel * self.kernel

    def output_channels(self, shape: Shape) -> int:
        return shape[2]

    def meet(self, window: Array, tap: Array) -> Array:
        return np.asarray(window * tap[0])

    def spread(self, dy: Array, tap: Array) -> Array:
        return np.asarray(dy * tap[0])

    def tap_slope(self, dy: Array, window: Array) -> Array:
        return np.asarray((dy * window).sum(axis=(0, 1, 2))[None])


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool2D(Layer):
    """One value for each block of `size` by `size` pixels; the image divides into blocks."""

    name: str
    size: int

    def output_shape(self, shape: Shape) -> Shape:
        return (shape[0] // self.size, shape[1] // self.size, shape[2])


@dataclass(frozen=True, slots=True, kw_only=True)
class MaxPool2D(Pool2D):
    """The largest value of a block."""

    def forward(self, x: Array, parameters: Parameters) -> Array:
        return np.asarray(_blocks(x, self.size).max(axis=(2, 4)))

    def backward(
        self, x: Array, y: Array, dy: Array, parameters: Parameters
    ) -> tuple[Array, dict[str, Array]]:
        chosen = (x == _enlarge(y, self.size)).astype(np.float64)
        # After a ReLU a block is often all zero: its pixels then share the gradient.
        ties = _enlarge(_blocks(chosen, self.size).sum(axis=(2, 4)), self.size)
        return chosen / ties * _enlarge(dy, self.size), {}


@dataclass(frozen=True, slots=True, kw_only=True)
class AveragePool2D(Pool2D):
    """The mean of a block."""

    def forward(self, x: Array, parameters: Parameters) -> Array:
        return np.asarray(_blocks(x, self.size).mean(axis=(2, 4)))

    def backward(
        self, x: Array, y: Array, dy: Array, parameters: Parameters
    ) -> tuple[Array, dict[str, Array]]:
        return _enlarge(dy, self.size) / self.size**2, {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Flatten(Layer):
    """All values of a sample in one row."""

    name: str

    def output_shape(self, shape: Shape) -> Shape:
        return (int(np.prod(shape)),)

    def forward(self, x: Array, parameters: Parameters) -> Array:
        return x.reshape(len(x), -1)

    def backward(
        self, x: Array, y: Array, dy: Array, parameters: Parameters
    ) -> tuple[Array, dict[str, Array]]:
        return dy.reshape(x.shape), {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Dense(Layer):
    """Fully connected layer with bias, and ReLU if asked for."""

    name: str
    channels: int
    relu: bool

    def weights_shape(self, shape: Shape) -> Shape:
        return (self.channels, shape[0])

    def output_shape(self, shape: Shape) -> Shape:
        return (self.channels,)

    def forward(self, x: Array, parameters: Parameters) -> Array:
        y: Array = x @ parameters["weights"].T + parameters["bias"]
        return np.maximum(y, 0) if self.relu else y

    def backward(
        self, x: Array, y: Array, dy: Array, parameters: Parameters
    ) -> tuple[Array, dict[str, Array]]:
        if self.relu:
            dy = dy * (y > 0)
        return dy @ parameters["weights"], {"weights": dy.T @ x, "bias": dy.sum(axis=0)}


INPUT_SHAPE: Shape = (8, 8, 1)
CLASSES = 10
NETWORK: tuple[Layer, ...] = (
    Conv2D(name="conv1", channels=16, kernel=3),
    # Eight rows in steps of two with a kernel of three: padding only below and on the right.
    DepthwiseConv2D(name="depthwise2", kernel=3, stride=2),
    Conv2D(name="pointwise2", channels=32, kernel=1),
    DepthwiseConv2D(name="depthwise3", kernel=3),
    Conv2D(name="pointwise3", channels=32, kernel=1),
    MaxPool2D(name="max_pool", size=2),
    AveragePool2D(name="average_pool", size=2),
    Flatten(name="flatten"),
    Dense(name="dense1", channels=32, relu=True),
    Dense(name="logits", channels=CLASSES, relu=False),
)
"""The example's network up to its logits; the softmax behind them is part of the TFLite model."""


def layer_inputs(layers: Sequence[Layer]) -> Iterator[tuple[Layer, Shape]]:
    """Yield each layer with the shape of its input sample."""
    shape = INPUT_SHAPE
    for layer in layers:
        yield layer, shape
        shape = layer.output_shape(shape)


def of_layer(parameters: Mapping[str, Value], layer: Layer) -> dict[str, Value]:
    """Return one layer's parameters out of the network's, which are named layer/kind."""
    prefix = f"{layer.name}/"
    return {
        key.removeprefix(prefix): value
        for key, value in parameters.items()
        if key.startswith(prefix)
    }


def activations(images: Array, parameters: Parameters) -> list[Array]:
    """Return the input and the output of every layer, for a batch of images."""
    values = [images]
    for layer in NETWORK:
        values.append(layer.forward(values[-1], of_layer(parameters, layer)))
    return values


def accuracy(scores: npt.NDArray[np.generic], labels: npt.NDArray[np.int64]) -> float:
    """Return share of the samples whose largest score is that of their label."""
    return float((scores.argmax(axis=-1).ravel() == labels).mean())


def _pad(x: Array, kernel: int, stride: int) -> Array:
    (top, bottom), (left, right) = (_padding(extent, kernel, stride) for extent in x.shape[1:3])
    return np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)))


def _unpad(padded: Array, shape: Shape, kernel: int, stride: int) -> Array:
    (top, _), (left, _) = (_padding(extent, kernel, stride) for extent in shape[1:3])
    return padded[:, top : top + shape[1], left : left + shape[2]]


def _padding(extent: int, kernel: int, stride: int) -> tuple[int, int]:
    total = max((-(-extent // stride) - 1) * stride + kernel - extent, 0)
    return total // 2, total - total // 2


def _windows(
    padded: Array, output: Shape, kernel: int, stride: int
) -> Iterator[tuple[int, int, Array]]:
    """Yield, for each place in the kernel, a view of the pixels that it meets."""
    rows, columns = output[1] * stride, output[2] * stride
    for row in range(kernel):
        for column in range(kernel):
            view = padded[:, row : row + rows : stride, column : column + columns : stride]
            yield row, column, view[:, : output[1], : output[2]]


def _blocks(x: Array, size: int) -> Array:
    count, rows, columns, channels = x.shape
    return x.reshape(count, rows // size, size, columns // size, size, channels)


def _enlarge(x: Array, size: int) -> Array:
    return x.repeat(size, axis=1).repeat(size, axis=2)
