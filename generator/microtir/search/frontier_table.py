"""Words a frontier as a table, for the terminal and the studio."""

from __future__ import annotations

from microtir.search.pareto import Frontier


def frontier_columns(frontier: Frontier) -> tuple[str, ...]:
    """Return the heads; cycles are known by an emulator, or estimated by microtir."""
    are_exact = all(trial.cost.cycles_are_exact for trial in frontier.trials)
    cycles = "cycles" if are_exact else "est. cycles"
    return ("RAM", "instructions", cycles, "flash", "MACs twice", "frontier", "flags")


def frontier_right(frontier: Frontier) -> tuple[str, ...]:
    """Return the columns of numbers."""
    return frontier_columns(frontier)[:5]


def frontier_rows(frontier: Frontier) -> list[tuple[int | str | None, ...]]:
    """Return the figures of each trial and how to get it."""
    return [
        (
            trial.cost.ram, trial.cost.instructions, trial.cost.cycles, trial.cost.flash,
            trial.cost.macs_recomputed or None, "yes" if frontier.is_best(trial) else "",
            trial.flags,
        )
        for trial in frontier.trials
    ]  # fmt: skip
