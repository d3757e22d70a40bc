"""Divide a float graph into the layers whose widths are chosen one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from glob import escape

from microtir.graph.ir import Graph, Node, Tensor
from microtir.operators import record_of
from microtir.operators.recurrent.definition import Lstm
from microtir.quantise.forms import integer_form
from microtir.quantise.options import LayerWidth, QuantiseOptions, Width

TRIED = (Width.INT8, Width.WEIGHTS4, Width.INT16)
"""The widths that a layer may have, the one that a search begins with first."""


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """A node with weights, and the nodes without any that work on what it gives.

    These have activations as wide as those of the layer, so that nothing is converted between them.

    Args:
        node: that has the weights.
        followers: the others.
        weights: their number, without biases.
        widths: that it may have, int8 first.
    """

    node: Node
    followers: tuple[Node, ...]
    weights: int
    widths: tuple[Width, ...]

    def bytes(self, width: Width) -> int:
        """Return the bytes of its weights: half a byte each where they have 4 bits."""
        return -(-self.weights // 2) if width is Width.WEIGHTS4 else self.weights

    def patterns(self, width: Width) -> Iterator[LayerWidth]:
        """Yield what gives the layer a width; followers that lack a form of 16 bits stay int8."""
        yield LayerWidth(escape(self.node.name), width)
        for node in self.followers:
            is_wide = width is Width.INT16 and integer_form(node, width) is not None
            yield LayerWidth(escape(node.name), Width.INT16 if is_wide else Width.INT8)


def layers_of(
    graph: Graph, options: QuantiseOptions, widths: Sequence[Width] = TRIED
) -> tuple[Layer, ...]:
    """Return the layers with weights that no pattern of the options names, in their order.

    A node without weights belongs to the latest layer that it works on, or else to the first one.

    Args:
        graph: of floats, prepared.
        options: whose patterns say which layers have their widths already.
        widths: that layers may have beside int8.
    """
    owners: dict[Tensor, int] = {}
    members: list[list[Node]] = []
    early: list[Node] = []
    for node in graph.nodes:
        if any(fnmatchcase(node.name, one.pattern) for one in options.layers):
            continue
        if _weights(node):
            members.append([node])
            owner = len(members) - 1
        else:
            owner = max((owners[tensor] for tensor in node.inputs if tensor in owners), default=-1)
            (members[owner] if owner >= 0 else early).append(node)
        if owner >= 0:
            owners.update(dict.fromkeys(node.outputs, owner))
    if members:
        members[0].extend(early)
    return tuple(
        Layer(node, tuple(followers), _weights(node), _widths(node, widths))
        for node, *followers in members
    )


def _weights(node: Node) -> int:
    """Return the number of constant weights of a node that has a form in integers."""
    if integer_form(node, Width.INT8) is None:
        return 0
    if isinstance(node.op, Lstm):
        matrices = [t for t in node.inputs if t.is_constant and len(t.shape) == 2]
        return sum(tensor.type.elements for tensor in matrices)
    has_axis = record_of(node.op).definition.quantization.weight_axis is not None
    weights = node.inputs[1] if has_axis else None
    return weights.type.elements if weights is not None and weights.is_constant else 0


def _widths(node: Node, widths: Sequence[Width]) -> tuple[Width, ...]:
    tried = (width for width in TRIED if width in {Width.INT8, *widths})
    forms = ((width, integer_form(node, width)) for width in tried)
    return tuple(width for width, form in forms if form is not None and form.width is width)
