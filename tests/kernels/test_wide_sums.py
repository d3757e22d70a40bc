"""Kernels that add in 64 bits give what those with 32 give, wherever both are right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from microtir.config import CompilationConfig, Target
from microtir.config.enums import Optimize
from microtir.dtype import DType
from microtir.graph.ir import SumRange
from microtir.kernels import candidates, emit
from microtir.plan import plan
from microtir.plan.ir import PlanConstraints
from microtir.tir.function import LayerName
from microtir.tir.ir import Cast
from microtir.tir.visitor import walk
from tests.kernels.test_operators import CONFIG, run_layer, values_of
from tests.support.operator_cases import generate

_UNPROVEN = SumRange(-(1 << 40), 1 << 40)
_ADDING = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "AVERAGE_POOL_2D", "MEAN", "SOFTMAX",
           "LOG_SOFTMAX")  # fmt: skip


_ALL = [(operator, "int8") for operator in _ADDING] + [(name, "int16") for name in _ADDING[:3]]


@pytest.mark.parametrize(("operator", "dtype"), _ALL)
def test_wide_accumulators_equal_the_reference(operator: str, dtype: str) -> None:
    """The proof is withheld: images of 16 million elements would be needed to miss it."""
    for seed in range(4):
        case = generate(operator, seed, dtype)
        graph = case.graph()
        values = values_of(graph, case.inputs)
        withheld = tuple(replace(node, sums=_UNPROVEN) for node in graph.nodes)
        planned = plan(
            replace(graph, nodes=withheld),
            lambda node: candidates(node, CONFIG),
            PlanConstraints(Optimize.SPEED),
        )
        for step in planned.operators:
            assert step.candidate.kernel == "direct"
            (got,) = run_layer(step, planned, values)
            np.testing.assert_array_equal(got, values[step.node.output], err_msg=case.name)
            function = emit(step, planned.layouts, LayerName("layer"))
            casts = {n.dtype for n in walk(function) if isinstance(n, Cast)}
            assert DType.INT64 in casts


_WIDE = (
    ("cortex-m4", "CONV_2D", "conv_s16_2x2_dsp_wide"),
    ("cortex-m4", "DEPTHWISE_CONV_2D", "dwconv_s16_2x2_dsp_wide"),
    ("cortex-m4", "FULLY_CONNECTED", "dense_s16_1x4_dsp_wide"),
    ("cortex-m55", "CONV_2D", "conv_s16_2x4_mve_wide"),
    ("cortex-m55", "DEPTHWISE_CONV_2D", "dwconv_s16_1x8_mve_wide"),
    ("cortex-m55", "FULLY_CONNECTED", "dense_s16_2x4_mve_wide"),
)


@pytest.mark.parametrize(("cpu", "operator", "name"), _WIDE)
def test_blocks_of_int16_add_in_64_bits_only_where_that_is_needed(
    cpu: str, operator: str, name: str
) -> None:
    """Others are offered too where 32 are enough, and cost less; else they are refused."""
    config = CompilationConfig.from_target(Target(f"c -mcpu={cpu}"))
    own = name.split("_")[3]
    tried = 0
    for seed in range(20):
        (node,) = generate(operator, seed, "int16").graph().nodes
        proven, unproven = (
            {c.kernel: c for c in candidates(replace(node, sums=sums), config)}
            for sums in (None, _UNPROVEN)
        )
        narrow = [n for n in proven if "_s16_" in n and n.endswith(f"_{own}")]
        if name not in proven or not narrow:
            continue
        tried += 1
        least = min(proven[kernel].costs[0].instructions for kernel in narrow)
        assert proven[name].costs[0].instructions > least
        assert name in unproven
        assert all("wide" in n or n.startswith("direct") for n in unproven)
    assert tried > 3
