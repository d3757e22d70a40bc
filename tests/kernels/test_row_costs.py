"""Layers that are called row by row are priced so: windows are copied, blocks cut at row ends."""

from __future__ import annotations

import numpy as np
import pytest

from microtir.config.enums import Measure
from microtir.config.target import Target
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.graph.operator import Operator
from microtir.kernels.table import kernels_of
from microtir.operators.common.attributes import Padding2D
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.operators.dense.definition import FullyConnected
from microtir.plan.ir import Candidate
from tests.support.graphs import constant, node, per_channel, quant, tensor


def layer(op: Operator, shape: tuple[int, ...], weights: tuple[int, ...]) -> Node:
    """A layer with random small weights; VALID unless the operator pads."""
    axis = 3 if isinstance(op, DepthwiseConv2D) else 0
    outputs = weights[axis]
    x = tensor("x", shape, DType.INT8, quant(0.05, 3))
    data = np.random.default_rng(0).integers(-50, 50, weights).astype(np.int8)
    w = constant("w", data, per_channel([0.01] * outputs, axis))
    if isinstance(op, FullyConnected):
        result: tuple[int, ...] = (shape[0], outputs)
    else:
        assert isinstance(op, Conv2D | DepthwiseConv2D)
        p = op.padding
        result = (1, shape[1] + p.top + p.bottom - weights[1] + 1,
                  shape[2] + p.left + p.right - weights[2] + 1, outputs)  # fmt: skip
    return node(op, (x, w), tensor("y", result, DType.INT8, quant(1.0, 3)))


def offered(target: str, kernel: str, node_: Node) -> Candidate:
    """The candidate of a kernel."""
    kernels = kernels_of(node_, Target(f"c -mcpu={target}"))
    return next(k for k in kernels if k.name == kernel).candidate(node_)


def by_rows(found: Candidate, together: int = 1) -> int:
    """Instructions by calls of so many rows."""
    return found.estimate(Measure.INSTRUCTIONS, together)


SAME = Padding2D(1, 1, 1, 1)
IMAGE = (1, 9, 5, 16)
POINTWISE = layer(Conv2D(), IMAGE, (8, 1, 1, 16))
INSIDE = layer(Conv2D(), IMAGE, (8, 3, 3, 16))
DEPTHWISE = layer(DepthwiseConv2D(), IMAGE, (1, 3, 3, 16))
DENSE = layer(FullyConnected(), (4, 32), (8, 32))
DEARER = {
    "blocks are cut": ("cortex-m3", "conv_s8_4x2_c", POINTWISE),
    "blocks are cut, compact": ("cortex-m3", "conv_s8_4x2_c_compact", POINTWISE),
    "windows are copied": ("cortex-m3", "conv_s8_4x2_c", INSIDE),
    "depthwise windows are copied": ("cortex-m3", "dwconv_s8_4x1_c", DEPTHWISE),
    "pairs are cut": ("cortex-m55", "conv_s8_2x4_mve", POINTWISE),
    "rows are not paired": ("cortex-m55", "dense_s8_2x4_mve", DENSE),
    "vectors copy windows": ("cortex-m55", "dwconv_s8_1x16_mve", DEPTHWISE),
    "panels copy windows": ("x86-64", "conv_s8_6x8_avx2", INSIDE),
    "lanes copy windows": ("x86-64", "dwconv_s8_1x16_avx2", DEPTHWISE),
}


@pytest.mark.parametrize("case", DEARER)
def test_rows_cost_more(case: str) -> None:
    """Rows of five pixels, rings of windows that need no border as a whole."""
    found = offered(*DEARER[case])
    cost = found.cost().instructions
    assert cost < by_rows(found) < 4 * cost


def test_rows_that_are_copied_anyway_cost_about_as_much() -> None:
    """With SAME padding both forms copy windows: only the borders are filled again."""
    padded = layer(Conv2D(padding=SAME), IMAGE, (8, 3, 3, 16))
    found = offered("cortex-m3", "conv_s8_4x2_c", padded)
    cost = found.cost().instructions
    assert cost <= by_rows(found) < cost * 1.1


def test_narrow_rows_pair_their_pixels_where_a_layer_runs_alone() -> None:
    """Rows of one pixel, two of them a call, cost little more than one call, and take less scratch.

    In rings they may lie apart: there a row is a pixel, and the price that of pixels one by one.
    """
    narrow = layer(Conv2D(), (1, 24, 1, 128), (128, 1, 1, 128))
    found = offered("cortex-m4", "conv_s8_2x4_dsp", narrow)
    alone = found.running_alone(2)
    assert by_rows(alone, 2) < by_rows(alone, 0) * 1.03
    assert alone.scratch_bytes == found.scratch_bytes // 2
    assert by_rows(found, 2) == by_rows(found) > by_rows(alone, 2) * 1.15


def test_windows_that_stay_inside_need_no_copies_of_a_whole_image() -> None:
    """A layer that runs alone reads them where they are; rings and borders need scratch."""
    inside = offered("cortex-m4", "dwconv_s8_2x4_dsp", DEPTHWISE)
    op = DepthwiseConv2D(padding=SAME)
    bordered = offered("cortex-m4", "dwconv_s8_2x4_dsp", layer(op, IMAGE, (1, 3, 3, 16)))
    assert inside.running_alone(1).scratch_bytes == 0 < inside.scratch_bytes
    assert by_rows(inside.running_alone(1)) < by_rows(inside)
    assert bordered.running_alone(1).scratch_bytes == bordered.scratch_bytes


@pytest.mark.parametrize(("channels", "filters", "taps", "counted"), [
    (15, 8, 5, 1_669_270), (3, 16, 5, 623_293), (3, 16, 3, 232_635), (5, 8, 3, 221_095),
    (1, 8, 3, 74_497), (8, 8, 5, 641_509),
])  # fmt: skip
def test_windows_that_leave_the_image_are_counted(
    channels: int, filters: int, taps: int, counted: int
) -> None:
    """The emulated Cortex-M4 counted these, of images of 20x20: several pixels leave at a side."""
    weights, edge = (filters, taps, taps, channels), taps // 2
    padded = layer(Conv2D(padding=Padding2D(*[edge] * 4)), (1, 20, 20, channels), weights)
    stated = offered("cortex-m4", "conv_s8_2x4_dsp", padded).estimate(Measure.INSTRUCTIONS)
    assert stated == pytest.approx(counted, rel=0.05)


@pytest.mark.parametrize(("shape", "taps", "edge", "counted"), [
    ((1, 8, 20, 9), 3, 0, 7434), ((1, 8, 8, 9), 3, 1, 6398), ((1, 8, 12, 16), 3, 1, 12_582),
    ((1, 8, 8, 9), 5, 2, 17_081),
])  # fmt: skip
def test_rows_outside_the_image_are_filled(
    shape: tuple[int, ...], taps: int, edge: int, counted: int
) -> None:
    """An emulated Cortex-M55 counted these of depthwise convolutions of floats."""
    _, height, width, channels = shape
    grown = 2 * edge - taps + 1
    x = tensor("x", shape, DType.FLOAT32)
    w = constant("w", np.ones((1, taps, taps, channels), np.float32))
    y = tensor("y", (1, height + grown, width + grown, channels), DType.FLOAT32)
    padded = node(DepthwiseConv2D(padding=Padding2D(*[edge] * 4)), (x, w), y)
    stated = offered("cortex-m55", "dwconv_f32_6x4_mve", padded).estimate(Measure.INSTRUCTIONS)
    assert stated == pytest.approx(counted, rel=0.05)
