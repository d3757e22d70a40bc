"""Define operators that choose boxes by their scores and their overlaps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.graph.operator import Operator
from microtir.operators.common.quantization import UNUSED
from microtir.operators.common.shapes import Shape, input_shape, require
from microtir.operators.common.types import TypeRule, TypeSignature
from microtir.operators.definition import Definition


@dataclass(frozen=True, slots=True)
class NonMaxSuppression(Operator):
    """NON_MAX_SUPPRESSION_V4 and V5: numbers of the best boxes that do not overlap each other.

    Inputs: corners of boxes (N, 4), scores (N,).  Outputs: numbers of the chosen boxes, best first
    and 0 behind them; their scores, where there are three outputs; how many there are.

    Of equal scores the first box goes first.  A chosen box removes those that it overlaps by at
    least `iou_threshold`, and with a `sigma` above 0 it lowers the scores of the others.
    """

    count: int = 1
    iou_threshold: float = 0.5
    score_threshold: float = 0.0
    sigma: float = 0.0


class BoxForm(Enum):
    """The meaning of the four numbers of a box."""

    CORNERS = "corners"  # y, x, y, x of two corners, in any order
    CENTRES = "centres"  # x and y of the centre, width, height


@dataclass(frozen=True, slots=True)
class ClassNonMaxSuppression(Operator):
    """NonMaxSuppression of ONNX: the best boxes of each class that do not overlap each other.

    Inputs: boxes (B, N, 4), scores (B, C, N), the overlap above which a chosen box removes another
    one, and maybe the number that scores have to be above.  Outputs: image, class and box of what
    was chosen, zeros behind; and how many rows that is.

    Images follow each other, in them classes, and in these boxes, best first; of equal scores the
    first one.  A score that is NaN is not looked at.
    """

    count: int = 1  # of each class, at most
    form: BoxForm = BoxForm.CORNERS


@dataclass(frozen=True, slots=True)
class BestBoxes(Operator):
    """The best boxes of all classes, none of which overlaps a better one of its class.

    Inputs: boxes (N, 4), scores (C, N), or (N, C) with `classes_last`.  Outputs: boxes, scores,
    classes, best first, zeros behind; and how many there are.

    A box goes if it overlaps a better one of its class by more than `iou_threshold`; its score has
    to be above `score_threshold`.  Of equal scores the first class and box goes first.
    """

    count: int = 1
    iou_threshold: float = 0.5
    score_threshold: float = 0.0
    form: BoxForm = BoxForm.CORNERS
    classes_last: bool = False


@dataclass(frozen=True, slots=True)
class DetectionPostProcess(Operator):
    """TFLite_Detection_PostProcess: boxes, classes and scores of what was detected, best first.

    Inputs: boxes (1, N, 4 or more) relative to anchors, scores (1, N, C), anchors (N, 4).
    Outputs: corners of the boxes, classes, scores, how many there are; zeros behind them.

    Each class chooses `per_class` boxes by itself; where that is 0, each box has the class of its
    highest score, and all boxes are chosen from.  A chosen box removes those that it overlaps by
    more than `iou_threshold`.  If there is one class more than `classes`, the first one is the
    background and is not looked at.
    """

    count: int = 1
    classes: int = 1
    per_class: int = 0
    iou_threshold: float = 0.5
    score_threshold: float = 0.0
    scales: tuple[float, float, float, float] = (1.0, 1.0, 1.0, 1.0)  # of y, x, height, width


def background(node: Node) -> int:
    """Return the number of columns of scores that are of the background: 0 or 1."""
    return node.inputs[1].shape[2] - node.attributes(DetectionPostProcess).classes


def _non_max_suppression_shapes(node: Node) -> tuple[Shape, ...]:
    op, boxes = node.attributes(NonMaxSuppression), input_shape(node, 0, 2)
    require(boxes[1] == 4, f"boxes of shape {boxes}", "four corners of each")
    scores = node.inputs[1].shape
    require(scores == boxes[:1], f"scores of shape {scores} of {boxes[0]} boxes", "one of each")
    require(op.count >= 1, f"{op.count} boxes are chosen", "1 or more")
    numbers = (not math.isnan(op.iou_threshold)) and op.iou_threshold > 0
    require(numbers, f"the overlap that removes a box is {op.iou_threshold}", "above 0")
    chosen = (op.count,)
    return (chosen, ()) if len(node.outputs) == 2 else (chosen, chosen, ())


def _class_suppression_shapes(node: Node) -> tuple[Shape, ...]:
    op = node.attributes(ClassNonMaxSuppression)
    boxes, scores = input_shape(node, 0, 3), input_shape(node, 1, 3)
    require(boxes[2] == 4, f"boxes of shape {boxes}", "four numbers of each")
    fits = scores[0] == boxes[0] and scores[2] == boxes[1]
    require(fits, f"scores of shape {scores}", f"({boxes[0]}, classes, {boxes[1]})")
    for limit in node.inputs[2:]:
        require(limit.shape == (), f"a threshold of shape {limit.shape}", "a scalar")
    legal = f"1 to the {boxes[1]} that there are"
    require(1 <= op.count <= boxes[1], f"{op.count} boxes of each class are chosen", legal)
    return (scores[0] * scores[1] * op.count, 3), (1,)


def _best_boxes_shapes(node: Node) -> tuple[Shape, ...]:
    op, boxes, scores = node.attributes(BestBoxes), input_shape(node, 0, 2), input_shape(node, 1, 2)
    require(boxes[1] == 4, f"boxes of shape {boxes}", "four numbers of each")
    of_box = scores[0 if op.classes_last else 1]
    require(of_box == boxes[0], f"scores of shape {scores} of {boxes[0]} boxes", "one of each")
    most = scores[0] * scores[1]
    require(1 <= op.count <= most, f"the {op.count} best of {most}", f"1 to {most}")
    require(0 <= op.iou_threshold <= 1, f"an overlap of {op.iou_threshold}", "0 to 1")
    return (op.count, 4), (op.count,), (op.count,), (1,)


def _detection_shapes(node: Node) -> tuple[Shape, ...]:
    op, boxes = node.attributes(DetectionPostProcess), input_shape(node, 0, 3)
    scores, anchors = input_shape(node, 1, 3), input_shape(node, 2, 2)
    require(boxes[0] == 1 and boxes[2] >= 4, f"boxes of shape {boxes}", "(1, N, 4 or more)")
    require(scores[:2] == boxes[:2], f"scores of shape {scores}", f"(1, {boxes[1]}, classes)")
    require(anchors == (boxes[1], 4), f"anchors of shape {anchors}", f"({boxes[1]}, 4)")
    require(op.classes >= 1, f"{op.classes} classes", "1 or more")
    legal = f"{op.classes}, or {op.classes + 1} with the background"
    require(background(node) in (0, 1), f"scores of {scores[2]} classes", legal)
    require(op.count >= 1, f"{op.count} detections", "1 or more")
    require(op.per_class >= 0, f"{op.per_class} detections of a class", "1 or more")
    require(0 < op.iou_threshold <= 1, f"an overlap of {op.iou_threshold}", "above 0, at most 1")
    require(all(op.scales), f"scales of {op.scales}", "none of 0")
    return (1, op.count, 4), (1, op.count), (1, op.count), (1,)


_F32, _I32 = DType.FLOAT32, DType.INT32

DEFINITIONS = (
    Definition(
        NonMaxSuppression,
        TypeRule(
            (TypeSignature((_F32,), _I32, (_I32,)), TypeSignature((_F32,), _I32, (_F32, _I32)))
        ),
        UNUSED,
        shapes=_non_max_suppression_shapes,
        inputs=(2, 2),
        outputs=3,
        limits="constant count, thresholds and sigma",
    ),
    Definition(
        ClassNonMaxSuppression,
        TypeRule(tuple(TypeSignature((_F32,), rows, (_I32,)) for rows in (_I32, DType.INT64))),
        UNUSED,
        shapes=_class_suppression_shapes,
        inputs=(3, 4),
        outputs=2,
        limits="constant count",
    ),
    Definition(
        BestBoxes,
        TypeRule((TypeSignature((_F32,), _F32, (_F32, _I32, _I32)),)),
        UNUSED,
        shapes=_best_boxes_shapes,
        inputs=(2, 2),
        outputs=4,
        limits="constant count and thresholds",
    ),
    Definition(
        DetectionPostProcess,
        TypeRule((TypeSignature((_F32,), _F32),)),
        UNUSED,
        shapes=_detection_shapes,
        inputs=(3, 3),
        outputs=4,
        limits="one class of each box, or each class by itself",
    ),
)
