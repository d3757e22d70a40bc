"""Searches for the fastest plan whose program keeps to limits on flash and on stack.

RAM is a limit that planning knows beforehand.  What a program takes of flash and
stack is known once its functions are there, so these are searched for: a byte of flash gets a
price, in instructions, as low as the budget allows, and kernels that go too deep are refused.
What is left of the flash then is spent layer by layer (`plan.raising`).

How much code there is, is an estimate.  Where a compiler can be asked, it is: what it makes of the
program that was found, more or less than estimated, is expected of the others, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil, isqrt
from typing import Generic, Protocol, TypeVar

from microtir.config.enums import Optimize
from microtir.graph.ir import Node
from microtir.plan.ir import ANY_SPEED, Kernel, Plan, PlannedOperator, Terms
from microtir.plan.offers import work
from microtir.plan.raising import Raising

_PRECISION = 32  # a price is good enough within so many parts of it, and a measured ratio
_COMPILATIONS = 4  # programs that a compiler is asked about at most
_RAISES = 6  # programs that are made at most to spend what is left of the flash, per start
_CLOSE = 100  # such a part of the budget is left unspent
_SURELY = 4  # no compiler is asked where so many times the estimated code would fit

Program = TypeVar("Program")
"""What is made of a plan."""


@dataclass(frozen=True, slots=True)
class Use:
    """What a program takes, in bytes.

    `ram` is what it takes beyond the limits, less than 0 where there is room; `arrays` and `code`
    are of flash.  `stack` holds for each node the deepest chain of calls from the entry through
    its functions.
    """

    plan: Plan
    ram: int
    arrays: int
    code: int
    stack: Mapping[Node, int]


class Maker(Protocol[Program]):
    """The road from a plan to a program, as far as a search takes it."""

    def planned(self, terms: Terms) -> Plan:
        """The plan by terms within the limits of RAM, of which nothing is made."""

    def made(self, terms: Terms) -> Program:
        """The program of such a plan, whose workspace keeps to the limits if any does."""

    def unlimited(self, goal: Optimize) -> Plan:
        """The plan for a goal where nothing is limited."""

    def built(self, plan: Plan) -> Program:
        """The program of a plan, as it is."""

    def kernels(self, node: Node) -> frozenset[Kernel]:
        """The kernels that a node can have whatever its neighbours have."""

    def use(self, program: Program) -> Use:
        """What a program takes, its code by estimate; of what is not limited 0 or nothing."""

    def compiled(self, program: Program) -> int | None:
        """The code of a program in bytes, as a compiler makes it; None if there is none to ask."""


@dataclass(frozen=True, slots=True)
class Search(Generic[Program]):
    """A search for a program within limits.

    Args:
        maker: makes programs.
        flash: bytes that a program may take of it, or None.
        stack: bytes that a run may take of it, or None.
        rivals: goals whose plans, made without a limit, may fit where nothing was found.
        seeks_speed: such a plan is taken wherever it is faster.
    """

    maker: Maker[Program]
    flash: int | None
    stack: int | None
    rivals: Sequence[Optimize]
    seeks_speed: bool
    _known: dict[Terms | Plan, _Trial[Program]] = field(default_factory=dict)
    _plans: dict[Optimize, Plan] = field(default_factory=dict)

    def best(self) -> Program:
        """The program of the fastest plan that keeps to the limits.

        Where none does, it is the one that exceeds them by the fewest bytes.
        """
        scale = Fraction(1)
        found: list[_Trial[Program]] = []
        for left in reversed(range(_COMPILATIONS)):
            # Where nothing has fitted, the last try is the smallest program that there is.
            is_last = left == 0 and found and min(map(self._excess, found)) > 0
            trial = self._searched(scale, ANY_SPEED)[-1] if is_last else self._fastest(scale)
            code = self.maker.compiled(trial.program) if self._is_uncertain(trial.use) else None
            if code is None:
                found.append(trial)
                break
            found.append(_Trial(trial.program, replace(trial.use, code=code)))
            ratio = Fraction(code, trial.use.code)
            # Of what fits, only programs with less code than was expected may be faster.
            is_best = ratio >= scale or trial.use.plan.terms.byte_price == 0
            if is_best and self._excess(found[-1]) == 0:
                break
            # What exceeds the budget is excluded by its own ratio, and another program is found.
            if abs(ratio - scale) * _PRECISION < scale and self._excess(found[-1]) == 0:
                break
            scale = ratio
        return min(found, key=self._rank).program

    def _rank(self, trial: _Trial[Program]) -> tuple[int, int, int]:
        plan = trial.use.plan
        price = 0 if self.seeks_speed else plan.terms.byte_price
        return self._excess(trial), price, cost(plan)

    def _is_uncertain(self, use: Use) -> bool:
        """Whether it depends on the code, and on nothing else, that a program keeps to limits."""
        if self.flash is None or use.code <= 0:
            return False
        room = self.flash - use.arrays
        return self._others(use) == 0 and 0 <= room < _SURELY * use.code

    def _fastest(self, scale: Fraction) -> _Trial[Program]:
        """The best program by estimates, which are `scale` times as much as they say.

        What planning expects of overlaps and shared bodies is less than what placement and
        codegen find, so that a plan of another goal may be faster and keep to the limits, too.
        """
        tried = self._searched(scale)
        found, is_enough = tried[-1], self._excess(tried[-1], scale) == 0
        if is_enough:
            found = self._raised(found, scale)
        if is_enough and not self.seeks_speed:
            return found
        plans = [self._unlimited(goal) for goal in self.rivals]
        if is_enough:
            plans = [plan for plan in plans if cost(plan) < cost(found.use.plan)]
        for plan in sorted(plans, key=cost):
            tried.append(self._built(plan))
            if self._excess(tried[-1], scale) == 0:
                return tried[-1]
        return found if is_enough else min(tried, key=lambda trial: self._excess(trial, scale))

    def _others(self, use: Use) -> int:
        """Bytes of RAM and of stack that a program takes too many."""
        deepest = max(use.stack.values(), default=0)
        return max(use.ram, 0) + max(deepest - (self.stack or deepest), 0)

    def _excess(self, trial: _Trial[Program], scale: Fraction = Fraction(1)) -> int:
        """Bytes by which a program exceeds the limits, of all kinds together."""
        return self._others(trial.use) + max(self._flash_excess(trial.use, scale), 0)

    def _flash_excess(self, use: Use, scale: Fraction) -> int:
        return 0 if self.flash is None else use.arrays + ceil(use.code * scale) - self.flash

    def _searched(self, scale: Fraction, byte_price: int = 0) -> list[_Trial[Program]]:
        """What prices, from one on, and refusals lead to, one after another."""
        terms: Terms | None = Terms(byte_price=byte_price)
        tried = []
        while terms is not None:
            tried.append(self._made(terms))
            use = tried[-1].use
            terms = self._shallower(terms, use) or self._smaller(terms, use, scale)
        return tried

    def _raised(self, found: _Trial[Program], scale: Fraction) -> _Trial[Program]:
        """A program that fits with more of its layers fast, as long as flash is left.

        The smallest program of all is a place to start from, too: its layers share bodies.
        """
        price = found.use.plan.terms.byte_price
        if price == 0:
            return found
        least = replace(found.use.plan.terms, byte_price=ANY_SPEED)
        starts = [found] if price >= ANY_SPEED else [found, self._made(least)]
        raised = [self._raised_from(s, scale) for s in starts if self._excess(s, scale) == 0]
        return min(raised, key=lambda trial: cost(trial.use.plan))

    def _raised_from(self, found: _Trial[Program], scale: Fraction) -> _Trial[Program]:
        """What layers take is estimated, and the program has the last word.

        If several steps were too much, the best of them is tried alone, and if that was too much,
        one knows by how much.
        """
        known, is_one = Raising(), False
        for _ in range(_RAISES):
            plan, room = found.use.plan, -self._flash_excess(found.use, scale)
            steps = known.steps(plan, room)[: 1 if is_one else None]
            if not steps or room * _CLOSE < (self.flash or 0):
                break
            layers = frozenset[tuple[Node, Kernel]]().union(*(step.layers for step in steps))
            other = self._made(replace(plan.terms, raised=plan.terms.raised | layers))
            is_faster = cost(other.use.plan) < cost(plan)
            fits = is_faster and self._excess(other, scale) == 0
            if not fits and len(steps) == 1:
                known.learn(plan, steps[0], room + self._flash_excess(other.use, scale))
            found, is_one = (other if fits else found), not fits and len(steps) > 1
        return found

    def _made(self, terms: Terms) -> _Trial[Program]:
        if terms not in self._known:
            self._known[terms] = self._tried(self.maker.made(terms))
        return self._known[terms]

    def _built(self, plan: Plan) -> _Trial[Program]:
        if plan not in self._known:
            self._known[plan] = self._tried(self.maker.built(plan))
        return self._known[plan]

    def _tried(self, program: Program) -> _Trial[Program]:
        return _Trial(program, self.maker.use(program))

    def _unlimited(self, goal: Optimize) -> Plan:
        if goal not in self._plans:
            self._plans[goal] = self.maker.unlimited(goal)
        return self._plans[goal]

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
            if any((node, other) not in taken for other in self.maker.kernels(node))
        )
        return replace(terms, refused=terms.refused | left) if left else None

    def _smaller(self, terms: Terms, use: Use, scale: Fraction) -> Terms | None:
        """Terms by which a plan takes less flash; None if it need not or can not.

        A plan counts the bytes of kernels one by one.  What they take together, shared arrays once
        and with the code around them, is as much more or less for the next plan, or nearly so.
        """
        excess = self._flash_excess(use, scale)
        if excess <= 0 or terms.byte_price >= ANY_SPEED:
            return None
        target = _bytes(use.plan) - excess
        low, high = terms.byte_price, ANY_SPEED
        # Where kernels may take nothing at all, there is no price to look for.
        while target > 0 and high > low + 1 + low // _PRECISION:
            # Prices grow by factors: halfway between 1 and 10,000 is 100.
            middle = max(isqrt(max(low, 1) * high), low + 1)
            if _bytes(self.maker.planned(replace(terms, byte_price=middle))) > target:
                low = middle
            else:
                high = middle
        return replace(terms, byte_price=high)


@dataclass(frozen=True, slots=True)
class _Trial(Generic[Program]):
    """A program and what it takes."""

    program: Program
    use: Use


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
