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
        """Return the cost of all calls: on a CPU without figures that of a Cortex-M4.

        Kernels in plain C state that, too, so that both compare.
        """
        has_vectors = target is not None and target.has(Feature.MVE)
        figures = figures_of("cortex-m55" if has_vectors else "cortex-m4")[FAMILY]
        counted = self.work(node).items()
        stated = round(
            sum_in_order(figures.get(kind, _UNMEASURED) * times for kind, times in counted)
        )
        return (plan.Cost(stated, self.cycles_of(node, stated)),)

    def work(self, node: Node) -> Work:
        """Return how often each kind of work is done by one call, which is work, too."""
        return {"layer": 1, **work_of(self.emit(Layer.alone(node), "layer"))}
