"""Chooses a kernel for every operator, a layout for every edge, and what streams together.

Where only speed counts, or size, every operator is a group of its own and every edge a whole
tensor.  Within a limit on memory consecutive operators stream together (`plan.grouping`); what
stays inside a group is a ring, and a kernel that has no room for its scratch makes way for the
next best.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from microtir.config.enums import Optimize
from microtir.errors import UnsupportedModelError
from microtir.graph.ir import Graph, Node
from microtir.plan.grouping import Choices, rings
from microtir.plan.ir import Candidate, Group, Kernel, Layout, Plan, Terms
from microtir.plan.offers import Offers
from microtir.plan.storage import Storage, Views

CandidatesOf = Callable[[Node], tuple[Candidate, ...]]

# A balanced plan pays 1 % more instructions for 3 % less memory, inputs and outputs included, and
# not for less.
_SPEED_OVER_SIZE = 3

# A balanced plan takes at most so much of the least memory and of the lowest price if it can; the
# price is an estimate, of which a part stays in reserve for 5 % in instructions.
_NEAR_LEAST, _NEAR_FASTEST = 1.3, 1.035
# Sizes between the least memory and the most that balanced plans are compared at.
_SIZES = 32


def plan(
    graph: Graph,
    candidates_of: CandidatesOf,
    goal: Optimize,
    *,
    workspace_io: bool = False,
    limit: int | None = None,
    terms: Terms | None = None,
) -> Plan:
    """Return the plan of a graph.

    Args:
        graph: legalised graph; every output is produced by a node.
        candidates_of: gives the legal kernels of a node, never empty.
        goal: what to rank candidates by.
        workspace_io: inputs and outputs share the workspace with everything else.
        limit: bytes of workspace that the plan should keep to; where none does, the one with the
            least is returned.
        terms: prices and refusals that budgets ask for.

    Raises:
        UnsupportedModelError: a node has no candidate.
    """
    terms = terms or Terms()
    views = Views(graph)
    offered = {node: _legal(node, candidates_of, views) for node in graph.nodes}
    offers = [_offers(node, legal, goal, terms) for node, legal in offered.items()]
    goal = terms.goal(goal)
    tensors = [t for t in graph.tensors() if not t.is_constant]
    roots = {t: views.root(t) for t in tensors}
    layouts = {t: Layout.whole(t.type) for t in tensors}
    least, size = 0, None
    if limit is None and goal in (Optimize.SPEED, Optimize.FLASH):
        groups = tuple(Group((offer.whole.operator,)) for offer in offers)
    else:
        ports = tuple(dict.fromkeys((*graph.inputs, *graph.outputs)))
        lives = Storage.of(graph, roots, () if workspace_io else ports)
        apart = 0 if workspace_io else sum(t.type.bytes for t in ports)
        choices = Choices(offers, lives)
        least = choices.least
        size = _size(choices, goal, limit, apart)
        groups = choices.cheapest(size)
        for tensor, height in rings(groups, lives).items():
            layouts[tensor] = replace(layouts[tensor], rows=height)
    return Plan(
        graph=graph,
        groups=groups,
        layouts=MappingProxyType(layouts),
        storage=MappingProxyType(roots),
        least=least,
        size=size,
        offered=MappingProxyType(offered),
        terms=terms,
    )


def _legal(node: Node, candidates_of: CandidatesOf, views: Views) -> tuple[Candidate, ...]:
    offered = candidates_of(node)
    return tuple(c for c in offered if c.kernel is not Kernel.VIEW or views.merge(node))


def _offers(node: Node, legal: Sequence[Candidate], goal: Optimize, terms: Terms) -> Offers:
    offers = Offers.of(node, legal, goal, terms)
    if offers is None:
        raise UnsupportedModelError(
            f"no kernel can compute this operator '{node.op.name}'", where=str(node.source)
        )
    return offers


def _size(choices: Choices, goal: Optimize, limit: int | None, apart: int) -> int:
    """The bytes within which the cheapest groups are what the goal wants, and a limit allows.

    Args:
        choices: of the graph.
        goal: `ram` takes the least memory, `balanced` what is worth its price.
        limit: bytes, or None.
        apart: bytes of inputs and outputs that lie outside the workspace.
    """
    least = choices.least
    most = choices.most if limit is None else min(limit, choices.most)
    if goal is Optimize.RAM or most <= least:
        return least
    if goal is Optimize.BALANCED:
        sizes = [least + (most - least) * n // _SIZES for n in range(_SIZES + 1)]
        most = _balanced({size: choices.price(size) for size in sizes}, apart)
    return most


def _balanced(prices: Mapping[int, int], apart: int) -> int:
    """The limit for which speed and memory are worth most together; `prices` by limit.

    Limits that are near the best of both come before all others, where there are some.
    """
    small, fast = (min(prices) + apart) * _NEAR_LEAST, min(prices.values()) * _NEAR_FASTEST
    near = [size for size, p in prices.items() if size + apart <= small and p <= fast]
    return min(near or prices, key=lambda size: (_worth(prices[size], size + apart), size))


def _worth(price: int, size: int) -> float:
    """What a balanced plan keeps small."""
    return _SPEED_OVER_SIZE * math.log(max(price, 1)) + math.log(max(size, 1))
