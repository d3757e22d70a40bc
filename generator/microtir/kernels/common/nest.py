"""Loop nests as compilers take them: their work is counted, and what it takes was measured.

The figures of a CPU, the instructions of each kind of work, are fitted by `python -m benchmarks
calibrate nests` to layers of one operator on its emulator.
"""

from __future__ import annotations

from microtir.config import Feature
from microtir.config.target import Target
from microtir.graph.ir import Node
from microtir.kernels.common.counted import figures_of
from microtir.kernels.common.kernel import Kernel
from microtir.kernels.common.layer import Layer
from microtir.plan import ir as plan
from microtir.support.sums import sum_in_order
from microtir.tir.analysis.work import Work, work_of

FAMILY = "nests"
"""The name of the figures."""

_UNMEASURED = 20.0
"""Instructions of a function that no layer of the calibration calls."""


class Nest(Kernel):
    """A kernel that is a loop nest, without micro-kernels."""

    def instructions(self, node: Node, _calls: plan.Calls) -> int:
        return self.costs(node)[0].instructions

    def costs(self, node: Node, target: Target | None = None) -> tuple[plan.Cost, ...]:
        """Return the cost on a Cortex-M4 or M55, to compare; people are told what the CPU takes."""
        work, told = self.work(node), 100.0
        stated = _taken(work, "cortex-m55" if target and target.has(Feature.MVE) else "cortex-m4")
        if target and target.work_percent.measured_on and not target.has(Feature.FPU):
            own = _taken(work, target.work_percent.measured_on)
            told = 1e4 * own / target.work_percent.instructions / max(stated, 1)
        return (plan.Cost(stated, self.cycles_of(node, stated), told),)

    def work(self, node: Node) -> Work:
        """Return how often each kind of work is done by one call, which is work, too."""
        return {"layer": 1, **work_of(self.emit(Layer.alone(node), "layer"))}


def _taken(work: Work, cpu: str) -> int:
    """Return the instructions of some work on a CPU."""
    figures = figures_of(cpu)[FAMILY]
    return round(sum_in_order(figures.get(kind, _UNMEASURED) * n for kind, n in work.items()))
