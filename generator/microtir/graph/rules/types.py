"""How many tensors each operator takes, and of which scalar types."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TypeAlias

from microtir.graph import ops
from microtir.graph.ir import Node
from microtir.graph.rules.problem import Problem
from microtir.tir.dtype import DType

_LINEAR = (ops.Conv2D, ops.DepthwiseConv2D, ops.FullyConnected)
_BINARY = (ops.Add, ops.Sub, ops.Mul, ops.Minimum, ops.Maximum)
_MANY = 1 << 16

_INPUTS: Mapping[type[ops.Operator], tuple[int, int]] = MappingProxyType(
    {
        **dict.fromkeys(_LINEAR, (2, 3)),
        **dict.fromkeys(_BINARY, (2, 2)),
        ops.Concatenation: (1, _MANY),
        ops.JoinColumns: (1, _MANY),
        ops.Custom: (1, _MANY),
    }
)
"""Least and most inputs; operators that are not here take one."""

_Types: TypeAlias = tuple[DType, ...]
_F32, _I8, _I32 = DType.FLOAT32, DType.INT8, DType.INT32
_INTEGERS = frozenset({_I8, DType.UINT8, DType.INT16, _I32})


def arity(node: Node) -> Iterator[Problem]:
    """The number of inputs and outputs."""
    low, high = _INPUTS.get(type(node.op), (1, 1))
    if not low <= len(node.inputs) <= high:
        legal = str(low) if low == high else f"{low} to {high}"
        yield Problem(f"{node.op.name} has {len(node.inputs)} inputs", legal)
    most = _MANY if isinstance(node.op, ops.Split | ops.Custom) else 1
    if not 1 <= len(node.outputs) <= most:
        yield Problem(f"{node.op.name} has {len(node.outputs)} outputs", "1")


def _computed(inputs: _Types, output: DType) -> bool:
    return output in (_F32, _I8) and all(dtype is output for dtype in inputs)


def _linear(inputs: _Types, output: DType) -> bool:
    legal = ((_F32, _F32, _F32), (_F32, _I8, _F32), (_I8, _I8, _I32))
    return output is inputs[0] and any(inputs == types[: len(inputs)] for types in legal)


def _moved(inputs: _Types, output: DType) -> bool:
    return all(dtype is output for dtype in inputs)


def _quantize(inputs: _Types, output: DType) -> bool:
    return output in _INTEGERS and inputs[0] in (_INTEGERS | {_F32})


def _dequantize(inputs: _Types, output: DType) -> bool:
    return output is _F32 and inputs[0] in _INTEGERS


def _any(_inputs: _Types, _output: DType) -> bool:
    return True


_MOVEMENT = (
    ops.Pad, ops.Concatenation, ops.Reshape, ops.Transpose, ops.Split, ops.StridedSlice,
    ops.ResizeNearestNeighbor, ops.ReadRows, ops.WriteRows, ops.PlaceColumns,
    ops.JoinColumns,
)  # fmt: skip
_LEGAL: Mapping[type[ops.Operator], tuple[Callable[[_Types, DType], bool], str]] = MappingProxyType(
    {
        **dict.fromkeys(ops.ALL, (_computed, "all float32, or all int8")),
        **dict.fromkeys(_MOVEMENT, (_moved, "equal types")),
        **dict.fromkeys(
            _LINEAR, (_linear, "float32 with float32 or int8 weights; int8 with an int32 bias")
        ),
        ops.Quantize: (_quantize, "float32 or an integer type to one of at most 32 bits"),
        ops.Dequantize: (_dequantize, "an integer type of at most 32 bits to float32"),
        ops.CastTo: (_any, "any"),
        ops.Custom: (_any, "any"),
    }
)


def scalar_types(node: Node) -> Iterator[Problem]:
    """The scalar types of inputs and outputs."""
    is_legal, legal = _LEGAL[type(node.op)]
    given = tuple(tensor.dtype for tensor in node.inputs)
    for output in node.outputs:
        if not is_legal(given, output.dtype):
            names = ", ".join(dtype.value for dtype in given)
            yield Problem(f"its types are {names} -> {output.dtype.value}", legal)
