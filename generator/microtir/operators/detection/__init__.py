"""Join what the sibling files say of operators that choose boxes."""

from microtir.operators.common.formula import WrittenFunction
from microtir.operators.detection import definition as detection
from microtir.operators.detection import formula, meaning, tflite
from microtir.operators.record import join

RECORDS = join(
    detection.DEFINITIONS,
    {
        detection.NonMaxSuppression: (
            meaning.non_max_suppression,
            WrittenFunction(formula.non_max_suppression, formula.non_max_suppression_bytes),
        ),
        detection.ClassNonMaxSuppression: (
            meaning.class_non_max_suppression,
            WrittenFunction(
                formula.class_non_max_suppression,
                lambda node: node.inputs[0].shape[1],
                formula.class_suppression_cost,
            ),
        ),
        detection.BestBoxes: (
            meaning.best_boxes,
            WrittenFunction(
                formula.best_boxes, formula.best_boxes_bytes, formula.class_suppression_cost
            ),
        ),
        detection.DetectionPostProcess: (
            meaning.detection_post_process,
            WrittenFunction(formula.detection_post_process, formula.detection_bytes),
        ),
    },
    tflite.READERS,
)
