"""Pictures a frontier of programs: instructions, or cycles, over RAM."""

from __future__ import annotations

from microtir.config import Measure
from microtir.search.pareto import Frontier, Trial
from microtir.search.picture import Picture, Spot


def picture_of(frontier: Frontier, title: str) -> Picture:
    """Return the picture of a frontier with at least one trial."""
    unit = "estimated cycles" if frontier.measure is Measure.CYCLES else "instructions"
    return Picture(
        title,
        tuple(_spot(frontier, trial) for trial in frontier.trials),
        "bytes of RAM: workspace, inputs, outputs, data",
        f"{unit} of one inference",
        f"filled: no other program beats it in RAM, {unit} and flash; the line leaves flash aside",
    )


def _spot(frontier: Frontier, trial: Trial) -> Spot:
    cost = trial.cost
    text = (
        f"{trial.flags}: {cost.ram:,} bytes of RAM, {cost.instructions:,} instructions, "
        f"{cost.cycles:,} cycles, {cost.flash:,} bytes of flash"
    )
    work = cost.work(frontier.measure)
    return Spot(cost.ram, work, _name(trial), text, frontier.is_best(trial))


def _name(trial: Trial) -> str:
    """Return the goal, or the budget or the percentage that is tried with it."""
    ram, recompute = trial.config.budget.ram, trial.config.pass_config.recompute
    if ram is not None:
        return f"budget {ram:,}"
    goal = trial.config.optimize.value
    return f"{goal}, recompute {recompute}" if recompute else goal
