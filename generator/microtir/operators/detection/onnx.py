"""Read ONNX's operator that chooses boxes."""

from __future__ import annotations

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Tensor, TensorType
from microtir.operators.common.onnx_operands import OnnxNode, OnnxReader
from microtir.operators.common.onnx_parts import reshaped, with_row_count
from microtir.operators.detection.definition import BoxForm, ClassNonMaxSuppression


def non_max_suppression(node: OnnxNode) -> Tensor:
    """Read NonMaxSuppression; thresholds may be computed, the number of boxes is known."""
    boxes, scores = node.input(0), node.input(1)
    form = node.integer("center_point_box", 0)
    if form not in (0, 1):
        raise node.malformed(f"the attribute 'center_point_box' is {form}", "0 or 1")
    asked = 0
    if node.optional(2) is not None:
        most = node.known(2, "the limit of boxes of a class").reshape(-1)
        if most.size != 1:
            raise node.malformed(f"{most.size} numbers of boxes", "1")
        asked = int(most[0])
    count = min(asked, boxes.shape[1] if len(boxes.shape) > 1 else 0)
    if count < 1 or not scores.type.elements:
        return node.constant(np.zeros((0, 3), np.int64))
    limits = [_overlap(node)]
    if node.optional(4) is not None:
        limits.append(reshaped(node, node.input(4)))
    op = ClassNonMaxSuppression(count, (BoxForm.CORNERS, BoxForm.CENTRES)[form])
    types = TensorType((), DType.INT64), TensorType((), DType.INT32)
    rows, number = node.emitter.emit(op, (boxes, scores, *limits), types)
    return with_row_count(node, rows, 0, number)


def _overlap(node: OnnxNode) -> Tensor:
    """Return the overlap above which a box is removed; a known one has to be a share."""
    if node.optional(3) is None:
        return node.constant(np.array(0, np.float32))
    limit = reshaped(node, node.input(3))
    if limit.data is not None and not 0 <= float(limit.data) <= 1:
        raise node.malformed(f"the overlap that removes a box is {limit.data}", "0 to 1")
    return limit


ONNX_READERS = (
    OnnxReader("NonMaxSuppression", non_max_suppression, (2, 5), ("center_point_box",)),
)
