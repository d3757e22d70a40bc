"""Plans within a limit: kernels without room make way, and looser limits are never slower."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from microtir.config.enums import Optimize
from microtir.dtype import DType
from microtir.graph.ir import Graph, Node, SourceLocation, Tensor, TensorType
from microtir.operators.activations.definition import Relu
from microtir.operators.common.rows import RowWindow
from microtir.plan import plan
from microtir.plan.ir import Candidate, Cost, LayoutKind, Plan, PlanConstraints

KERNELS = ("conv_s8_2x4_dsp", "conv_s8_2x4_dsp_compact", "direct")


def image(name: str, height: int, row: int) -> Tensor:
    """A tensor of some rows of some bytes."""
    return Tensor(name, TensorType((1, height, row, 1), DType.INT8))


def chain(height: int, rows: Sequence[int]) -> Graph:
    """A chain of operators between images whose rows have the given bytes."""
    tensors = [image(f"t{n}", height, row) for n, row in enumerate(rows)]
    nodes = [
        Node(Relu(), (x,), (y,), y.name, SourceLocation("test", n, "X"))
        for n, (x, y) in enumerate(pairwise(tensors))
    ]
    return Graph("g", (tensors[0],), (tensors[-1],), tuple(nodes))


def offers(graph: Graph, seed: int) -> dict[Node, tuple[Candidate, ...]]:
    """For each node windows of one or three rows, and kernels of which the fast take scratch."""
    rng, kinds = np.random.default_rng(seed), (LayoutKind.NHWC,)
    found = {}
    for node in graph.nodes:
        taps = int(rng.choice([1, 3]))
        window = (RowWindow(1, -(taps // 2), taps),)
        scratch = sorted((int(s) for s in rng.integers(1, 60, 2)), reverse=True)
        found[node] = tuple(
            Candidate(kernel, kinds, kinds, window, 0, (Cost(cost),), (bytes_,))
            for kernel, bytes_, cost in zip(KERNELS, (*scratch, 0), (100, 200, 900), strict=True)
        )
    return found


def cost(result: Plan) -> int:
    """Instructions of the kernels that a plan takes."""
    return sum(operator.candidate.cost().instructions for operator in result.operators)


graphs = st.builds(chain, st.integers(1, 12), st.lists(st.integers(1, 40), min_size=2, max_size=7))


@settings(max_examples=60)
@given(graphs, st.integers(0, 2**20))
def test_more_memory_is_never_slower(graph: Graph, seed: int) -> None:
    """From the least on, a looser limit takes kernels that are as fast or faster."""
    known = offers(graph, seed)
    least = plan(graph, known.__getitem__, PlanConstraints(Optimize.RAM_LEAST))
    bounded = plan(graph, known.__getitem__, PlanConstraints(Optimize.SPEED, ram=0))
    assert cost(bounded) == cost(least)
    costs = [
        cost(plan(graph, known.__getitem__, PlanConstraints(Optimize.SPEED, ram=limit)))
        for limit in (20, 80, 200, 1 << 20)
    ]
    assert costs[-1] == 100 * len(graph.nodes)
    assert costs[-1] <= min(costs)


def test_a_kernel_without_room_makes_way() -> None:
    """10 bytes of input and 10 of output outside, 10 between: what is left decides."""
    graph = chain(1, [10, 10, 10])
    kinds, window = (LayoutKind.NHWC,), (RowWindow(),)
    fast = Candidate("conv_s8_2x4_dsp", kinds, kinds, window, 0, (Cost(1),), (8,))
    slow = Candidate("direct", kinds, kinds, window, 0, (Cost(5),), (0,))
    taken = {
        limit: [
            op.candidate.kernel
            for op in plan(
                graph, lambda _: (fast, slow), PlanConstraints(Optimize.SPEED, ram=limit)
            ).operators
        ]
        for limit in (17, 18)
    }
    assert taken == {17: ["direct"] * 2, 18: ["conv_s8_2x4_dsp"] * 2}


def test_a_balanced_plan_streams_where_that_saves_memory() -> None:
    """A tensor of 40 rows between two operators is held whole where only speed counts."""
    graph = chain(40, [1, 30, 1])
    kinds, window = (LayoutKind.NHWC,), (RowWindow(),)
    only = Candidate("direct", kinds, kinds, window, 0, (Cost(10**6),), (0,))
    held = {
        goal: plan(graph, lambda _: (only,), PlanConstraints(goal))
        .layouts[graph.nodes[0].output]
        .rows
        for goal in (Optimize.SPEED, Optimize.BALANCED, Optimize.RAM_LEAST)
    }
    assert held == {Optimize.SPEED: 40, Optimize.BALANCED: 1, Optimize.RAM_LEAST: 1}
