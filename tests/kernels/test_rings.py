"""Kernels take row ranges and rolling buffers: row by row over rings equals one whole call."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microtir.dtype import DType
from microtir.graph.ir import Node, Quantization, SourceLocation, Tensor, TensorType
from microtir.graph.operator import Operator
from microtir.kernels import emit
from microtir.kernels.table import kernels_of
from microtir.operators.common.attributes import Padding2D
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.operators.movement.definition import Transpose
from microtir.operators.pooling.definition import AveragePool2D, MaxPool2D
from microtir.operators.reduction.definition import Mean
from microtir.plan.ir import Layout, LayoutKind, PlannedOperator
from microtir.tir.analysis.access import prove_accesses
from microtir.tir.function import LayerName
from microtir.tir.interpreter import Interpreter
from microtir.tir.ir import Array, PrimFunc

SCALE = Quantization((0.05,), (3,))


def image(name: str, shape: tuple[int, ...]) -> Tensor:
    """An int8 activation."""
    return Tensor(name, TensorType(shape, DType.INT8, SCALE))


def weights(shape: tuple[int, ...], rng: np.random.Generator) -> Tensor:
    """Random int8 weights."""
    data = rng.integers(-127, 128, shape).astype(np.int8)
    return Tensor("w", TensorType(shape, DType.INT8, Quantization((0.01,), (0,))), data)


def planned(node: Node) -> PlannedOperator:
    """The node with its first candidate."""
    return PlannedOperator(node, kernels_of(node)[0].candidate(node))


def emitted(operator: PlannedOperator, slots: Mapping[Tensor, int]) -> PrimFunc:
    """The layer with the given number of row slots per tensor; whole where none is given."""
    tensors = (*(t for t in operator.node.inputs if not t.is_constant), *operator.node.outputs)
    layouts = {t: Layout(LayoutKind.NHWC, slots.get(t, t.type.rows)) for t in tensors}
    function = emit(operator, MappingProxyType(layouts), LayerName("layer"))
    prove_accesses(function)
    return function


def run_whole(operator: PlannedOperator, x: Array) -> Array:
    """The output by one call over all rows."""
    output = operator.node.output
    y = np.zeros(output.shape, np.int8)
    Interpreter([emitted(operator, {})]).run("layer", [x, y, 0, output.type.rows])
    return y


def run_row_by_row(operator: PlannedOperator, x: Array) -> Array:
    """Feed the input row by row through a ring as high as the kernel's window; collect rows."""
    node, window = operator.node, (operator.candidate.windows or ())[0]
    source, output = node.inputs[0], node.output
    function = emitted(operator, {source: window.extent, output: 1})
    machine = Interpreter([function])
    rows, height = x.reshape(source.type.rows, -1), source.shape[1]
    ring = np.full((window.extent, rows.shape[1]), 99, np.int8)
    filled, collected = 0, []
    for y in range(output.type.rows):
        in_image, out_height = divmod(y, output.shape[1])
        last = min(out_height * window.stride + window.offset + window.extent, height)
        while filled < in_image * height + max(last, 0):
            ring[filled % window.extent] = rows[filled]
            filled += 1
        slot = np.zeros(output.type.row_elements, np.int8)
        machine.run("layer", [ring, slot, y, y + 1])
        collected.append(slot)
    return np.concatenate(collected).reshape(output.shape)


@settings(max_examples=40)
@given(
    st.integers(1, 2), st.integers(1, 7), st.integers(1, 5), st.integers(1, 3),
    st.integers(1, 3), st.integers(1, 2), st.integers(0, 2),
    st.sampled_from(["conv", "dw", "max", "avg"]), st.integers(0, 2**16),
)  # fmt: skip
def test_row_by_row_over_rings_equals_one_call(
    images: int, height: int, width: int, channels: int, taps: int, stride: int, pad: int,
    kind: str, seed: int,
) -> None:  # fmt: skip
    """Spatial kernels on a ring of exactly their window give the rows of a whole call."""
    pad = min(pad, taps - 1)
    out_h = (height + 2 * pad - taps) // stride + 1
    out_w = (width + 2 * pad - taps) // stride + 1
    if out_h < 1 or out_w < 1:
        return
    rng = np.random.default_rng(seed)
    x = image("x", (images, height, width, channels))
    y = image("y", (images, out_h, out_w, channels))
    padding = Padding2D(pad, pad, pad, pad)
    node = make(kind, x, y, (taps, taps), (stride, stride), padding, rng)
    data = rng.integers(-128, 128, x.shape).astype(np.int8)
    operator = planned(node)
    np.testing.assert_array_equal(run_row_by_row(operator, data), run_whole(operator, data))


def make(
    kind: str, x: Tensor, y: Tensor, taps: tuple[int, int], strides: tuple[int, int],
    padding: Padding2D, rng: np.random.Generator,
) -> Node:  # fmt: skip
    """A node of the given kind."""
    source, channels = SourceLocation("test", 0, kind), x.shape[-1]
    if kind == "conv":
        w = weights((channels, *taps, channels), rng)
        return Node(Conv2D(strides, padding=padding), (x, w), (y,), kind, source)
    if kind == "dw":
        w = weights((1, *taps, channels), rng)
        return Node(DepthwiseConv2D(strides, padding=padding), (x, w), (y,), kind, source)
    pool = MaxPool2D if kind == "max" else AveragePool2D
    return Node(pool(taps, strides, padding), (x,), (y,), kind, source)


def test_a_smaller_ring_than_the_window_is_wrong() -> None:
    """The window that a candidate states is needed in full: one slot less changes the result."""
    rng = np.random.default_rng(1)
    x, y = image("x", (1, 6, 4, 2)), image("y", (1, 4, 2, 2))
    node = make("conv", x, y, (3, 3), (1, 1), Padding2D(), rng)
    operator = planned(node)
    data = rng.integers(-128, 128, x.shape).astype(np.int8)
    function = emitted(operator, {x: 2, y: 1})
    ring, slot = np.zeros((2, 8), np.int8), np.zeros(4, np.int8)
    rows = data.reshape(6, 8)
    for i in range(3):
        ring[i % 2] = rows[i]
    Interpreter([function]).run("layer", [ring, slot, 0, 1])
    assert not np.array_equal(slot, run_whole(operator, data).reshape(4, -1)[0])


@pytest.mark.parametrize("op", [Mean((1, 2)), Transpose((0, 2, 1, 3))])
def test_operators_that_mix_rows_offer_no_row_range(op: Operator) -> None:
    """Their kernels compute the whole output, or add rows to accumulators."""
    x, y = (
        image("x", (1, 4, 4, 2)),
        image("y", (1, 2) if isinstance(op, Mean) else (1, 4, 4, 2)),
    )
    node = Node(op, (x,), (y,), "n", SourceLocation("test", 0, "X"))
    offered = [kernel.candidate(node) for kernel in kernels_of(node)]
    assert all(c.accumulates or not c.takes_row_range for c in offered)
