"""Every kernel of an LSTM or SVDF means what the numpy reference says, from any states."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from microtir.config import CompilationConfig, Target
from microtir.graph.ir import Array, Graph
from microtir.kernels import candidates, emit
from microtir.kernels.table import refusals_of
from microtir.plan.ir import Layout, PlannedOperator, Refusal
from microtir.rewrite.reference import execute
from microtir.tir.analysis.access import prove_accesses
from microtir.tir.function import LayerName
from microtir.tir.interpreter import Interpreter
from microtir.tir.replay import random_array
from microtir.tir.verify import verify
from tests.support.operator_cases import generate

_LSTM, _SVDF = "UNIDIRECTIONAL_SEQUENCE_LSTM", "SVDF"
KERNELS = {
    "lstm_s8_1x8_dsp": ("cortex-m4", "int8", _LSTM),
    "lstm_s8_1x4_mve": ("cortex-m55", "int8", _LSTM),
    "lstm_s8_1x8_c": ("cortex-m3", "int8", _LSTM),
    "lstm_f32_1x8_c": ("cortex-m4", "float32", _LSTM),
    "lstm_f32_1x8_c_no_fp_contract": ("cortex-m4", "float32", _LSTM),
    "lstm_s16_1x8_dsp": ("cortex-m4", "int16", _LSTM),
    "lstm_s16_1x4_mve": ("cortex-m55", "int16", _LSTM),
    "lstm_s16_1x8_c": ("cortex-m3", "int16", _LSTM),
    "lstm_f32_s8_1x8_c": ("cortex-m4", "hybrid", _LSTM),
    "steps": ("cortex-m3", "int16", _LSTM),
    "svdf_s8_1x8_dsp": ("cortex-m4", "int8", _SVDF),
    "svdf_s8_1x4_mve": ("cortex-m55", "int8", _SVDF),
    "svdf_s8_1x8_c": ("cortex-m3", "int8", _SVDF),
    "svdf_f32_1x8_c": ("cortex-m4", "float32", _SVDF),
    "svdf_f32_1x8_c_no_fp_contract": ("cortex-m4", "float32", _SVDF),
    "svdf_f32_s8_1x8_c": ("cortex-m4", "hybrid", _SVDF),
}
SEEDS = 3


def planned(graph: Graph, kernel: str) -> PlannedOperator | None:
    """Return the layer of a graph with a kernel, if it offers that."""
    cpu = KERNELS[kernel][0]
    config = CompilationConfig.from_target(Target(f"c -mcpu={cpu}"))
    offered = {c.kernel: c for c in candidates(graph.nodes[0], config)}
    return PlannedOperator(graph.nodes[0], offered[kernel]) if kernel in offered else None


def run(operator: PlannedOperator, inputs: list[Array]) -> list[Array]:
    """The outputs of the kernel, run by the interpreter; scratch holds what it may not rely on."""
    node = operator.node
    layouts = {t: Layout.whole(t.type) for t in (*node.activations, *node.outputs)}
    function = emit(operator, layouts, LayerName("layer"))
    verify(function)
    prove_accesses(function)
    outputs = [np.zeros(t.shape, t.dtype.value) for t in node.outputs]
    scratch = []
    if function.scratch is not None:
        shape = tuple(n for n in function.scratch.shape if isinstance(n, int))
        scratch = [np.full(shape, 77, function.scratch.dtype.value)]
        assert scratch[0].nbytes == operator.candidate.scratch_bytes
    Interpreter([function]).run("layer", [*inputs, *outputs, *scratch])
    return outputs


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernel_equals_reference(kernel: str) -> None:
    """Odd numbers of units and inputs, batches, both orders of time, clipped cells."""
    found, (_, dtype, operator) = 0, KERNELS[kernel]
    for seed in range(SEEDS):
        graph = generate(operator, 300 + seed, dtype).graph()
        chosen = planned(graph, kernel)
        if chosen is None:
            continue
        found += 1
        rng = np.random.default_rng(seed)
        given = {t: random_array(rng, t.shape, t.dtype) for t in chosen.node.activations}
        expected = execute(graph, {t.name: values for t, values in given.items()})
        want = [expected[graph.results[0].name], *(expected[s.after.name] for s in graph.states)]
        for got, value in zip(run(chosen, list(given.values())), want, strict=True):
            if got.dtype.kind == "f":
                near = 1e-6 * max(1.0, float(np.abs(value).max()))
                np.testing.assert_allclose(got, value, rtol=1e-5, atol=near)
            else:
                np.testing.assert_array_equal(got, value)
    assert found > 0


@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_blocks_of_sums_that_leave_32_bits_are_refused(dtype: str) -> None:
    """A bias may push any sum out; then they are added in 64 bits."""
    graph = generate("UNIDIRECTIONAL_SEQUENCE_LSTM", 300, dtype).graph()
    (node,) = graph.nodes[:1]
    bias = node.inputs[11]
    assert bias.data is not None
    large = replace(bias, data=np.full_like(bias.data, 2**31 - 1))
    changed = replace(node, inputs=(*node.inputs[:11], large, *node.inputs[12:]))
    refused = dict(refusals_of(changed, Target("c -mcpu=cortex-m4")))
    kernel = f"lstm_s{8 if dtype == 'int8' else 16}_1x8_c"
    assert refused[kernel] is Refusal.SUMS
    assert kernel not in dict(refusals_of(node, Target("c -mcpu=cortex-m4")))
