"""The smallest placement by a constraint solver: OR-Tools' CP-SAT, an optional dependency.

Offsets are integers in units of each buffer's alignment.  Two buffers that keep bytes at the same
moment need a distance one way or the other (`Lifetime.distance`), which is one BOOL; the end of
the highest buffer is what is minimised, between the known bound and what the heuristic found.  One
worker, a fixed seed and a limit in the solver's own units of work, not in seconds, give the same
answer on every machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType

from microtir.errors import ToolError
from microtir.memory.lifetimes import Lifetime
from microtir.memory.placement import Fitter, first_fit, workspace_size
from microtir.support.resources import install_extra
from microtir.tir.ir import Buffer

EFFORT = 4.0
"""Limit of the search in deterministic units, of which a second has one or two."""


def optimal_fit(lives: Sequence[Lifetime], alignment: int) -> tuple[Mapping[Buffer, int], int]:
    """Return offsets, and bytes that no placement is below, which the solver has proven.

    Where the heuristic reaches a bound that is known without it the solver is not asked.

    Raises:
        ToolError: OR-Tools is not installed.
    """
    cp_model = _cp_model()
    fitter = Fitter.of(lives, alignment)
    first = first_fit(lives, alignment)
    size = workspace_size(lives, first)
    if size <= fitter.bound:
        return first, fitter.bound
    model = cp_model.CpModel()
    needs = fitter.alignments
    units = [
        model.new_int_var(0, (size - life.size) // need, "")
        for life, need in zip(lives, needs, strict=True)
    ]
    offsets = [unit * need for unit, need in zip(units, needs, strict=True)]
    end = model.new_int_var(fitter.bound, size, "")
    for number, life in enumerate(lives):
        model.add(end >= offsets[number] + life.size)
        model.add_hint(units[number], first[life.buffer] // needs[number])
    for a, others in enumerate(fitter.above):
        for b, distance in others.items():
            if a < b:
                b_above = model.new_bool_var("")
                model.add(offsets[b] >= offsets[a] + distance).only_enforce_if(b_above)
                other = offsets[b] + fitter.above[b][a]
                model.add(offsets[a] >= other).only_enforce_if(b_above.negated())
    model.minimize(end)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 0
    solver.parameters.max_deterministic_time = EFFORT
    status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return first, fitter.bound
    places = {
        life.buffer: solver.value(unit) * need
        for life, unit, need in zip(lives, units, needs, strict=True)
    }
    return places, max(fitter.bound, round(solver.best_objective_bound))


def _cp_model() -> ModuleType:
    try:
        from ortools.sat.python import cp_model
    except ImportError:
        raise ToolError(
            "OR-Tools is not installed, and optimal placement needs it",
            where="memory.placement=optimal",
            legal="greedy or exact, which need no further package",
            fix=install_extra("solver"),
        ) from None
    return cp_model
