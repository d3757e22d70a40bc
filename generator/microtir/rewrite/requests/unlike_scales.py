"""Nodes that take stored integers as they are, although their tensors have different scales.

What they give stands for other real numbers than what they are given.  References do the same, so
that it is no error; who made the model hardly meant it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from microtir.dtype import DType
from microtir.errors import Fix
from microtir.graph.ir import Graph, Node, Quantization, Tensor
from microtir.operators import record_of
from microtir.operators.common.quantization import quantization_text
from microtir.operators.common.unlike_scales import NARROW, UnlikeScales
from microtir.operators.conditions.definition import Comparison, is_rescaled
from microtir.operators.definition import Trait
from microtir.operators.movement.definition import Relabel
from microtir.operators.normalization.definition import NORMALIZED_OF_INT8, L2Normalize
from microtir.operators.unary.definition import Neg


@dataclass(frozen=True, slots=True)
class StoredAsIs:
    """A node whose integers stand for other real numbers behind it.

    Args:
        node: of the graph.
        name: of the operator of the model.
        what: it does, and between which scales.
        fix: what to do about it.
    """

    node: Node
    name: str
    what: str
    fix: Fix


def stored_as_is(graph: Graph) -> tuple[StoredAsIs, ...]:
    """Return the nodes of a graph that change real values by leaving stored ones as they are.

    Args:
        graph: as a frontend made it, with the layers of a reference.
    """
    return tuple(
        StoredAsIs(node, name_in_model(node), what, fix)
        for node in graph.nodes
        for what, fix in _found(node)
    )


def name_in_model(node: Node) -> str:
    """Return what the model calls the operator of a node, or the tensor that it relabels."""
    return (node.op.named if isinstance(node.op, Relabel) else "") or node.name


def _found(node: Node) -> Iterator[tuple[str, Fix]]:
    if isinstance(node.op, L2Normalize):
        quant = node.output.type.quantization
        if node.output.dtype is DType.INT8 and quant not in (None, NORMALIZED_OF_INT8):
            text = f"its result is in {quantization_text(NORMALIZED_OF_INT8)}"
            yield f"{text}, and its output {_named(node.output)}", _CONVERT
        return
    is_compared = isinstance(node.op, Comparison) and not is_rescaled(node.op, node.inputs[0].type)
    if not record_of(node.op).has(Trait.STORED) and not is_compared:
        return
    yield from _moved_zero(node)
    if isinstance(node.op, Relabel) and (node.op.taken is not None or not node.op.is_told):
        if node.op.is_told:
            yield _copies(node.op.taken, _quantised(node.output)), _fix(node)
        return
    data = [t for t in (*node.inputs, *node.outputs) if _quantised(t) is not None]
    other = next((t for t in data if _quantised(t) != _quantised(data[0])), None)
    if other is not None:
        what = f"it takes stored integers of {_named(data[0])} for those of {_named(other)}"
        if isinstance(node.op, Relabel):
            what = _copies(_quantised(data[0]), _quantised(other))
        yield what, _fix(node)


def _copies(source: Quantization | None, target: Quantization | None) -> str:
    first, second = quantization_text(source), quantization_text(target)
    return f"it copies integers stored with {first} as such with {second}"


_CONVERT = Fix.of("convert the model again with one scale and zero point there")
_RESCALED = Fix(
    "numerics 'tflite_ref' rescales, as LiteRT does",
    "--numerics tflite_ref rescales, as LiteRT does",
)


def _fix(node: Node) -> Fix:
    is_rescaled = isinstance(node.op, Relabel) and node.op.by_litert is UnlikeScales.RESCALES
    return _RESCALED if is_rescaled else _CONVERT


def _moved_zero(node: Node) -> Iterator[tuple[str, Fix]]:
    """Find a NEG whose zero point is not 0: the negative of a stored integer is another number."""
    quant = _quantised(node.output)
    if isinstance(node.op, Neg) and quant is not None and any(quant.zero_points):
        what = f"it negates stored integers of {_named(node.output)}"
        yield what, Fix.of("convert the model again with zero point 0 there")


def _quantised(tensor: Tensor) -> Quantization | None:
    return tensor.type.quantization if tensor.dtype in NARROW else None


def _named(tensor: Tensor) -> str:
    quant = tensor.type.quantization
    return f"'{tensor.name}' with {quantization_text(quant)}"
