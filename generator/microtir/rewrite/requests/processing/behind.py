"""Steps from what a model gives to what an application wants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from microtir.config.processing import (
    ELEMENTWISE,
    Processing,
    ProcessingStep,
    StepKind,
    Suppression,
)
from microtir.dtype import DType
from microtir.errors import ConfigError
from microtir.graph.ir import CountedResult, Graph, Quantization, Tensor, TensorType
from microtir.graph.operator import Operator
from microtir.graph.rewriting import Keeps, Rewrite, named_apart, substitute
from microtir.operators.activations.definition import Logistic
from microtir.operators.ranking.definition import TopK
from microtir.operators.reduction.definition import ArgMax
from microtir.operators.softmax.definition import Softmax
from microtir.rewrite.requests.processing.boxes import scores_of, suppressed
from microtir.rewrite.requests.processing.chain import Chain, each_processing, file_of

_WHERE = "append"
_SHARES = Quantization((1 / 256,), (-128,))
_SQUASHED: dict[StepKind, Operator] = {
    StepKind.SOFTMAX: Softmax(),
    StepKind.SIGMOID: Logistic(),
}


@dataclass(frozen=True, slots=True)
class Append(Rewrite):
    """Puts steps behind outputs; the results have the names of these.

    Args:
        asked: steps of outputs.

    Raises:
        ConfigError: there is no such output, or a step cannot be computed for it.
    """

    asked: Sequence[Processing]
    keeps = Keeps.NOTHING

    def __call__(self, graph: Graph) -> Graph:
        pairs = list(each_processing(graph, self.asked, graph.results, _WHERE))
        # Scores may have steps of their own, which come before boxes are chosen by them.
        pairs.sort(key=lambda pair: _suppression(pair[1]) is not None)
        for output, processing in pairs:
            graph = _with_steps(graph, output, processing)
        return named_apart(graph) if self.asked else graph


def _with_steps(graph: Graph, output: Tensor, processing: Processing) -> Graph:
    """Return the graph with steps behind one output, or behind boxes and their scores."""
    _check_rows(graph, output, processing)
    chain = _chain(graph, output)
    inside = {output: chain.value}
    if _suppression(processing) is not None:
        return _with_best_boxes(graph, output, processing, chain)
    results: tuple[Tensor, ...] = ()
    for step in processing.steps:
        results = _step(chain, step)
    names = (output.name, f"{output.name}_places")[: len(results)]
    named = _named(results, names)
    return _joined(graph, chain, inside, named, {output: results})


def _with_best_boxes(graph: Graph, output: Tensor, processing: Processing, chain: Chain) -> Graph:
    """Return the graph with boxes in the place of all boxes, and their scores in that of scores."""
    *steps, last = processing.steps
    assert last.suppression is not None, "asked for before"
    scores = scores_of(graph, output, last.suppression, _WHERE)
    _check_rows(graph, scores, processing)
    of_scores = _chain(graph, scores)
    inside = {output: chain.value, scores: of_scores.value}
    for step in steps:
        _step(chain, step)
    results = suppressed(chain, of_scores, last)
    names = (output.name, scores.name, f"{output.name}_classes", f"{output.name}_count")
    boxes, chosen, classes, count = results
    instead = {output: (boxes, classes, count), scores: (chosen,)}
    joined = _joined(graph, chain, inside, _named(results, names), instead)
    counted = tuple(CountedResult(name, 0, names[-1]) for name in names[:-1])
    return replace(joined, counted=(*graph.counted, *counted))


def _named(results: Sequence[Tensor], names: Sequence[str]) -> dict[Tensor, Tensor]:
    """Return results by what they were before they had their names."""
    return {result: replace(result, name=name) for result, name in zip(results, names, strict=True)}


def _joined(
    graph: Graph,
    chain: Chain,
    inside: Mapping[Tensor, Tensor],
    named: Mapping[Tensor, Tensor],
    instead: Mapping[Tensor, tuple[Tensor, ...]],
) -> Graph:
    """Return the graph with the nodes of a chain.

    Args:
        graph: without them.
        chain: the nodes.
        inside: what outputs are that are none any more.
        named: results of the nodes by their own names.
        instead: which of these are outputs in the place of one.
    """
    nodes = [substitute(node, inside) for node in graph.nodes]
    added = [substitute(node, named) for node in chain.nodes]
    outputs = [named.get(r, r) for t in graph.outputs for r in instead.get(t, (t,))]
    return replace(
        graph,
        inputs=tuple(inside.get(t, t) for t in graph.inputs),
        outputs=tuple(outputs),
        nodes=(*nodes, *added),
    )


def _chain(graph: Graph, output: Tensor) -> Chain:
    """Return an output, with a name of its own, to which steps are added."""
    inside = replace(output, name=f"{output.name}/appended")
    return Chain(_WHERE, file_of(graph), f"{output.name}_appended", inside)


def _suppression(processing: Processing) -> Suppression | None:
    """Return how boxes are chosen, which is the last step where it is one."""
    return processing.steps[-1].suppression


def _check_rows(graph: Graph, output: Tensor, processing: Processing) -> None:
    """Refuse steps that would take rows which are not in use for results."""
    if output.name not in {counted.name for counted in graph.counted}:
        return
    legal = (*ELEMENTWISE, StepKind.DEQUANTIZE)
    for step in processing.steps:
        if step.kind not in legal:
            raise ConfigError(
                f"the step '{step}' cannot be computed, because the number of rows in use of "
                f"'{output.name}' depends on the data",
                where=_WHERE,
                legal=", ".join(kind.value for kind in legal),
            )


def _step(chain: Chain, step: ProcessingStep) -> tuple[Tensor, ...]:
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
