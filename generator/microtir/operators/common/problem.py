"""Describe what a rule finds wrong with a node."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

from microtir.graph.ir import Node, Tensor


class Problem(NamedTuple):
    """One broken rule; `tensor` is the one to blame, if there is one."""

    what: str
    legal: str | None = None
    tensor: Tensor | None = None


Rule: TypeAlias = Callable[[Node], Iterator[Problem]]
