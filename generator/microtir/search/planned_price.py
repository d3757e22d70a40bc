"""Price graphs of integers by planning: what a search over widths compares."""

from __future__ import annotations

from microtir import driver
from microtir.config import CompilationConfig, Measure, Optimize
from microtir.graph.ir import Graph
from microtir.module.ir_module import IRModule
from microtir.quantise import Goal, Limits, Price
from microtir.quantise.bits.trials import PriceOf
from microtir.rewrite.requests.requested import completed

_GOALS = {Optimize.FLASH: Goal.FLASH, Optimize.RAM: Goal.RAM, Optimize.RAM_LEAST: Goal.RAM}


def planned_price(config: CompilationConfig) -> PriceOf:
    """Return the function that gives the price of the program that a configuration makes.

    Work and code are estimates. Of a program that exceeds a budget it is the price of the one that
    exceeds it least.
    """

    def price(graph: Graph) -> Price:
        module = IRModule(graph=graph).with_configuration(config)
        program = driver.lower(module, best_effort=True).require_program("search_widths")
        is_cycles = completed(config, graph).measure is Measure.CYCLES
        decisions = program.decisions.values()
        return Price(
            work=sum(one.cycles if is_cycles else one.instructions for one in decisions),
            flash=program.figures.flash.bytes,
            ram=program.placement.budgeted,
        )

    return price


def width_limits(config: CompilationConfig, max_loss: float) -> Limits:
    """Return the limits that the budgets and the goal of a configuration set."""
    budget = config.budget
    goal = _GOALS.get(config.optimize, Goal.WORK)
    return Limits(max_loss, budget.flash, budget.ram, goal)
