"""Read what PyTorch computes of sizes: numbers that are known once the shapes of inputs are."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

from microtir.operators.common.torch_operands import Number, TorchNode, TorchReader

_MOST = 1 << 62


def size(node: TorchNode) -> int:
    """Read sym_size: an extent of a tensor."""
    shape = node.tensor("self").shape
    if not shape:
        raise node.malformed("it takes an extent of a scalar, which has none")
    return shape[node.axis(node.integer("dim"), len(shape))]


def count(node: TorchNode) -> int:
    """Read sym_numel: the number of elements of a tensor."""
    return node.tensor("self").type.elements


def _of_two(compute: Callable[[Number, Number], Number]) -> Callable[[TorchNode], Number]:
    def read(node: TorchNode) -> Number:
        result = compute(node.number("0"), node.number("1"))
        if isinstance(result, complex) or not abs(result) < _MOST:
            raise node.malformed(f"it computes the size {result}")
        return result

    return read


def _of_one(compute: Callable[[Number], Number]) -> Callable[[TorchNode], Number]:
    return lambda node: compute(node.number("0"))


def _power(base: Number, exponent: Number) -> Number:
    """Return a power; one of more bits than a size has is infinite."""
    is_large = abs(exponent) > 64 or abs(base) > _MOST
    return math.inf if is_large else operator.pow(base, exponent)


_TWO: tuple[tuple[str, Callable[[Number, Number], Number]], ...] = (
    ("_operator.add", operator.add),
    ("_operator.sub", operator.sub),
    ("_operator.mul", operator.mul),
    ("_operator.floordiv", operator.floordiv),
    ("_operator.truediv", operator.truediv),
    ("_operator.mod", operator.mod),
    ("_operator.pow", _power),
    ("_operator.eq", operator.eq),
    ("_operator.ne", operator.ne),
    ("_operator.lt", operator.lt),
    ("_operator.le", operator.le),
    ("_operator.gt", operator.gt),
    ("_operator.ge", operator.ge),
    ("torch.sym_max", max),
    ("torch.sym_min", min),
    ("math.pow", _power),
)

_ONE: tuple[tuple[str, Callable[[Number], Number]], ...] = (
    ("_operator.neg", operator.neg),
    ("math.ceil", math.ceil),
    ("math.floor", math.floor),
    ("math.trunc", math.trunc),
    ("torch.sym_float", float),
    ("torch.sym_int", int),
    ("torch.sym_not", operator.not_),
)

TORCH_READERS = (
    TorchReader("aten.sym_size.int", size, ("self", "dim")),
    TorchReader("aten.sym_numel.default", count, ("self",)),
    *(TorchReader(name, _of_two(compute), ("0", "1")) for name, compute in _TWO),
    *(TorchReader(name, _of_one(compute), ("0",)) for name, compute in _ONE),
)
