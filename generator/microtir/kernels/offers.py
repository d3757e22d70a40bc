"""The kernels of nodes, which are looked for once for all nodes that compute the same."""

from __future__ import annotations

from dataclasses import dataclass, field

from microtir.config.compilation import CompilationConfig
from microtir.config.enums import Measure
from microtir.graph.ir import Node
from microtir.graph.structure import Structure, structure_of
from microtir.kernels import candidates, refusals
from microtir.plan.ir import Candidate, Refusal


@dataclass(frozen=True, slots=True, eq=False)
class Offers:
    """The kernels that can compute the nodes of one model on the configured target."""

    config: CompilationConfig
    _known: dict[Structure, tuple[Candidate, ...]] = field(default_factory=dict)
    _refused: dict[Structure, tuple[tuple[str, Refusal], ...]] = field(default_factory=dict)

    def of(self, node: Node) -> tuple[Candidate, ...]:
        """Return the kernels of a node, as `candidates` does."""
        key = structure_of((node,))
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = candidates(node, self.config)
        return known

    def least_cost(self, node: Node, measure: Measure) -> int:
        """Return what the cheapest one that reads and writes NHWC takes, in a measure."""
        plain = (c for c in self.of(node) if c.is_plain)
        return min((c.cost().of(measure) for c in plain), default=0)

    def refusals(self, node: Node) -> tuple[tuple[str, Refusal], ...]:
        """Return the kernels that cannot compute a node, and why, as `refusals` does."""
        key = structure_of((node,))
        known = self._refused.get(key)
        if known is None:
            known = self._refused[key] = refusals(node, self.config)
        return known
