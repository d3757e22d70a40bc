"""Kernels around register blocks take row ranges and rolling buffers, as all others do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from microtir.kernels import emit, emit_finish
from microtir.plan.ir import Layout, LayoutKind, PlannedOperator
from microtir.rewrite.reference import execute
from microtir.tir.analysis.access import prove_accesses
from microtir.tir.function import LayerName
from microtir.tir.interpreter import Interpreter
from microtir.tir.ir import Array, Buffer, PrimFunc
from microtir.tir.verify import verify
from tests.support.dsp_cases import (
    DspCase,
    Sizes,
    convolution,
    global_average,
    whole_depthwise,
)
from tests.support.kernel_cases import (
    ACCUMULATING,
    CONFIGS,
    emitted,
    found,
    planned,
)

RINGS = 8  # layers of each kernel


def scratch(function: PrimFunc) -> list[Array]:
    """Memory for the scratch parameter, with values that no kernel may rely on."""
    if function.scratch is None:
        return []
    shape = tuple(n for n in function.scratch.shape if isinstance(n, int))
    return [np.full(shape, 77, function.scratch.dtype.value)]


def row_by_row(case: DspCase, operator: PlannedOperator) -> Array:
    """Rows through rings that are exactly as high as the windows."""
    windows = operator.candidate.windows
    assert windows is not None
    inputs, output = operator.inputs, operator.node.output
    heights = {t: operator.window(t).extent for t in inputs}
    function = emitted(operator, {**heights, output: 1})
    machine = Interpreter([function])
    rings = {t: np.full((heights[t], t.type.row_elements), 99, t.dtype.value) for t in inputs}
    data = dict(zip(case.graph.inputs, case.inputs, strict=True))
    filled, rows = dict.fromkeys(inputs, 0), []
    for y in range(output.type.rows):
        for tensor in inputs:
            height = tensor.type.rows
            source = data[tensor].reshape(height, -1)
            while filled[tensor] < operator.window(tensor).needed(y + 1, height):
                rings[tensor][filled[tensor] % heights[tensor]] = source[filled[tensor]]
                filled[tensor] += 1
        row = np.zeros(output.type.row_elements, output.dtype.value)
        machine.run("layer", [*rings.values(), row, *scratch(function), y, y + 1])
        rows.append(row)
    return np.concatenate(rows).reshape(output.shape)


@pytest.mark.parametrize("kernel", CONFIGS)
def test_rows_over_rings_equal_the_reference(kernel: str) -> None:
    """Row by row over rings of exactly the window, every bit is that of the reference."""
    for case, operator in found(kernel, RINGS):
        want = execute(case.graph, case.named_inputs())["y"]
        np.testing.assert_array_equal(row_by_row(case, operator), want, err_msg=case.name)


@pytest.mark.parametrize("kernel", CONFIGS)
def test_layers_are_proven_and_whole_calls_equal_the_reference(kernel: str) -> None:
    """The interpreter, which knows no undefined step, agrees on whole tensors.

    A function takes at most the scratch that its candidate announced, aligned to words.
    """
    for case, operator in found(kernel, 8):
        function = emitted(operator, {})
        param = function.scratch
        assert param is None or param.alignment == 4
        assert (0 if param is None else size_of(param)) <= operator.candidate.scratch_bytes
        output = np.zeros(operator.node.output.shape, operator.node.output.dtype.value)
        rows = [0, operator.node.output.type.rows]
        Interpreter([function]).run("layer", [*case.inputs, output, *scratch(function), *rows])
        want = execute(case.graph, case.named_inputs())["y"]
        np.testing.assert_array_equal(output, want, err_msg=case.name)


@pytest.mark.parametrize("together", [1, 2])
def test_kernels_made_for_few_rows_equal_the_reference(together: int) -> None:
    """Where rows are narrow, patches of calls for one or two of them hold fewer pixels."""
    smaller = 0
    for kernel in ("conv_s8_2x4_dsp", "conv_s8_2x4_dsp_compact"):
        for seed in range(40):
            case = convolution(seed, pointwise=True, sizes=Sizes(widths=range(1, 5)))
            operator = planned(case, kernel)
            if operator is None:
                continue
            candidate = operator.candidate.running_alone(together)
            smaller += candidate.scratch_bytes < operator.candidate.scratch_bytes
            function = emitted(replace(operator, candidate=candidate), {})
            assert function.scratch is not None
            assert size_of(function.scratch) == candidate.scratch_bytes
            output = np.zeros(operator.node.output.shape, np.int8)
            machine, stop = Interpreter([function]), operator.rows
            for row in range(0, stop, together):
                rows = [row, min(row + together, stop)]
                machine.run("layer", [*case.inputs, output, *scratch(function), *rows])
            want = execute(case.graph, case.named_inputs())["y"]
            np.testing.assert_array_equal(output, want, err_msg=case.name)
    assert smaller >= 5


@pytest.mark.parametrize("kernel", ACCUMULATING)
@pytest.mark.parametrize("make", [global_average, whole_depthwise])
def test_sums_of_rows_that_come_one_by_one_equal_the_reference(
    kernel: str, make: Callable[[int], DspCase]
) -> None:
    """Rows go through a ring of one slot into sums that begin anew at row 0."""
    tried = 0
    for case in map(make, range(5000, 5060)):
        operator = planned(case, kernel)
        if operator is None:
            continue
        tried += 1
        (x,), output = operator.inputs, operator.node.output
        layouts = {x: Layout(LayoutKind.NHWC, 1), output: Layout.whole(output.type)}
        functions = [
            emit(operator, layouts, LayerName("layer")),
            emit_finish(operator, layouts, LayerName("layer", "finish")),
        ]
        for function in functions:
            verify(function)
            prove_accesses(function)
        machine = Interpreter(functions)
        dtype = np.int16 if make is global_average else np.int32
        sums = np.full((1, output.type.elements), 99, dtype)
        assert sums.nbytes == operator.candidate.accumulator_bytes
        for y, row in enumerate(case.inputs[0][0]):
            machine.run("layer", [row, sums, y, y + 1])
        got = np.zeros(output.shape, np.int8)
        machine.run("layer_finish", [sums, got])
        want = execute(case.graph, case.named_inputs())["y"]
        np.testing.assert_array_equal(got, want, err_msg=case.name)
    is_for = kernel.startswith("pool") == (make is global_average)
    assert tried >= 8 if is_for else tried == 0


def size_of(buffer: Buffer) -> int:
    """Bytes of a buffer of constant shape."""
    extents = [n for n in buffer.shape if isinstance(n, int)]
    return int(np.prod(extents)) * buffer.dtype.bytes
