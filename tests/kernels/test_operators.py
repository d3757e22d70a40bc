"""Every kernel means what the numpy reference says, run by the TIR interpreter.

The execution tests compile the same cases to C; here a failure names the operator without a
compiler in between.
"""

from __future__ import annotations

import numpy as np
import pytest

from microtir import config as config_
from microtir.config.enums import Optimize
from microtir.graph.ir import Graph, Tensor
from microtir.kernels import candidates, emit
from microtir.kernels.table import BY_OPERATOR
from microtir.operators import OPERATORS
from microtir.operators.definition import Trait
from microtir.operators.npu.definition import EthosU
from microtir.plan import plan
from microtir.plan.ir import Plan, PlanConstraints, PlannedOperator
from microtir.rewrite.reference import execute
from microtir.tir.analysis.access import prove_accesses
from microtir.tir.function import LayerName
from microtir.tir.interpreter import Interpreter
from microtir.tir.ir import Array, PrimFunc
from microtir.tir.replay import random_array
from microtir.tir.verify import verify
from tests.support.operator_cases import generate, operator_dtypes

SEEDS = 6
CONFIG = config_.host()


def values_of(graph: Graph, inputs: tuple[Array, ...]) -> dict[Tensor, Array]:
    """Every tensor's value by the reference; what states hold is random."""
    values = dict(zip(graph.arguments, inputs, strict=True))
    for state in graph.states:
        rng = np.random.default_rng(7)
        values[state.before] = random_array(rng, state.type.shape, state.type.dtype)
    named = {tensor.name: value for tensor, value in values.items()}
    execute(graph, named, lambda node, outs: values.update(zip(node.outputs, outs, strict=True)))
    return values


def run_layer(operator: PlannedOperator, planned: Plan, values: dict[Tensor, Array]) -> list[Array]:
    """Outputs of one layer function on the reference's inputs."""
    node = operator.node
    function = emit(operator, planned.layouts, LayerName("layer"))
    verify(function)
    prove_accesses(function)
    inputs = [values[t] for t in dict.fromkeys(node.inputs) if not t.is_constant]
    outputs = [np.zeros(t.shape, t.dtype.value) for t in node.outputs]
    rows = [0, node.outputs[0].type.rows] if operator.candidate.takes_row_range else []
    Interpreter([function]).run("layer", [*inputs, *outputs, *scratch(function), *rows])
    return outputs


def scratch(function: PrimFunc) -> list[Array]:
    """Memory for the scratch parameter, with values that no kernel may rely on."""
    if function.scratch is None:
        return []
    shape = tuple(n for n in function.scratch.shape if isinstance(n, int))
    return [np.full(shape, 77, function.scratch.dtype.value)]


@pytest.mark.parametrize(("operator", "dtype"), operator_dtypes())
def test_kernel_equals_reference(operator: str, dtype: str) -> None:
    """Random shapes and attributes: integers equal to the bit, floats within 1e-5."""
    for seed in range(SEEDS):
        case = generate(operator, seed, dtype)
        graph = case.graph()
        values = values_of(graph, case.inputs)
        planned = plan(
            graph, lambda node: candidates(node, CONFIG), PlanConstraints(Optimize.BALANCED)
        )
        for step in planned.operators:
            if step.candidate.is_view:
                continue
            for tensor, got in zip(
                step.node.outputs, run_layer(step, planned, values), strict=True
            ):
                want = values[tensor]
                if tensor.dtype.is_float:
                    scale = max(1.0, float(np.abs(want).max(initial=0)))
                    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6 * scale)
                else:
                    np.testing.assert_array_equal(got, want, err_msg=case.name)


def test_every_operator_has_a_family() -> None:
    """The lowering table covers the list of operators, and nothing else.

    What an NPU computes are calls of its driver before kernels are chosen.
    """
    of_npus = {record.op for record in OPERATORS if record.has(Trait.OPAQUE)}
    assert set(BY_OPERATOR) | of_npus == {record.op for record in OPERATORS}
    assert of_npus == {EthosU}
