"""Timelines: which tensors have rows along time, and which of these move with the window.

A row is steady if no edge of the window has part in it: what lies there after a push lay some rows
further on before.  All others, near padding, are computed anew with every push.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import gcd

from microtir.graph.ir import Graph, Node, Tensor
from microtir.rewrite.requests.streaming.follow import Follow, follow
from microtir.rewrite.requests.streaming.rows import Rows, within


@dataclass(frozen=True, slots=True)
class Timeline:
    """The rows of a tensor along time.

    Args:
        axis: of its shape.
        rows: how many.
        stride: frames from one row to the next.
        steady: the rows that move with the window.
    """

    axis: int
    rows: int
    stride: int
    steady: Rows

    def turns(self, hop: int) -> int:
        """Return after how many pushes of `hop` frames rows lie where others lay."""
        return self.stride // gcd(self.stride, hop)

    def shift(self, hop: int) -> int:
        """Return by how many rows they have moved then."""
        return hop * self.turns(hop) // self.stride


@dataclass(frozen=True, slots=True)
class Timelines:
    """The tensors of a graph that have rows along time, and the nodes that carry them."""

    of: Mapping[Tensor, Timeline]
    follows: Mapping[Node, Follow]


def timelines(graph: Graph, x: Tensor, axis: int) -> Timelines:
    """Return what has rows along time if an argument has them along an axis."""
    rows = x.shape[axis]
    lines = {x: Timeline(axis, rows, 1, Rows(0, rows))}
    follows: dict[Node, Follow] = {}
    for node in graph.nodes:
        # A single row is nothing that moves: who reads it reads all there is.
        moving = [lines[t] for t in node.inputs if t in lines and lines[t].rows > 1]
        axes = {t: lines[t].axis for t in node.inputs if t in lines and lines[t].rows > 1}
        followed = follow(node, axes) if moving else None
        if followed is None or len({line.stride for line in moving}) > 1:
            continue
        follows[node] = followed
        count = node.outputs[0].shape[followed.axis]
        steady = Rows(0, count)
        for line in moving:
            steady = steady.common(within(followed.window, line.steady, count))
        stride = moving[0].stride * followed.window.stride
        lines.update({t: Timeline(followed.axis, count, stride, steady) for t in node.outputs})
    return Timelines(lines, follows)
