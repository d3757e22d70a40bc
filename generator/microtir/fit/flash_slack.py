"""Spends the part of a flash budget that a plan leaves on faster kernels, layer by layer.

A price for a byte finds plans on the convex hull of instructions and bytes.  From
such a plan on, layers are raised to faster kernels, those first that save most for a byte.  Layers
share what a kernel takes beside its weights: the first pays for all, so that several that want one
kernel are a step, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field
from fractions import Fraction

from microtir.graph.ir import Node
from microtir.plan.ir import Candidate, Plan
from microtir.plan.work import work

Raised = frozenset[tuple[Node, str]]
"""Layers with the kernels that they are to have."""


@dataclass(frozen=True, slots=True)
class Step:
    """Layers that take a faster kernel.

    `saved` is what that saves, in the measure of the plan, `weights` the bytes that it takes more
    of weights, and `code` what it takes of code if no other layer has the kernel.
    """

    layers: Raised
    kernel: str
    saved: int
    weights: int
    code: int

    @property
    def nodes(self) -> frozenset[Node]:
        """Return the layers without their kernels."""
        return frozenset(node for node, _ in self.layers)


@dataclass(slots=True)
class FlashSlack:
    """Finds layers of a plan to raise to faster kernels; what is known grows with every program.

    `more` holds for kernels what the first layer of them took of flash beyond what was expected:
    layers that share a body, for example, need another one.  `refuted` steps took too much although
    their kernel was there.
    """

    more: dict[str, int] = field(default_factory=dict)
    refuted: set[Raised] = field(default_factory=set)

    def steps(self, plan: Plan, room: int) -> tuple[Step, ...]:
        """Return steps that save much and take so many bytes or less together, by what is known.

        They are for different layers; those that save most for a byte come first.
        """
        there = _kernels(plan)
        left = [step for step in _steps_of(plan) if step.layers not in self.refuted]
        taken: list[Step] = []
        while left:
            best = max(left, key=lambda s: Fraction(s.saved, max(self._bytes(s, there), 1)))
            left.remove(best)
            if self._bytes(best, there) <= room:
                room -= self._bytes(best, there)
                taken.append(best)
                there.add(best.kernel)
                left = [step for step in left if not step.nodes & best.nodes]
        return tuple(taken)

    def learn(self, plan: Plan, step: Step, taken: int) -> None:
        """Note how much more flash a program took than its plan said."""
        there = _kernels(plan)
        unexpected = taken - self._bytes(step, there)
        if step.kernel in there or unexpected <= 0:
            self.refuted.add(step.layers)
        else:
            self.more[step.kernel] = self.more.get(step.kernel, 0) + unexpected

    def _bytes(self, step: Step, there: Set[str]) -> int:
        if step.kernel in there:
            return step.weights
        return step.weights + step.code + self.more.get(step.kernel, 0)


def _kernels(plan: Plan) -> set[str]:
    return {op.candidate.kernel for op in plan.operators}


def _steps_of(plan: Plan) -> tuple[Step, ...]:
    """Return steps: a layer to a faster kernel, or all layers that want one kernel."""
    single = [step for op in plan.operators for step in _single_steps(plan, op.node, op.candidate)]
    return (*single, *_sharing_steps(single))


def _single_steps(plan: Plan, node: Node, current: Candidate) -> Iterator[Step]:
    measure = plan.constraints.measure
    for other in plan.offered.get(node, ()):
        saved = work(node, current, measure) - work(node, other, measure)
        has_same_layouts = (other.input_layouts, other.output_layouts, other.accumulates) == (
            current.input_layouts, current.output_layouts, current.accumulates,
        )  # fmt: skip
        if saved > 0 and has_same_layouts:
            weights = other.weight_bytes - current.weight_bytes
            layer = frozenset({(node, other.kernel)})
            yield Step(layer, other.kernel, saved, weights, other.code_bytes)


def _sharing_steps(single: Sequence[Step]) -> Iterator[Step]:
    """Yield all layers that want the same kernel, which then share its code."""
    for kernel in dict.fromkeys(step.kernel for step in single):
        same = [step for step in single if step.kernel == kernel]
        if len(same) > 1:
            yield Step(
                frozenset().union(*(step.layers for step in same)),
                kernel,
                sum(step.saved for step in same),
                sum(step.weights for step in same),
                max(step.code for step in same),
            )
