"""What is left of a budget of flash goes to faster layers, until none has room."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pytest

from microtir.config import CompilationConfig
from microtir.dtype import DType
from microtir.fit import budgets as fit
from microtir.graph.ir import Graph, Node
from microtir.measure import ConstantData, Figures, FlashUse, Stacks, WorstStack
from microtir.module.program import Program
from microtir.operators.common.rows import RowWindow
from microtir.plan import plan
from microtir.plan.ir import Candidate, Cost, LayoutKind, Plan, PlanConstraints
from microtir.plan.work import plan_work
from microtir.tir.build import seq
from microtir.tir.ir import PrimFunc
from microtir.tir.memory_plan import ConstantPlan, MemoryPlan
from tests.plan.test_limits import chain

CODE = 300  # of the fast kernel, which all layers share
WEIGHTS = (60, 100, 140, 190, 230, 270)  # that the fast kernel wants beyond those of the slow one
NONE = Stacks(WorstStack(()), WorstStack(()), WorstStack(()))


@dataclass(frozen=True)
class Programs:
    """Programs whose code of a kernel is there once, and `hidden` bytes with it."""

    graph: Graph
    offered: Mapping[Node, tuple[Candidate, ...]]
    hidden: int = 0

    def planned(self, asked: PlanConstraints) -> Plan:
        """The plan of a program."""
        return plan(self.graph, self.offered.__getitem__, asked)

    def compile_once(self, asked: PlanConstraints) -> Program:
        """The program of a plan; nothing of it but what it takes."""
        planned = self.planned(asked)
        layers = [PrimFunc(f"layer{n}", (), seq()) for n, _ in enumerate(planned.operators)]
        main = PrimFunc("main", (), seq())
        flash = self.flash(planned)
        figures = Figures(flash, NONE, {layer.name: 0 for layer in layers})
        return Program(
            self.graph, planned, tuple(layers), main, main, MemoryPlan((), (), True),
            ConstantPlan(), figures, MappingProxyType({}),
        )  # fmt: skip

    def flash(self, made: Plan) -> FlashUse:
        """Arrays of each layer, and code of each kernel once."""
        sizes = [op.candidate.weight_bytes for op in made.operators]
        arrays = [ConstantData("w", DType.INT8, np.zeros(n, np.int8), 1, (), ()) for n in sizes]
        is_fast = any(op.candidate.kernel == "conv_s8_2x4_dsp" for op in made.operators)
        code = (CODE + self.hidden) * is_fast
        return FlashUse(tuple(arrays), code, code, code)


def programs(hidden: int = 0) -> Programs:
    """Layers with a slow kernel and a fast one."""
    graph, kinds, window = chain(1, [1] * 7), (LayoutKind.NHWC,), (RowWindow(),)
    offered = {
        node: (
            Candidate("direct", kinds, kinds, window, 0, (Cost(40 * weights + 5000),), (0,)),
            Candidate(
                "conv_s8_2x4_dsp",
                kinds,
                kinds,
                window,
                weights,
                (Cost(500),),
                (0,),
                code_bytes=CODE,
            ),
        )
        for node, weights in zip(graph.nodes, WEIGHTS, strict=True)
    }
    return Programs(graph, offered, hidden)


def best(made: Programs, flash: int) -> Program:
    """The program that the search finds."""
    config = CompilationConfig(
        targets="c", optimize="speed", measure="instructions", budget={"flash": flash}
    )
    return fit.search(made.compile_once, made.planned, config, lambda _program: None)


@pytest.mark.parametrize("hidden", [0, 250])
def test_no_other_layer_has_room(hidden: int) -> None:
    """Whatever the budget: the next layer would exceed it, also if estimates are too low."""
    made = programs(hidden)
    for flash in range(1, sum(WEIGHTS) + CODE + hidden + 100, 149):
        found = best(made, flash).plan
        use = made.flash(found)
        assert use.bytes <= flash
        slow = [
            weights
            for op, weights in zip(found.operators, WEIGHTS, strict=True)
            if op.candidate.kernel == "direct"
        ]
        step = min(slow, default=1 << 20) + (0 if use.code else CODE + hidden)
        assert flash - use.bytes < step


def test_it_is_faster_than_a_price_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Never slower than the plan of a price, and faster for most budgets."""
    made, sizes = programs(), range(CODE + 61, sum(WEIGHTS) + CODE, 149)
    raised = [plan_work(best(made, flash).plan) for flash in sizes]
    monkeypatch.setattr(fit, "_RAISES", 0)
    priced = [plan_work(best(made, flash).plan) for flash in sizes]
    assert all(a <= b for a, b in zip(raised, priced, strict=True))
    assert sum(a < b for a, b in zip(raised, priced, strict=True)) > len(sizes) // 3
