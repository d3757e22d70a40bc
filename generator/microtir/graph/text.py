"""Text form of a graph, for people and for tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from enum import Enum

from microtir.graph.ir import Graph, Node, Quantization, State, Tensor, TensorType
from microtir.graph.names import short_name
from microtir.graph.operator import Operator


def to_text(graph: Graph) -> str:
    """Return one line per input, constant, node and output; ends with a newline.

    Tensors are written %name, constants @name, with a number where short names repeat; a node
    shows its attributes in braces where they differ from the defaults, and behind a number sign
    its source.
    """
    labels = _labels(graph)
    lines = [f"graph {graph.name}"]
    lines += [f"  input {labels[tensor]}: {type_text(tensor.type)}" for tensor in graph.inputs]
    constants = [tensor for tensor in graph.tensors() if tensor.is_constant]
    lines += [f"  constant {labels[tensor]}: {type_text(tensor.type)}" for tensor in constants]
    lines += [f"  {_node_text(node, labels)}" for node in graph.nodes]
    lines += [f"  output {labels[tensor]}" for tensor in graph.outputs]
    lines += [f"  images {graph.images}"] * (graph.images > 1)
    lines += [f"  images of {name} along axis {axis}" for name, axis in graph.image_axes]
    lines += [f"  state {labels[s.before]} -> {labels[s.after]}{_turns(s)}" for s in graph.states]
    return "\n".join(lines) + "\n"


def _turns(state: State) -> str:
    return f" in {state.turns} turns" if state.turns > 1 else ""


def _labels(graph: Graph) -> dict[Tensor, str]:
    """Return short names: converters join names of fused layers with semicolons."""
    labels: dict[Tensor, str] = {}
    taken: dict[str, int] = {}
    for tensor in dict.fromkeys((*graph.tensors(), *graph.outputs)):
        label = ("@" if tensor.is_constant else "%") + short_name(tensor.name)
        taken[label] = taken.get(label, 0) + 1
        labels[tensor] = label if taken[label] == 1 else f"{label}#{taken[label]}"
    return labels


def type_text(type_: TensorType) -> str:
    """Return the scalar type, shape and quantisation, such as ``int8[1, 8] scale 0.5 zero 3``."""
    shape = ", ".join(map(str, type_.shape))
    text = f"{type_.dtype.value}[{shape}]"
    return f"{text} {_quantization_text(type_.quantization)}" if type_.quantization else text


def _quantization_text(quant: Quantization) -> str:
    if quant.is_per_channel:
        low, high = min(quant.scales), max(quant.scales)
        zero = "" if not any(quant.zero_points) else " with zero points"
        return f"scales {low:.9g}..{high:.9g} along axis {quant.axis}{zero}"
    return f"scale {quant.scale:.9g} zero {quant.zero_point}"


def _node_text(node: Node, labels: Mapping[Tensor, str]) -> str:
    outputs = ", ".join(labels[tensor] for tensor in node.outputs)
    types = ", ".join(type_text(tensor.type) for tensor in node.outputs)
    inputs = ", ".join(labels[tensor] for tensor in node.inputs)
    attributes = _attributes_text(node.op)
    return f"{outputs} = {node.op.name}({inputs}){attributes}: {types}  # {node.source}"


def _attributes_text(op: Operator) -> str:
    parts = [
        f"{field.name}={_value_text(value)}"
        for field in fields(op)
        if field.compare and (value := getattr(op, field.name)) != field.default
    ]
    return f" {{{', '.join(parts)}}}" if parts else ""


def _value_text(value: object) -> str:
    if isinstance(value, Enum):
        return str(value.value)
    return value.hex() if isinstance(value, bytes) else str(value)
