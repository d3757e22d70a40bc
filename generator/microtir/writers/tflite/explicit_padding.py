"""Say with operators of the format what attributes of our graph say and its own do not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from microtir.graph.ir import Graph, Node, Tensor
from microtir.operators import record_of
from microtir.operators.common.attributes import Padding2D, SlidingWindow
from microtir.operators.common.tflite_windows import written_padding
from microtir.operators.common.unlike_scales import UnlikeScales
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.operators.movement.definition import Pad, Relabel, Reshape
from microtir.operators.pooling.definition import MaxPool2D
from microtir.support.unique_names import UniqueNames


@dataclass(frozen=True, slots=True)
class ExplicitPadding:
    """Makes a node of its own of paddings that are neither SAME nor VALID, and of new scales.

    The pad of a maximum is the least value.  A mean does not count what is padded, so none of it
    becomes a node.
    """

    def __call__(self, graph: Graph) -> Graph:
        names = UniqueNames(tensor.name for tensor in graph.tensors())
        nodes = [new for node in graph.nodes for new in _legal(node, names.take)]
        return replace(graph, nodes=tuple(nodes))


def _legal(node: Node, new_name: Callable[[str], str]) -> list[Node]:
    if isinstance(node.op, Relabel) and node.op.by_micro is UnlikeScales.COPIES:
        # RESHAPE copies what is stored, in every reference and whatever the scales say.
        return [replace(node, op=Reshape())]
    if not isinstance(node.op, Conv2D | DepthwiseConv2D | MaxPool2D):
        return [node]
    window = _window(node)
    image = node.inputs[0]
    if written_padding(image, window) is not None:
        return [node]
    shape, padding = image.shape, window.padding
    before, after = (0, padding.top, padding.left, 0), (0, padding.bottom, padding.right, 0)
    extents = tuple(b + n + a for b, n, a in zip(before, shape, after, strict=True))
    padded = Tensor(new_name(f"{image.name}_padded"), replace(image.type, shape=extents))
    pad = Pad(before, after, _least(image) if isinstance(node.op, MaxPool2D) else _zero(image))
    return [
        Node(pad, (image,), (padded,), f"{node.name}_padded", node.source),
        replace(
            node,
            op=replace(node.op, padding=Padding2D()),
            inputs=(padded, *node.inputs[1:]),
        ),
    ]


def _window(node: Node) -> SlidingWindow:
    window = record_of(node.op).definition.window
    assert window is not None
    return window(node)


def _zero(image: Tensor) -> float:
    quant = image.type.quantization
    return 0.0 if quant is None else float(quant.zero_point)


def _least(image: Tensor) -> float:
    return float("-inf") if image.dtype.is_float else float(image.dtype.min)
