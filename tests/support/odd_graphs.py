"""Random graphs of what models rarely have: the corners of planning and of memory.

Several inputs, some of them unused or handed on; outputs that are views, twice the same, constant
or read again; branches that nobody reads; batches, images of one pixel, one row or one column;
elements of one and of four bytes beside each other.
"""

from __future__ import annotations

import math

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Graph, Tensor
from microtir.graph.operator import Operator
from microtir.operators.activations.definition import HardSwish, Relu, Tanh
from microtir.operators.arithmetic.definition import Add, Maximum, Mul
from microtir.operators.conversion.definition import Dequantize, Quantize
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.movement.definition import Pad, Reshape, Split, StridedSlice, Transpose
from microtir.operators.reduction.definition import Mean
from microtir.operators.resize.definition import ResizeNearestNeighbor
from tests.support.graphs import constant, graph, node, quant, tensor
from tests.support.streams import Garden

_IMAGES = ((9, 4), (9, 4), (1, 1), (2, 37), (31, 1), (1, 9), (6, 6))
_KINDS = (
    "conv", "conv", "depthwise", "pool", "relu", "add", "global", "concat", "mul", "pad",
    "transpose", "slice", "split", "resize", "float", "dense", "flat", "tanh", "maximum",
)  # fmt: skip


class OddGarden(Garden):
    """Grows a graph operator by operator; every choice comes from one seed."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, joins=True)
        height, width = _IMAGES[self.pick(*range(len(_IMAGES)))]
        shape = (self.pick(1, 1, 1, 2, 3), height, width, self.pick(1, 2, 3, 5))
        first = self.tensor(shape)
        self.inputs = [first]
        for _ in range(self.pick(0, 0, 1, 2)):
            other = shape if self.rng.random() < 0.7 else (1, self.pick(1, 7))
            type_ = first if self.rng.random() < 0.5 else self.tensor(other)
            self.inputs.append(tensor(self.name("t"), other, DType.INT8, type_.type.quantization))
        self.made: list[Tensor] = list(self.inputs)

    def graph(self, operators: int) -> Graph:
        """Grow a graph of about so many operators, some of which nobody needs."""
        while not self.nodes:
            for _ in range(operators):
                self.grow()
        self.hand_on()
        computed = [t for n in self.nodes for t in n.outputs]
        read = {t for n in self.nodes for t in n.inputs}
        ends = [t for t in computed if t not in read and self.rng.random() < 0.9]
        extra = [t for t in computed if t in read and self.rng.random() < 0.15]
        outputs = [*extra[:2], *ends] or computed[-1:]
        self.rng.shuffle(outputs)
        return graph(self.nodes, self.inputs, outputs)

    def hand_on(self) -> None:
        """Add outputs that are another tensor, or known before."""
        chance = self.rng.random()
        if chance < 0.15:
            self.view(self.inputs[-1])
        elif chance < 0.3:
            self.view(self.made[-1])
            self.view(self.nodes[-1].inputs[0])
        elif chance < 0.45:
            data = self.rng.integers(-128, 128, (1, 6)).astype(np.int8)
            self.add(Relu(), [constant(self.name("c"), data, quant(0.05, 3))], (1, 6))

    def view(self, x: Tensor) -> None:
        shape = (1, math.prod(x.shape))
        self.put(Reshape(), x, shape)

    def put(self, op: Operator, x: Tensor, shape: tuple[int, ...]) -> None:
        """Add an operator that moves the elements of its only input."""
        y = tensor(self.name("t"), shape, x.dtype, x.type.quantization)
        self.nodes.append(node(op, [x], y))
        self.made.append(y)

    def grow(self) -> None:
        images = [t for t in self.made if len(t.shape) == 4]
        kind = str(self.rng.choice(_KINDS))
        recent = (
            self.made[-1]
            if self.rng.random() < 0.7
            else self.made[self.pick(*range(len(self.made)))]
        )
        if len(recent.shape) != 4 and kind not in ("dense", "relu", "float", "tanh", "mul", "add"):
            recent = images[self.pick(*range(len(images)))] if images else recent
        if recent.type.elements > 4000:
            return
        self.of_kind(kind, recent)

    def of_kind(self, kind: str, x: Tensor) -> None:
        others = [t for t in self.made if t.shape == x.shape]
        other = others[self.pick(*range(len(others)))]
        if kind in ("add", "mul"):
            # Perhaps with itself.
            self.add(Add() if kind == "add" else Mul(), [x, other], x.shape)
        elif kind == "relu":
            self.add(Relu(), [x], x.shape)
        elif kind == "tanh":
            y = tensor(self.name("t"), x.shape, DType.INT8, quant(1 / 128))
            self.nodes.append(node(Tanh(), [x], y))
            self.made.append(y)
        elif kind == "float":
            self.through_floats(x)
        elif kind == "dense":
            self.dense(x)
        elif len(x.shape) == 4:
            self.of_images(kind, x, other)

    def through_floats(self, x: Tensor) -> None:
        """Add elements of four bytes, and back; the floats may become an output."""
        a, b = (tensor(self.name("t"), x.shape) for _ in range(2))
        y = self.tensor(x.shape)
        self.nodes += [
            node(Dequantize(), [x], a),
            node(HardSwish(), [a], b),
            node(Quantize(), [b], y),
        ]
        self.made.append(y)

    def dense(self, x: Tensor) -> None:
        out = self.pick(1, 3, 10)
        w = self.weights((out, x.shape[-1]), 0)
        self.add(FullyConnected(), [x, w, self.bias(out)], (*x.shape[:-1], out))

    def of_images(self, kind: str, x: Tensor, other: Tensor) -> None:
        n, height, width, channels = x.shape
        match kind:
            case "concat":
                self.join(x, other)
            case "maximum" if x.type == other.type:
                y = tensor(self.name("t"), x.shape, DType.INT8, x.type.quantization)
                self.nodes.append(node(Maximum(), [x, other], y))
                self.made.append(y)
            case "pad":
                top, left = self.pick(0, 1, 3), self.pick(0, 2)
                pad = Pad((0, top, left, 0), (0, 1, 0, 0), x.type.quant.zero_points[0])
                self.put(pad, x, (n, height + top + 1, width + left, channels))
            case "transpose":
                order = tuple(int(axis) for axis in self.rng.permutation(4))
                self.put(Transpose(order), x, tuple(x.shape[axis] for axis in order))
            case "slice":
                extent = (n, max(1, height // 2), width, channels)
                start = (0, height - extent[1], 0, 0)
                self.put(StridedSlice(start, (1, 1, 1, 1), extent), x, extent)
            case "split" if channels > 1:
                parts = [
                    tensor(self.name("t"), (*x.shape[:3], 1), DType.INT8, x.type.quantization)
                    for _ in range(channels)
                ]
                self.nodes.append(node(Split(3), [x], parts))
                self.made += parts
            case "resize":
                self.put(ResizeNearestNeighbor(), x, (n, 2 * height, width + 1, channels))
            case "flat":
                self.view(x)
            case "global":
                self.add(Mean((1, 2), keep_dims=True), [x], (n, 1, 1, channels))
            case _:
                self.window(kind, x)


def odd_graph(seed: int, operators: int | None = None) -> Graph:
    """Grow a graph of `operators` operators, or of some."""
    garden = OddGarden(seed)
    return garden.graph(operators or garden.pick(1, 4, 8, 12))
