"""Choice of kernels, of layouts on edges, and of operators that run together."""

from microtir.plan.nest_simulations import NestSimulations
from microtir.plan.planner import alternatives, plan

__all__ = ["NestSimulations", "alternatives", "plan"]
