"""Which kernel, which layout on each edge, which operators run together."""

from microtir.plan.nest_simulations import NestSimulations
from microtir.plan.planner import alternatives, plan

__all__ = ["NestSimulations", "alternatives", "plan"]
