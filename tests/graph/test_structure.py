"""Keys of nodes are equal where nodes compute the same, and only there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from microtir.dtype import DType
from microtir.graph.ir import Node, Quantization, SourceLocation, SumRange, Tensor, TensorType
from microtir.graph.operator import Operator
from microtir.graph.structure import structure_of
from microtir.operators.arithmetic.definition import Add, Sub

TYPE = TensorType((1, 4), DType.INT8, Quantization((0.5,), (3,)))
OTHER = replace(TYPE, quantization=Quantization((0.25,), (3,)))


def constant(*values: int) -> Tensor:
    """A constant of four elements."""
    return Tensor("c", TYPE, np.array([values], np.int8))


def chain(
    *, op: Operator | None = None, output: TensorType = TYPE,
    values: tuple[int, ...] = (1, 2, 3, 4), reads: int = 1, sums: SumRange | None = None,
    name: str = "n",
) -> list[Node]:  # fmt: skip
    """Return x + y, and the sum of that and a constant."""
    x, y, first, last = (Tensor(f"{name}{i}", t) for i, t in enumerate((TYPE, TYPE, TYPE, output)))
    source = SourceLocation(name, len(name), "ADD")
    one = Node(Add(), (x, (x, y)[reads]), (first,), name, source)
    return [one, Node(op or Add(), (first, constant(*values)), (last,), name, source, sums)]


def test_names_and_places_do_not_count() -> None:
    """Equal constants of two tensors are equal, too."""
    assert structure_of(chain()) == structure_of(chain(name="another"))
    assert hash(structure_of(chain())) == hash(structure_of(chain(name="another")))


@pytest.mark.parametrize(
    "other",
    [
        lambda: chain(op=Sub()),
        lambda: chain(output=OTHER),
        lambda: chain(values=(1, 2, 3, 5)),
        lambda: chain(reads=0),
        lambda: chain(sums=SumRange(0, 1)),
        lambda: chain()[:1],
        lambda: chain()[::-1],
    ],
    ids=["operator", "type", "constant", "same input twice", "sums", "fewer", "order"],
)
def test_what_is_computed_counts(other: Callable[[], list[Node]]) -> None:
    """So does which node reads what of which."""
    assert structure_of(chain()) != structure_of(other())


def test_large_constants_are_not_compared() -> None:
    """They count as different if they are two tensors, and as equal if they are one."""
    type_ = TensorType((2000,), DType.INT8)
    big, same = (Tensor("w", type_, np.zeros(2000, np.int8)) for _ in range(2))
    x, y = Tensor("x", type_), Tensor("y", type_)
    source = SourceLocation("m", 0, "ADD")
    nodes = [Node(Add(), (x, t), (y,), "n", source) for t in (big, same, big)]
    first, second, third = (structure_of([node]) for node in nodes)
    assert first == third != second


@dataclass(frozen=True, slots=True)
class Unhashable(Operator):
    """As a user may write one."""

    table: list[int] = field(default_factory=list)


def test_an_operator_without_a_hash_equals_itself() -> None:
    """Compiling it ends in no TypeError."""
    node = chain(op=Unhashable())[1]
    assert structure_of([node]) == structure_of([node])
    assert structure_of([node]) != structure_of([replace(node)])
