from __future__ import annotations

import numpy as np

from microtir.dtype import DType
from microtir.graph.text import to_text
from microtir.operators.common.attributes import Activation, Padding2D
from microtir.operators.convolution.definition import Conv2D
from microtir.operators.movement.definition import Split
from tests.support.graphs import constant, graph, node, per_channel, quant, tensor


def test_text_of_a_graph() -> None:
    """Inputs, constants, nodes with attributes and sources, outputs: one line each."""
    x = tensor("x;fused/into", (1, 4, 4, 1), DType.INT8, quant(0.5, -3))
    w = constant("x", np.ones((2, 3, 3, 1), np.int8), per_channel([0.5, 0.25], 0))
    y = tensor("y", (1, 4, 4, 2), DType.INT8, quant(0.125))
    a, b = (tensor(f"part;{i}", (1, 4, 4, 1), DType.INT8, quant(0.125)) for i in range(2))
    conv = Conv2D(padding=Padding2D(1, 1, 1, 1), activation=Activation.RELU6)
    nodes = [node(conv, [x, w], y), node(Split(3), [y], [a, b])]
    assert to_text(graph(nodes, [x], [a, b])) == (
        "graph test\n"
        "  input %x: int8[1, 4, 4, 1] scale 0.5 zero -3\n"
        "  constant @x: int8[2, 3, 3, 1] scales 0.25..0.5 along axis 0\n"
        "  %y = conv_2d(%x, @x) {padding=[1, 1] x [1, 1], activation=relu6}:"
        " int8[1, 4, 4, 2] scale 0.125 zero 0  # test.tflite: operator 0 CONV_2D\n"
        "  %part, %part#2 = split(%y) {axis=3}: int8[1, 4, 4, 1] scale 0.125 zero 0,"
        " int8[1, 4, 4, 1] scale 0.125 zero 0  # test.tflite: operator 1 SPLIT\n"
        "  output %part\n"
        "  output %part#2\n"
    )


def test_text_of_float_and_zero_points_per_channel() -> None:
    """Types without quantisation show none; zero points per channel are mentioned."""
    x = tensor("x", (2,))
    assert "  input %x: float32[2]\n" in to_text(graph([], [x], [x]))
    odd = tensor("odd", (1,), DType.INT8, per_channel([2.0], 0))
    assert "scales 2..2 along axis 0\n" in to_text(graph([], [odd], []))
