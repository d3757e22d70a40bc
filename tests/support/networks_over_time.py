"""Small random networks over a window of frames: convolutions, pooling, sums, heads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from microtir.dtype import DType
from microtir.graph.ir import Array, Graph, Node, Tensor
from microtir.graph.operator import Operator
from microtir.operators.activations.definition import Relu
from microtir.operators.arithmetic.definition import Add
from microtir.operators.common.attributes import Activation, Padding2D
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.movement.definition import (
    Concatenation,
    Pad,
    Relabel,
    Reshape,
    Split,
    StridedSlice,
)
from microtir.operators.pooling.definition import AveragePool2D, MaxPool2D
from microtir.operators.reduction.definition import Mean, ReduceMax
from microtir.rewrite.reference import execute
from tests.support.graphs import constant, graph, node, per_channel, quant, tensor

_SCALE = 0.05
_ALIKE = 0.7  # of the layers that take the integers of another tensor in its scale


class Edge(Enum):
    """What windows meet at the ends of the frames."""

    VALID = "valid"
    CAUSAL = "causal"
    SAME = "same"


@dataclass
class Network:
    """A network while its layers are drawn; images are (1, rows, columns, channels).

    Args:
        generator: draws layers and weights.
        dtype: int8 or float32.
        axis: of the images along which rows are frames: 1, or 2 for images of one row.
    """

    generator: np.random.Generator
    dtype: DType
    axis: int
    nodes: list[Node] = field(default_factory=list)
    names: int = 0

    def tensor(self, shape: tuple[int, ...], like: Tensor | None = None) -> Tensor:
        """A new activation; of the quantisation of another one, or its own."""
        self.names += 1
        own = quant(_SCALE * float(self.generator.uniform(0.8, 1.2)), self.draw(-20, 20))
        known = own if like is None else like.type.quantization
        return tensor(f"t{self.names}", shape, self.dtype, known if self.is_int8 else None)

    @property
    def is_int8(self) -> bool:
        return self.dtype is DType.INT8

    def draw(self, low: int, high: int) -> int:
        """A number from low to high."""
        return int(self.generator.integers(low, high + 1))

    def add(self, op: Operator, inputs: tuple[Tensor, ...], *outputs: Tensor) -> Tensor:
        """Add a layer; its first output."""
        self.nodes.append(node(op, inputs, outputs))
        return outputs[0]

    def pair(self, along: int, across: int) -> tuple[int, int]:
        """A number along time and one across, as rows and columns."""
        return (along, across) if self.axis == 1 else (across, along)

    def padding(self, before: int, after: int) -> Padding2D:
        """Padding along time alone."""
        if self.axis == 1:
            return Padding2D(top=before, bottom=after)
        return Padding2D(left=before, right=after)

    def grown(self, shape: tuple[int, ...], rows: int, channels: int) -> tuple[int, ...]:
        """A shape with other rows along time, and other channels."""
        return (*shape[: self.axis], rows, *shape[self.axis + 1 : 3], channels)

    # --- layers -------------------------------------------------------------------------------

    def window(
        self, x: Tensor, taps: int, edge: Edge, stride: int, dilation: int = 1
    ) -> tuple[Padding2D, int]:
        """Padding along time, and the rows of the output."""
        rows, reach = x.shape[self.axis], (taps - 1) * dilation + 1
        whole = max(-(-rows // stride) * stride - stride + reach - rows, 0)
        before, after = {
            Edge.VALID: (0, 0),
            Edge.CAUSAL: (reach - 1, 0),
            Edge.SAME: (whole // 2, whole - whole // 2),
        }[edge]
        return self.padding(before, after), (rows + before + after - reach) // stride + 1

    def convolved(
        self, x: Tensor, taps: int, edge: Edge, *, stride: int = 1, dilation: int = 1,
        channels: int | None = None,
    ) -> Tensor:  # fmt: skip
        """A convolution over frames; a depthwise one if no channels are named."""
        padding, count = self.window(x, taps, edge, stride, dilation)
        strides, dilations = self.pair(stride, 1), self.pair(dilation, 1)
        if channels is None:
            weights = self.weights((1, *self.pair(taps, 1), x.shape[3]), 3)
            op: Operator = DepthwiseConv2D(strides, dilations, padding, 1, Activation.NONE)
        else:
            weights = self.weights((channels, *self.pair(taps, 1), x.shape[3]), 0)
            op = Conv2D(strides, dilations, padding, Activation.RELU)
        shape = self.grown(x.shape, count, x.shape[3] if channels is None else channels)
        return self.add(op, (x, weights), self.tensor(shape))

    def pooled(
        self, x: Tensor, taps: int, edge: Edge, stride: int,
        kind: type[AveragePool2D] | type[MaxPool2D],
    ) -> Tensor:  # fmt: skip
        """Averages or maxima of frames."""
        padding, count = self.window(x, taps, edge, stride)
        op = kind(self.pair(taps, 1), self.pair(stride, 1), padding)
        return self.add(op, (x,), self.tensor(self.grown(x.shape, count, x.shape[3]), x))

    def convolution(self, x: Tensor) -> Tensor:
        """A random convolution."""
        rows, stride = x.shape[self.axis], self.draw(1, 2)
        dilation = 1 if stride > 1 else self.draw(1, 2)
        taps = min(self.draw(1, 4), (rows - 1) // dilation + 1)
        channels = None if self.draw(0, 1) else self.draw(1, 4)
        return self.convolved(
            x, taps, self.edge(), stride=stride, dilation=dilation, channels=channels
        )

    def edge(self) -> Edge:
        """A random kind of padding."""
        return list(Edge)[self.draw(0, 2)]

    def weights(self, shape: tuple[int, ...], axis: int) -> Tensor:
        """Constant weights."""
        self.names += 1
        name = f"w{self.names}"
        if not self.is_int8:
            return constant(name, self.generator.normal(size=shape).astype(np.float32))
        data = self.generator.integers(-127, 128, shape).astype(np.int8)
        scales = self.generator.uniform(0.004, 0.01, shape[axis]).tolist()
        return constant(name, data, per_channel(scales, axis))

    def pooling(self, x: Tensor) -> Tensor:
        """A random pooling."""
        stride, taps = self.draw(1, 2), min(self.draw(1, 3), x.shape[self.axis])
        kind = AveragePool2D if self.draw(0, 1) else MaxPool2D
        return self.pooled(x, taps, self.edge(), stride, kind)

    def pad(self, x: Tensor) -> Tensor:
        before, after = self.draw(0, 3), self.draw(0, 2)
        sides = [tuple(n if a == self.axis else 0 for a in range(4)) for n in (before, after)]
        zero = x.type.quant.zero_point if self.is_int8 else 0
        rows = x.shape[self.axis] + before + after
        y = self.tensor(self.grown(x.shape, rows, x.shape[3]), x)
        return self.add(Pad(sides[0], sides[1], float(zero)), (x,), y)

    def doubled(self, x: Tensor) -> Tensor:
        """A sum with a layer of the same rows."""
        y = self.add(Relu(Activation.RELU), (x,), self.tensor(x.shape))
        return self.add(Add(), (x, y), self.tensor(x.shape))

    def parts(self, x: Tensor) -> Tensor:
        """Channels twice, then some of them."""
        channels = x.shape[3]
        twice = self.tensor(self.grown(x.shape, x.shape[self.axis], 2 * channels), x)
        joined = self.add(Concatenation(3), (x, x), twice)
        halves = [self.tensor(x.shape, x) for _ in range(2)]
        self.add(Split(3, (channels, channels)), (joined,), *halves)
        return self.add(Add(), (halves[1], halves[0]), self.tensor(x.shape))

    def later(self, x: Tensor) -> Tensor:
        """All rows but some of the first."""
        rows, first = x.shape[self.axis], self.draw(0, 2)
        begin = tuple(first if a == self.axis else 0 for a in range(4))
        shape = self.grown(x.shape, rows - first, x.shape[3])
        return self.add(StridedSlice(begin, (1,) * 4, shape), (x,), self.tensor(shape, x))

    def taken(self, x: Tensor) -> Tensor:
        """The integers of another tensor, sometimes in another scale, as readers of TFLite do it.

        What is drawn behind is the same whether they are or not.
        """
        own = np.random.default_rng([self.names, x.type.elements])
        if not self.is_int8 or own.random() < _ALIKE:
            return x
        other = quant(_SCALE * float(own.uniform(0.5, 2)), int(own.integers(-30, 31)))
        made = tensor(f"{x.name}_taken{self.names}", x.shape, self.dtype, other)
        return self.add(Relabel(), (x,), made)

    def layer(self, x: Tensor) -> Tensor:
        """A random layer."""
        x = self.taken(x)
        kinds = (self.convolution, self.convolution, self.pooling, self.pad, self.doubled,
                 self.parts, self.later)  # fmt: skip
        return kinds[self.draw(0, len(kinds) - 1)](x)

    def head(self, x: Tensor) -> Tensor:
        """What a result is made of: all rows, their mean or maximum, or the last of them."""
        kind = self.draw(0, 3)
        if kind == 0:
            return x
        if kind == 1:
            op = Mean((1, 2)) if self.draw(0, 1) else ReduceMax((1, 2))
            like = None if isinstance(op, Mean) else x
            flat = self.add(op, (x,), self.tensor((1, x.shape[3]), like))
        else:
            row = self.newest(x) if kind == 2 else x
            flat = self.flat(row)
        return self.dense(flat)

    def newest(self, x: Tensor) -> Tensor:
        """The last row."""
        begin = tuple(x.shape[a] - 1 if a == self.axis else 0 for a in range(4))
        shape = self.grown(x.shape, 1, x.shape[3])
        return self.add(StridedSlice(begin, (1,) * 4, shape), (x,), self.tensor(shape, x))

    def flat(self, x: Tensor) -> Tensor:
        """All values in one line."""
        return self.add(Reshape(), (x,), self.tensor((1, x.type.elements), x))

    def dense(self, x: Tensor) -> Tensor:
        """Three results of all values."""
        return self.add(
            FullyConnected(), (x, self.weights((3, x.shape[1]), 0)), self.tensor((1, 3))
        )


def random_network(seed: int, dtype: DType, layers: int = 5) -> tuple[Graph, int]:
    """Return a network over a window of frames, and the axis of its input that they follow."""
    generator = np.random.default_rng(seed)
    axis = int(generator.integers(1, 3))
    made = Network(generator, dtype, axis)
    rows, across = made.draw(9, 16), made.draw(1, 3) if axis == 1 else 1
    first = made.tensor((1, *made.pair(rows, across), made.draw(1, 3)))
    x = first
    if axis == 2 and made.draw(0, 1):
        first = made.tensor((1, rows, x.shape[3]), x)
        made.add(Reshape(), (first,), x)
    for _ in range(made.draw(1, layers)):
        y = made.layer(x)
        x = y if y.shape[axis] > 3 else x
    made.add(Relu(Activation.RELU), (x,), made.tensor(x.shape))
    result = made.head(made.nodes[-1].outputs[0])
    used = _used(made.nodes, result)
    return graph(used, (first,), (result,)), len(first.shape) - 4 + axis


def _causal(made: Network, x: Tensor) -> Tensor:
    """Layers that look back; all rows are the result."""
    y = made.convolved(x, 3, Edge.CAUSAL, channels=4)
    return made.convolved(made.convolved(y, 2, Edge.CAUSAL, dilation=2), 1, Edge.VALID, channels=3)


def _valid(made: Network, x: Tensor) -> Tensor:
    """Layers without padding, and the mean of what is left."""
    y = made.convolved(made.convolved(x, 3, Edge.VALID, channels=4), 4, Edge.VALID)
    y = made.convolved(y, 3, Edge.VALID, dilation=2, channels=4)
    return made.add(Mean((1, 2)), (y,), made.tensor((1, 4)))


def _same(made: Network, x: Tensor) -> Tensor:
    """Layers that pad at both ends, with a sum of two of them."""
    y = made.convolved(x, 3, Edge.SAME, channels=4)
    y = made.add(Add(), (y, made.convolved(y, 3, Edge.SAME)), made.tensor(y.shape))
    return made.dense(made.flat(made.convolved(y, 5, Edge.SAME, channels=2)))


def _strided(made: Network, x: Tensor) -> Tensor:
    """Rows four frames apart: hops of one and three have four phases, one of two has two."""
    y = made.convolved(x, 3, Edge.VALID, stride=2, channels=4)
    y = made.convolved(made.convolved(y, 3, Edge.VALID, stride=2), 2, Edge.VALID, channels=3)
    return made.dense(made.flat(made.newest(y)))


def _strided_same(made: Network, x: Tensor) -> Tensor:
    """What keyword spotters do: a stride, padding, depthwise and pointwise layers."""
    y = made.convolved(x, 4, Edge.SAME, stride=2, channels=4)
    y = made.convolved(made.convolved(y, 3, Edge.SAME), 1, Edge.VALID, channels=4)
    return made.dense(made.add(Mean((1, 2)), (y,), made.tensor((1, 4))))


def _pooled(made: Network, x: Tensor) -> Tensor:
    """Maxima and averages, one of them with a stride of three."""
    y = made.pooled(made.convolved(x, 2, Edge.VALID, channels=4), 3, Edge.SAME, 1, MaxPool2D)
    y = made.pooled(y, 2, Edge.VALID, 3, AveragePool2D)
    return made.dense(made.flat(y))


def _dense(made: Network, x: Tensor) -> Tensor:
    """Convolutions without padding, and a dense layer over all rows at the end."""
    y = made.convolved(made.convolved(x, 3, Edge.VALID, channels=4), 3, Edge.VALID, channels=4)
    return made.dense(made.flat(y))


NETWORKS: Mapping[str, Callable[[Network, Tensor], Tensor]] = MappingProxyType({
    "causal": _causal,
    "valid": _valid,
    "same": _same,
    "strided": _strided,
    "strided_same": _strided_same,
    "pooled": _pooled,
    "dense": _dense,
})  # fmt: skip
"""Networks with layers of one kind, by name."""


def named_network(name: str, dtype: DType, *, axis: int = 1, rows: int = 21) -> Graph:
    """Return a network of `NETWORKS` over a window of frames along an axis of its input."""
    made = Network(np.random.default_rng(len(name)), dtype, axis)
    x = made.tensor((1, *made.pair(rows, 2 if axis == 1 else 1), 3))
    return graph(made.nodes, (x,), (NETWORKS[name](made, x),))


def _used(nodes: list[Node], result: Tensor) -> list[Node]:
    needed, kept = {result}, []
    for one in reversed(nodes):
        if not needed.isdisjoint(one.outputs):
            needed.update(one.inputs)
            kept.append(one)
    return kept[::-1]


def frames_of(x: Tensor, axis: int, count: int, seed: int = 0) -> list[Array]:
    """Return random frames of a window, one by one."""
    generator = np.random.default_rng(seed)
    shape = tuple(1 if a == axis else extent for a, extent in enumerate(x.shape))
    if x.dtype.is_float:
        return [generator.normal(size=shape).astype(np.float32) for _ in range(count)]
    return [generator.integers(-128, 128, shape).astype(np.int8) for _ in range(count)]


def on_windows(
    whole: Graph, axis: int, hop: int, frames: list[Array]
) -> Iterator[tuple[Array, Mapping[str, Array]]]:
    """Yield what each push is given, and what the whole network gives for its window."""
    (x,) = whole.arguments
    zero = 0 if x.type.quantization is None else x.type.quantization.zero_point
    window: npt.NDArray[Any] = np.full(x.shape, zero, x.dtype.value)
    for start in range(0, len(frames) - hop + 1, hop):
        given = np.concatenate(frames[start : start + hop], axis)
        window = np.concatenate([window, given], axis).take(range(hop, hop + x.shape[axis]), axis)
        yield given, execute(whole, {x.name: window})
