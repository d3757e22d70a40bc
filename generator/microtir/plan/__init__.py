"""Stage 5: which kernel, which layout on each edge, which operators run together."""

from microtir.plan.planner import cuts, plan

__all__ = ["cuts", "plan"]
