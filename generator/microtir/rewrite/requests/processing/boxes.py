"""The best boxes of a detector that do not overlap each other, of its boxes and scores."""

from __future__ import annotations

import math

from microtir.config.processing import ProcessingStep, Suppression
from microtir.dtype import DType
from microtir.errors import ConfigError, nearest
from microtir.graph.ir import Graph, Tensor, TensorType
from microtir.operators.detection.definition import BestBoxes, BoxForm
from microtir.operators.movement.definition import Reshape
from microtir.rewrite.requests.processing.chain import Chain

_CORNERS = 4


def scores_of(graph: Graph, boxes: Tensor, asked: Suppression, where: str) -> Tensor:
    """Return the output that has the scores of boxes.

    Raises:
        ConfigError: no other output is called so.
    """
    others = {tensor.name: tensor for tensor in graph.results if tensor is not boxes}
    name = graph.port_name(asked.scores)
    if name not in others:
        raise ConfigError(
            f"no output other than '{boxes.name}' is called '{name}'{nearest(name, list(others))}",
            where=where,
            legal=", ".join(others) or "none: the model has only one output",
        )
    return others[name]


def suppressed(boxes: Chain, scores: Chain, step: ProcessingStep) -> tuple[Tensor, ...]:
    """Add the choice of boxes: these, their scores and classes, and how many there are.

    Args:
        boxes: what is computed of the output with boxes; all nodes are added here.
        scores: what is computed of the output with scores.
        step: says how they are chosen.
    """
    asked, text = step.suppression, str(step)
    assert asked is not None, "the reader of the step"
    count = _rows(boxes.value.shape, step, boxes.where)
    shape, is_last = _by_class(scores.value.shape, count, step, boxes.where)
    for chain, wanted in ((boxes, (count, _CORNERS)), (scores, shape)):
        chain.as_float(text)
        if chain.value.shape != wanted:
            chain.emit(Reshape(), text, TensorType(wanted, DType.FLOAT32))
    boxes.nodes += scores.nodes
    op = BestBoxes(
        min(asked.most, math.prod(shape)),
        asked.overlap,
        asked.least,
        BoxForm.CENTRES if asked.is_centred else BoxForm.CORNERS,
        is_last,
    )
    real, number = (TensorType((), dtype) for dtype in (DType.FLOAT32, DType.INT32))
    return boxes.emit_several(op, text, (real, real, number, number), scores.value)


def _rows(shape: tuple[int, ...], step: ProcessingStep, where: str) -> int:
    """Return how many boxes a tensor has."""
    if len(shape) < 2 or shape[-1] != _CORNERS or math.prod(shape[:-2]) != 1:
        raise ConfigError(
            f"the step '{step}' is for boxes, and the shape is {shape}",
            where=where,
            legal="(1, N, 4) or (N, 4): the boxes of one image",
        )
    return shape[-2]


def _by_class(
    shape: tuple[int, ...], count: int, step: ProcessingStep, where: str
) -> tuple[tuple[int, int], bool]:
    """Return scores as a matrix, and whether a row is the scores of one box."""
    matrix = shape[-2:] if len(shape) > 1 else (1, *shape)
    if math.prod(shape) == count:
        return (1, count), False
    if math.prod(shape) != math.prod(matrix) or matrix.count(count) != 1:
        raise ConfigError(
            f"the step '{step}' has scores of the shape {shape} for {count} boxes",
            where=where,
            legal=f"(1, {count}, C), (1, C, {count}) or ({count},), where the number of classes C"
            " is not the number of boxes",
        )
    return (matrix[0], matrix[1]), matrix[0] == count
