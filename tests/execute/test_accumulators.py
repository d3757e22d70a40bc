"""Sums that leave 32 bits: C equals 64-bit arithmetic of numpy, and tflite-micro."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import microtir
from microtir import CompilationConfig, Target
from microtir.graph.ir import Array
from microtir.kernels.table import kernels_of
from microtir.operators.common.linear import params_of
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.operators.dense.definition import FullyConnected
from tests.execute.accumulators import OPERATORS, all_cases, overflowing
from tests.execute.cases import compile_case
from tests.support.batch import load_batch
from tests.support.c_compilers import STRICT
from tests.support.operator_cases import generate
from tests.support.sketch import Case
from tests.support.tflm import run_tflm


def oracle(case: Case) -> Array:
    """The output in 64-bit integers of numpy, the sum cut to 32 bits at its end.

    Written out once more, beside `graph.reference`.
    """
    (layer,) = case.graph().nodes
    op, (x, w, b) = layer.op, layer.inputs
    assert w.data is not None and b.data is not None
    values = case.inputs[0].astype(np.int64) - x.type.quant.zero_point
    weights = w.data.astype(np.int64)
    params = params_of(layer)
    if isinstance(op, Conv2D | DepthwiseConv2D):
        p = op.padding
        padded = np.pad(values, ((0, 0), (p.top, p.bottom), (p.left, p.right), (0, 0)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
        kind = "nhwcyx,oyxc->nhwo" if isinstance(op, Conv2D) else "nhwcyx,oyxc->nhwc"
        sums = np.einsum(kind, windows, weights)
    else:
        assert isinstance(op, FullyConnected)
        sums = values @ weights.T
    sums = (sums + b.data).astype(np.int32).astype(np.int64)
    (multiplier, shift) = params.multipliers[0]
    assert shift <= 0
    high = (sums * multiplier * 2 + (1 << 31)) >> 32
    half = (1 << -shift) >> 1
    rounded = np.sign(high) * ((np.abs(high) + half) >> -shift)
    low, top = params.activation_min, params.activation_max
    clipped: Array = np.clip(rounded + params.output_zero_point, low, top)
    return clipped.astype(np.int8)


def test_c_equals_64_bit_arithmetic(tmp_path: Path) -> None:
    """Convolutions and dense layers; also on the way to the host the reference says the same."""
    cases = list(all_cases(range(10, 16)))
    models = load_batch([compile_case(case) for case in cases], tmp_path, flags=STRICT)
    for case, model in zip(cases, models, strict=True):
        (got,) = model.run(case.named_inputs()).values()
        np.testing.assert_array_equal(got, oracle(case), err_msg=case.name)


@pytest.mark.parametrize("operator", OPERATORS)
def test_tflite_micro_wraps_as_well(operator: str) -> None:
    """Which makes the wrapped sum the right one, not a saturated one."""
    for seed in range(4):
        case = overflowing(operator, seed)
        np.testing.assert_array_equal(run_tflm(case.model, *case.inputs)[0], oracle(case))


@pytest.mark.parametrize("target", ["c", "c -mcpu=cortex-m4", "c -mcpu=cortex-m55"])
def test_only_direct_kernels_are_offered_and_metadata_say_so(target: str) -> None:
    """What adds in 32 bits is not offered for a layer whose sums may leave them."""
    case = overflowing("CONV_2D", 1)
    config = CompilationConfig.from_target(Target(target))
    module = microtir.frontend.from_tflite(case.model)
    artifact = microtir.build(module, config)
    accumulator = artifact.metadata.layers[0].accumulator
    assert accumulator is not None and accumulator.bits == 64
    assert accumulator.high > 2**31 - 1
    (layer,) = case.graph().nodes
    assert [k.name for k in kernels_of(layer, Target(target))] == ["direct"]


def test_margin_of_a_common_layer() -> None:
    """Metadata give the kernel, and the width, the bounds and the spare bits of its sums."""
    layer = compile_case(generate("CONV_2D", 100, "int8")).metadata.layers[0]
    choice = layer.choice
    assert choice is not None and choice.kernel not in {a.kernel for a in choice.alternatives}
    found = layer.accumulator
    assert found is not None and found.bits == 32
    largest = max(-found.low - 1, found.high)
    assert 1 << 31 - found.spare_bits > largest >= 1 << 31 - found.spare_bits - 1
