"""Read ONNX's reductions along axes."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Tensor
from microtir.operators.arithmetic.definition import Add, Pow, Sub
from microtir.operators.common import onnx_arithmetic, onnx_layout, onnx_quantized, onnx_types
from microtir.operators.common.onnx_operands import MICROSOFT, OnnxNode, OnnxReader
from microtir.operators.common.onnx_parts import backwards, numbers, reshaped
from microtir.operators.movement.definition import Reshape
from microtir.operators.reduction import definition as reduction
from microtir.operators.unary.definition import Abs, Exp, Log, Sqrt, Square

Step: TypeAlias = "Callable[[OnnxNode, Tensor], Tensor]"

_NO_AXES = ("axes", "keepdims", "noop_with_empty_axes")


def _axes(node: OnnxNode) -> tuple[int, ...] | None:
    """Return the axes; None if there is nothing to reduce.

    They are an attribute or, in later operator sets, an input.
    """
    rank = len(node.input(0).shape)
    if node.optional(1) is not None:
        axes = node.integers(1, "the axes")
    else:
        axes = node.list_of_integers("axes", ())
    if axes:
        return node.axes(axes, rank)
    return None if node.integer("noop_with_empty_axes", 0) else tuple(range(rank))


def _reduction(
    kind: Callable[..., reduction.Reduction], before: Step | None = None, after: Step | None = None
) -> Callable[[OnnxNode], Tensor]:
    """Return what reads a reduction.

    Args:
        kind: of the reduction.
        before: what is done to each element first.
        after: what is done to each result.
    """

    def read(node: OnnxNode) -> Tensor:
        x, axes = node.input(0), _axes(node)
        own_dtype = x.dtype
        if own_dtype in _UNSIGNED:
            x = onnx_types.widened(node, x)
        if before is not None:
            x = before(node, x)
        if axes is not None and x.dtype is DType.BOOL:
            x = node.emit(_logical(kind)(axes, bool(node.integer("keepdims", 1))), x)
        elif axes is not None and x.shape:
            x = node.emit(kind(axes, bool(node.integer("keepdims", 1))), x)
        if own_dtype in _UNSIGNED:
            x = onnx_types.cast(node, x, own_dtype)
        return x if after is None else after(node, x)

    return read


def _logical(kind: Callable[..., reduction.Reduction]) -> Callable[..., reduction.Reduction]:
    """Return what the largest or smallest of truth values is."""
    return (
        reduction.ReduceAny
        if getattr(kind, "func", kind) is reduction.ReduceMax
        else reduction.ReduceAll
    )


def log_sum_exp(node: OnnxNode) -> Tensor:
    """Read ReduceLogSumExp: by the largest element, so that no exponential overflows."""
    x, axes = node.input(0), _axes(node)
    if axes is None or not x.shape:
        return x
    if not x.type.elements:
        return _reduction(reduction.Sum, _of(Exp), _of(Log))(node)
    largest = node.emit(reduction.ReduceMax(axes, keep_dims=True), x)
    total = node.emit(
        reduction.Sum(axes, keep_dims=True), node.emit(Exp(), node.emit(Sub(), x, largest))
    )
    result = node.emit(Add(), node.emit(Log(), total), largest)
    if node.integer("keepdims", 1):
        return result
    shape = tuple(extent for axis, extent in enumerate(x.shape) if axis not in axes)
    return node.emit(Reshape(), result, shape=shape)


_UNSIGNED = (DType.UINT8, DType.UINT16)


def _arg_extremum(
    kind: type[reduction.ArgMax] | type[reduction.ArgMin],
) -> Callable[[OnnxNode], Tensor]:
    def read(node: OnnxNode) -> Tensor:
        x = node.input(0)
        axis = node.axis(node.integer("axis", 0), len(x.shape))
        if x.dtype in _UNSIGNED:
            x = onnx_types.cast(node, x, DType.FLOAT32)  # which holds all of them
        is_last = bool(node.integer("select_last_index", 0))
        index = node.emit(kind(axis), backwards(node, x, axis) if is_last else x, dtype=DType.INT64)
        if is_last:
            end = node.constant(np.array(x.shape[axis] - 1, np.int64))
            index = node.emit(Sub(), end, index)
        if not node.integer("keepdims", 1):
            return index
        shape = tuple(1 if n == axis else extent for n, extent in enumerate(x.shape))
        return node.emit(Reshape(), index, shape=shape)

    return read


def hardmax(node: OnnxNode) -> Tensor:
    """Read Hardmax: 1 at the first of the largest elements along an axis, else 0."""
    x = node.input(0)
    if node.version < 13:  # all axes from one on together
        first = node.axis(node.integer("axis", 1), len(x.shape))
        rows = reshaped(node, x, math.prod(x.shape[:first]), math.prod(x.shape[first:]))
        return reshaped(node, _hardmax(node, rows, 1), *x.shape)
    return _hardmax(node, x, node.axis(node.integer("axis", -1), len(x.shape)))


def _hardmax(node: OnnxNode, x: Tensor, axis: int) -> Tensor:
    index = node.emit(reduction.ArgMax(axis), x, dtype=DType.INT32)
    wide = reshaped(node, index, *(1 if n == axis else e for n, e in enumerate(x.shape)))
    line = [x.shape[axis] if n == axis else 1 for n in range(len(x.shape))]
    places = numbers(node, *line)
    one, nothing = (node.scalar_like(n, x) for n in (1, 0))
    return onnx_arithmetic.choose(node, onnx_arithmetic.equal(node, wide, places), one, nothing)


def global_power_pool(node: OnnxNode) -> Tensor:
    """Read GlobalLpPool: the root of the sum of powers of sizes."""
    x, power = node.input(0), float(node.integer("p", 2))
    sizes = node.emit(Pow(), node.emit(Abs(), x), node.scalar_like(power, x))
    total = node.emit(reduction.Sum(tuple(range(2, len(x.shape))), keep_dims=True), sizes)
    return node.emit(Pow(), total, node.scalar_like(1.0 / power, x))


def global_pool(kind: Callable[..., reduction.Reduction]) -> Callable[[OnnxNode], Tensor]:
    """Return what reads a reduction over all axes of an image but batch and channels."""

    def read(node: OnnxNode) -> Tensor:
        x = node.input(0)
        if len(x.shape) < 3:
            raise node.malformed(f"an image of shape {x.shape}", "(N, C, ...)")
        return node.emit(kind(tuple(range(2, len(x.shape))), keep_dims=True), x)

    return read


def qlinear_global_average_pool(node: OnnxNode) -> Tensor:
    """Read com.microsoft's QLinearGlobalAveragePool."""
    onnx_layout.require_channels_first(node)
    return onnx_quantized.between_integers(global_pool(reduction.Mean))(node)


