"""Makes one operator of elementwise ones that follow each other, where one loop takes less."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from microtir.graph.ir import Graph, Node
from microtir.graph.rewriting import Rewrite, with_nodes
from microtir.graph.structure import Structure, structure_of
from microtir.operators.common.types import QUANTISED
from microtir.rewrite.facts.regions import Neighbours
from microtir.rewrite.optimise.chains import Chain, may_be_part

_MOST = 8  # operators of a chain: compilers have registers for what these read
_MOST_RESCALED = 3  # those among them that read their factors in each turn


@dataclass(frozen=True, slots=True)
class FuseChains(Rewrite):
    """Computes elementwise operators in one loop, where that takes less than a loop each.

    What is between them takes no memory then.  They follow each other in the graph, so that what
    they read is there before the first one.

    Args:
        cost_of: estimate of the cheapest kernel for an operator, in the measure of the plan.
        is_wanted: whether there is a goal for which that is worth its code.
        counts_memory: whether memory is part of the goal: then nothing may live longer, in
            whatever order the others run.
    """

    cost_of: Callable[[Node], int]
    is_wanted: bool = True
    counts_memory: bool = False
    _costs: dict[Structure, int | None] = field(default_factory=dict, compare=False, repr=False)

    def __call__(self, graph: Graph) -> Graph:
        if not self.is_wanted:
            return graph
        neighbours = Neighbours.of(graph, may_be_part)
        fused: dict[Node, Node] = {}
        inside: set[Node] = set()
        for last in reversed(graph.nodes):
            chain = None if last in inside else self._behind(neighbours, last)
            if chain is not None:
                inside.update(chain.nodes)
                fused[last] = chain.node()
        nodes = (fused.get(n, n) for n in graph.nodes if n in fused or n not in inside)
        return with_nodes(graph, nodes)

    def _behind(self, neighbours: Neighbours, last: Node) -> Chain | None:
        """Return the chain that ends with a node and saves most, if one saves something."""
        if last.outputs[0] not in neighbours.producers:
            return None
        best, most = None, 0
        for nodes, _ in neighbours.grown(last, _MOST + 1):
            is_run = neighbours.places[last] - neighbours.places[nodes[0]] < len(nodes)
            if not is_run or sum(map(_is_rescaled, nodes)) > _MOST_RESCALED:
                break
            chain = Chain.of(nodes)
            cost = self._cost(chain) if len(nodes) > 1 else None
            if cost is not None:
                saved = sum(map(self.cost_of, nodes)) - cost
                best, most = (chain, saved) if saved > most else (best, most)
        return best

    def _cost(self, chain: Chain) -> int | None:
        """Return the cost of a chain, which is computed once for equal ones; None if illegal."""
        key = structure_of(chain.nodes)
        if key not in self._costs:
            is_legal = self._is_legal(chain)
            self._costs[key] = self.cost_of(chain.node()) if is_legal else None
        return self._costs[key]

    def _is_legal(self, chain: Chain) -> bool:
        keeps_memory = not self.counts_memory or chain.holds_no_more()
        return keeps_memory and _has_one_shape(chain) and chain.keeps_bits()


def _is_rescaled(node: Node) -> bool:
    return node.output.dtype in QUANTISED and node.output.type.quantization is not None


def _has_one_shape(chain: Chain) -> bool:
    """Return whether all that is no constant has one shape."""
    shapes = {node.output.shape for node in chain.nodes}
    return len(shapes) == 1 and any(not tensor.is_constant for tensor in chain.inputs)
