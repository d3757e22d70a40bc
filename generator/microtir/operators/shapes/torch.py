"""Read PyTorch's tensors of known numbers."""

from __future__ import annotations

import numpy as np

from microtir.graph.ir import Array, Tensor
from microtir.operators.common.torch_operands import Number, TorchNode, TorchReader
from microtir.operators.common.torch_rows import NO_MEANING, readers
from microtir.operators.common.torch_types import as_type, operand


def _filled(node: TorchNode, shape: tuple[int, ...], value: Number) -> Tensor:
    node.first.check_room(*shape)
    one = as_type(node, value, node.result_dtype)
    assert one.data is not None, "a number is known"
    return node.constant(np.full(shape, one.data))


def _value(node: TorchNode) -> Number:
    """Return what the operator fills a tensor with; what is not said may be anything."""
    if node.has("fill_value"):
        return node.number("fill_value")
    return int("ones" in node.target)


def full(node: TorchNode) -> Tensor:
    """Read full, zeros, ones and empty."""
    return _filled(node, node.integers("size", ()), _value(node))


def full_like(node: TorchNode) -> Tensor:
    """Read full_like, zeros_like, ones_like and empty_like."""
    return _filled(node, node.tensor("self").shape, _value(node))


def fill(node: TorchNode) -> Tensor:
    """Read fill, and zero: one number in the place of all elements."""
    x = node.tensor("self")
    value = as_type(node, operand(node, "value") if node.has("value") else 0, x.dtype)
    return node.onnx("Expand", value, node.ints(*x.shape)) if x.shape else value


def scalar(node: TorchNode) -> Tensor:
    """Read scalar_tensor."""
    return as_type(node, node.number("s"), node.result_dtype)


def _numbers(node: TorchNode, values: Array) -> Tensor:
    return node.constant(values.astype(node.result_dtype.value))


def arange(node: TorchNode) -> Tensor:
    """Read arange: from start to below end."""
    start, end, step = node.number("start", 0), node.number("end"), node.number("step", 1)
    count = np.ceil((end - start) / step) if step else -1.0
    node.first.check_room(int(count))
    if node.result_dtype.is_float:
        return _numbers(node, start + np.arange(int(count), dtype=np.float64) * step)
    return _numbers(node, int(start) + np.arange(int(count), dtype=np.int64) * int(step))


def linspace(node: TorchNode) -> Tensor:
    """Read linspace: from start to end in equal steps."""
    start, end, count = node.number("start"), node.number("end"), node.integer("steps")
    node.first.check_room(count)
    return _numbers(node, np.linspace(start, end, count))


def logspace(node: TorchNode) -> Tensor:
    """Read logspace: powers of a base whose exponents have equal steps."""
    start, end, count = node.number("start"), node.number("end"), node.integer("steps")
    node.first.check_room(count)
    return _numbers(node, float(node.number("base", 10.0)) ** np.linspace(start, end, count))


def eye(node: TorchNode) -> Tensor:
    """Read eye: a matrix of ones on the diagonal."""
    rows = node.integer("n")
    columns = node.integer("m", rows)
    node.first.check_room(rows, columns)
    return _numbers(node, np.eye(rows, columns))


def triangle_places(node: TorchNode) -> Tensor:
    """Read tril_indices and triu_indices: the rows and the columns of one side of a diagonal."""
    rows, columns, offset = node.integer("row"), node.integer("col"), node.integer("offset", 0)
    node.first.check_room(rows, columns, 2)
    places = np.tril_indices if "tril" in node.target else np.triu_indices
    return _numbers(node, np.array(places(rows, offset, columns)))


def window(node: TorchNode) -> Tensor:
    """Read hann_window, hamming_window and blackman_window; periodic ones lack their last place."""
    count, is_periodic = node.integer("window_length"), node.flag("periodic", True)
    node.first.check_room(count)
    size = count + 1 if is_periodic and count > 1 else count
    kind = {"hann": np.hanning, "hamm": np.hamming, "blac": np.blackman}[node.target[5:9]]
    return _numbers(node, kind(size)[:count])


def one_hot(node: TorchNode) -> Tensor:
    """Read one_hot: a 1 at the place that an index names, along a new last axis."""
    count = node.integer("num_classes", -1)
    if count < 1:
        raise node.unsupported(
            "the number of classes depends on the inputs", "a number of classes",
            "pass num_classes to one_hot",
        )  # fmt: skip
    return node.onnx("OneHot", node.tensor("self"), node.ints(count), node.ints(0, 1), axis=-1)


def nothing(node: TorchNode) -> None:
    """Read checks that PyTorch makes while it runs, and which the export has made."""
    del node


_LIKE = f"self fill_value {NO_MEANING} size"

TORCH_READERS: tuple[TorchReader, ...] = (
    *readers(
        full, f"size fill_value {NO_MEANING} names",
        "full", "zeros", "ones", "empty.memory_format",
    ),
    *readers(
        full_like, _LIKE, "full_like", "zeros_like", "ones_like", "empty_like",
    ),
    *readers(
        full, _LIKE, "new_full", "new_zeros", "new_ones", "new_empty",
    ),
    *readers(fill, "self value", "fill.Scalar", "fill.Tensor"),
    *readers(fill, "self", "zero"),
    *readers(scalar, f"s {NO_MEANING}", "scalar_tensor"),
    *readers(
        arange, f"start end step {NO_MEANING}", "arange", "arange.start", "arange.start_step"
    ),
    *readers(linspace, f"start end steps {NO_MEANING}", "linspace"),
    *readers(logspace, f"start end steps base {NO_MEANING}", "logspace"),
    *readers(eye, f"n m {NO_MEANING}", "eye", "eye.m"),
    *readers(triangle_places, f"row col offset {NO_MEANING}", "tril_indices", "triu_indices"),
    *readers(
        window, f"window_length periodic {NO_MEANING}",
        *(f"{name}_window{kind}" for name in ("hann", "hamming", "blackman")
          for kind in ("", ".periodic")),
    ),
    *readers(one_hot, "self num_classes", "one_hot"),
    *readers(nothing, f"a self size stride {NO_MEANING}", "_assert_tensor_metadata"),
)  # fmt: skip
