"""Read ONNX's operators that take elements by index."""

from __future__ import annotations

import numpy as np

from microtir.graph.ir import Array, Tensor
from microtir.operators.common.onnx_operands import MICROSOFT, OnnxNode, OnnxReader
from microtir.operators.common.onnx_parts import along, reshaped
from microtir.operators.indexing import onnx_elements
from microtir.operators.indexing.definition import Gather


def gather(node: OnnxNode) -> Tensor:
    """Read Gather; negative indices count from the end of the axis.

    Known indices that are equally far apart, or one, are those of a slice.
    """
    data, indices = node.input(0), node.input(1)
    axis = node.axis(node.integer("axis", 0), len(data.shape))
    if node.emitter.is_place(indices):
        return node.emit(Gather(axis), data, indices)
    places = onnx_elements.counted(node, indices, data.shape[axis])
    step = _step(places.data, data.shape[axis])
    if step is None or places.data is None:
        return node.emit(Gather(axis), data, places)
    taken = along(node, data, axis, int(places.data.flat[0]), places.type.elements, step)
    return reshaped(node, taken, *data.shape[:axis], *indices.shape, *data.shape[axis + 1 :])


def _step(places: Array | None, extent: int) -> int | None:
    """Return how far apart indices are, if that is known and one number, and all of them legal."""
    if places is None or not places.size or not ((places >= 0) & (places < extent)).all():
        return None
    steps = set(np.diff(places.reshape(-1).astype(np.int64)).tolist()) or {1}
    return steps.pop() if len(steps) == 1 and 0 not in steps else None


_SCATTER = ("axis", "reduction")

ONNX_READERS = (
    OnnxReader("Gather", gather, (2, 2), ("axis",)),
    OnnxReader("GatherElements", onnx_elements.gather_elements, (2, 2), ("axis",)),
    OnnxReader("GatherND", onnx_elements.gather_nd, (2, 2), ("batch_dims",)),
    OnnxReader("GatherND", onnx_elements.gather_nd, (2, 2), domain=MICROSOFT),
    OnnxReader("ScatterElements", onnx_elements.scatter_elements, (3, 3), _SCATTER),
    OnnxReader("Scatter", onnx_elements.scatter_elements, (3, 3), ("axis",)),
    OnnxReader("ScatterND", onnx_elements.scatter_nd, (3, 3), ("reduction",)),
    OnnxReader("TensorScatter", onnx_elements.tensor_scatter, (2, 3), ("axis", "mode")),
    OnnxReader(
        "Col2Im", onnx_elements.image_from_columns, (3, 3), ("dilations", "pads", "strides")
    ),
    OnnxReader("Compress", onnx_elements.compress, (2, 2), ("axis",)),
    OnnxReader("NonZero", onnx_elements.non_zero),
    OnnxReader("OneHot", onnx_elements.one_hot, (3, 3), ("axis",)),
    OnnxReader(
        "ReverseSequence", onnx_elements.reverse_sequence, (2, 2), ("batch_axis", "time_axis")
    ),
)
