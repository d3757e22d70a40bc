"""What is left of a budget of flash goes to faster layers, until none has room."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from microtir.config.enums import Optimize
from microtir.graph.ir import Graph, Node
from microtir.operators.common.rows import RowWindow
from microtir.plan import budgets, plan
from microtir.plan.budgets import Search, Use, cost
from microtir.plan.ir import Candidate, Kernel, LayoutKind, Plan, Terms
from tests.plan.test_limits import chain

CODE = 300  # of the fast kernel, which all layers share
WEIGHTS = (60, 100, 140, 190, 230, 270)  # that the fast kernel wants beyond those of the slow one


@dataclass(frozen=True)
class Programs:
    """Plans that are programs: the code of a kernel is there once, and `hidden` bytes with it."""

    graph: Graph
    offered: Mapping[Node, tuple[Candidate, ...]]
    hidden: int = 0

    def planned(self, terms: Terms) -> Plan:
        """The plan by terms."""
        return plan(self.graph, self.offered.__getitem__, Optimize.SPEED, terms=terms)

    def made(self, terms: Terms) -> Plan:
        """The same."""
        return self.planned(terms)

    def unlimited(self, goal: Optimize) -> Plan:
        """The plan of a goal."""
        return plan(self.graph, self.offered.__getitem__, goal)

    def built(self, made: Plan) -> Plan:
        """The plan itself."""
        return made

    def kernels(self, node: Node) -> frozenset[Kernel]:
        """Of a node."""
        return frozenset(c.kernel for c in self.offered[node])

    def use(self, made: Plan) -> Use:
        """Arrays of each layer, and code of each kernel once."""
        weights = sum(op.candidate.weight_bytes for op in made.operators)
        is_fast = any(op.candidate.kernel is Kernel.GEMM for op in made.operators)
        return Use(made, 0, weights, (CODE + self.hidden) * is_fast, {})

    def compiled(self, made: Plan) -> int | None:
        """There is no compiler."""
        return None


def programs(hidden: int = 0) -> Programs:
    """Layers with a slow kernel and a fast one."""
    graph, kinds, window = chain(1, [1] * 7), (LayoutKind.NHWC,), (RowWindow(),)
    offered = {
        node: (
            Candidate(Kernel.DIRECT, kinds, kinds, window, 0, 0, 40 * weights + 5000),
            Candidate(Kernel.GEMM, kinds, kinds, window, 0, weights, 500, code_bytes=CODE),
        )
        for node, weights in zip(graph.nodes, WEIGHTS, strict=True)
    }
    return Programs(graph, offered, hidden)


def best(made: Programs, flash: int) -> Plan:
    """The program that the search finds."""
    return Search(made, flash, None, (), seeks_speed=True).best()


@pytest.mark.parametrize("hidden", [0, 250])
def test_no_other_layer_has_room(hidden: int) -> None:
    """Whatever the budget: the next layer would exceed it, also if estimates are too low."""
    made = programs(hidden)
    for flash in range(0, sum(WEIGHTS) + CODE + hidden + 100, 149):
        found = best(made, flash)
        use = made.use(found)
        assert use.arrays + use.code <= flash
        slow = [
            weights
            for op, weights in zip(found.operators, WEIGHTS, strict=True)
            if op.candidate.kernel is Kernel.DIRECT
        ]
        step = min(slow, default=1 << 20) + (0 if use.code else CODE + hidden)
        assert flash - use.arrays - use.code < step


def test_it_is_faster_than_a_price_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Never slower than the plan of a price, and faster for most budgets."""
    made, sizes = programs(), range(CODE + 61, sum(WEIGHTS) + CODE, 149)
    raised = [cost(best(made, flash)) for flash in sizes]
    monkeypatch.setattr(budgets, "_RAISES", 0)
    priced = [cost(best(made, flash)) for flash in sizes]
    assert all(a <= b for a, b in zip(raised, priced, strict=True))
    assert sum(a < b for a, b in zip(raised, priced, strict=True)) > len(sizes) // 3
