"""Compares two plans, of one model or of two."""

from __future__ import annotations

from dataclasses import dataclass

from microtir import driver
from microtir.report.difference import difference
from microtir.report.difference_tables import ESTIMATED, config_table, figure_table, layer_table
from microtir.report.html import to_grid
from microtir.studio.events import Emit, progress
from microtir.studio.plan import Plan


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two plans."""

    before: Plan
    after: Plan

    def run(self, emit: Emit) -> None:
        """Tell figures, layers and options that differ."""
        plans = []
        for plan in (self.before, self.after):
            emit(progress(f"compiling {plan.title}"))
            plans.append(driver.build(plan.module(), best_effort=True).metadata)
        changes = difference(*plans)
        tables = {
            "figures": figure_table(changes),
            "layers": layer_table(changes),
            "options": config_table(changes),
        }
        emit({
            "event": "comparison",
            "before": self.before.title,
            "after": self.after.title,
            "note": ESTIMATED,
            "tables": {
                name: to_grid(table, "changes") for name, table in tables.items() if table.rows
            },
        })  # fmt: skip
