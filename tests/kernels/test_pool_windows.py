"""Windows inside an image and beyond, their maxima and means, run by the interpreter of TIR."""

from __future__ import annotations

import numpy as np

from microtir.kernels import emit
from microtir.kernels.arm_dsp.pool_windows import PoolWindows
from microtir.kernels.common.pool_runs import Pool
from microtir.plan.ir import Layout, PlannedOperator
from microtir.rewrite.reference import execute
from microtir.tir.analysis.access import prove_accesses
from microtir.tir.function import LayerName
from microtir.tir.interpreter import Interpreter
from microtir.tir.verify import verify
from tests.support import graphs
from tests.support.dsp_cases import DspCase, pool


def stacked(case: DspCase, images: int) -> DspCase:
    """Return a case of several images."""
    layer = case.graph.nodes[0]
    x, y = (
        graphs.tensor(t.name, (images, *t.shape[1:]), t.dtype, t.type.quant)
        for t in (layer.inputs[0], layer.output)
    )
    data = np.stack([np.roll(case.inputs[0][0], n, axis=1) for n in range(images)])
    return DspCase(case.name, graphs.graph([graphs.node(layer.op, (x,), y)], [x], [y]), (data,))


def test_equal_to_the_reference() -> None:
    """Random windows, inside their images and beyond, of channels that fill no word."""
    kernel, seen = PoolWindows(), set()
    for case in (stacked(pool(seed), 1 + 2 * (seed % 2)) for seed in range(200)):
        layer = case.graph.nodes[0]
        if kernel.refusal(layer) is not None:
            continue
        layouts = {t: Layout.whole(t.type) for t in (*layer.activations, layer.output)}
        operator = PlannedOperator(layer, kernel.candidate(layer))
        function = emit(operator, layouts, LayerName("layer"))
        verify(function)
        prove_accesses(function)
        output = np.zeros(layer.output.shape, np.int8)
        Interpreter([function]).run("layer", [*case.inputs, output])
        np.testing.assert_array_equal(output, execute(case.graph, case.named_inputs())["y"])
        shape = Pool.of(layer)
        seen.add((shape.averages, shape.clips, shape.image.images > 1))
    assert len(seen) == 8
