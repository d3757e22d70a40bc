"""The subgraphs that operators of a TFLite file run, and the variables that are assigned there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

from microtir.errors import MicrotirError
from microtir.frontend.tflite_file import FileGraph, FileOperator
from microtir.frontend.tflite_options import read_options
from microtir.frontend.tflite_variables import Resource, resource_of
from microtir.operators.common.tflite_schema import BuiltinOperator, Options

MOST_DEPTH = 8
"""Deepest nesting of loops; no converter nests them deeper, and a file could name itself."""


@dataclass(frozen=True, slots=True)
class IfOptions(Options):
    then_subgraph_index: int = 0
    else_subgraph_index: int = 0


@dataclass(frozen=True, slots=True)
class WhileOptions(Options):
    cond_subgraph_index: int = 0
    body_subgraph_index: int = 0


CONTROL_OPTIONS: Mapping[BuiltinOperator, type[Options]] = MappingProxyType(
    {BuiltinOperator.IF: IfOptions, BuiltinOperator.WHILE: WhileOptions}
)
"""Operators that run subgraphs."""

Handles: TypeAlias = Mapping[int, Resource]
"""Resources by the tensors of a subgraph that are their handles."""

_Seen: TypeAlias = set[tuple[int, frozenset[tuple[int, Resource]]]]


class Effects:
    """Says which resources are assigned, also in subgraphs that others run.

    What is damaged is left out: whoever reads it says what it is.

    Args:
        graphs: of the file.
    """

    def __init__(self, graphs: Sequence[FileGraph]) -> None:
        self._graphs = graphs

    def of_subgraph(self, number: int, resources: Sequence[Resource | None]) -> frozenset[Resource]:
        """Return what a subgraph assigns that is given some handles among its inputs."""
        return frozenset(self._of(number, resources, set(), 0))

    def of_operator(self, operator: FileOperator, handles: Handles) -> frozenset[Resource]:
        """Return what an operator assigns, given the handles of its subgraph."""
        return frozenset(self._of_operator(operator, handles, set(), 0))

    def handles(self, graph: FileGraph, outer: Handles) -> dict[int, Resource]:
        """Return all handles of a subgraph, given those among its inputs."""
        known = dict(outer)
        for operator in graph.operators:
            try:
                if operator.code == BuiltinOperator.VAR_HANDLE and len(operator.outputs) == 1:
                    known[operator.outputs[0]] = resource_of(operator, "")
            except MicrotirError:
                continue
            if operator.code == BuiltinOperator.WHILE:  # it hands them on
                pairs = zip(operator.inputs, operator.outputs, strict=False)
                known |= {result: known[index] for index, result in pairs if index in known}
        return known

    def _of(
        self, number: int, resources: Sequence[Resource | None], seen: _Seen, depth: int
    ) -> Iterator[Resource]:
        if depth > MOST_DEPTH or not 0 <= number < len(self._graphs):
            return
        graph = self._graphs[number]
        pairs = zip(graph.inputs, resources, strict=False)
        known = {index: resource for index, resource in pairs if resource is not None}
        key = number, frozenset(known.items())
        if key in seen:
            return
        seen.add(key)
        handles = self.handles(graph, known)
        for operator in graph.operators:
            yield from self._of_operator(operator, handles, seen, depth)

    def _of_operator(
        self, operator: FileOperator, handles: Handles, seen: _Seen, depth: int
    ) -> Iterator[Resource]:
        if operator.code == BuiltinOperator.ASSIGN_VARIABLE:
            yield from (handles[index] for index in operator.inputs[:1] if index in handles)
        for number, inputs in _runs(operator):
            resources = [handles.get(index) for index in inputs]
            yield from self._of(number, resources, seen, depth + 1)


def _runs(operator: FileOperator) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield the subgraphs that an operator runs, each with what it is given."""
    try:
        if operator.code == BuiltinOperator.IF:
            branches = read_options(operator, IfOptions, "")
            yield branches.then_subgraph_index, operator.inputs[1:]
            yield branches.else_subgraph_index, operator.inputs[1:]
        elif operator.code == BuiltinOperator.WHILE:
            loop = read_options(operator, WhileOptions, "")
            yield loop.cond_subgraph_index, operator.inputs
            yield loop.body_subgraph_index, operator.inputs
    except MicrotirError:
        return
