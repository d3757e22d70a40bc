"""Ranks the candidates of each operator, and finds the best one that fits in so many bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from microtir.config.enums import Optimize
from microtir.graph.ir import Node
from microtir.plan import ir as plan
from microtir.plan.work import image_work

# What a byte of code may cost where neither speed nor size is all that counts: unrolling a layer
# that runs half a million times pays, for one of ten thousand steps it does not.  With the least
# memory a byte less takes more instructions, since the smallest kernels are slow ones.
PRICE_PER_BYTE = MappingProxyType({Optimize.BALANCED: 16, Optimize.RAM: 12, Optimize.RAM_LEAST: 12})

# What a byte of constants beyond those of the node may cost there.  A balanced plan takes one
# percent more instructions for three percent less memory, so three percent more of it have to save
# one: a third of what a network does for a byte of flash and RAM, which was about 100 instructions
# for resnet8.  What is more than three times the node's own is charged about five times as much:
# kernels with so much compute two rows a call, which raises every ring, and no price of theirs says
# so.  With one price for both, resnet8 had 20 % more RAM.
PRICE_PER_CONSTANT, PRICE_BEYOND, MOST_TIMES = 30, 160, 3

# What a byte of constants less than those of the node may cost there.  Two weights of four bits
# save one; unpacked by a plain loop they take ten instructions more, which is too much.
PRICE_PER_SAVED = 8

Price = Callable[[int, plan.Candidate], int]
"""Price of so many instructions, or cycles, in the kernels of a candidate, by the goal."""


def price_of(asked: plan.PlanConstraints, node: Node, goal: Optimize | None = None) -> Price:
    """Return what a kernel of a node is charged; planning keeps the sum over a plan small.

    Args:
        asked: of the plan.
        node: what is computed.
        goal: what kernels are ranked by, where that is not the goal of the plan.
    """
    charged = _charged(asked, node, asked.ranking if goal is None else goal)
    raised = {kernel for other, kernel in asked.raised if other is node}
    if not raised:
        return charged
    return lambda cost, c: cost if c.kernel in raised else charged(cost, c)


def price_of_code(asked: plan.PlanConstraints, goal: Optimize) -> int:
    """Return what a goal charges for a byte of code, less in a network too small to bear that."""
    if goal is asked.goal and asked.code_price is not None:
        return asked.code_price
    return PRICE_PER_BYTE[goal]


def _charged(asked: plan.PlanConstraints, node: Node, goal: Optimize) -> Price:
    byte_price = asked.byte_price
    constants = constant_bytes(node)
    match goal:
        case Optimize.FLASH:
            return lambda cost, c: cost + plan.ANY_SPEED * c.flash_bytes
        case Optimize.BALANCED | Optimize.RAM | Optimize.RAM_LEAST:
            per_code = price_of_code(asked, goal)
            return lambda cost, c: (
                cost + _growth(c, constants, per_code) + byte_price * c.flash_bytes
            )
        case Optimize.SPEED:
            return lambda cost, c: cost + byte_price * c.flash_bytes


def constant_bytes(node: Node) -> int:
    """Return the bytes of the constants that a node has itself."""
    return sum(t.type.bytes for t in node.inputs if t.is_constant)


def _growth(candidate: plan.Candidate, constants: int, per_code: int) -> int:
    """Return what is charged for code and constants beyond the node's own constants.

    Code may stand for constants, and constants may be more than the node's: transformed weights.
    What is saved of both is less than nothing.
    """
    more = candidate.weight_bytes - constants
    left = candidate.code_bytes + min(more, 0)
    code, saved = max(left, 0), max(-left, 0)
    beyond = max(candidate.weight_bytes - MOST_TIMES * constants, 0)
    weights = PRICE_PER_CONSTANT * (max(more, 0) - beyond) + PRICE_BEYOND * beyond
    return per_code * code + weights - PRICE_PER_SAVED * saved


@dataclass(frozen=True, slots=True, eq=False)
class RankedCandidates:
    """Candidates for the same calls of one node, best first, with the price of each.

    `operator` is that with the best of them; all of them run the same calls.
    """

    node: Node
    candidates: tuple[plan.Candidate, ...]
    prices: tuple[int, ...]
    operator: plan.PlannedOperator = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "operator", plan.PlannedOperator(self.node, self.candidates[0]))

    @property
    def least(self) -> int:
        """Return the bytes of scratch that it cannot do without."""
        return min(c.scratch_bytes for c in self.candidates)

    def within(self, scratch: int) -> plan.Candidate:
        """Return the best candidate with at most so many bytes of scratch, `least` or more."""
        return next(c for c in self.candidates if c.scratch_bytes <= scratch)


@dataclass(frozen=True, slots=True)
class RankedKernels:
    """The candidates of a node, ranked: for one call, for a step of a nest, and for the end of one.

    `whole` is never empty.  The candidates of `rows` ask for the same rows of the inputs, as do
    those of `accumulated`, so that a nest does not depend on which of them is taken.  `pairs` and
    `accumulated_pairs` are the same with the price of two rows a call, `alone` those of one and
    of two rows where no other operator runs with it.
    """

    whole: RankedCandidates
    rows: RankedCandidates | None
    accumulated: RankedCandidates | None
    pairs: RankedCandidates | None
    accumulated_pairs: RankedCandidates | None
    alone: tuple[RankedCandidates | None, RankedCandidates | None]

    def steps(self, rows_per_call: int) -> tuple[RankedCandidates | None, RankedCandidates | None]:
        """Return the offer as a step of a nest and as its end, with so many rows a call."""
        if rows_per_call == 1:
            return self.rows, self.accumulated
        return self.pairs, self.accumulated_pairs

    @staticmethod
    def of(
        node: Node,
        candidates: Sequence[plan.Candidate],
        asked: plan.PlanConstraints,
        *,
        streams: bool = True,
    ) -> RankedKernels | None:
        """Return the candidates of a node, sorted; None if none of them computes an output.

        Args:
            node: the operator.
            candidates: of it.
            asked: of the plan.
            streams: it may run row by row, other operators between its rows.
        """
        price = price_of(asked, node)
        candidates = [c for c in candidates if (node, c.kernel) not in asked.refused]
        whole = [c for c in candidates if not c.accumulates]
        rows = [c for c in whole if c.takes_row_range and streams]
        rows = [c for c in rows if c.windows == rows[0].windows]
        accumulated = [c for c in candidates if c.accumulates and streams]
        if not whole:
            return None

        def of(
            legal: Sequence[plan.Candidate], per_call: int, calls: plan.Calls
        ) -> RankedCandidates | None:
            return _ranked_candidates(node, legal, asked, price, per_call, calls) if legal else None

        return RankedKernels(
            whole=_ranked_candidates(node, whole, asked, price, 0, _ALONE[0]),
            rows=of(rows, 1, plan.IN_ONE_CALL),
            accumulated=of(accumulated, 1, plan.IN_ONE_CALL),
            pairs=of(rows, 2, plan.IN_ONE_CALL),
            accumulated_pairs=of(accumulated, 2, plan.IN_ONE_CALL),
            alone=(of(rows, 1, _ALONE[1]), of(rows, 2, _ALONE[2])),
        )


_ALONE = tuple(plan.Calls(rows, alone=True) for rows in range(3))


def _ranked_candidates(
    node: Node,
    candidates: Sequence[plan.Candidate],
    asked: plan.PlanConstraints,
    price: Price,
    rows_per_call: int,
    calls: plan.Calls,
) -> RankedCandidates:
    """Return the candidates that are worth their scratch, best first.

    Args:
        node: what they compute.
        candidates: not empty.
        asked: of the plan.
        price: what is charged for work.
        rows_per_call: rows of a call that they are priced for, 0 for all of them.
        calls: what they are taken for.
    """
    priced = []
    for number, c in enumerate(candidates):
        scratch = c.scratch_for(calls)
        work = image_work(node, c, asked.measure, rows_per_call=rows_per_call, alone=calls.alone)
        priced.append((price(work, c), scratch, c.weight_bytes, number))
    # What takes no less scratch than a better one is never chosen.
    useful: list[plan.Candidate] = []
    prices: list[int] = []
    least = 1 << 62
    for charged, scratch, _, number in sorted(priced):
        if scratch < least:
            least = scratch
            useful.append(candidates[number].called(calls))
            prices.append(charged)
    return RankedCandidates(node, tuple(useful), tuple(prices))


NO_PRICE = 1 << 60

Bytes = npt.NDArray[np.int64]
"""A number of bytes for each of some operators or sets of them, or what they are charged."""

_NONE: Bytes = np.zeros(0, np.int64)


class Prices:
    """The bytes and prices of several operators together, for many such sets at once.

    `least` holds for each set the bytes that it cannot do without, `most` those with which every
    operator has its best candidate.

    Args:
        sets: rankings, and for each the bytes that everything but its scratch takes.
    """

    def __init__(self, sets: Sequence[tuple[Sequence[RankedCandidates], Bytes]]) -> None:
        every = tuple(chain.from_iterable(choices for choices, _ in sets))
        ranked = tuple(dict.fromkeys(every))
        numbers = {ranking: number for number, ranking in enumerate(ranked)}
        width = max((len(ranking.candidates) for ranking in ranked), default=0) + 1
        # Behind the candidates of each stands what has room anywhere and is charged too much.
        self._scratch = np.full((len(ranked), width), np.iinfo(np.int64).min)
        self._charged = np.full((len(ranked), width), NO_PRICE)
        for row, ranking in enumerate(ranked):
            for column, (c, price) in enumerate(
                zip(ranking.candidates, ranking.prices, strict=True)
            ):
                self._scratch[row, column], self._charged[row, column] = c.scratch_bytes, price
        self._charged = np.minimum(self._charged, NO_PRICE)
        self._ranked_kernels = np.fromiter(map(numbers.__getitem__, every), np.int64)
        self._taken = np.concatenate([_NONE, *(taken for _, taken in sets)])
        self._begins = np.cumsum([0, *(len(choices) for choices, _ in sets)])[:-1]
        self.least = self._fullest([ranking.least for ranking in ranked])
        self.most = self._fullest([ranking.candidates[0].scratch_bytes for ranking in ranked])

    def _fullest(self, scratch: Sequence[int]) -> Bytes:
        """Return the bytes of each set at its fullest, with so much scratch for each ranking."""
        if not scratch:
            return _NONE
        needed = self._taken + np.array(scratch, np.int64)[self._ranked_kernels]
        fullest: Bytes = np.maximum.reduceat(needed, self._begins)
        return fullest

    def within(self, limit: int) -> Bytes:
        """Return the price of each set; NO_PRICE where one of its rankings has no candidate."""
        if not len(self._begins):
            return _NONE
        room = limit - self._taken
        first = np.argmax(self._scratch[self._ranked_kernels] <= room[:, np.newaxis], axis=1)
        charged = self._charged[self._ranked_kernels, first]
        # Sums of several that are too dear would not fit into 64 bits.
        dear = np.logical_or.reduceat(charged >= NO_PRICE, self._begins)
        sums = np.add.reduceat(np.where(charged >= NO_PRICE, 0, charged), self._begins)
        return np.where(dear, NO_PRICE, sums)
