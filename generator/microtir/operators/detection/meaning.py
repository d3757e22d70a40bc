"""Define in numpy what operators compute that choose boxes."""

from __future__ import annotations

import numpy as np

from microtir.graph.ir import Array, Node
from microtir.operators.detection.definition import (
    BestBoxes,
    BoxForm,
    ClassNonMaxSuppression,
    DetectionPostProcess,
    NonMaxSuppression,
    background,
)


def _overlaps(corners: Array, of: int) -> Array:
    """Return the intersection of a box with each over their union; 0 of a box without area."""
    low, high = corners[:, :2], corners[:, 2:]
    sides = high - low
    area = sides[:, 0] * sides[:, 1]
    shared = np.maximum(np.minimum(high, high[of]) - np.maximum(low, low[of]), np.float32(0))
    inside = shared[:, 0] * shared[:, 1]
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = inside / (area + area[of] - inside)
    return np.asarray(np.where((area > 0) & (area[of] > 0), ratio, np.float32(0)))


def non_max_suppression(
    op: NonMaxSuppression, node: Node, boxes: Array, scores: Array
) -> tuple[Array, ...]:
    """Compute NON_MAX_SUPPRESSION_V4 and V5."""
    low = np.minimum(boxes[:, :2], boxes[:, 2:])
    corners = np.concatenate([low, np.maximum(boxes[:, :2], boxes[:, 2:])], axis=1)
    threshold = np.float32(op.score_threshold)
    left = np.where(scores > threshold, scores, np.float32(-np.inf))
    chosen, values = np.zeros(op.count, np.int32), np.zeros(op.count, np.float32)
    number, most = 0, min(op.count, int((left > -np.inf).sum()))
    while number < most and left.max() > -np.inf:
        best = int(left.argmax())
        chosen[number], values[number] = best, left[best]
        number += 1
        overlaps = _overlaps(corners, best)
        if op.sigma > 0:
            power = np.float32(-0.5 / op.sigma) * overlaps * overlaps
            left = left * np.exp(power.astype(np.float64)).astype(np.float32)
            left = np.where(left > threshold, left, np.float32(-np.inf))
        left = np.where(overlaps >= np.float32(op.iou_threshold), np.float32(-np.inf), left)
    count = np.array(number, np.int32)
    return (chosen, count) if len(node.outputs) == 2 else (chosen, values, count)


def _corners(form: BoxForm, boxes: Array) -> Array:
    first, second = boxes[:, :2], boxes[:, 2:]
    if form is BoxForm.CENTRES:
        half = second * np.float32(0.5)
        return np.concatenate([first - half, first + half], axis=1)
    return np.concatenate([np.minimum(first, second), np.maximum(first, second)], axis=1)


def _best_of_class(
    corners: Array, scores: Array, most: int, iou: Array | float, least: Array | None
) -> list[int]:
    """Return the boxes that one class chooses, best first."""
    is_left = scores == scores
    if least is not None:
        is_left &= scores > least
    chosen: list[int] = []
    while is_left.any() and len(chosen) < most:
        places = np.flatnonzero(is_left)
        best = int(places[scores[places].argmax()])
        chosen.append(best)
        is_left &= ~(_overlaps(corners, best) > np.float32(iou))
        is_left[best] = False
    return chosen


def class_non_max_suppression(
    op: ClassNonMaxSuppression, node: Node, boxes: Array, scores: Array, iou: Array, *least: Array
) -> tuple[Array, Array]:
    """Compute NonMaxSuppression of ONNX."""
    selected = [
        (image, kind, box)
        for image, kind in np.ndindex(scores.shape[:2])
        for box in _best_of_class(
            _corners(op.form, boxes[image]), scores[image, kind], op.count, iou, *least or (None,)
        )
    ]
    rows = np.zeros(node.outputs[0].shape, node.outputs[0].dtype.value)
    rows[: len(selected)] = np.array(selected).reshape(-1, 3)
    return rows, np.array([len(selected)], np.int32)


def best_boxes(op: BestBoxes, node: Node, boxes: Array, scores: Array) -> tuple[Array, ...]:
    """Compute BestBoxes: all classes choose, and the best of these stay."""
    by_class, corners = scores.T if op.classes_last else scores, _corners(op.form, boxes)
    least = np.float32(op.score_threshold)
    chosen_boxes = [
        (kind, box)
        for kind, of_class in enumerate(by_class)
        for box in _best_of_class(corners, of_class, op.count, op.iou_threshold, np.array(least))
    ]
    chosen_boxes.sort(key=lambda pair: -by_class[pair])
    chosen_boxes = chosen_boxes[: op.count]
    places, values, kinds, number = (np.zeros(t.shape, t.dtype.value) for t in node.outputs)
    for at, (kind, box) in enumerate(chosen_boxes):
        places[at], values[at], kinds[at] = boxes[box], by_class[kind, box], kind
    number[0] = len(chosen_boxes)
    return places, values, kinds, number


def _decoded(op: DetectionPostProcess, boxes: Array, anchors: Array) -> Array:
    """Return corners of boxes; each step is in double, and rounded once, as tflite-micro does."""
    relative = boxes[0, :, :4].astype(np.float64) / np.array(op.scales, np.float64)
    anchor = anchors.astype(np.float64)
    centres = (relative[:, :2] * anchor[:, 2:] + anchor[:, :2]).astype(np.float32)
    with np.errstate(over="ignore"):
        halves = (0.5 * np.exp(relative[:, 2:]) * anchor[:, 2:]).astype(np.float32)
    return np.concatenate([centres - halves, centres + halves], axis=1)


def _selected(op: DetectionPostProcess, corners: Array, scores: Array, most: int) -> list[int]:
    """Return the boxes that one class chooses, best first."""
    left = np.where(scores >= np.float32(op.score_threshold), scores, np.float32(-np.inf))
    chosen: list[int] = []
    while len(chosen) < most and left.max() > -np.inf:
        best = int(left.argmax())
        chosen.append(best)
        removed = _overlaps(corners, best) > np.float32(op.iou_threshold)
        left = np.where(removed, np.float32(-np.inf), left)
        left[best] = -np.inf
    return chosen


def detection_post_process(
    op: DetectionPostProcess, node: Node, boxes: Array, scores: Array, anchors: Array
) -> tuple[Array, ...]:
    """Compute TFLite_Detection_PostProcess."""
    corners = _decoded(op, boxes, anchors)
    of_classes = scores[0, :, background(node) :]
    if op.per_class:
        selected = [
            (box, kind)
            for kind in range(op.classes)
            for box in _selected(op, corners, of_classes[:, kind], op.per_class)
        ]
        selected.sort(key=lambda pair: -of_classes[pair])
    else:
        best = of_classes.argmax(axis=1)
        highest = of_classes.max(axis=1)
        selected = [(box, int(best[box])) for box in _selected(op, corners, highest, op.count)]
    selected = selected[: op.count]
    places, kinds, values = (np.zeros(t.shape, np.float32) for t in node.outputs[:3])
    for at, (box, kind) in enumerate(selected):
        places[0, at], kinds[0, at], values[0, at] = corners[box], kind, of_classes[box, kind]
    return places, kinds, values, np.array([len(selected)], np.float32)
