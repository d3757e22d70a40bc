"""Searches for the fastest plan whose program keeps to limits on flash and on stack.

RAM is a limit that planning knows beforehand (decision 21).  What a program takes of flash and
stack is known once its functions are there, so these are searched for: a byte of flash gets a
price, in instructions, as low as the budget allows, and kernels that go too deep are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isqrt
from typing import Generic, TypeVar

from microtir.config.enums import Optimize
from microtir.graph.ir import Node
from microtir.plan.ir import ANY_SPEED, Kernel, Plan, PlannedOperator, Terms
from microtir.plan.offers import work

_PRECISION = 32  # a price is good enough within so many parts of it

Program = TypeVar("Program")
"""What is made of a plan."""


@dataclass(frozen=True, slots=True)
class Use:
    """What a program takes, in bytes.

    `stack` holds for each node the deepest chain of calls from the entry through its functions.
    """

    plan: Plan
    flash: int
    stack: Mapping[Node, int]


@dataclass(frozen=True, slots=True)
class Search(Generic[Program]):
    """The steps of the road that a search takes, and its limits.

    Args:
        planned: plans by terms, without making anything of it.
        made: the program of the plan by terms.
        used: what a program takes.
        kernels: how many kernels a node has to choose from.
        flash: bytes that a program may take of it, or None.
        stack: bytes that a run may take of it, or None.
        rivals: goals whose plans, made without a limit, may fit where nothing was found.
        seeks_speed: such a plan is taken wherever it is faster.
        unlimited: those plans.
        built: the program of a plan, as it is.
        plan_of: the plan of a program.
        fits: whether a program keeps to the limits of RAM.
    """

    planned: Callable[[Terms], Plan]
    made: Callable[[Terms], Program]
    used: Callable[[Program], Use]
    kernels: Callable[[Node], frozenset[Kernel]]
    flash: int | None
    stack: int | None
    rivals: Sequence[Optimize]
    seeks_speed: bool
    unlimited: Callable[[Optimize], Plan]
    built: Callable[[Plan], Program]
    plan_of: Callable[[Program], Plan]
    fits: Callable[[Program], bool]

    def best(self) -> Program:
        """The program of the fastest plan that keeps to the limits.

        Where none does, it is one that takes little: whoever checks it says what it exceeds.
        What planning expects of overlaps and shared bodies is less than what placement and
        codegen find, so that a plan of another goal may be faster and keep to the limits, too.
        """
        found = self._searched()
        is_enough = self._keeps(found)
        if is_enough and not self.seeks_speed:
            return found
        plans = [self.unlimited(goal) for goal in self.rivals]
        if is_enough:
            plans = [plan for plan in plans if cost(plan) < cost(self.plan_of(found))]
        for plan in sorted(plans, key=cost):
            program = self.built(plan)
            if self._keeps(program):
                return program
        return found

    def _keeps(self, program: Program) -> bool:
        """Whether a program keeps to all limits."""
        if not self.fits(program):
            return False
        if self.flash is None and self.stack is None:
            return True
        use = self.used(program)
        deepest = max(use.stack.values(), default=0)
        return (self.flash is None or use.flash <= self.flash) and (
            self.stack is None or deepest <= self.stack
        )

    def _searched(self) -> Program:
        """What prices and refusals lead to."""
        terms = Terms()
        program = self.made(terms)
        while self.flash is not None or self.stack is not None:
            use = self.used(program)
            better = self._shallower(terms, use) or self._smaller(terms, use)
            if better is None:
                break
            terms = better
            program = self.made(terms)
        return program

    def _shallower(self, terms: Terms, use: Use) -> Terms | None:
        """Terms that refuse the kernels that go too deep; None if none does or can be refused."""
        deep = {
            (op.node, op.candidate.kernel)
            for op in use.plan.operators
            if self.stack is not None and use.stack.get(op.node, 0) > self.stack
        }
        taken = terms.refused | deep
        # A node keeps the last of its kernels, however deep.
        left = frozenset(
            (node, kernel)
            for node, kernel in deep
            if any((node, other) not in taken for other in self.kernels(node))
        )
        return replace(terms, refused=terms.refused | left) if left else None

    def _smaller(self, terms: Terms, use: Use) -> Terms | None:
        """Terms by which a plan takes less flash; None if it need not or can not.

        A plan counts the bytes of kernels one by one.  What they take together, shared arrays once
        and with the code around them, is as much more or less for the next plan, or nearly so.
        """
        if self.flash is None or use.flash <= self.flash or terms.byte_price >= ANY_SPEED:
            return None
        target = _bytes(use.plan) - (use.flash - self.flash)
        low, high = terms.byte_price, ANY_SPEED
        # Where kernels may take nothing at all, there is no price to look for.
        while target > 0 and high > low + 1 + low // _PRECISION:
            # Prices grow by factors: halfway between 1 and 10,000 is 100.
            middle = max(isqrt(max(low, 1) * high), low + 1)
            if _bytes(self.planned(replace(terms, byte_price=middle))) > target:
                low = middle
            else:
                high = middle
        return replace(terms, byte_price=high)


def cost(plan: Plan) -> int:
    """What all calls of a plan cost, in its measure."""
    return sum(
        work(
            op.node, op.candidate, plan.terms.measure,
            together=group.nest.together if group.nest and _by_rows(op) else 0,
        )
        for group in plan.groups
        for op in group.operators
    )  # fmt: skip


def _by_rows(op: PlannedOperator) -> bool:
    return op.candidate.takes_row_range or op.candidate.accumulates


def _bytes(plan: Plan) -> int:
    """Of all kernels, each for itself."""
    return sum(op.candidate.flash_bytes for op in plan.operators)
