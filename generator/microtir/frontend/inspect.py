"""Facts about a model's graph: layers, shapes, quantisation, parameters, work.

All fields are plain values, so that `dataclasses.asdict` gives what JSON can hold.
"""

from __future__ import annotations

from dataclasses import dataclass

from microtir.errors import UsageError
from microtir.graph.ir import Node, Tensor
from microtir.module.ir_module import IRModule
from microtir.rewrite.facts.macs import macs
from microtir.support.arguments import checked_arguments


@dataclass(frozen=True, slots=True)
class TensorSummary:
    """A tensor; `scales` and `zero_points` are empty where it is not quantised."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    is_constant: bool
    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int | None  # dimension of per-channel scales


@dataclass(frozen=True, slots=True)
class LayerSummary:
    """A node. Parameters are its constants, counted in elements and in bytes."""

    index: int  # the operator's position in the model file; -1 for a copy that it does not have
    name: str
    operator: str  # of the graph
    source_operator: str  # of the model file
    inputs: tuple[TensorSummary, ...]
    outputs: tuple[TensorSummary, ...]
    parameters: int
    parameter_bytes: int
    macs: int


@dataclass(frozen=True, slots=True)
class ModelSummary:
    """A model. Totals count a constant that several layers share once."""

    name: str
    source_sha256: str
    source_bytes: int
    inputs: tuple[TensorSummary, ...]
    outputs: tuple[TensorSummary, ...]
    layers: tuple[LayerSummary, ...]
    parameters: int
    parameter_bytes: int
    macs: int


@checked_arguments
def inspect(module: IRModule) -> ModelSummary:
    """Summarise the graph of a module that a frontend has read.

    Raises:
        UsageError: the module has no graph.
    """
    graph = module.graph
    if graph is None:
        raise UsageError(
            "the module holds functions and no graph",
            where="inspect",
            legal="a module from `microtir.frontend`",
            fix="inspect the model before it is lowered",
        )
    constants = [tensor for tensor in graph.tensors() if tensor.is_constant]
    layers = tuple(map(_layer, graph.nodes))
    return ModelSummary(
        name=graph.name,
        source_sha256=graph.source_sha256,
        source_bytes=graph.source_bytes,
        inputs=_tensors(graph.arguments),
        outputs=_tensors(graph.results),
        layers=layers,
        parameters=sum(tensor.type.elements for tensor in constants),
        parameter_bytes=sum(tensor.type.bytes for tensor in constants),
        macs=sum(layer.macs for layer in layers),
    )


def _layer(node: Node) -> LayerSummary:
    constants = [tensor for tensor in dict.fromkeys(node.inputs) if tensor.is_constant]
    return LayerSummary(
        index=node.source.index,
        name=node.name,
        operator=node.op.name,
        source_operator=node.source.operator,
        inputs=_tensors(node.inputs),
        outputs=_tensors(node.outputs),
        parameters=sum(tensor.type.elements for tensor in constants),
        parameter_bytes=sum(tensor.type.bytes for tensor in constants),
        macs=macs(node),
    )


def _tensors(tensors: tuple[Tensor, ...]) -> tuple[TensorSummary, ...]:
    return tuple(map(_tensor, tensors))


def _tensor(tensor: Tensor) -> TensorSummary:
    quantization = tensor.type.quantization
    return TensorSummary(
        name=tensor.name,
        shape=tensor.shape,
        dtype=tensor.dtype.value,
        bytes=tensor.type.bytes,
        is_constant=tensor.is_constant,
        scales=quantization.scales if quantization else (),
        zero_points=quantization.zero_points if quantization else (),
        axis=quantization.axis if quantization else None,
    )
