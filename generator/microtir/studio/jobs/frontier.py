"""Searches what less RAM costs, by the estimates of planning: no emulator is needed."""

from __future__ import annotations

from dataclasses import dataclass

from microtir.report.html import to_grid
from microtir.report.summary import TextTable
from microtir.search.chart import picture_of
from microtir.search.estimates import estimated_cost
from microtir.search.frontier_table import frontier_columns, frontier_right, frontier_rows
from microtir.search.pareto import Trial, pareto
from microtir.search.picture import to_svg
from microtir.studio.events import Emit, progress
from microtir.studio.plan import Plan

_POINTS = 4  # a page is waited for: `microtir pareto` takes as many as one likes


@dataclass(frozen=True, slots=True)
class FrontierSearch:
    """A plan whose goal and budget are varied."""

    plan: Plan

    def run(self, emit: Emit) -> None:
        """Tell the picture, the table, and what each of its rows stands for."""
        plan = self.plan
        emit(progress("reading the model"))
        module = plan.module()
        config = module.require_config("studio")

        def tell(text: str) -> None:
            emit(progress(text))

        frontier = pareto(module, config, estimated_cost, _POINTS, tell)
        columns = frontier_columns(frontier)
        rows = tuple(
            tuple("" if cell is None else f"{cell:,}" if isinstance(cell, int) else str(cell)
                  for cell in row)
            for row in frontier_rows(frontier)
        )  # fmt: skip
        right = frozenset(frontier_right(frontier))
        where = plan.board or plan.target
        title = f"{plan.model.label} for {where}, by estimates of planning"
        emit({
            "event": "frontier",
            "chart": to_svg(picture_of(frontier, title)),
            "table": to_grid(TextTable(columns, rows, right), "frontier"),
            "trials": [_trial(trial) for trial in frontier.trials],
        })  # fmt: skip


def _trial(trial: Trial) -> dict[str, object]:
    config = trial.config
    return {
        "optimize": config.optimize.value,
        "ram_budget": config.budget.ram,
        "is_on_page": not (config.pass_config.recompute or trial.limits_flash),
    }
