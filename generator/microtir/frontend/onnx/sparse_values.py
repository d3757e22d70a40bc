"""Write out tensors of which a file stores the elements that are not zero."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from microtir.errors import ModelFileError
from microtir.frontend.onnx.inner_graphs import graphs_of
from microtir.graph.ir import Array
from microtir.graph.names import brief

if TYPE_CHECKING:
    import onnx

MAX_DENSE_BYTES = 1 << 28
"""Limit of the bytes of all sparse tensors of a file, written out."""


def make_dense(model: onnx.ModelProto, file: str) -> None:
    """Replace sparse initialisers and constants of a model by dense ones.

    Raises:
        ModelFileError: places lie outside of the shape, or there are too many elements.
    """
    left = MAX_DENSE_BYTES
    for graph in graphs_of(model.graph):
        for sparse in graph.sparse_initializer:
            dense = _dense(sparse, f"{file}: tensor {brief(sparse.values.name)!r}", left)
            left -= len(dense.raw_data)
            graph.initializer.append(dense)
        del graph.sparse_initializer[:]
        for node in graph.node:
            for attribute in node.attribute:
                if node.op_type == "Constant" and attribute.HasField("sparse_tensor"):
                    dense = _dense(attribute.sparse_tensor, f"{file}: {node.op_type}", left)
                    left -= len(dense.raw_data)
                    attribute.Clear()
                    attribute.name, attribute.type = "value", attribute.TENSOR
                    attribute.t.CopyFrom(dense)


def _dense(sparse: onnx.SparseTensorProto, where: str, left: int) -> onnx.TensorProto:
    from onnx import numpy_helper

    shape = tuple(sparse.dims)
    if min(shape, default=0) < 0 or math.prod(shape) * 8 > left:
        raise ModelFileError(
            f"it is sparse and has the shape {brief(str(shape))}",
            where=where,
            legal=f"at most {MAX_DENSE_BYTES} bytes when all sparse tensors are expanded",
            fix="export the model again",
        )
    data = _written_out(sparse, shape)
    if data is None:
        raise ModelFileError(
            f"it is sparse, and its values and indices do not fit its shape {shape}",
            where=where,
            legal="one index inside the shape for each value",
            fix="export the model again",
        )
    return numpy_helper.from_array(data, sparse.values.name)


def _written_out(sparse: onnx.SparseTensorProto, shape: tuple[int, ...]) -> Array | None:
    """Return all elements; None where values have no places, or places that are none."""
    from onnx import numpy_helper

    try:
        values = numpy_helper.to_array(sparse.values).reshape(-1)
        places = numpy_helper.to_array(sparse.indices)
        if places.ndim == 2:  # a row of numbers for each value, one for each axis
            places = np.ravel_multi_index(tuple(places.T), shape)
    except (ValueError, TypeError):
        return None
    size = math.prod(shape)
    if places.shape != values.shape or not all(0 <= place < size for place in places.tolist()):
        return None
    data = np.zeros(size, values.dtype)
    data[places] = values
    return data.reshape(shape)