def _mean_of_attribute(node: OnnxNode) -> Tensor:
    return _reduction(reduction.Mean)(node)


def _of(op: type[Abs] | type[Square] | type[Sqrt] | type[Exp] | type[Log]) -> Step:
    return lambda node, x: node.emit(op(), x)


def _reader(name: str, read: Callable[[OnnxNode], Tensor]) -> OnnxReader:
    return OnnxReader(name, read, (1, 2), _NO_AXES)


_ARG_ATTRIBUTES = ("axis", "keepdims", "select_last_index")

ONNX_READERS = (
    _reader("ReduceMean", _reduction(reduction.Mean)),
    _reader("ReduceSum", _reduction(reduction.Sum)),
    _reader("ReduceMax", _reduction(partial(reduction.ReduceMax, infinite=True))),
    _reader("ReduceMin", _reduction(partial(reduction.ReduceMin, infinite=True))),
    _reader("ReduceProd", _reduction(reduction.ReduceProd)),
    _reader("ReduceL1", _reduction(reduction.Sum, _of(Abs))),
    _reader("ReduceL2", _reduction(reduction.Sum, _of(Square), _of(Sqrt))),
    _reader("ReduceSumSquare", _reduction(reduction.Sum, _of(Square))),
    _reader("ReduceLogSum", _reduction(reduction.Sum, None, _of(Log))),
    _reader("ReduceLogSumExp", log_sum_exp),
    OnnxReader("GlobalAveragePool", global_pool(reduction.Mean)),
    OnnxReader(
        "QLinearGlobalAveragePool",
        qlinear_global_average_pool,
        (4, 5),
        ("channels_last",),
        domain=MICROSOFT,
    ),
    OnnxReader(
        "QLinearReduceMean",
        onnx_quantized.between_integers(_mean_of_attribute),
        (4, 5),
        ("axes", "keepdims"),
        domain=MICROSOFT,
    ),
    OnnxReader("GlobalLpPool", global_power_pool, attributes=("p",)),
    OnnxReader("Hardmax", hardmax, attributes=("axis",)),
    OnnxReader("GlobalMaxPool", global_pool(partial(reduction.ReduceMax, infinite=True))),
    OnnxReader("ArgMax", _arg_extremum(reduction.ArgMax), attributes=_ARG_ATTRIBUTES),
    OnnxReader("ArgMin", _arg_extremum(reduction.ArgMin), attributes=_ARG_ATTRIBUTES),
)
