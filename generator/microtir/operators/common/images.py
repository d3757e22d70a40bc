"""Say which operators keep images apart that lie behind each other along the first axes of tensors.

Image i of the output of such an operator is computed from image i of each input that varies. As
images lie behind each other in memory, an axis may hold several elements of each, axes of one
element may stand in front of it, and a change of shape keeps them apart wherever that axis can be
cut.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from microtir.graph.ir import Node
from microtir.graph.operator import Operator

OneImage: TypeAlias = Callable[[Node, int], "Operator | None"]
"""Gives the attributes of a node for one of so many images; None where these are not kept apart."""


def by_memory(node: Node, _images: int) -> Operator | None:
    """Keep apart parts of equal size, whatever the shape; all that varies is one input."""
    varies = [not tensor.is_constant for tensor in node.inputs]
    return node.op if varies[0] and not any(varies[1:]) else None


def by_first_axis(node: Node, images: int) -> Operator | None:
    """Keep apart what has different indices of the first axis; all that varies is one input."""
    return by_memory(node, images) if node.inputs[0].type.outermost == 0 else None


def by_rows(node: Node, images: int) -> Operator | None:
    """Keep apart rows, which lie along the last axis; all that varies is one input."""
    x = node.inputs[0]
    return by_memory(node, images) if x.type.outermost < len(x.shape) - 1 else None


def by_element(node: Node, _images: int) -> Operator | None:
    """Keep apart elements, unless an operand that is repeated would have to be cut as well."""
    shape, axis = node.outputs[0].shape, node.outputs[0].type.outermost
    for tensor in node.inputs:
        own = axis - len(shape) + len(tensor.shape)  # the axis that is broadcast to that one
        extent = tensor.shape[own] if own >= 0 else 1
        ahead = tensor.shape[: max(own, 0)]
        if extent != (1 if tensor.is_constant else shape[axis]) or any(e != 1 for e in ahead):
            return None
    return node.op


def by_memory_if(keeps_images: Callable[[Node], bool]) -> OneImage:
    """Keep apart parts of equal size where a node leaves their axis alone."""
    return lambda node, images: by_memory(node, images) if keeps_images(node) else None


def unless_along_images(axis_of: Callable[[Node], int]) -> OneImage:
    """Keep apart what has different indices of the axis of images, unless a node works along it.

    The axes that a node works along begin behind it. Whatever varies is cut alike, and nothing is
    constant.
    """

    def one_image(node: Node, _images: int) -> Operator | None:
        axis = node.inputs[0].type.outermost
        first = node.inputs[0].shape[: axis + 1]
        are_alike = all(not t.is_constant and t.shape[: axis + 1] == first for t in node.inputs)
        return node.op if are_alike and axis_of(node) > axis else None

    return one_image
