"""Write a function of one int8 element that tflite-micro has no operator of as a table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Graph, Node, Tensor, TensorType
from microtir.graph.rewriting import constant, named_apart, with_nodes
from microtir.operators.activations.definition import Gelu
from microtir.operators.arithmetic.definition import Add
from microtir.operators.conversion.definition import CastTo, Tabulated
from microtir.operators.indexing.definition import Gather
from microtir.operators.unary.definition import Exp, Log, Sqrt
from microtir.rewrite.facts.regions import STORED, Region
from microtir.rewrite.optimise.tabulate import computes_floats, tabulated

_OF_FLOATS = (Exp, Gelu, Log, Sqrt)
"""Operators that tflite-micro has for floats at most, where LiteRT has them for int8."""


@dataclass(frozen=True, slots=True)
class Tables:
    """Makes a GATHER of 256 values of what a file cannot say, where an int8 element decides it.

    A layer in floats between integers is such a function, with its conversions.
    """

    def __call__(self, graph: Graph) -> Graph:
        graph = tabulated(graph, _is_missing)
        return named_apart(with_nodes(graph, [n for node in graph.nodes for n in _looked_up(node)]))


def _is_missing(region: Region) -> bool:
    return computes_floats(region) or any(isinstance(node.op, _OF_FLOATS) for node in region.nodes)


def _looked_up(node: Node) -> Iterator[Node]:
    """Yield CAST, ADD and GATHER for a table, whose entry x + 128 belongs to the element x."""
    if not isinstance(node.op, Tabulated):
        yield node
        return
    (x,), y = node.inputs, node.output
    stored, place = (
        Tensor(f"{y.name}/{what}", TensorType(x.shape, DType.INT32)) for what in ("stored", "place")
    )
    offset = np.array(-int(STORED[0]), np.int32)
    first = constant(f"{y.name}/offset", TensorType((), DType.INT32), offset)
    type_ = replace(y.type, shape=STORED.shape)
    table = constant(f"{y.name}/table", type_, np.frombuffer(node.op.table, np.int8))
    yield replace(node, op=CastTo(), outputs=(stored,))
    yield replace(node, op=Add(), inputs=(stored, first), outputs=(place,))
    yield replace(node, op=Gather(), inputs=(table, place))
