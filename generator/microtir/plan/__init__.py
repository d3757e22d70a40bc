"""Stage 5: which kernel, which layout on each edge, which operators run together."""

from microtir.plan.planner import plan

__all__ = ["plan"]
