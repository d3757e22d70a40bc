"""Read TFLite's operators that choose boxes."""

from __future__ import annotations

import math

from microtir.operators.common import tflite_flexbuffer, tflite_schema
from microtir.operators.common.tflite_operands import Converted, Operands, TfliteReader
from microtir.operators.detection.definition import DetectionPostProcess, NonMaxSuppression


def non_max_suppression(operands: Operands) -> Converted:
    """Read boxes, scores, the number of boxes, thresholds of overlap and score, maybe sigma."""
    has_sigma = len(operands.inputs) == 6
    if len(operands.outputs) != 2 + has_sigma:
        raise operands.malformed(f"it has {len(operands.outputs)} outputs", str(2 + has_sigma))
    op = NonMaxSuppression(
        operands.integer(2, "the number of boxes"),
        operands.number(3, "the overlap that removes a box"),
        operands.number(4, "the least score"),
        max(0.0, operands.number(5, "sigma")) if has_sigma else 0.0,
    )
    if not all(map(math.isfinite, (op.iou_threshold, op.score_threshold, op.sigma))):
        raise operands.malformed(f"its thresholds are {op}", "finite numbers")
    return Converted(op, (operands.input(0), operands.input(1)))


_PER_CLASS = 100  # detections of a class, where the file does not say


def detection_post_process(operands: Operands) -> Converted:
    """Read boxes, scores, anchors; the attributes are a map with names.

    tflite-micro writes outside of its outputs where boxes have several classes at once.
    """
    options = tflite_flexbuffer.CustomOptions.of(operands)
    classes = options.integer("num_classes")
    is_regular = bool(options.integer("use_regular_nms", 0))
    at_once = min(options.integer("max_classes_per_detection"), classes)
    if not is_regular and at_once != 1:
        raise operands.unsupported(
            f"a detection has {at_once} classes (max_classes_per_detection)",
            "1, or use_regular_nms",
            "export the model with max_classes_per_detection=1",
        )
    per_class = options.integer("detections_per_class", _PER_CLASS)
    if is_regular and per_class < 1:
        raise operands.malformed(f"a class has {per_class} detections", "1 or more")
    scales = tuple(options.number(f"{side}_scale") for side in "yxhw")
    op = DetectionPostProcess(
        options.integer("max_detections"),
        classes,
        per_class if is_regular else 0,
        options.number("nms_iou_threshold"),
        options.number("nms_score_threshold"),
        (scales[0], scales[1], scales[2], scales[3]),
    )
    if len(operands.outputs) != 4:
        raise operands.malformed(f"it has {len(operands.outputs)} outputs", "4")
    return Converted(op, operands.present)


READERS = (
    TfliteReader(
        NonMaxSuppression,
        tflite_schema.BuiltinOperator.NON_MAX_SUPPRESSION_V4,
        non_max_suppression,
        inputs=(5, 5),
        outputs=2,
    ),
    TfliteReader(
        NonMaxSuppression,
        tflite_schema.BuiltinOperator.NON_MAX_SUPPRESSION_V5,
        non_max_suppression,
        inputs=(6, 6),
        outputs=3,
    ),
    TfliteReader(
        DetectionPostProcess,
        "TFLite_Detection_PostProcess",
        detection_post_process,
        inputs=(3, 3),
        outputs=4,
    ),
)
