"""Provenance of a layer function: its name and its Origin."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from enum import Enum

from microtir.graph.ir import Node, Quantization, TensorType
from microtir.graph.operator import Operator
from microtir.operators import record_of
from microtir.operators.common.attributes import Padding2D
from microtir.operators.definition import Trait
from microtir.rewrite.facts.macs import macs
from microtir.tir.function import LayerName, Origin

_SHOWN_SCALES = 2


def origin_of(node: Node) -> Origin:
    """Return Origin of a node: operator, name, position, tensors with their types, attributes."""
    facts = [
        *(_fact(_role(node, i), describe_type(t.type)) for i, t in enumerate(node.inputs)),
        *(_fact("output", describe_type(t.type)) for t in node.outputs),
    ]
    attributes = _attributes(node.op)
    if attributes:
        facts.append(_fact("with", attributes))
    return Origin(
        operator=node.source.operator,
        node=node.name,
        index=node.source.index,
        facts=tuple(facts),
        macs=(node.source.macs or macs(node) * node.source.images) * node.source.turns,
        macs_executed=macs(node) * node.source.times,
        macs_recomputed=node.source.macs_recomputed * node.source.times,
    )


def function_names(nodes: Sequence[Node]) -> list[LayerName]:
    """Return names of functions: number and operator, where the number is that of the model file.

    It is the one that `inspect`, reports, profiles and metadata say.  What the file does not have
    has none; what stands for the same operator of the file is told apart behind the name.
    """
    width = len(str(1 + max((node.source.index for node in nodes), default=0)))
    names: list[LayerName] = []
    taken: Counter[LayerName] = Counter()
    for node in nodes:
        index = node.source.index
        name = LayerName(f"layer{index:0{width}}" if index >= 0 else "port", node.op.label)
        taken[name] += 1
        names.append(name if taken[name] == 1 else name.with_work(str(taken[name])))
    return names


def _role(node: Node, position: int) -> str:
    if record_of(node.op).has(Trait.WEIGHTED):
        return ("input", "weights", "bias")[position]
    return "constant" if node.inputs[position].is_constant else "input"


def _fact(label: str, text: str) -> str:
    return f"{label:<9}{text}"


def describe_type(type_: TensorType) -> str:
    """Return a type in one line: ``1x49x10x1 int8, scale 0.58, zero point 83``."""
    shape = "x".join(map(str, type_.shape)) or "scalar"
    text = f"{shape} {type_.dtype.value}"
    return f"{text}, {_quantization(type_.quantization)}" if type_.quantization else text


def _quantization(q: Quantization) -> str:
    if q.is_per_channel and len(q.scales) > _SHOWN_SCALES:
        return f"{len(q.scales)} scales {min(q.scales):.6g} to {max(q.scales):.6g} on axis {q.axis}"
    scales = ", ".join(f"{scale:.6g}" for scale in q.scales)
    return f"scale {scales}, zero point {', '.join(map(str, q.zero_points))}"


def _attributes(op: Operator) -> str:
    parts = []
    for field in dataclasses.fields(op):
        value = getattr(op, field.name)
        if field.compare and value != field.default:
            parts.append(f"{field.name} {_spell(value)}")
    return ", ".join(parts)


def _spell(value: object) -> str:
    if isinstance(value, bytes):
        return f"of {len(value)} bytes"
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, tuple):
        return "x".join(map(str, value))
    if isinstance(value, Padding2D):
        return f"{value.top},{value.bottom},{value.left},{value.right} (top, bottom, left, right)"
    return str(value)
