"""Stage 5: which kernel, which layout on each edge, which operators run together."""

from microtir.plan.courses import Courses
from microtir.plan.planner import alternatives, plan

__all__ = ["Courses", "alternatives", "plan"]
