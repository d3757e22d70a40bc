"""Facts that hold at a point of a function, and proofs from them.

A proof assumes the opposite of the goal and looks for a contradiction: by interval arithmetic
first, then by Fourier-Motzkin elimination over the facts that share unknowns with the goal, going
through the alternatives of minima, Selects and disjunctions only where that is not enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from microtir.tir.analysis.affine import Linear, has_no_solution
from microtir.tir.analysis.bounds import Bounds
from microtir.tir.analysis.forms import Either, Fact, Forms
from microtir.tir.analysis.interval import Interval
from microtir.tir.ir import Expr, Var

_ELIMINATION_LIMIT = 64  # per proof: as many cases as six independent minima have


class Facts:
    """Knowledge at one point of a function; changed by entering and leaving scopes."""

    def __init__(self) -> None:
        self.bounds = Bounds()
        self._forms = Forms(self.bounds)
        self._assumed: list[Fact] = []
        self._loops: list[Fact] = []

    # --- scopes ---

    @contextmanager
    def loop(self, var: Var, start: Expr, stop: Expr) -> Iterator[None]:
        """Yield enter a loop, where start <= var < stop."""
        low, high = self.interval(start).low, self.interval(stop).high - 1
        # An empty range makes the body unreachable: any interval is right there.
        self.bounds.ranges[var] = Interval(low, max(low, high))
        limits = self._forms.define_loop(var, self._forms.of(start), self._forms.of(stop))
        self._loops.extend(limits)
        try:
            yield
        finally:
            del self._loops[-len(limits) :]

    @contextmanager
    def let(self, var: Var, value: Expr) -> Iterator[None]:
        """Yield enter a Let, where var equals value."""
        if not value.dtype.is_float:
            self.bounds.ranges[var] = self.bounds.of(value)
            self._forms.define_let(var, value)
        yield

    @contextmanager
    def assuming(self, condition: Expr, *, truth: bool = True) -> Iterator[None]:
        """Yield enter where a condition is known to hold, or known not to."""
        with self._forms.layer():
            facts = self._forms.facts(condition, truth=truth)
            before = dict(self.bounds.ranges)
            outside = len(self._assumed)
            self._assumed.extend(facts)
            self._narrow(facts)
            try:
                yield
            finally:
                del self._assumed[outside:]
                self.bounds.ranges.clear()
                self.bounds.ranges.update(before)

    def _narrow(self, facts: Iterable[Fact]) -> None:
        """Narrow the ranges of Vars by what single inequalities say about them."""
        for fact in facts:
            if isinstance(fact, Either):
                continue
            for unknown, coefficient in fact.terms:
                var = self._forms.variable(unknown)
                if var is None:
                    continue
                rest = Linear(tuple(t for t in fact.terms if t[0] != unknown), fact.constant)
                known, high = self.bounds.of(var), self._forms.interval(rest).high
                # The term of the Var is at least the negated highest value of the rest.
                if coefficient > 0:
                    low, high = max(known.low, -(high // coefficient)), known.high
                else:
                    low, high = known.low, min(known.high, high // -coefficient)
                if low <= high:
                    self.bounds.ranges[var] = Interval(low, high)

    # --- questions ---

    def interval(self, e: Expr) -> Interval:
        """Return the interval of an integer expression here, by its linear form where tighter."""
        direct = self.bounds.of(e)
        if direct.is_point or not e.dtype.is_int:
            return direct
        return direct.intersect(self._forms.interval(self._forms.of(e))) or direct

    def linear(self, e: Expr) -> Linear:
        """Return the linear form of an integer expression; equal forms are equal values here."""
        return self._forms.of(e)

    def prove(self, condition: Expr, *, thorough: bool = True) -> bool:
        """Return whether a condition certainly holds here; False also where no proof was found.

        Without `thorough` what the loops around say about the variables of their bounds is left
        out: enough for most rewrites, and several times faster where there is no proof.
        """
        if self.bounds.of(condition).low == 1:
            return True
        return self._refute(self._forms.facts(condition, truth=False), thorough=thorough)

    def _refute(self, denied: tuple[Fact, ...], *, thorough: bool) -> bool:
        """Return whether facts contradict what is known; an empty tuple says nothing."""
        if not denied:
            return False
        if any(isinstance(f, Linear) and self._forms.interval(f).high < 0 for f in denied):
            return True
        tried = 0
        # What is known of a loop that runs may say something about variables of its bounds, also
        # where no fact names both: `for k in [max(1 - i, 0), 1)` runs only if i >= 1.
        for known in ((), self._loops) if thorough else ((),):
            facts = self._relevant(denied, known)
            if len(facts) == tried or (len(denied) == 1 and _is_decided(facts)):
                continue
            tried = len(facts)
            if _Search().refute(facts):
                return True
        return False

    def _relevant(self, denied: tuple[Fact, ...], known: Sequence[Fact]) -> list[Fact]:
        """Return the given facts, and what is known of their unknowns."""
        # A condition that is false by itself names no unknown, and makes everything provable.
        false = [f for f in self._assumed if isinstance(f, Linear) and f.is_constant]
        chosen: dict[Fact, None] = dict.fromkeys((*denied, *false, *known))
        reached: set[int] = set()
        pending = list(self._assumed)
        queue: list[Fact] = [*denied, *known]
        while queue:
            for unknown in _unknowns(queue.pop()):
                if unknown in reached:
                    continue
                reached.add(unknown)
                for fact in self._forms.definitions[unknown]:
                    if fact not in chosen:
                        chosen[fact] = None
                        queue.append(fact)
            if not queue:
                for fact in [f for f in pending if not reached.isdisjoint(_unknowns(f))]:
                    pending.remove(fact)
                    chosen[fact] = None
                    queue.append(fact)
        return list(chosen)


def _is_decided(facts: Sequence[Fact]) -> bool:
    """Return whether intervals say all: a denied form, then limits of single unknowns.

    Limits that contradict each other (an empty loop) prove everything, and no interval shows that.
    """
    low: dict[int, int] = {}
    high: dict[int, int] = {}
    for number, fact in enumerate(facts):
        if isinstance(fact, Either) or (len(fact.terms) != 1 and number > 0):
            return False
        if len(fact.terms) != 1:
            continue
        unknown, coefficient = fact.terms[0]
        if coefficient > 0:
            limit = -(fact.constant // coefficient)
            low[unknown] = max(low.get(unknown, limit), limit)
        else:
            limit = fact.constant // -coefficient
            high[unknown] = min(high.get(unknown, limit), limit)
    return all(low[unknown] <= high[unknown] for unknown in low if unknown in high)


def _unknowns(fact: Fact) -> Iterator[int]:
    if isinstance(fact, Linear):
        for unknown, _ in fact.terms:
            yield unknown
    else:
        for alternative in fact.alternatives:
            for part in alternative:
                yield from _unknowns(part)


class _Search:
    """Goes through alternatives until every case is contradictory, or gives up."""

    def __init__(self) -> None:
        self._left = _ELIMINATION_LIMIT

    def refute(self, facts: Sequence[Fact]) -> bool:
        linear = [f for f in facts if isinstance(f, Linear)]
        open_cases = [f for f in facts if isinstance(f, Either)]
        return self._cases(linear, open_cases)

    def _cases(self, linear: list[Linear], open_cases: list[Either]) -> bool:
        self._left -= 1
        contradicts = has_no_solution(linear)
        if contradicts or contradicts is None or not open_cases or self._left <= 0:
            return bool(contradicts)
        first, rest = open_cases[0], open_cases[1:]
        for alternative in first.alternatives:
            more = [f for f in alternative if isinstance(f, Linear)]
            nested = [f for f in alternative if isinstance(f, Either)]
            if not self._cases([*linear, *more], [*nested, *rest]):
                return False
        return True
