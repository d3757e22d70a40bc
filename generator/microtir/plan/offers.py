"""What each operator may be computed by, and which of that is best in so many bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from microtir.config.enums import Optimize
from microtir.graph.ir import Node
from microtir.plan.ir import Candidate, Kernel, PlannedOperator

# What a byte of code may cost where neither speed nor size is all that counts: unrolling a layer
# that runs half a million times pays, for one of ten thousand steps it does not.
_INSTRUCTIONS_PER_BYTE = 16

# Instructions of a call of a layer function: its arguments, registers saved, loops set up.
_CALL = 40

# More than all instructions of a model: where size is the goal, speed only breaks ties.
_ANY_SPEED = 1 << 48

Price = Callable[[int, Candidate], int]
"""Of so many instructions in the kernels of a candidate, by the goal."""


def price_of(goal: Optimize) -> Price:
    """What a goal charges for a kernel; the sum over a plan is what planning keeps small."""
    match goal:
        case Optimize.FLASH:
            return lambda cost, c: cost + _ANY_SPEED * (c.weight_bytes + c.code_bytes)
        case Optimize.BALANCED:
            return lambda cost, c: cost + _INSTRUCTIONS_PER_BYTE * c.code_bytes
        case Optimize.SPEED | Optimize.RAM:
            return lambda cost, _c: cost


@dataclass(frozen=True, slots=True)
class Offer:
    """Candidates for the same calls of one node, best first, with the price of each."""

    node: Node
    candidates: tuple[Candidate, ...]
    prices: tuple[int, ...]

    @property
    def operator(self) -> PlannedOperator:
        """The operator with the best candidate; all of them run the same calls."""
        return PlannedOperator(self.node, self.candidates[0])

    @property
    def least(self) -> int:
        """Bytes of scratch that it cannot do without."""
        return min(c.scratch_bytes for c in self.candidates)

    def within(self, scratch: int) -> int | None:
        """The best candidate with at most so many bytes of scratch, by number."""
        fits = (n for n, c in enumerate(self.candidates) if c.scratch_bytes <= scratch)
        return next(fits, None)


@dataclass(frozen=True, slots=True)
class Offers:
    """How a node may run: in one call, as a step of a nest, or as the end of one.

    `whole` is never empty.  The candidates of `rows` ask for the same rows of the inputs, as do
    those of `accumulated`, so that a nest does not depend on which of them is taken.
    """

    whole: Offer
    rows: Offer | None
    accumulated: Offer | None

    @staticmethod
    def of(node: Node, candidates: Sequence[Candidate], goal: Optimize) -> Offers | None:
        """The candidates of a node, sorted; None if none of them computes an output."""
        price = price_of(goal)
        whole = [c for c in candidates if not c.accumulates]
        rows = [c for c in whole if c.takes_row_range]
        rows = [c for c in rows if c.windows == rows[0].windows]
        accumulated = [c for c in candidates if c.accumulates]
        if not whole:
            return None

        def calls(c: Candidate) -> int:
            steps = node.inputs[0].type.rows if c.accumulates else node.outputs[0].type.rows
            return max(c.row_cost, c.cost) + _CALL * steps

        def once(c: Candidate) -> int:
            return c.cost + (0 if c.kernel is Kernel.VIEW else _CALL)

        return Offers(
            _offer(node, whole, lambda c: price(once(c), c)),
            _offer(node, rows, lambda c: price(calls(c), c)) if rows else None,
            _offer(node, accumulated, lambda c: price(calls(c), c)) if accumulated else None,
        )


def _offer(node: Node, candidates: Sequence[Candidate], price: Callable[[Candidate], int]) -> Offer:
    ranked = sorted(candidates, key=lambda c: (price(c), c.scratch_bytes, c.weight_bytes))
    # What takes no less scratch than a better one is never chosen.
    useful: list[Candidate] = []
    for c in ranked:
        if all(c.scratch_bytes < better.scratch_bytes for better in useful):
            useful.append(c)
    return Offer(node, tuple(useful), tuple(price(c) for c in useful))
