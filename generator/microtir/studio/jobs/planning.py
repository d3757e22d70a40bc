"""Plans a model and tells it as the report shows it: figures, memory map, layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from microtir.artifact import Artifact, footprint
from microtir.boards import Board
from microtir.config import Budget, Optimize
from microtir.module.ir_module import IRModule
from microtir.report.board_limits import limits_of_board
from microtir.report.collect import describe
from microtir.report.data import Report, ReportedLimit
from microtir.report.html import Part, to_part
from microtir.search.estimates import estimated_cost
from microtir.search.pareto import budgeted_ram
from microtir.search.refusals import limit_error, with_suggestions
from microtir.studio.events import Emit, Event, progress
from microtir.studio.plan import Plan
from microtir.support.quantities import duration

_USUAL_CLOCK = 100_000_000
"""Hertz for a CPU that no board gives a clock, so that times can be compared."""


@dataclass(frozen=True, slots=True)
class Planning:
    """A plan to be shown.

    Args:
        plan: that is meant.
        least: the smallest workspace, if it is known; without it the range of budgets is told.
    """

    plan: Plan
    least: int | None

    def run(self, emit: Emit) -> None:
        """Tell the plan, then the range of budgets, then what would help one that is too small."""
        emit(progress("reading the model"))
        module = self.plan.module()
        emit(progress("planning"))
        board = self.plan.load_board()
        built: list[Artifact] = []

        def limits(artifact: Artifact, code: int) -> Sequence[ReportedLimit]:
            built.append(artifact)
            return limits_of_board(board)(artifact, code) if board else ()

        report = describe(module, limits_of=limits, least=self.least)
        emit({**self._shown(report), **headline(built[-1], board)})
        if self.least is None:
            emit(progress("looking for the range of budgets"))
            emit(_range(module, report))
        errors = (limit_error(limit, report) for limit in report.limits if limit.free < 0)
        error = next((error for error in errors if error is not None), None)
        if error is not None:
            emit(progress("trying what would help"))
            tried = with_suggestions(error, module, self.plan.board, None).tried
            emit({"event": "tried", "lines": list(tried)})

    def _shown(self, report: Report) -> Event:
        exceeded = [limit for limit in report.limits if limit.free < 0]
        return {
            "event": "plan",
            "parts": {part.value: to_part(report, part) for part in Part},
            "fits": report.fits,
            "has_limits": bool(report.limits),
            "exceeded": [
                f"{limit.option}: {limit.what} takes {limit.used:,} bytes, {-limit.free:,} more "
                f"than the limit of {limit.allowed:,}"
                for limit in exceeded
            ],
            "ram": report.ram.budgeted,
            "command": self.plan.command,
            "title": self.plan.title,
        }


def headline(artifact: Artifact, board: Board | None) -> dict[str, object]:
    """Return time and RAM of a run as the page shows them first, and what the RAM consists of."""
    stack = artifact.metadata.stack.bytes
    ram = footprint(artifact.metadata, stack=stack)
    cycles = estimated_cost(artifact).cycles
    clock = board.clock_hz if board is not None and board.clock_hz else _USUAL_CLOCK
    rate = f"{clock / 1e6:g} MHz"
    time = (f"about {duration(cycles / clock)}", f"a run at {rate}, without wait states")
    parts = [
        ("the workspace", ram.planned),
        ("inputs and outputs in the caller's memory", ram.io),
        ("the state", ram.state),
        ("the stack of one run", stack),
    ]
    listed = ", ".join(f"{count:,} bytes for {what}" for what, count in parts if count)
    return {
        "figures": [*([time] if cycles else []), (f"{ram.total:,}", "bytes of RAM in all")],
        "ram_note": f"RAM in all: {listed}. The stack is an upper bound for GCC and Clang: a task "
        "that runs the model needs it in addition to the stack of your own code and interrupts.",
    }


def _range(module: IRModule, report: Report) -> Event:
    """Return the bytes that the smallest and the fastest plan take of a budget of RAM."""
    config = module.require_config("studio").with_(budget=Budget(), optimize=Optimize.SPEED)
    most = max(budgeted_ram(module, config, None), report.ram.budgeted)
    least = report.least + report.ram.state
    return {"event": "range", "workspace": report.least, "least": least, "most": most}
