"""Rows of planes between two layers: what producers write and readers read, by the interpreter."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from microtir.config import CompilationConfig, Target
from microtir.kernels import candidates, emit
from microtir.plan.ir import Candidate, Layout, LayoutKind, Planes, PlannedOperator
from microtir.rewrite.reference import execute
from microtir.tir.analysis.access import prove_accesses
from microtir.tir.function import LayerName
from microtir.tir.interpreter import Interpreter
from microtir.tir.ir import Array, PrimFunc
from microtir.tir.verify import verify
from tests.support.dsp_cases import NARROW, SMALL, DspCase, convolution
from tests.support.seeds import seeds

M4 = CompilationConfig.from_target(Target("c -mcpu=cortex-m4"))
KINDS = (LayoutKind.PLANES16, LayoutKind.PLANES8)
POISON = 77
CASES = 6


@cache
def readers(kind: LayoutKind) -> tuple[tuple[DspCase, PlannedOperator], ...]:
    """Depthwise layers that read planes."""
    found: list[tuple[DspCase, PlannedOperator]] = []
    for seed in seeds(6000, 400):
        case = convolution(seed, depthwise=True, square=True)
        node = case.graph.nodes[0]
        offered = [c for c in candidates(node, M4) if c.input_layouts == (kind,)]
        found += [(case, PlannedOperator(node, c)) for c in offered]
        if len(found) >= CASES:
            return tuple(found[:CASES])
    raise AssertionError("too few cases")


@cache
def writers(kind: LayoutKind) -> tuple[tuple[DspCase, PlannedOperator], ...]:
    """Convolutions that write planes, straight, compact and of few values, in turns."""
    found: list[tuple[DspCase, PlannedOperator]] = []
    for seed in seeds(6000, 400):
        narrow = seed % 3 == 0
        case = convolution(seed, sizes=NARROW if narrow else SMALL, pointwise=narrow)
        node = case.graph.nodes[0]
        offered = [c for c in candidates(node, M4) if c.output_layouts == (kind,)]
        if offered:
            found.append((case, PlannedOperator(node, offered[len(found) % len(offered)])))
        if len(found) == CASES:
            return tuple(found)
    raise AssertionError("too few cases")


def planar(rows: Array, layout: Layout, zero: int) -> Array:
    """Rows (H, W, C) as planes (H, C, columns)."""
    assert layout.planes is not None
    height, width, channels = rows.shape
    dtype = np.int16 if layout.kind is LayoutKind.PLANES16 else np.int8
    held = np.full((height, channels, layout.planes.columns), zero, dtype)
    begin = layout.planes.before
    held[:, :, begin : begin + width] = rows.transpose(0, 2, 1)
    return held


def function_of(operator: PlannedOperator, read: Layout, written: Layout) -> PrimFunc:
    """The layer function, verified and proven."""
    (x,), y = operator.inputs, operator.node.output
    function = emit(operator, {x: read, y: written}, LayerName("layer"))
    verify(function)
    prove_accesses(function)
    return function


def scratch(function: PrimFunc, c: Candidate) -> list[Array]:
    """Memory for the scratch parameter, of which no more than announced is taken."""
    if function.scratch is None:
        return []
    shape = tuple(n for n in function.scratch.shape if isinstance(n, int))
    memory = np.full(shape, POISON, function.scratch.dtype.value)
    assert memory.nbytes <= c.scratch_bytes
    return [memory]


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("by_rows", [False, True], ids=["whole", "ring"])
def test_readers_equal_the_reference(kind: LayoutKind, by_rows: bool) -> None:
    """Whole tensors in one call, and a ring of three rows that is filled as they are needed."""
    for case, operator in readers(kind):
        (x,), y = operator.inputs, operator.node.output
        height = x.type.rows
        slots = 3 if by_rows else height
        layout = Layout(kind, slots, operator.candidate.planes)
        rows = planar(case.inputs[0][0], layout, x.type.quant.zero_point)
        function = function_of(operator, layout, Layout.whole(y.type))
        machine, got = Interpreter([function]), np.zeros(y.shape, np.int8)
        more = scratch(function, operator.candidate)
        if by_rows:
            ring, filled = np.full((slots, *rows.shape[1:]), POISON, rows.dtype), 0
            for row in range(y.type.rows):
                needed = operator.window(x).needed(row + 1, height)
                for n in range(filled, needed):
                    ring[n % slots] = rows[n]
                filled = max(filled, needed)
                machine.run("layer", [ring, got, *more, row, row + 1])
        else:
            machine.run("layer", [rows, got, *more, 0, y.type.rows])
        want = execute(case.graph, case.named_inputs())["y"]
        np.testing.assert_array_equal(got, want, err_msg=case.name)


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("by_rows", [False, True], ids=["whole", "ring"])
@pytest.mark.parametrize("before", [0, 1])
def test_writers_equal_the_reference(kind: LayoutKind, by_rows: bool, before: int) -> None:
    """Borders hold the zero point, whatever was there, and the image what the layer computes."""
    for case, operator in writers(kind):
        (x,), y = operator.inputs, operator.node.output
        planes = Planes(before, (before + y.shape[2] + 2) // 2 * 2)
        layout = Layout(kind, 1 if by_rows else y.type.rows, planes)
        function = function_of(operator, Layout.whole(x.type), layout)
        machine = Interpreter([function])
        image = execute(case.graph, case.named_inputs())["y"][0]
        want = planar(image, layout, y.type.quant.zero_point)
        more = scratch(function, operator.candidate)
        got = np.full((layout.rows, *want.shape[1:]), POISON, want.dtype)
        if by_rows:
            for row, expected in enumerate(want):
                got[:] = POISON
                machine.run("layer", [*case.inputs, got, *more, row, row + 1])
                np.testing.assert_array_equal(got[0], expected, err_msg=case.name)
        else:
            machine.run("layer", [*case.inputs, got, *more, 0, y.type.rows])
            np.testing.assert_array_equal(got, want, err_msg=case.name)
