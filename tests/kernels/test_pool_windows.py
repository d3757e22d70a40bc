"""Windows inside an image and beyond, their maxima and means, run by the interpreter of TIR."""

from __future__ import annotations

import numpy as np
import pytest

from microtir.dtype import DType
from microtir.kernels import emit
from microtir.kernels.arm_dsp.pooling import PoolWords
from microtir.kernels.arm_mve.pooling import PoolVectors
from microtir.kernels.common.pool_runs import Pool
from microtir.kernels.common.pool_windows import PoolWindows
from microtir.kernels.common.runs import Taps
from microtir.measure.printed import number
from microtir.plan.ir import Layout, PlannedOperator
from microtir.rewrite.reference import execute
from microtir.tir.analysis.access import prove_accesses
from microtir.tir.function import LayerName
from microtir.tir.interpreter import Interpreter
from microtir.tir.verify import verify
from tests.support import graphs
from tests.support.dsp_cases import DspCase, pool, pool_of_int16, pool_of_uint8


def stacked(case: DspCase, images: int) -> DspCase:
    """Return a case of several images."""
    layer = case.graph.nodes[0]
    x, y = (
        graphs.tensor(t.name, (images, *t.shape[1:]), t.dtype, t.type.quant)
        for t in (layer.inputs[0], layer.output)
    )
    data = np.stack([np.roll(case.inputs[0][0], n, axis=1) for n in range(images)])
    return DspCase(case.name, graphs.graph([graphs.node(layer.op, (x,), y)], [x], [y]), (data,))


@pytest.mark.parametrize("kernel", [PoolWords(), PoolVectors()], ids=lambda kernel: kernel.name)
def test_equal_to_the_reference(kernel: PoolWindows) -> None:
    """Random windows, inside their images and beyond, of channels that fill no word."""
    seen = set()
    drawn = [case(seed) for case in (pool, pool_of_int16, pool_of_uint8) for seed in range(120)]
    for seed, case in enumerate(drawn):
        case = stacked(case, 1 + 2 * (seed % 2))
        layer = case.graph.nodes[0]
        if kernel.refusal(layer) is not None:
            continue
        layouts = {t: Layout.whole(t.type) for t in (*layer.activations, layer.output)}
        operator = PlannedOperator(layer, kernel.candidate(layer))
        function = emit(operator, layouts, LayerName("layer"))
        verify(function)
        prove_accesses(function)
        output = np.zeros(layer.output.shape, layer.output.dtype.value)
        Interpreter([function]).run("layer", [*case.inputs, output])
        np.testing.assert_array_equal(output, execute(case.graph, case.named_inputs())["y"])
        shape = Pool.of(layer)
        seen.add((layer.output.dtype, shape.averages, shape.clips, shape.image.images > 1))
    assert len(seen) == 8 * len(kernel.types)


@pytest.mark.parametrize("dtype", PoolVectors.types)
def test_reciprocals_of_vectors_are_exact(dtype: DType) -> None:
    """Of sums of up to 128 taps, as the steps of the template give it; of int16 near multiples."""
    kernel, bits = PoolVectors(), 2 * dtype.bits
    for count in range(3, 129):
        values = kernel.values(Taps(1, count, 0, 1, 1), 1, 1, dtype, averages=True)
        largest = count * max(dtype.max, -dtype.min)
        magnitudes = np.arange(largest + 1, dtype=np.uint64)
        if dtype is DType.INT16:
            magnitudes = np.append(magnitudes[::count], magnitudes[count - 1 :: count])
        magnitudes += np.uint64(number(values, "half"))
        assert magnitudes.max() < 1 << bits
        reciprocal = number(values, "reciprocal") | number(values, "reciprocal_high") << 16
        quotients = magnitudes
        if reciprocal:
            quotients = magnitudes * np.uint64(reciprocal) >> np.uint64(bits)
        assert reciprocal < 1 << bits
        quotients = quotients >> np.uint64(number(values, "shift"))
        np.testing.assert_array_equal(quotients, magnitudes // np.uint64(count))
