"""Read PyTorch's reductions along axes."""

from __future__ import annotations

import math
from collections.abc import Callable

from microtir.dtype import DType
from microtir.graph.ir import Tensor
from microtir.operators.common.torch_operands import TorchNode, TorchReader
from microtir.operators.common.torch_rows import readers
from microtir.operators.common.torch_types import truth
from microtir.operators.normalization.torch import length


def _axes(node: TorchNode, x: Tensor) -> tuple[int, ...]:
    """Return the axes that are reduced: all if none is named."""
    rank = len(x.shape)
    stated = node.integers("dim", tuple(range(rank)))
    return tuple(node.axis(axis, rank) for axis in stated) if rank else ()


def _reduced(node: TorchNode, operator: str, x: Tensor) -> Tensor:
    if not x.shape:
        return x
    axes, keep = node.ints(*_axes(node, x)), int(node.flag("keepdim", False))
    return node.onnx(operator, x, axes, keepdims=keep)


def _in_type_of_result(operator: str) -> Callable[[TorchNode], Tensor]:
    """Return what reads a reduction in the type of its result: sums of integers are of int64."""

    def read(node: TorchNode) -> Tensor:
        return _reduced(node, operator, node.cast(node.tensor("self"), node.result_dtype))

    return read


def _truth(operator: str) -> Callable[[TorchNode], Tensor]:
    def read(node: TorchNode) -> Tensor:
        result = _reduced(node, operator, truth(node, node.tensor("self")))
        return node.cast(result, node.result_dtype)

    return read


def _line(node: TorchNode, x: Tensor) -> tuple[Tensor, int]:
    """Return what is searched along one axis: without one, all elements in a line."""
    axis = node.optional_integer("dim")
    if axis is None or not x.shape:
        return node.reshaped(x, (x.type.elements,)), 0
    return x, node.axis(axis, len(x.shape))


def _place(operator: str) -> Callable[[TorchNode], Tensor]:
    """Return what reads argmax or argmin."""

    def read(node: TorchNode) -> Tensor:
        x = node.tensor("self")
        return _place_of(node, operator, x)

    return read


def _place_of(node: TorchNode, operator: str, x: Tensor) -> Tensor:
    line, axis = _line(node, x)
    keep = node.flag("keepdim", False)
    place = node.onnx(operator, line, axis=axis, keepdims=int(keep and line is x))
    is_whole = keep and line is not x
    return node.reshaped(place, (1,) * len(x.shape)) if is_whole else place


def _extreme(name: str) -> Callable[[TorchNode], tuple[Tensor, Tensor]]:
    """Return what reads max or min along an axis: the values, and their places."""

    def read(node: TorchNode) -> tuple[Tensor, Tensor]:
        x = node.tensor("self")
        return _reduced(node, f"Reduce{name}", x), _place_of(node, f"Arg{name}", x)

    return read


def both_extremes(node: TorchNode) -> tuple[Tensor, Tensor]:
    """Read aminmax."""
    x = node.tensor("self")
    return _reduced(node, "ReduceMin", x), _reduced(node, "ReduceMax", x)


def _moments(node: TorchNode) -> tuple[Tensor, Tensor]:
    """Return variance and mean, both with all axes."""
    x = node.tensor("self")
    axes = _axes(node, x)
    count = math.prod(x.shape[axis] for axis in axes)
    correction: float = 1 if node.flag("unbiased", True) else 0
    correction = float(node.number("correction", correction))
    mean = node.onnx("ReduceMean", x, node.ints(*axes), keepdims=1)
    way = node.onnx("Sub", x, mean)
    variance = node.onnx("ReduceMean", node.onnx("Mul", way, way), node.ints(*axes), keepdims=1)
    if correction:
        left = max(count - correction, 0.0)
        factor = count / left if left else math.inf
        variance = node.onnx("Mul", variance, node.scalar(factor))
    return variance, mean


def _without_axes(node: TorchNode, result: Tensor) -> Tensor:
    """Return a result with the axes that the node wants."""
    x = node.tensor("self")
    axes = _axes(node, x)
    if node.flag("keepdim", False):
        return result
    return node.reshaped(result, tuple(n for at, n in enumerate(x.shape) if at not in axes))


def _deviation(
    *, is_root: bool, has_mean: bool
) -> Callable[[TorchNode], Tensor | tuple[Tensor, ...]]:
    """Return what reads var or std, with the mean if that is a result."""

    def read(node: TorchNode) -> Tensor | tuple[Tensor, ...]:
        variance, mean = _moments(node)
        first = node.onnx("Sqrt", variance) if is_root else variance
        results = tuple(_without_axes(node, x) for x in (first, mean))
        return results if has_mean else results[0]

    return read


def norm(node: TorchNode) -> Tensor:
    """Read norm and linalg_vector_norm."""
    x = node.cast(node.tensor("self"), DType.FLOAT32)
    power = float(node.number("ord" if "linalg" in node.target else "p", 2))
    return length(node, x, power, _axes(node, x), node.flag("keepdim", False))


def log_sum_exp(node: TorchNode) -> Tensor:
    """Read logsumexp."""
    return _reduced(node, "ReduceLogSumExp", node.cast(node.tensor("self"), DType.FLOAT32))


def count_truth(node: TorchNode) -> Tensor:
    """Read count_nonzero."""
    flags = truth(node, node.tensor("self"))
    return _reduced(node, "ReduceSum", node.cast(flags, DType.INT64))


_AXES = "self dim keepdim dtype"

TORCH_READERS: tuple[TorchReader, ...] = (
    *readers(_in_type_of_result("ReduceSum"), _AXES, "sum", "sum.dim_IntList"),
    *readers(_in_type_of_result("ReduceMean"), _AXES, "mean", "mean.dim"),
    *readers(_in_type_of_result("ReduceProd"), _AXES, "prod", "prod.dim_int"),
    *readers(_in_type_of_result("ReduceMax"), _AXES, "amax", "max"),
    *readers(_in_type_of_result("ReduceMin"), _AXES, "amin", "min"),
    *readers(_extreme("Max"), _AXES, "max.dim"),
    *readers(_extreme("Min"), _AXES, "min.dim"),
    *readers(both_extremes, _AXES, "aminmax"),
    *readers(_truth("ReduceMax"), _AXES, "any", "any.dim", "any.dims"),
    *readers(_truth("ReduceMin"), _AXES, "all", "all.dim", "all.dims"),
    *readers(_place("ArgMax"), _AXES, "argmax"),
    *readers(_place("ArgMin"), _AXES, "argmin"),
    *(
        row
        for name in ("var", "std")
        for has_mean in (False, True)
        for row in readers(
            _deviation(is_root=name == "std", has_mean=has_mean),
            "self dim unbiased correction keepdim",
            *(f"{name}{'_mean' if has_mean else ''}.{overload}"
              for overload in ("default", "dim", "correction")),
        )
    ),
    *readers(
        norm, "self p ord dim keepdim dtype",
        "norm.Scalar", "norm.ScalarOpt_dim", "norm.ScalarOpt_dim_dtype", "linalg_vector_norm",
    ),
    *readers(log_sum_exp, _AXES, "logsumexp"),
    *readers(count_truth, _AXES, "count_nonzero", "count_nonzero.dim_IntList"),
)  # fmt: skip
