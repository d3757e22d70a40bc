"""Transposed convolutions by the convolutions of their phases, run by the interpreter of TIR."""

from __future__ import annotations

import numpy as np
import pytest

from microtir.config import CompilationConfig
from microtir.kernels import candidates, emit
from microtir.kernels.common.phases import phases_of_rows
from microtir.plan.ir import Layout, PlannedOperator
from microtir.rewrite.reference import execute
from microtir.tir.analysis.access import prove_accesses
from microtir.tir.function import LayerName
from microtir.tir.interpreter import Interpreter
from tests.kernels.test_operators import scratch
from tests.support.dsp_cases import transposed
from tests.support.kernel_cases import M4, M55


@pytest.mark.parametrize(
    ("kernel", "config"),
    [("tconv_s8_2x4_dsp", M4), ("tconv_s8_4x2_dsp", M4), ("tconv_s8_2x4_mve", M55)],
)
def test_equal_to_the_reference(kernel: str, config: CompilationConfig) -> None:
    """Whatever the phases, of single columns or of rows whose pixels are channels."""
    few = by_rows = 0
    for case in map(transposed, range(40)):
        layer = case.graph.nodes[0]
        chosen = {c.kernel: c for c in candidates(layer, config)}.get(kernel)
        if chosen is None:
            continue
        layouts = {t: Layout.whole(t.type) for t in (*layer.activations, layer.output)}
        function = emit(PlannedOperator(layer, chosen), layouts, LayerName("layer"))
        prove_accesses(function)
        output = np.zeros(layer.output.shape, np.int8)
        Interpreter([function]).run("layer", [*case.inputs, output, *scratch(function)])
        np.testing.assert_array_equal(output, execute(case.graph, case.named_inputs())["y"])
        few += layer.output.shape[-1] < 4
        by_rows += bool(phases_of_rows(layer))
    assert few > 1
    assert by_rows > 3
