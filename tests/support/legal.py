"""Outputs against the numpy reference, by the rule of `microtir.host.tolerance`."""

from __future__ import annotations

from collections.abc import Mapping

from microtir.graph.ir import Array, Graph
from microtir.host.compare import compare
from microtir.host.tolerance import rounding_of
from microtir.rewrite.reference import execute


def assert_legal(graph: Graph, inputs: Mapping[str, Array], got: Mapping[str, Array]) -> None:
    """Assert that all outputs are there, integers equal, floats as near to exact as they can be.

    Raises:
        AssertionError: with the first differences.
    """
    expected = execute(graph, inputs)
    assert set(got) == set(expected)
    result = compare([expected], [got], rounding_of(graph, [inputs]))
    assert result.equal, f"{graph.name}: {result.differences[:3]}"
