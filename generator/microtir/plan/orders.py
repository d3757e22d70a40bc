"""The orders of a graph's operators that may take less memory than the one that it has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from microtir.graph.ir import Graph, Node, Tensor
from microtir.plan.nest_simulations import NestSimulations
from microtir.plan.ranking import RankedCandidates, RankedKernels
from microtir.plan.sequence import Demand, Use, best_order, depth_first
from microtir.plan.states import readers_of_old_values
from microtir.plan.storage import Overlaps, Storage
from microtir.rewrite.variants import Reorder


def orders_worth_planning(
    graph: Graph, ranked: Sequence[RankedKernels], storage: Storage
) -> tuple[Reorder, ...]:
    """Return the passes that order a graph so that it may take less memory, if there are some.

    In one less lives at once with the best kernels, in one with those that take the least scratch,
    and in one chains of operators stay together, which can stream then.

    Args:
        graph: whose nodes have some order.
        ranked: one for each node, in graph order.
        storage: of all tensors that are not constant.
    """
    simulations = NestSimulations()
    saved = [_saved(o.whole.node, o.rows, storage, simulations) for o in ranked]
    best = tuple(o.whole.candidates[0].scratch_bytes for o in ranked)
    least = tuple(o.whole.least for o in ranked)
    demands = [_demand(graph, storage, scratch, saved) for scratch in dict.fromkeys((best, least))]
    file_order = tuple(range(len(graph.nodes)))
    orders = dict.fromkeys((*map(best_order, demands), depth_first(demands[0])))
    return tuple(Reorder(order) for order in orders if order != file_order)


def whole_peak(graph: Graph, ranked: Sequence[RankedKernels], storage: Storage) -> int:
    """Return the most bytes that live at once where each operator is one call."""
    simulations = NestSimulations()
    saved = [_saved(o.whole.node, o.rows, storage, simulations) for o in ranked]
    best = [o.whole.candidates[0].scratch_bytes for o in ranked]
    return _demand(graph, storage, best, saved).peak(range(len(graph.nodes)))


def is_chain(graph: Graph) -> bool:
    """Return whether each operator reads what the one before it makes: there is one order."""
    return all(_feeds(first, second) for first, second in pairwise(graph.nodes))


def _feeds(first: Node, second: Node) -> bool:
    return not set(first.outputs).isdisjoint(second.inputs)


def _saved(
    node: Node,
    rows: RankedCandidates | None,
    storage: Storage,
    simulations: NestSimulations,
) -> Mapping[tuple[Tensor, Tensor], int]:
    """Return bytes that an input and an output of a node share where the input dies under it.

    Only in the workspace: what is the caller's takes nothing over.
    """
    if rows is None:
        return {}
    target = storage.root[node.output]
    if target in storage.caller:
        return {}
    alone = [rows.operator]
    simulation = simulations.of(alone, 1)
    known = dict(zip(simulations.tensors_of(alone), simulation.known, strict=True))
    overlaps = Overlaps(storage, known, simulations)
    roots = (storage.root[t] for t in rows.operator.inputs)
    return {
        (root, target): overlaps.saved(root, target)
        for root in roots
        if root is not target and root not in storage.caller
    }


def _demand(
    graph: Graph,
    storage: Storage,
    scratch: Sequence[int],
    saved: Sequence[Mapping[tuple[Tensor, Tensor], int]],
) -> Demand:
    """Return what the operators of a graph ask of the workspace."""
    buffers = {tensor: number for number, tensor in enumerate(storage.first)}
    makers = {t: number for number, node in enumerate(graph.nodes) for t in node.outputs}

    def numbers(tensors: Sequence[Tensor]) -> tuple[int, ...]:
        return tuple(dict.fromkeys(buffers[storage.root[t]] for t in tensors))

    readers = readers_of_old_values(graph, storage.root)
    uses = [
        Use(
            after=sum(
                {
                    1 << n
                    for n in (
                        *(makers[t] for t in node.activations if t in makers),
                        *(n for n in readers.get(storage.root[node.outputs[0]], ()) if n != number),
                    )
                }
            ),
            reads=numbers(node.activations),
            writes=numbers(node.outputs),
            scratch=room,
            saved=tuple((buffers[x], buffers[y], n) for (x, y), n in shared.items() if n),
        )
        for number, (node, room, shared) in enumerate(zip(graph.nodes, scratch, saved, strict=True))
    ]
    return Demand(
        uses,
        [0 if t in storage.caller else storage.bytes(t) for t in buffers],
        born=[buffers[t] for t, first in storage.first.items() if first < 0],
        lasting=[buffers[t] for t, last in storage.last.items() if last == len(graph.nodes)],
    )
