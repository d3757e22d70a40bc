"""Linear integer forms and a Fourier-Motzkin decision procedure.

A form `c + sum a_i * x_i` stands for the constraint `c + sum a_i * x_i >= 0`.  Unknowns are
numbered; what they stand for is the caller's business (`tir.analysis.facts`).

Eliminating an unknown combines each of its lower bounds with each of its upper bounds (Fourier
1826, Motzkin 1936).  A derived constraint without unknowns that is false shows that the system has
no rational solution, hence no integer one.  Dividing by the greatest common divisor of the
coefficients and rounding the constant down keeps all integer solutions and drops rational ones,
which is what makes bounds of divisions provable.

Two constraints that make an equation are solved for an unknown instead (as the Omega test does:
Pugh 1991), which is exact over the integers: that is what knows that 2q + m = 3 makes m odd.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import gcd

_CONSTRAINT_LIMIT = 600  # more than any kernel needs; a product of bounds beyond it is given up


@dataclass(frozen=True, slots=True)
class Linear:
    """The form `constant + sum coefficient * unknown`; terms are sorted, none is zero."""

    terms: tuple[tuple[int, int], ...] = ()  # (unknown, coefficient)
    constant: int = 0

    @staticmethod
    def of(terms: Mapping[int, int], constant: int) -> Linear:
        """Make a form from a table of coefficients."""
        return Linear(tuple(sorted((x, a) for x, a in terms.items() if a)), constant)

    @staticmethod
    def unknown(number: int) -> Linear:
        """Return the form that is one unknown."""
        return Linear(((number, 1),), 0)

    @property
    def is_constant(self) -> bool:
        return not self.terms

    def __add__(self, other: Linear) -> Linear:
        if not other.terms:
            return Linear(self.terms, self.constant + other.constant)
        total = dict(self.terms)
        for unknown, coefficient in other.terms:
            total[unknown] = total.get(unknown, 0) + coefficient
        return Linear.of(total, self.constant + other.constant)

    def __sub__(self, other: Linear) -> Linear:
        return self + other.scaled(-1)

    def plus(self, constant: int) -> Linear:
        return Linear(self.terms, self.constant + constant)

    def scaled(self, factor: int) -> Linear:
        if factor == 0:
            return Linear()
        return Linear(tuple((x, a * factor) for x, a in self.terms), self.constant * factor)

    def tightened(self) -> Linear:
        """Return a form with the same integer solutions and coprime coefficients."""
        divisor = gcd(*(a for _, a in self.terms))
        if divisor <= 1:
            return self
        return Linear(tuple((x, a // divisor) for x, a in self.terms), self.constant // divisor)


class _System:
    """Constraints with distinct coefficients, each with its strongest constant."""

    def __init__(self) -> None:
        self.strongest: dict[tuple[tuple[int, int], ...], int] = {}
        self.is_false = False
        self.equation: Linear | None = None  # a form that is zero; its coefficients are coprime

    def add(self, form: Linear) -> None:
        form = form.tightened()
        if not form.terms:
            self.is_false = self.is_false or form.constant < 0
            return
        known = self.strongest.get(form.terms)
        if known is None or form.constant < known:
            self.strongest[form.terms] = form.constant
        opposite = tuple((x, -a) for x, a in form.terms)
        other = self.strongest.get(opposite)
        if other is not None and other + form.constant <= 0:
            self.is_false = self.is_false or other + form.constant < 0
            self.equation = form


def _system(forms: Iterable[Linear]) -> _System:
    system = _System()
    for form in forms:
        system.add(form)
    return system


def has_no_solution(constraints: Iterable[Linear]) -> bool | None:
    """Return whether no integers make all forms non-negative; False where that was not found.

    None if the elimination grew beyond its limit and was given up.
    """
    system = _system(constraints)
    while not system.is_false and system.strongest:
        if len(system.strongest) > _CONSTRAINT_LIMIT:
            return None
        if system.equation is not None:
            system = _solved(system, system.equation)
        else:
            system = _without(system, _cheapest_unknown(system))
    return system.is_false


def _solved(system: _System, equation: Linear) -> _System:
    """Return the system with an unknown of an equation replaced by what it equals."""
    forms = [Linear(terms, constant) for terms, constant in system.strongest.items()]
    while True:
        unknown, factor = min(equation.terms, key=lambda term: (abs(term[1]), term[0]))
        others = Linear(tuple(t for t in equation.terms if t[0] != unknown), equation.constant)
        if abs(factor) == 1:
            return _system(_replaced(form, unknown, others.scaled(-factor)) for form in forms)
        # Another unknown of the same name takes up what the factor divides, as in Euclid's
        # algorithm: all other coefficients of the equation become remainders.
        whole = tuple((x, -(a // factor)) for x, a in others.terms)
        value = Linear.unknown(unknown) + Linear.of(dict(whole), 0)
        forms = [_replaced(form, unknown, value) for form in forms]
        equation = _replaced(equation, unknown, value)


def _replaced(form: Linear, unknown: int, value: Linear) -> Linear:
    factor = next((a for x, a in form.terms if x == unknown), 0)
    if not factor:
        return form
    rest = Linear(tuple(t for t in form.terms if t[0] != unknown), form.constant)
    return rest + value.scaled(factor)


def _cheapest_unknown(system: _System) -> int:
    """Return the unknown whose elimination adds the fewest constraints."""
    lower: dict[int, int] = {}
    upper: dict[int, int] = {}
    for terms in system.strongest:
        for unknown, coefficient in terms:
            side = lower if coefficient > 0 else upper
            side[unknown] = side.get(unknown, 0) + 1

    def cost(unknown: int) -> tuple[int, int]:
        below, above = lower.get(unknown, 0), upper.get(unknown, 0)
        return below * above - below - above, unknown

    return min({**lower, **upper}, key=cost)


def _without(system: _System, unknown: int) -> _System:
    """Project a system: return all constraints that follow and do not name the unknown."""
    result = _System()
    lower: list[tuple[int, Linear]] = []
    upper: list[tuple[int, Linear]] = []
    for terms, constant in system.strongest.items():
        coefficient = next((a for x, a in terms if x == unknown), 0)
        form = Linear(terms, constant)
        if coefficient > 0:
            lower.append((coefficient, form))
        elif coefficient < 0:
            upper.append((-coefficient, form))
        else:
            result.add(form)
    for a, below in lower:
        for b, above in upper:
            divisor = gcd(a, b)
            result.add(below.scaled(b // divisor) + above.scaled(a // divisor))
            if result.is_false:
                return result
    return result
