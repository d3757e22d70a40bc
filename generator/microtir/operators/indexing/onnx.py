"""Read ONNX's operators that take elements by index."""

from __future__ import annotations

from microtir.graph.ir import Tensor
from microtir.operators.common.onnx_operands import OnnxNode, OnnxReader
from microtir.operators.indexing.definition import Gather
from microtir.operators.indexing.onnx_elements import (
    compress,
    counted,
    gather_elements,
    gather_nd,
    image_from_columns,
    one_hot,
    reverse_sequence,
    scatter_elements,
    scatter_nd,
    tensor_scatter,
)


def gather(node: OnnxNode) -> Tensor:
    """Read Gather; negative indices count from the end of the axis."""
    data, indices = node.input(0), node.input(1)
    axis = node.axis(node.integer("axis", 0), len(data.shape))
    return node.emit(Gather(axis), data, counted(node, indices, data.shape[axis]))


_SCATTER = ("axis", "reduction")

ONNX_READERS = (
    OnnxReader("Gather", gather, (2, 2), ("axis",)),
    OnnxReader("GatherElements", gather_elements, (2, 2), ("axis",)),
    OnnxReader("GatherND", gather_nd, (2, 2), ("batch_dims",)),
    OnnxReader("ScatterElements", scatter_elements, (3, 3), _SCATTER),
    OnnxReader("Scatter", scatter_elements, (3, 3), ("axis",)),
    OnnxReader("ScatterND", scatter_nd, (3, 3), ("reduction",)),
    OnnxReader("TensorScatter", tensor_scatter, (2, 3), ("axis", "mode")),
    OnnxReader("Col2Im", image_from_columns, (3, 3), ("dilations", "pads", "strides")),
    OnnxReader("Compress", compress, (2, 2), ("axis",)),
    OnnxReader("OneHot", one_hot, (3, 3), ("axis",)),
    OnnxReader("ReverseSequence", reverse_sequence, (2, 2), ("batch_axis", "time_axis")),
)
