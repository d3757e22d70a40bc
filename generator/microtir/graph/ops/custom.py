"""Operators that a user of microtir defines: see `microtir.custom`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from microtir.graph.ops.base import Operator
from microtir.tir.ir import Array, PrimFunc

if TYPE_CHECKING:
    from microtir.graph.ir import Node


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CustomFunction:
    """What an operator of the user computes, and how.

    Args:
        name: as model files call it.
        reference: the meaning in numpy: given the node and an array for each of its inputs, it
            returns its output, or a tuple of them.
        build: writes the function of a node, of a given name; parameters are the inputs that are
            not constant, each once, and then the outputs.
        scratch_bytes: workspace of one call of `build`'s function, which then has a parameter more.
        label: part of the names of functions in C.
        macs: multiply-accumulates of one call.
    """

    name: str
    reference: Callable[..., Array | tuple[Array, ...]]
    build: Callable[[Node, str], PrimFunc]
    scratch_bytes: Callable[[Node], int] = lambda _node: 0
    label: str = "custom"
    macs: int = 0

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Custom(Operator):
    """An operator of the user; `options` are the bytes that a model file has for it."""

    name: ClassVar[str] = "custom"
    function: CustomFunction
    options: bytes = b""

    @property
    def label(self) -> str:
        return self.function.label
