"""Read ONNX's constants, and operators on shapes, which are constants since shapes are known."""

from __future__ import annotations

import math

import numpy as np

from microtir.graph.ir import Array, Tensor
from microtir.operators.common.onnx_operands import MICROSOFT, MOST_MADE, OnnxNode, OnnxReader
from microtir.operators.common.onnx_types import onnx_type


def constant(node: OnnxNode) -> Tensor:
    """Read Constant, whose value one of several attributes holds."""
    if node.has("value"):
        is_text = node.tensor_of_any("value").dtype == np.object_
        return node.constant(node.tensor_of_any("value") if is_text else node.tensor("value"))
    if node.has("value_string"):
        return node.constant(np.array(node.word("value_string"), np.object_))
    if node.has("value_strings"):
        return node.constant(np.array(node.list_of_words("value_strings"), np.object_))
    if node.has("value_int"):
        return node.constant(np.array(node.integer("value_int"), np.int64))
    if node.has("value_float"):
        return node.constant(np.array(node.number("value_float"), np.float32))
    if node.has("value_ints"):
        return node.constant(np.array(node.list_of_integers("value_ints"), np.int64))
    if node.has("value_floats"):
        return node.constant(np.array(node.list_of_numbers("value_floats"), np.float32))
    raise node.unsupported(
        "it has no value",
        "a tensor, a number or string, or a list of them",
        "export it as a tensor",
    )


def constant_of_shape(node: OnnxNode) -> Tensor:
    """Read ConstantOfShape: one value everywhere, a float of 0 if nothing is said."""
    shape = node.integers(0, "the shape")
    node.check_room(*shape)
    value: Array = node.tensor("value") if node.has("value") else np.zeros(1, np.float32)
    if value.size != 1:
        raise node.malformed(f"a value of {value.size} elements", "1")
    return node.constant(np.full(shape, value.reshape(()), value.dtype))


def shape_of(node: OnnxNode) -> Tensor:
    """Read Shape, or a part of it."""
    shape = node.input(0).shape
    first = node.integer("start", 0)
    last = node.integer("end", len(shape))
    return node.constant(np.array(shape[first:last], np.int64))


def size(node: OnnxNode) -> Tensor:
    """Read Size."""
    return node.constant(np.array(node.input(0).type.elements, np.int64))


def range_(node: OnnxNode) -> Tensor:
    """Read Range, of known bounds; com.microsoft's goes by 1 where it has no step."""
    start, limit = (node.known_number(index, name) for index, name in enumerate(("start", "limit")))
    is_by_one = len(node.inputs) == 2
    delta: Array = np.ones((), start.dtype) if is_by_one else node.known_number(2, "delta")
    steps = (float(limit) - float(start)) / float(delta) if delta else math.nan
    count = math.ceil(steps) if math.isfinite(steps) else -1
    if not 0 <= count <= MOST_MADE:
        raise node.malformed(
            f"a range from {start} to {limit} by {delta}", f"at most {MOST_MADE} numbers"
        )
    node.check_room(count)
    numbers = np.arange(count).astype(start.dtype)
    return node.constant((start + numbers * delta).astype(start.dtype))


def eye_like(node: OnnxNode) -> Tensor:
    """Read EyeLike: ones on a diagonal of a matrix of the input's shape."""
    x = node.input(0)
    if len(x.shape) != 2:
        raise node.malformed(f"a tensor of shape {x.shape}", "a matrix")
    node.check_room(*x.shape)
    ones = np.eye(*x.shape, k=node.integer("k", 0))
    dtype = onnx_type(node, node.integer("dtype")) if node.has("dtype") else x.dtype
    return node.constant(ones.astype(dtype.value))


ONNX_READERS = (
    OnnxReader(
        "Constant",
        constant,
        (0, 0),
        (
            "value",
            "value_float",
            "value_floats",
            "value_int",
            "value_ints",
            "value_string",
            "value_strings",
        ),
    ),
    OnnxReader("ConstantOfShape", constant_of_shape, attributes=("value",)),
    OnnxReader("Shape", shape_of, attributes=("end", "start")),
    OnnxReader("Size", size),
    OnnxReader("EyeLike", eye_like, attributes=("dtype", "k")),
    OnnxReader("Range", range_, (3, 3)),
    OnnxReader("Range", range_, (2, 3), domain=MICROSOFT),
)
