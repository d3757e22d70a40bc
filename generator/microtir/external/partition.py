"""Gives layers of a graph to libraries: each match becomes one node that calls the library."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from microtir.config.external import External
from microtir.config.target import Target
from microtir.external.emit import call_of
from microtir.external.interface import Library, Match, Rule
from microtir.external.meaning import evaluated
from microtir.graph.ir import Graph, Node, Tensor
from microtir.graph.ops import Custom, CustomFunction

Cost = Callable[[Node], int]


@dataclass(frozen=True, slots=True)
class _Found:
    """A match and the rule of the library that it is given to."""

    match: Match
    rule: Rule
    library: Library


def partition(
    graph: Graph,
    libraries: Sequence[tuple[Library, External | None]],
    target: Target,
    own_cost: Cost,
    prefix: str,
) -> Graph:
    """The graph with layers that libraries compute replaced by calls of them.

    Args:
        graph: after the graph passes; every output stays as it is.
        libraries: in order of preference, each with the operators that it may have; None stands
            for those where it is estimated cheaper.
        target: the processor.
        own_cost: estimated instructions of the compiler's own kernel for a node.
        prefix: start of every C identifier.
    """
    if not libraries:
        return graph
    consumers = graph.consumers()
    taken: dict[Node, _Found] = {}
    for library, wanted in libraries:
        for rule in library.rules:
            for match in _matches(graph, consumers, rule, target):
                if any(node in taken for node in match.nodes) or not rule.accepts(match):
                    continue
                if _is_wanted(match, rule, wanted, own_cost):
                    found = _Found(match, rule, library)
                    taken |= dict.fromkeys(match.nodes, found)
    nodes: list[Node] = []
    for node in graph.nodes:
        found_here = taken.get(node)
        if found_here is None:
            nodes.append(node)
        elif node is found_here.match.last:
            nodes.append(_call(found_here, prefix))
    return replace(graph, nodes=tuple(nodes)) if taken else graph


def _matches(
    graph: Graph, consumers: Mapping[Tensor, Sequence[Node]], rule: Rule, target: Target
) -> Iterator[Match]:
    for first in graph.nodes:
        nodes = [first]
        while len(nodes) < len(rule.pattern) and len(nodes[-1].outputs) == 1:
            output = nodes[-1].output
            readers = consumers.get(output, ())
            if output in graph.outputs or len(readers) != 1:
                break
            nodes.append(readers[0])
        types = tuple(type(node.op) for node in nodes)
        if types == rule.pattern and len(nodes[-1].outputs) == 1:
            yield Match(tuple(nodes), target)


def _is_wanted(match: Match, rule: Rule, wanted: External | None, own_cost: Cost) -> bool:
    if wanted is not None and wanted.operators is not None:
        return all(node.source.index in wanted.operators for node in match.nodes)
    if wanted is not None and wanted.everything:
        return True
    return rule.cost(match) < sum(own_cost(node) for node in match.nodes)


def _call(found: _Found, prefix: str) -> Node:
    """One node for a match; its meaning is that of the nodes it stands for."""
    match = found.match
    code = found.rule.emit(match)
    label = f"{match.last.op.label}_{found.library.name.replace('-', '_')}"
    names = " and ".join(node.op.name for node in match.nodes)
    function = CustomFunction(
        name=f"{names} of {found.library.name}",
        reference=lambda _node, *inputs: evaluated(match, inputs),
        build=lambda _node, name: call_of(match, code, found.library, name, prefix),
        scratch_bytes=lambda _node: code.scratch_bytes,
        label=label,
        macs=match.macs,
    )
    macs = sum(node.source.macs for node in match.nodes)
    source = replace(match.last.source, macs=macs)
    return Node(Custom(function), match.inputs, (match.output,), match.last.name, source)
