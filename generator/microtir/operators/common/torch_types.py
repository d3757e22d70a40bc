"""Types of PyTorch's results: how operands of several types become one."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from microtir.dtype import DType
from microtir.graph.ir import Tensor
from microtir.operators.common.torch_operands import Number, TorchNode

_WIDER: Mapping[tuple[DType, DType], DType] = MappingProxyType(
    {
        (DType.UINT8, DType.INT8): DType.INT16,
        **{(DType.UINT8, signed): signed for signed in (DType.INT16, DType.INT32, DType.INT64)},
        (DType.INT8, DType.INT16): DType.INT16,
        (DType.INT8, DType.INT32): DType.INT32,
        (DType.INT8, DType.INT64): DType.INT64,
        (DType.INT16, DType.INT32): DType.INT32,
        (DType.INT16, DType.INT64): DType.INT64,
        (DType.INT32, DType.INT64): DType.INT64,
    }
)
"""The type of both, of two integer types."""


def _category(dtype: DType) -> int:
    """Return 0 for booleans, 1 for integers, 2 for floats."""
    return 0 if dtype is DType.BOOL else 2 if dtype.is_float else 1


def _both(node: TorchNode, first: DType, second: DType) -> DType:
    """Return the type that holds values of two types.

    Raises:
        UnsupportedModelError: PyTorch has none, as of uint16 and int16.
    """
    if first is second:
        return first
    if _category(first) != _category(second):
        return max((first, second), key=_category)
    wider = _WIDER.get((first, second)) or _WIDER.get((second, first))
    if wider is None:
        raise node.unsupported(
            f"its operands have the types {first.value} and {second.value}",
            "operands of one type, or signed ones",
            "convert one of the tensors first",
        )
    return wider


def promoted(node: TorchNode, *operands: Tensor | Number) -> DType:
    """Return the type in which PyTorch computes with operands.

    Tensors with dimensions decide; those without, and then numbers, count only where they are of a
    higher kind: floats above integers above booleans.
    """
    result: DType | None = None
    for types in _ranked(operands):
        group: DType | None = None
        for dtype in types:
            group = dtype if group is None else _both(node, group, dtype)
        if group is not None and (result is None or _category(group) > _category(result)):
            result = group
    assert result is not None, "an operator has operands"
    return result


def _ranked(operands: tuple[Tensor | Number, ...]) -> tuple[list[DType], ...]:
    """Return the types of tensors with dimensions, of others, and of numbers."""
    tensors = [x for x in operands if isinstance(x, Tensor)]
    numbers = [number_type(x) for x in operands if not isinstance(x, Tensor)]
    wide = [x.dtype for x in tensors if x.shape]
    return wide, [x.dtype for x in tensors if not x.shape], numbers


def number_type(value: Number) -> DType:
    """Return the type that a number has by itself."""
    if isinstance(value, bool):
        return DType.BOOL
    return DType.INT64 if isinstance(value, int) else DType.FLOAT32


def operand(node: TorchNode, name: str) -> Tensor | Number:
    """Return an argument that is a tensor or a number."""
    value = node.arguments.get(name)
    return value if isinstance(value, Tensor) else node.number(name)


def as_type(node: TorchNode, value: Tensor | Number, dtype: DType) -> Tensor:
    """Return an operand as a tensor of a type."""
    if isinstance(value, Tensor):
        return node.cast(value, dtype)
    if dtype is DType.BOOL:
        return node.scalar(bool(value), dtype)
    return node.scalar(int(value) if dtype.is_int else float(value), dtype)


def truth(node: TorchNode, x: Tensor) -> Tensor:
    """Return whether each element is not 0."""
    if x.dtype is DType.BOOL:
        return x
    return node.onnx("Not", node.onnx("Equal", x, node.scalar(0, x.dtype)))
