"""Gives layers of a graph to libraries: each match becomes one node that calls the library."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from microtir.config.external import External
from microtir.config.target import Target
from microtir.external.emit import call_of
from microtir.external.interface import Library, Match, Pattern, Rule
from microtir.external.meaning import evaluated
from microtir.graph.ir import Graph, Node, Tensor
from microtir.graph.operator import Operator
from microtir.graph.rewriting import Rewrite
from microtir.operators.arithmetic.definition import Add, Mul
from microtir.operators.common.formula import WrittenFunction
from microtir.operators.custom import custom_record
from microtir.operators.custom.definition import Custom

Cost = Callable[[Node], int]
_COMMUTATIVE = (Add, Mul)


@dataclass(frozen=True, slots=True)
class _Offload:
    """A match and the rule of the library that it is given to."""

    match: Match
    rule: Rule
    library: Library


@dataclass(frozen=True, slots=True)
class Partition(Rewrite):
    """Replaces the layers that libraries compute by calls of them.

    Args:
        libraries: in order of preference, each with the operators that it may have; None stands
            for those where it is estimated cheaper.
        target: the processor.
        own_cost: estimated instructions of the compiler's own kernel for a node.
        prefix: start of every C identifier.
    """

    libraries: Sequence[tuple[Library, External | None]]
    target: Target
    own_cost: Cost
    prefix: str

    def __call__(self, graph: Graph) -> Graph:
        if not self.libraries:
            return graph
        consumers = graph.consumers()
        taken: dict[Node, _Offload] = {}
        for library, wanted in self.libraries:
            for rule in library.rules:
                for match in _matches(graph, consumers, rule, self.target):
                    if any(node in taken for node in match.nodes) or not rule.accepts(match):
                        continue
                    if _is_wanted(match, rule, wanted, self.own_cost):
                        taken |= dict.fromkeys(match.nodes, _Offload(match, rule, library))
        nodes: list[Node] = []
        for node in graph.nodes:
            offload = taken.get(node)
            if offload is None:
                nodes.append(node)
            elif node is offload.match.last:
                nodes.append(_call(offload, self.prefix))
        return replace(graph, nodes=tuple(nodes)) if taken else graph


def _matches(
    graph: Graph, consumers: Mapping[Tensor, Sequence[Node]], rule: Rule, target: Target
) -> Iterator[Match]:
    finder = _Finder(graph, consumers)
    for node in graph.nodes:
        pattern = rule.pattern
        matched = finder.chain(node, pattern) if isinstance(pattern, tuple) else None
        if isinstance(pattern, Pattern):
            matched = finder.tree(node, pattern)
        if matched:
            yield Match(tuple(n for n in graph.nodes if n in matched), target)


class _Finder:
    """Looks for patterns; what a pattern holds inside must have no other reader."""

    def __init__(self, graph: Graph, consumers: Mapping[Tensor, Sequence[Node]]) -> None:
        self._consumers = consumers
        self._outputs = frozenset(graph.outputs)
        self._producers = {tensor: node for node in graph.nodes for tensor in node.outputs}

    def chain(self, first: Node, types: tuple[type[Operator], ...]) -> frozenset[Node]:
        """Return the nodes from `first` on, each the only reader of the one before; or none."""
        nodes = [first]
        while len(nodes) < len(types) and self._is_inside(nodes[-1]):
            nodes.append(self._consumers[nodes[-1].output][0])
        fits = tuple(type(node.op) for node in nodes) == types and len(nodes[-1].outputs) == 1
        return frozenset(nodes) if fits else frozenset()

    def tree(self, last: Node, pattern: Pattern) -> frozenset[Node]:
        """Return the nodes that a pattern matches with `last` at its end; empty if it does not."""
        if type(last.op) is not pattern.operator or len(last.outputs) != 1:
            return frozenset()
        orders = [pattern.inputs]
        if pattern.operator in _COMMUTATIVE and len(pattern.inputs) == 2:
            orders.append(pattern.inputs[::-1])
        for order in orders:
            branches = self._branches(last, order)
            if branches is not None:
                return frozenset({last}).union(*branches)
        return frozenset()

    def _branches(
        self, node: Node, patterns: tuple[Pattern | None, ...]
    ) -> list[frozenset[Node]] | None:
        """Return what makes a node's inputs; None if one of them is made otherwise."""
        if len(patterns) > len(node.inputs):
            return None
        branches: list[frozenset[Node]] = []
        for tensor, pattern in zip(node.inputs, patterns, strict=False):
            if pattern is None:
                continue
            producer = self._producers.get(tensor)
            if producer is None or not self._is_inside(producer):
                return None
            branch = self.tree(producer, pattern)
            if not branch:
                return None
            branches.append(branch)
        return branches

    def _is_inside(self, node: Node) -> bool:
        """Return whether a node's output is read once and is no output of the model."""
        if len(node.outputs) != 1 or node.output in self._outputs:
            return False
        return len(self._consumers.get(node.output, ())) == 1


def _is_wanted(match: Match, rule: Rule, wanted: External | None, own_cost: Cost) -> bool:
    if wanted is not None and wanted.operators is not None:
        return all(node.source.index in wanted.operators for node in match.nodes)
    if wanted is not None and wanted.everything:
        return True
    return rule.cost(match) < sum(own_cost(node) for node in match.nodes)


def _call(offload: _Offload, prefix: str) -> Node:
    """Make one node of a match; its meaning is that of the nodes it stands for."""
    match = offload.match
    code = offload.rule.emit(match)
    label = f"{match.last.op.label}_{offload.library.name.replace('-', '_')}"
    names = " and ".join(node.op.name for node in match.nodes)
    record = custom_record(
        name=f"{names} of {offload.library.name}",
        reference=lambda _node, *inputs: evaluated(match, inputs),
        function=WrittenFunction(
            build=lambda _node, name: call_of(match, code, offload.library, name, prefix),
            scratch_bytes=lambda _node: code.scratch_bytes,
        ),
        macs=lambda _node: match.macs,
        label=label,
    )
    macs = sum(node.source.macs for node in match.nodes)
    source = replace(match.last.source, macs=macs)
    return Node(Custom(record), match.inputs, (match.output,), match.last.name, source)
