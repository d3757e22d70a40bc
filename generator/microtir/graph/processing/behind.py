"""Steps from what a model gives to what an application wants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from microtir.config.processing import ELEMENTWISE, Processing, ProcessingStep, StepKind
from microtir.dtype import DType
from microtir.errors import ConfigError
from microtir.graph.ir import Graph, Quantization, Tensor, TensorType
from microtir.graph.operator import Operator
from microtir.graph.passes.rewrite import named_apart, substitute
from microtir.graph.processing.chain import Chain, each_processing, file_of
from microtir.operators.activations.definition import Logistic
from microtir.operators.ranking.definition import TopK
from microtir.operators.reduction.definition import ArgMax
from microtir.operators.softmax.definition import Softmax

_WHERE = "append"
_SHARES = Quantization((1 / 256,), (-128,))
_SQUASHED: dict[StepKind, Operator] = {
    StepKind.SOFTMAX: Softmax(),
    StepKind.SIGMOID: Logistic(),
}


def with_appended(graph: Graph, asked: Sequence[Processing]) -> Graph:
    """Return the graph with steps behind outputs; the results have the names of these.

    Args:
        graph: as it was read.
        asked: steps of outputs.

    Raises:
        ConfigError: there is no such output, or a step cannot be computed for it.
    """
    for given, processing in each_processing(asked, graph.results, _WHERE):
        _check_rows(graph, given, processing)
        inside = replace(given, name=f"{given.name}/appended")
        chain = Chain(_WHERE, file_of(graph), f"{given.name}_appended", inside)
        results: tuple[Tensor, ...] = ()
        for step in processing.steps:
            results = _step(chain, step)
        named = {
            result: replace(result, name=f"{given.name}_places" if n else given.name)
            for n, result in enumerate(results)
        }
        nodes = [substitute(node, {given: inside}) for node in graph.nodes]
        added = [substitute(node, named) for node in chain.nodes]
        outputs = [tuple(named.values()) if t is given else (t,) for t in graph.outputs]
        graph = replace(
            graph,
            inputs=tuple(inside if t is given else t for t in graph.inputs),
            outputs=tuple(t for some in outputs for t in some),
            nodes=(*nodes, *added),
        )
    return named_apart(graph) if asked else graph


def _check_rows(graph: Graph, given: Tensor, processing: Processing) -> None:
    """Refuse steps that would take rows which are not in use for results."""
    if given.name not in {counted.name for counted in graph.counted}:
        return
    legal = (*ELEMENTWISE, StepKind.DEQUANTIZE)
    for step in processing.steps:
        if step.kind not in legal:
            raise ConfigError(
                f"the step '{step}' cannot be computed: data say how many rows of '{given.name}'"
                " are in use",
                where=_WHERE,
                legal=", ".join(kind.value for kind in legal),
            )


def _step(chain: Chain, step: ProcessingStep) -> tuple[Tensor, ...]:
    """Add a step; return what it gives."""
    type_, text = chain.value.type, str(step)
    if step.kind in ELEMENTWISE:
        chain.elementwise(step)
    elif step.kind is StepKind.DEQUANTIZE:
        chain.as_float(text)
    elif step.kind is StepKind.ARGMAX:
        return chain.emit(
            ArgMax(len(type_.shape) - 1), text, TensorType(type_.shape[:-1], DType.INT32)
        )
    elif step.kind is StepKind.TOPK:
        return chain.emit(TopK(int(step.numbers[0])), text, type_, second=DType.INT32)
    else:
        is_int8 = type_.dtype is DType.INT8
        squashed = replace(type_, quantization=_SHARES) if is_int8 else type_
        chain.emit(_SQUASHED[step.kind], text, squashed)
    return (chain.value,)
