"""Random int8 graphs of row-wise operators: chains, branches, residuals, several outputs."""

from __future__ import annotations

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Graph, Node, Tensor
from microtir.graph.operator import Operator
from microtir.operators.activations.definition import Relu
from microtir.operators.arithmetic.definition import Add
from microtir.operators.common.attributes import Padding2D
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.operators.movement.definition import Concatenation
from microtir.operators.pooling.definition import AveragePool2D, MaxPool2D
from microtir.operators.reduction.definition import Mean, ReduceMax
from tests.support.graphs import constant, graph, node, per_channel, quant, tensor


class Garden:
    """Grows a graph operator by operator; every choice comes from one seed.

    Where it `joins`, a concatenation that has nothing to join gets a branch of its own.
    """

    def __init__(
        self, seed: int, *, height: int = 9, width: int = 4, joins: bool = False, images: int = 1
    ) -> None:
        self.joins = joins
        self.rng = np.random.default_rng(seed)
        self.nodes: list[Node] = []
        self.named = 0
        shape = (
            images,
            int(self.rng.integers(2, height + 1)),
            int(self.rng.integers(1, width + 1)),
            2,
        )
        self.input = self.tensor(shape)
        self.made: list[Tensor] = [self.input]

    def graph(self, operators: int) -> Graph:
        """Grow a graph of about so many operators; what nobody reads is an output."""
        for _ in range(operators):
            self.grow()
        read = {t for n in self.nodes for t in n.inputs}
        ends = [t for t in self.made[1:] if t not in read]
        extra = [t for t in self.made[1:-1] if t in read and self.rng.random() < 0.1]
        return graph(self.nodes, [self.input], [*extra[:1], *ends])

    def pick(self, *choices: int) -> int:
        return int(self.rng.choice(choices))

    def name(self, kind: str) -> str:
        self.named += 1
        return f"{kind}{self.named}"

    def tensor(self, shape: tuple[int, ...]) -> Tensor:
        zero_point = int(self.rng.integers(-100, 100))
        count = len(self.nodes)
        return tensor(self.name("t"), shape, DType.INT8, quant(0.05 + 0.01 * count, zero_point))

    def add(self, op: Operator, inputs: list[Tensor], shape: tuple[int, ...]) -> None:
        self.nodes.append(node(op, inputs, self.like(op, inputs, shape)))
        self.made.append(self.nodes[-1].output)

    def like(self, op: Operator, inputs: list[Tensor], shape: tuple[int, ...]) -> Tensor:
        """Add what keeps the quantisation of what it reads, or anything else."""
        output = self.tensor(shape)
        if isinstance(op, MaxPool2D | AveragePool2D | ReduceMax | Concatenation):
            return tensor(output.name, shape, DType.INT8, inputs[0].type.quantization)
        return output

    def grow(self) -> None:
        recent = (
            self.made[-1]
            if self.rng.random() < 0.8
            else self.made[self.pick(*range(len(self.made)))]
        )
        kind = self.rng.choice(
            ["conv", "conv", "depthwise", "pool", "relu", "add", "global", "concat"]
        )
        others = [t for t in self.made if t.shape == recent.shape and t is not recent]
        if kind == "add" and others:
            other = others[self.pick(*range(len(others)))]
            self.add(Add(), [recent, other], recent.shape)
        elif kind == "concat" and self.joins:
            self.join(recent, others[0] if others else recent)
        elif kind == "concat" and others:
            same = tensor_like(others[0], recent)
            if same:
                shape = (*recent.shape[:3], 2 * recent.shape[3])
                self.add(Concatenation(3), [recent, others[0]], shape)
        elif kind == "relu":
            self.add(Relu(), [recent], recent.shape)
        elif kind == "global" and recent.shape[1] > 1 and self.rng.random() < 0.5:
            op = ReduceMax if len(self.nodes) % 2 else Mean
            self.add(op((1, 2), keep_dims=True), [recent], (recent.shape[0], 1, 1, recent.shape[3]))
        else:
            self.window(str(kind), recent)

    def join(self, a: Tensor, b: Tensor) -> None:
        """Add the channels of both, the second brought to the scale of the first."""
        same = tensor(self.name("t"), b.shape, DType.INT8, a.type.quantization)
        self.nodes.append(node(Relu(), [b], same))
        self.made.append(same)
        shape = (*a.shape[:3], a.shape[3] + b.shape[3])
        self.add(Concatenation(3), [a, same], shape)

    def window(self, kind: str, x: Tensor) -> None:
        """Add a convolution or pool whose windows may leave the image, skip rows or overlap."""
        batch, height, width, channels = x.shape
        taps, stride = self.pick(1, 2, 3), self.pick(1, 1, 2)
        dilation = self.pick(1, 2) if kind in ("conv", "depthwise") else 1
        reach = (taps - 1) * dilation + 1
        pad = self.pick(*range(reach)) if reach > 1 else 0
        rows, columns = ((n + 2 * pad - reach) // stride + 1 for n in (height, width))
        if rows < 1 or columns < 1:
            return
        padding = Padding2D(pad, pad, pad, pad)
        shape, strides = (batch, rows, columns, channels), (stride, stride)
        if kind == "pool":
            pool = MaxPool2D if self.rng.random() < 0.5 else AveragePool2D
            if pad <= taps // 2:
                self.add(pool((taps, taps), strides, padding), [x], shape)
        elif kind == "depthwise":
            w = self.weights((1, taps, taps, channels), 3)
            op = DepthwiseConv2D(strides, (dilation, dilation), padding)
            self.add(op, [x, w, self.bias(channels)], shape)
        else:
            out = self.pick(1, 2, 3)
            w = self.weights((out, taps, taps, channels), 0)
            conv = Conv2D(strides, (dilation, dilation), padding)
            self.add(conv, [x, w, self.bias(out)], (*shape[:3], out))

    def weights(self, shape: tuple[int, ...], axis: int) -> Tensor:
        data = self.rng.integers(-127, 128, shape).astype(np.int8)
        scales = [0.004 + 0.001 * i for i in range(shape[axis])]
        return constant(self.name("w"), data, per_channel(scales, axis))

    def bias(self, channels: int) -> Tensor:
        data = self.rng.integers(-500, 500, channels).astype(np.int32)
        return constant(self.name("b"), data)


def tensor_like(a: Tensor, b: Tensor) -> bool:
    """Return whether two tensors have one quantisation, as concatenation wants."""
    return a.type.quantization == b.type.quantization
