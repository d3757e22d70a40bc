"""Refuse a range for a dimension whose extent is a value that a model computes with.

How many entries there are is known in each run, and what follows from shapes is a constant: a sum
that is divided by the extent would be divided by the most that there may be. A model is read a
second time for this, with another extent. Then shapes may differ, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from itertools import zip_longest
from typing import TypeAlias

from microtir.errors import Fix, MicrotirError, UnsupportedModelError
from microtir.frontend.onnx.shapes import InputShapes
from microtir.graph.ir import Graph, Node, Tensor

ReadWith: TypeAlias = Callable[[InputShapes], tuple[Graph, Sequence[MicrotirError]]]
"""Reads a model with what a caller says of its inputs: its graph and its problems."""


def check_counted_extent(graph: Graph, shapes: InputShapes, read: ReadWith) -> None:
    """Check that nothing but shapes follows from the extent that has a range, if one has.

    Args:
        graph: the model with the most of the range.
        shapes: what the caller says of its inputs.
        read: reads the model with others.

    Raises:
        UnsupportedModelError: names the first operator that takes the extent as a value.
    """
    most = shapes.most
    if most is None:
        return
    other = 2 * most + 1  # what is made of halves and differences of the most is no part of it
    wider, problems = read(shapes.with_most(other))
    if problems:
        problem = problems[0]
        raise _refused(f"with {other} entries: {problem.what}", problem.where)
    for node, same in zip_longest(graph.nodes, wider.nodes):
        if node is None or same is None or not _is_same(node, same, most, other):
            culprit = node or same
            what = f"'{culprit.op.name}' computes with the extent, which differs between runs"
            raise _refused(what, str(culprit.source))


def _is_same(node: Node, same: Node, most: int, other: int) -> bool:
    """Return whether two nodes compute the same, each along its own extent."""
    if type(node.op) is not type(same.op) or len(node.inputs) != len(same.inputs):
        return False
    attributes = [getattr(node.op, field.name) for field in fields(node.op)]
    others = [getattr(same.op, field.name) for field in fields(same.op)]
    return all(map(_is_same_constant, node.inputs, same.inputs)) and all(
        _is_scaled(a, b, most, other) for a, b in zip(attributes, others, strict=True)
    )


def _is_same_constant(tensor: Tensor, same: Tensor) -> bool:
    if tensor.data is None or same.data is None:
        return tensor.data is same.data
    return tensor.data.tobytes() == same.data.tobytes() and tensor.shape == same.shape


def _is_scaled(value: object, same: object, most: int, other: int) -> bool:
    """Return whether an attribute stays, or has numbers that are multiples of the extents."""
    if isinstance(value, tuple) and isinstance(same, tuple) and len(value) == len(same):
        return all(_is_scaled(a, b, most, other) for a, b in zip(value, same, strict=True))
    if isinstance(value, int) and isinstance(same, int) and value != same:
        return value * other == same * most
    return repr(value) == repr(same)  # so that a NaN equals itself


def _refused(what: str, where: str | None) -> UnsupportedModelError:
    return UnsupportedModelError(
        f"a dimension has a range, and {what}",
        where=where,
        legal="a model that uses the extent of this dimension only in shapes",
        fix=Fix(
            "give the dimension one extent instead of a range",
            "give --dim or --input-shapes one extent instead of a range",
        ),
    )
