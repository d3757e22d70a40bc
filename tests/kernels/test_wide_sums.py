"""Kernels that add in 64 bits give what those with 32 give, wherever both are right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

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


@pytest.mark.parametrize("operator", _ADDING)
def test_wide_accumulators_equal_the_reference(operator: str) -> None:
    """The proof is withheld: images of 16 million elements would be needed to miss it."""
    for seed in range(4):
        case = generate(operator, seed, "int8")
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
