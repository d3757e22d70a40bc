"""Maxima of windows inside an image, and of those that leave it, run by the interpreter of TIR."""

from __future__ import annotations

import numpy as np

from microtir.kernels import emit
from microtir.kernels.arm_dsp.pool_windows import MaxWindows
from microtir.plan.ir import Layout, PlannedOperator
from microtir.rewrite.reference import execute
from microtir.tir.analysis.access import prove_accesses
from microtir.tir.function import LayerName
from microtir.tir.interpreter import Interpreter
from microtir.tir.verify import verify
from tests.kernels.test_operators import scratch
from tests.support.dsp_cases import pool


def test_equal_to_the_reference() -> None:
    """Random windows, inside their images and beyond, of channels that fill no word."""
    kernel, clipped = MaxWindows(), []
    for case in map(pool, range(200)):
        layer = case.graph.nodes[0]
        if not isinstance(layer.op, kernel.operators) or kernel.refusal(layer) is not None:
            continue
        layouts = {t: Layout.whole(t.type) for t in (*layer.activations, layer.output)}
        operator = PlannedOperator(layer, kernel.candidate(layer))
        function = emit(operator, layouts, LayerName("layer"))
        verify(function)
        prove_accesses(function)
        output = np.zeros(layer.output.shape, np.int8)
        Interpreter([function]).run("layer", [*case.inputs, output, *scratch(function)])
        np.testing.assert_array_equal(output, execute(case.graph, case.named_inputs())["y"])
        clipped.append(function.scratch is not None)
    assert sum(clipped) > 3
    assert not all(clipped)
