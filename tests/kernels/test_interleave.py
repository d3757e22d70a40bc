"""Images of planes become images of pixels, whole and row by row into a ring."""

from __future__ import annotations

import numpy as np
import pytest

from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels import candidates
from microtir.operators.movement.definition import Transpose
from microtir.plan.ir import PlannedOperator
from microtir.tir.interpreter import Interpreter
from tests.support.graphs import node, tensor
from tests.support.kernel_cases import M4, emitted

SHAPES = ((1, 3, 5, 8), (1, 2, 4, 7), (1, 4, 2, 3), (1, 3, 1, 2))


def planes(shape: tuple[int, ...], dtype: DType = DType.INT8) -> Node:
    """A transpose of an image's planes into pixels."""
    images, channels, *plane = shape
    x, y = (tensor(n, s, dtype) for n, s in (("x", shape), ("y", (images, *plane, channels))))
    return node(Transpose((0, 2, 3, 1)), (x,), y)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [DType.INT8, DType.FLOAT32])
def test_pixels_are_those_of_the_planes(shape: tuple[int, ...], dtype: DType) -> None:
    """A ring of two rows holds the last two that were asked for."""
    layer = planes(shape, dtype)
    (candidate,) = (c for c in candidates(layer, M4) if c.kernel == "interleave")
    operator, height = PlannedOperator(layer, candidate), shape[2]
    x = np.random.default_rng(0).integers(-128, 128, shape).astype(dtype.value)
    slots = min(2, height)
    function = emitted(operator, {layer.output: slots})
    ring = np.zeros((slots, shape[3], shape[1]), dtype.value)
    rows = []
    for row in range(height):
        Interpreter([function]).run("layer", [x[0], ring, row, row + 1])
        rows.append(ring[row % slots].copy())
    np.testing.assert_array_equal(np.array(rows), x[0].transpose(1, 2, 0))


@pytest.mark.parametrize("shape", [(2, 3, 4, 4), (1, 5, 4, 4), (1, 3, 4, 1), (1, 1, 4, 4)])
def test_what_it_leaves_to_copies(shape: tuple[int, ...]) -> None:
    """Several images, many planes, single pixels and single planes."""
    assert "interleave" not in {c.kernel for c in candidates(planes(shape), M4)}
