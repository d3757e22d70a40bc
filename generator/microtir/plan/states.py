"""The operators that write the new values of states, over the old ones that a run begins with.

Both values have the same memory, so that whoever reads the old one runs before the new one is
written.  One operator may do both: if it is in place, and no other operator runs between its rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from microtir.graph.ir import Graph, Node, Tensor
from microtir.plan.ir import Candidate


def readers_of_old_values(
    graph: Graph, root: Mapping[Tensor, Tensor]
) -> Mapping[Tensor, tuple[int, ...]]:
    """Return for the new value of each state the operators that read the old one.

    Args:
        graph: with its states.
        root: the tensor whose memory a tensor lies in, of all that are not constant.
    """
    readers: dict[Tensor, list[int]] = {}
    for number, node in enumerate(graph.nodes):
        for source in {root[t] for t in node.activations} - {root[t] for t in node.outputs}:
            readers.setdefault(source, []).append(number)
    return {s.after: tuple(readers.get(root[s.before], ())) for s in graph.states}


@dataclass(frozen=True, slots=True)
class StateWriters:
    """Operators that write the new value of a state.

    `over` are those that read the old one, `behind` those that run when others have read it that
    could run row by row.
    """

    over: frozenset[Node]
    behind: frozenset[Node]

    @staticmethod
    def of(graph: Graph, root: Mapping[Tensor, Tensor]) -> StateWriters:
        """Return those of a graph; arguments as for `readers_of_old_values`."""
        numbers = readers_of_old_values(graph, root)
        readers = {t: {graph.nodes[n] for n in known} for t, known in numbers.items()}
        written = {
            node: set[Node]().union(*(readers.get(root[t], ()) for t in node.outputs))
            for node in (graph.nodes if readers else ())
        }
        over = frozenset(node for node, known in written.items() if node in known)
        behind = frozenset(node for node, known in written.items() if known - over - {node})
        return StateWriters(over, behind)

    def legal(self, node: Node, candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
        """Return the candidates that read what they overwrite in time."""
        return tuple(c for c in candidates if node not in self.over or c.in_place)

    def streams(self, node: Node) -> bool:
        """Return whether other operators may run between the rows of a node."""
        return node not in self.over and node not in self.behind
