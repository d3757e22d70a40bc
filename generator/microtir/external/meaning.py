"""The meaning of a match: its nodes, run one after another."""

from __future__ import annotations

from collections.abc import Sequence

from microtir.external.interface import Match
from microtir.graph.ir import Array, Tensor
from microtir.rewrite.reference import evaluate


def evaluated(match: Match, inputs: Sequence[Array]) -> Array:
    """Evaluate a match for arrays of its inputs."""
    values: dict[Tensor, Array] = dict(zip(match.inputs, inputs, strict=True))
    for node in match.nodes:
        arrays = [values[t] if t.data is None else t.data for t in node.inputs]
        values.update(zip(node.outputs, evaluate(node, arrays), strict=True))
    return values[match.output]
