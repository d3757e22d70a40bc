"""Say which operators keep images apart that lie behind each other along the first axes of tensors.

Image i of the output of such an operator is computed from image i of each input that varies. As
images lie behind each other in memory, an axis may hold several elements of each, and a change of
shape keeps them apart wherever the first axis can be cut.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from microtir.graph.ir import Node
from microtir.graph.operator import Operator

OneImage: TypeAlias = Callable[[Node, int], "Operator | None"]
"""Gives the attributes of a node for one of so many images; None where these are not kept apart."""


def by_first_axis(node: Node, _images: int) -> Operator | None:
    """Keep apart what has different indices of the first axis; all that varies is one input."""
    varies = [not tensor.is_constant for tensor in node.inputs]
    return node.op if varies[0] and not any(varies[1:]) else None


def by_element(node: Node, _images: int) -> Operator | None:
    """Keep apart elements, unless an operand that is repeated would have to be cut as well."""
    shape = node.outputs[0].shape
    for tensor in node.inputs:
        is_same_for_all = len(tensor.shape) < len(shape) or tensor.shape[0] == 1
        is_cut = len(tensor.shape) == len(shape) and tensor.shape[0] == shape[0]
        if not (is_same_for_all if tensor.is_constant else is_cut):
            return None
    return node.op


def by_first_axis_if(keeps_first: Callable[[Node], bool]) -> OneImage:
    """Keep apart what has different indices of the first axis, where a node leaves that alone."""
    return lambda node, images: by_first_axis(node, images) if keeps_first(node) else None


def unless_along_first(axis_of: Callable[[Node], int]) -> OneImage:
    """Keep apart what has different indices of the first axis, unless a node works along it.

    Whatever varies in it is cut alike, and nothing is constant.
    """

    def one_image(node: Node, _images: int) -> Operator | None:
        first = node.inputs[0].shape[:1]
        alike = all(not t.is_constant and t.shape[:1] == first for t in node.inputs)
        return node.op if alike and axis_of(node) != 0 else None

    return one_image
