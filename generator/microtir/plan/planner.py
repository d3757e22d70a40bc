"""Chooses a kernel for every operator, a layout for every edge, and what streams together.

Where only speed counts, or size, every operator is a group of its own and every edge a whole
tensor.  Within a limit on memory consecutive operators stream together (`plan.grouping`); what
stays inside a group is a ring, and a kernel that has no room for its scratch makes way for the
next best.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from microtir.config.enums import Optimize
from microtir.errors import UnsupportedModelError
from microtir.graph.ir import Graph, Node, Tensor
from microtir.graph.rewriting import GraphPass
from microtir.operators.control.definition import PutItem, has_control
from microtir.plan.bands import cuts_worth_planning
from microtir.plan.edges import Edge, Kinds, agreeing, edges_of, layouts_of, possible, uniform
from microtir.plan.grouping import Choices, rings
from microtir.plan.ir import Candidate, Group, Layout, LayoutKind, Plan, PlanConstraints
from microtir.plan.nest_simulations import NestSimulations
from microtir.plan.orders import is_chain, orders_worth_planning, whole_peak
from microtir.plan.prices import cheapest_price
from microtir.plan.ranking import NO_PRICE, RankedKernels
from microtir.plan.states import StateWriters
from microtir.plan.storage import Storage, Views
from microtir.plan.work import bytes_apart
from microtir.rewrite.facts.macs import macs
from microtir.rewrite.variants import CutColumns, Reorder

CandidatesOf = Callable[[Node], tuple[Candidate, ...]]

# How much speed counts beside memory, inputs, outputs and states included: a balanced plan pays 1 %
# more instructions for 3 % less memory and not for less, one of little memory up to 20 % for 1 %.
_WORTH = MappingProxyType({Optimize.BALANCED: (3, 1), Optimize.RAM: (1, 20)})

# A balanced plan takes at most so much of the least memory, or at least so much, and of the lowest
# price if it can; the price is an estimate, of which a part stays in reserve for 5 % in
# instructions.
_NEAR_LEAST, _NEAR_FASTEST = (1.3, 1.6), 1.036
# Sizes between the least memory and the most that balanced plans are compared at.
_SIZES = 32
# Where memory counts for much, they begin with so many sizes of 1 % of the least.
_SIZES_OF_RAM = 32


def plan(
    graph: Graph,
    candidates_of: CandidatesOf,
    constraints: PlanConstraints,
    *,
    workspace_io: bool = False,
    others: Sequence[Graph] = (),
    simulations: NestSimulations | None = None,
) -> Plan:
    """Return the plan of a graph.

    Args:
        graph: legalised graph; every output is produced by a node.
        candidates_of: gives the legal kernels of a node, never empty.
        constraints: the goal, prices and limits.
        workspace_io: inputs and outputs share the workspace with everything else.
        others: graphs that do the same in less memory, some of them with more work; the plan may
            be that of one of them.
        simulations: what other plans have found out about nests, and this one adds to.

    Raises:
        UnsupportedModelError: a node has no candidate.
    """
    simulations = simulations or NestSimulations()

    def planned(asked: PlanConstraints) -> Plan:
        return _plan(graph, candidates_of, asked, workspace_io, others, simulations)

    return cheapest_price(planned, constraints)


def _plan(
    graph: Graph,
    candidates_of: CandidatesOf,
    constraints: PlanConstraints,
    workspace_io: bool,
    others: Sequence[Graph],
    simulations: NestSimulations,
) -> Plan:
    """Return `plan` for a price that is known."""
    limit, ranking = constraints.ram, constraints.ranking
    orders = [graph, *(g for g in others if set(g.nodes) == set(graph.nodes))]
    if limit is None and ranking in (Optimize.SPEED, Optimize.FLASH):
        tasks = [_Task.of(g, candidates_of, constraints) for g in orders]
        tasks = [task.of_kinds(task.cheapest_kinds()) for task in tasks]
        peaks = [task.whole_peak(workspace_io=workspace_io) for task in tasks]
        task = tasks[peaks.index(min(peaks))]
        groups = tuple(Group((kernels.whole.operator,)) for kernels in task.ranked)
        return replace(task.plan(groups, {}), bytes=min(peaks))
    tasks = [_Task.of(g, candidates_of, constraints) for g in (graph, *others)]
    for task in tasks[: 1 + len(others)]:
        if task.graph in orders:
            tasks += [task.of_kinds(k) for k in uniform(task.edges) if task.can_be(k)]
    lives = [task.storage(workspace_io=workspace_io) for task in tasks]
    tasks_done = [
        Choices(t.ranked, storage, simulations) for t, storage in zip(tasks, lives, strict=True)
    ]
    separate_bytes = bytes_apart(graph, workspace_io=workspace_io)
    either = _Either(tasks_done)
    size = _size(either, ranking, limit, separate_bytes)
    number = either.cheapest(size)
    groups, taken = tasks_done[number].cheapest(size)
    plan = tasks[number].plan(groups, rings(groups, lives[number]))
    return replace(plan, bytes=taken, least=either.least, size=size)


def alternatives(
    graph: Graph,
    candidates_of: CandidatesOf,
    rewritten: Callable[[Graph, GraphPass], Graph],
    goal: Optimize,
    *,
    reorder: bool,
    percent: int,
    workspace_io: bool = False,
    simulations: NestSimulations | None = None,
) -> tuple[Graph, ...]:
    """Return the graph, and behind it others that do the same and promise less memory.

    Args:
        graph: as for `plan`, as are `candidates_of` and `workspace_io`.
        candidates_of: gives the legal kernels of a node.
        rewritten: runs a pass of `rewrite.variants`, one after the other for each of the graphs.
        goal: what to rank candidates by.
        reorder: operators may run in another order.
        percent: of the graph's multiply-accumulates, so many may be done twice.
        workspace_io: inputs and outputs share the workspace with everything else.
        simulations: what is known of nests, and what becomes known here.

    Raises:
        UnsupportedModelError: a node has no candidate.
    """
    is_straight = not has_control(graph.nodes)
    orders: tuple[Reorder, ...] = ()
    if reorder and is_straight and not is_chain(graph):
        task = _Task.of(graph, candidates_of, PlanConstraints(goal))
        storage = task.storage(workspace_io=workspace_io)
        orders = orders_worth_planning(graph, task.ranked, storage)
    ordered = [rewritten(graph, order) for order in (Reorder(), *orders)]
    graphs = [rewritten(order, CutColumns()) for order in ordered]
    simulations = simulations or NestSimulations()
    if percent and is_straight:
        again = sum(map(macs, graph.nodes)) * percent // 100
        for order in ordered:
            task = _Task.of(order, candidates_of, PlanConstraints(goal))
            storage = task.storage(workspace_io=workspace_io)
            choices = Choices(task.ranked, storage, simulations)
            ways = cuts_worth_planning(choices, task.ranked, storage, again, simulations)
            graphs += [rewritten(order, CutColumns(cuts)) for cuts in ways]
    return tuple(graphs)


@dataclass(frozen=True, slots=True)
class _Task:
    """A graph that is to be planned: what there is to choose from, and what shares memory.

    `kinds` are the layouts of its edges, with which `ranked` agree.
    """

    graph: Graph
    constraints: PlanConstraints
    offered: Mapping[Node, tuple[Candidate, ...]]
    roots: Mapping[Tensor, Tensor]
    offsets: Mapping[Tensor, int]
    writers: StateWriters
    edges: Sequence[Edge]
    kinds: Kinds
    ranked: Sequence[RankedKernels]

    @staticmethod
    def of(graph: Graph, candidates_of: CandidatesOf, constraints: PlanConstraints) -> _Task:
        """Return that all edges are NHWC."""
        views = Views(graph)
        offered = {node: _legal(node, candidates_of, views) for node in graph.nodes}
        roots = {t: views.root(t) for t in graph.tensors() if not t.is_constant}
        offsets = {t: at for t in roots if (at := views.offset(t))}
        writers = StateWriters.of(graph, roots)
        offered = {node: writers.legal(node, legal) for node, legal in offered.items()}
        edges = edges_of(graph, offered)
        offered = {node: possible(node, legal, edges) for node, legal in offered.items()}
        task = _Task(graph, constraints, offered, roots, offsets, writers, edges, {}, ())
        return task.of_kinds({})

    def of_kinds(self, kinds: Kinds) -> _Task:
        """Return the same with other layouts."""
        if self.ranked and kinds == self.kinds:
            return self
        ranked = [
            _ranked_kernels(
                node, agreeing(node, legal, kinds), self.constraints, self.writers.streams(node)
            )
            for node, legal in self.offered.items()
        ]
        return replace(self, kinds=kinds, ranked=ranked)

    def can_be(self, kinds: Kinds) -> bool:
        """Return whether each node has a kernel for these layouts that is not refused."""
        return all(
            any(
                not c.accumulates and (node, c.kernel) not in self.constraints.refused
                for c in agreeing(node, legal, kinds)
            )
            for node, legal in self.offered.items()
        )

    def cheapest_kinds(self) -> Kinds:
        """Return layouts for which producer and reader of each edge are charged least, in turns."""
        kinds: dict[Tensor, LayoutKind] = {}

        def charged(edge: Edge, kind: LayoutKind) -> int:
            tried = {**kinds, edge.tensor: kind}
            total = 0
            for node in (edge.producer, edge.reader):
                able = agreeing(node, self.offered[node], tried)
                ranked = RankedKernels.of(node, able, self.constraints)
                total += NO_PRICE if ranked is None else ranked.whole.prices[0]
            return total

        for edge in self.edges:
            prices = {kind: charged(edge, kind) for kind in (LayoutKind.NHWC, *edge.planes)}
            kinds[edge.tensor] = min(prices, key=prices.__getitem__)
        return kinds

    def storage(self, *, workspace_io: bool) -> Storage:
        graph = self.graph
        states = [t for state in graph.states for t in (state.before, state.after)]
        caller = states if workspace_io else (*graph.inputs, *graph.outputs)
        return Storage.of(self.graph, self.roots, caller, self.layouts())

    def whole_peak(self, *, workspace_io: bool) -> int:
        """Return the most bytes that live at once where each operator is one call."""
        storage = self.storage(workspace_io=workspace_io)
        return whole_peak(self.graph, self.ranked, storage)

    def layouts(self) -> dict[Tensor, Layout]:
        return layouts_of(tuple(self.roots), self.edges, self.kinds)

    def plan(self, groups: tuple[Group, ...], heights: Mapping[Tensor, int]) -> Plan:
        """Return the plan of these groups, with rings of these heights."""
        layouts = {
            t: replace(layout, rows=heights.get(t, layout.rows))
            for t, layout in self.layouts().items()
        }
        return Plan(
            graph=self.graph,
            groups=groups,
            layouts=MappingProxyType(layouts),
            storage=MappingProxyType(self.roots),
            offsets=MappingProxyType(self.offsets),
            offered=MappingProxyType(self.offered),
            constraints=self.constraints,
        )


class _Either:
    """The choices of several graphs that do the same: each limit takes the one that is best."""

    def __init__(self, choices: Sequence[Choices]) -> None:
        self._choices = choices
        self.least = min(c.least for c in choices)
        self.most = max(c.most for c in choices)

    def sizes(self, most: int) -> tuple[int, ...]:
        """Return limits up to `most` to compare plans at: evenly from the least of each graph on.

        What the first graph, which is as the model has it, needs to be fastest bounds them, too.
        """
        most = min(most, self._choices[0].most)
        ranges = [(c.least, most - c.least) for c in self._choices if c.least <= most]
        return tuple(
            sorted({low + span * n // _SIZES for low, span in ranges for n in range(_SIZES + 1)})
        )

    def small_sizes(self, most: int) -> tuple[int, ...]:
        """Return `sizes`, and others that are near the least."""
        near = (self.least + self.least * n // 100 for n in range(_SIZES_OF_RAM))
        return tuple(sorted({*self.sizes(most), *(size for size in near if size <= most)}))

    def cheapest(self, limit: int) -> int:
        """Return the number of the graph with the least price within a limit in bytes."""
        able = [n for n, c in enumerate(self._choices) if c.least <= limit]
        return min(able, key=lambda n: self._choices[n].price(limit))

    def price(self, limit: int) -> int:
        """Return what the cheapest plan within a limit in bytes, `least` or more, is charged."""
        return self._choices[self.cheapest(limit)].price(limit)


def _legal(node: Node, candidates_of: CandidatesOf, views: Views) -> tuple[Candidate, ...]:
    offered = candidates_of(node)
    if isinstance(node.op, PutItem):
        views.share((node.inputs[0], node.output))
    return tuple(c for c in offered if not c.is_view or views.merge(node))


def _ranked_kernels(
    node: Node, legal: Sequence[Candidate], constraints: PlanConstraints, streams: bool
) -> RankedKernels:
    ranked = RankedKernels.of(node, legal, constraints, streams=streams)
    if ranked is None:
        raise UnsupportedModelError(
            f"no kernel can compute this operator '{node.op.name}'", where=str(node.source)
        )
    return ranked


def _size(choices: _Either, goal: Optimize, limit: int | None, separate_bytes: int) -> int:
    """Return bytes within which the cheapest groups are what the goal wants, and a limit allows.

    Args:
        choices: of the graphs.
        goal: `ram-least` takes the least memory, `ram` and `balanced` what is worth its price.
        limit: bytes, or None.
        separate_bytes: bytes that lie outside the workspace.
    """
    least = choices.least
    most = choices.most if limit is None else min(limit, choices.most)
    if goal is Optimize.RAM_LEAST or most <= least:
        return least
    if goal is Optimize.BALANCED:
        return _balanced(
            {size: choices.price(size) for size in choices.sizes(most)}, separate_bytes
        )
    if goal is Optimize.RAM:
        prices = {size: choices.price(size) for size in choices.small_sizes(most)}
        return _worth_most(prices, prices, separate_bytes, goal)
    return most


def _balanced(prices: Mapping[int, int], separate_bytes: int) -> int:
    """Return the limit for which speed and memory are worth most together; `prices` by limit.

    Limits that are near the best of both come before all others, where there are some.
    """
    fast = min(prices.values()) * _NEAR_FASTEST
    for times in _NEAR_LEAST:
        small = (min(prices) + separate_bytes) * times
        near = [size for size, p in prices.items() if size + separate_bytes <= small and p <= fast]
        if near:
            break
    return _worth_most(near or prices, prices, separate_bytes, Optimize.BALANCED)


def _worth_most(
    sizes: Iterable[int], prices: Mapping[int, int], separate_bytes: int, goal: Optimize
) -> int:
    """Return the size for which price and bytes are least together, as a goal weighs them."""
    speed, memory = _WORTH[goal]

    def weighed(size: int) -> tuple[float, int]:
        price, taken = max(prices[size], 1), max(size + separate_bytes, 1)
        return speed * math.log(price) + memory * math.log(taken), size

    return min(sizes, key=weighed)
