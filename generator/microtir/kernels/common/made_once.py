"""Caches: one micro-kernel for equal arguments, and the answers of questions about a node.

Layers of equal shapes call equal kernels.  Where these are one, what is worked out about one of
them (that it keeps the rules, what it reads, its stack) holds for the others without a comparison.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Concatenate, ParamSpec, TypeVar, cast

from microtir.graph.ir import Node

P = ParamSpec("P")
Fact = TypeVar("Fact")

_KEPT = 512  # of each function: more kernels than a model has
_NODES = 4  # the weights of a model are not kept for longer


def made_once(make: Callable[P, Fact]) -> Callable[P, Fact]:
    """Return `make`, which gives the same kernel for the same arguments; these are hashable."""
    return cast("Callable[P, Fact]", lru_cache(maxsize=_KEPT)(make))


def of_node(ask: Callable[Concatenate[Node, P], Fact]) -> Callable[Concatenate[Node, P], Fact]:
    """Keep what `ask` says of a node, since one kernel after the other asks it.

    What it is given beside the node, such as the form of a kernel, is hashable.
    """
    return cast("Callable[Concatenate[Node, P], Fact]", lru_cache(maxsize=_NODES)(ask))
