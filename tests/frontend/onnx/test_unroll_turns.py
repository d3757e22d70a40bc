"""Loops whose turns are written out compute the same, by tables of calls too."""

from __future__ import annotations

import numpy as np
import pytest

import microtir
from microtir.config import CompilationConfig, Executor
from microtir.errors import UnsupportedModelError
from microtir.graph.ir import Graph
from microtir.module.ir_module import IRModule
from microtir.operators.control.definition import has_control
from microtir.rewrite.optimise import UnrollTurns
from microtir.rewrite.reference import execute
from microtir.rewrite.verify import verify
from tests.frontend.onnx import test_loops as loops

pytestmark = pytest.mark.tools

CASES = (
    loops.exchanged(),
    loops.images(),
    loops.counting(),
    loops.scanned(1, 1),
    loops.layer("GRU", 3),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_results_stay_to_the_bit(case: loops.Case) -> None:
    """Of loops in loops, of lists, and of states that exchange their values."""
    graph = loops.graph_of(case.model)
    unrolled = UnrollTurns()(graph)
    verify(unrolled)
    assert has_control(graph.nodes) and not has_control(unrolled.nodes)
    wanted = execute(graph, case.inputs)
    for name, values in execute(unrolled, case.inputs).items():
        np.testing.assert_array_equal(values, wanted[name])


def with_table(graph: Graph) -> microtir.host.Model:
    """The program of a table of calls."""
    config = CompilationConfig(targets="c", executor=Executor("graph"))
    return microtir.host.load(microtir.build(IRModule(graph=graph), config))


def test_graph_executors_run_loops() -> None:
    """The calls of all turns are nodes of the table."""
    case = loops.layer("GRU", 3)
    graph = loops.graph_of(case.model)
    wanted = execute(graph, case.inputs)
    for name, values in with_table(graph).run(case.inputs).items():
        np.testing.assert_allclose(values, wanted[name], 1e-5, 1e-6)


def test_loops_that_a_condition_ends_are_refused() -> None:
    """How many calls there are is not known."""
    with pytest.raises(UnsupportedModelError, match="a loop that cannot be unrolled"):
        with_table(loops.graph_of(loops.until().model))
