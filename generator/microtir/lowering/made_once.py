"""Micro-kernels that are made once: those of equal arguments are the same object.

Layers of equal shapes call equal kernels.  Where these are one, what is worked out about one of
them (that it keeps the rules, what it reads, its stack) holds for the others without a comparison.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import ParamSpec, cast

from microtir.schedule import KernelDescription

P = ParamSpec("P")

_KEPT = 512  # of each function: more kernels than a model has


def made_once(make: Callable[P, KernelDescription]) -> Callable[P, KernelDescription]:
    """`make`, which gives the same kernel for the same arguments; these are hashable."""
    return cast("Callable[P, KernelDescription]", lru_cache(maxsize=_KEPT)(make))
