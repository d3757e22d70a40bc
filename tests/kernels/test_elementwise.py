"""Lanes of stored elements: what runs are, and that every bit is the reference's."""

from __future__ import annotations

import math

import numpy as np
import pytest

from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.common.arithmetic import arithmetic_of, slopes_of
from microtir.kernels.common.elementwise import Lane, lane_of, run_of
from microtir.operators.activations.definition import Prelu, Relu, Tanh
from microtir.operators.arithmetic.definition import Minimum
from microtir.operators.common.attributes import Activation
from microtir.rewrite.reference import execute
from microtir.tir.interpreter import Interpreter
from tests.kernels.test_block_rings import row_by_row
from tests.support.graphs import constant, graph, node, quant, tensor
from tests.support.kernel_cases import ARITHMETIC, ELEMENTWISE, emitted, found

STORED = quant(0.05, 3)


def least(shape: tuple[int, ...], other: tuple[int, ...]) -> Node:
    """A MINIMUM of an image and constants."""
    x, y = (tensor(name, shape, DType.INT8, STORED) for name in "xy")
    values = np.arange(np.prod(other)).astype(np.int8).reshape(other)
    return node(Minimum(), (x, constant("c", values, STORED)), y)


@pytest.mark.parametrize("kernel", [*ELEMENTWISE, *ARITHMETIC])
def test_every_bit_is_that_of_the_reference(kernel: str) -> None:
    """Whole, and row by row over rings where rows of inputs and output are the same."""
    by_rows = 0
    for case, operator in found(kernel, 100):
        want = execute(case.graph, case.named_inputs())["y"]
        got = np.zeros(want.shape, want.dtype)
        is_by_rows = operator.candidate.takes_row_range
        rows = [0, operator.node.output.type.rows] if is_by_rows else []
        Interpreter([emitted(operator, {})]).run("layer", [*case.inputs, got, *rows])
        np.testing.assert_array_equal(got, want, err_msg=case.name)
        if is_by_rows:
            np.testing.assert_array_equal(row_by_row(case, operator), want, err_msg=case.name)
        by_rows += is_by_rows
    assert by_rows > 10
    assert by_rows < 90 or kernel.startswith("sigmoid")  # which has one operand


@pytest.mark.parametrize(
    ("shape", "other", "count", "turns"),
    [
        ((1, 16, 16, 32), (32,), 256, 32),  # constants are repeated: short runs cost calls
        ((1, 16, 16, 5), (5,), 160, 8),
        ((1, 7, 11, 32), (32,), 224, 11),  # whole runs only
        ((1, 1, 13, 300), (300,), 300, 13),
        ((1, 4, 6, 13), (6, 1), 13, 24),  # one element of each run repeats
        ((1, 4, 6, 13), (4, 1, 13), 13, 24),  # other constants for each line
        ((1, 4, 6, 13), (1,), 78, 4),  # rows
    ],
)
def test_runs_are_as_long_as_inputs_allow(
    shape: tuple[int, ...], other: tuple[int, ...], count: int, turns: int
) -> None:
    """Elements of a call, and calls."""
    run, axes = run_of(least(shape, other))
    assert (run.count, math.prod(axis.extent for axis in axes)) == (count, turns)


def test_slopes_of_results_that_are_all_an_end_fit_words() -> None:
    """Where nothing else bounds a slope, its products still fit int32, and give that end."""
    x = tensor("x", (1, 8, 4), DType.INT8, quant(0.116, 64))
    values = np.arange(-126, -94).astype(np.int8).reshape(8, 4)
    alpha = constant("alpha", values, quant(0.00424, 127))
    y = tensor("y", (1, 8, 4), DType.INT8, quant(0.0113, 127))
    layer = node(Prelu(), (x, alpha), y)
    model = graph([layer], [x], [y])
    slopes, lane = slopes_of(layer), arithmetic_of(layer)
    assert slopes is not None and lane is not None
    _, centre, above, offset, *_ = lane.words
    elements = np.arange(-128, 128).reshape(-1, 1, 1)
    centred = elements + centre
    sums = np.where(centred > 0, above, slopes.astype(np.int64)) * centred + offset
    assert np.abs(sums).max() < 2**31
    want = [
        execute(model, {"x": np.full((1, 8, 4), element, np.int8)})["y"][0]
        for element in range(-128, 128)
    ]
    got = np.clip(sums >> lane.form.shift, -128, 127)
    np.testing.assert_array_equal(got, np.array(want))


def test_a_table_that_only_clamps_is_no_table() -> None:
    """RELU6 is two extremes where scales are equal, and looked up where they are not."""
    x, same = (tensor(name, (1, 8), DType.INT8, STORED) for name in "xy")
    other = tensor("z", (1, 8), DType.INT8, quant(0.02, -128))
    relu6 = Relu(Activation.RELU6)
    assert lane_of(node(relu6, [x], same)) is Lane.CLAMP
    assert lane_of(node(relu6, [x], other)) is Lane.LOOK_UP
    assert lane_of(node(Tanh(), [x], same)) is Lane.LOOK_UP
