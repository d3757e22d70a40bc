"""The lowest price of a byte of flash with which kernels keep to a number of bytes.

RAM is a limit that planning knows beforehand.  Bytes of kernels add up over a model,
so they get a price, in instructions: the higher it is, the fewer of them a plan takes, and the
lowest one that is high enough gives the fastest plan on the convex hull of both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import isqrt

from microtir.plan.ir import ANY_SPEED, Plan, PlanConstraints

_PRECISION = 32  # a price is good enough within so many parts of it


def cheapest_price(planned: Callable[[PlanConstraints], Plan], asked: PlanConstraints) -> Plan:
    """Return the plan with the lowest price above `asked.byte_price` that keeps `kernel_bytes`.

    Args:
        planned: gives the plan for a price.
        asked: without `kernel_bytes` the price is the one that it has.
    """
    target, free = asked.kernel_bytes, replace(asked, kernel_bytes=None)
    if target is None:
        return planned(free)
    low, high, best = asked.byte_price, ANY_SPEED, None
    # Where kernels may take nothing at all, there is no price to look for.
    while target > 0 and high > low + 1 + low // _PRECISION:
        # Prices grow by factors: halfway between 1 and 10,000 is 100.
        middle = max(isqrt(max(low, 1) * high), low + 1)
        plan = planned(replace(free, byte_price=middle))
        if plan.kernel_bytes > target:
            low = middle
        else:
            high, best = middle, plan
    return best or planned(replace(free, byte_price=high))
