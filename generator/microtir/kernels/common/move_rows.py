"""Copies of rows of states, as runs of bytes."""

from __future__ import annotations

from collections.abc import Callable

from microtir import te
from microtir.config import Feature
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.graph.operator import Operator
from microtir.kernels.common.kernel import Kernel
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.micro_kernel import call
from microtir.kernels.common.statements import at, loop, seq
from microtir.operators.state.definition import Assign, KeepRows
from microtir.operators.state.formula import first_element
from microtir.plan.ir import Calls, Refusal
from microtir.schedule import KernelDescription
from microtir.tir import ir

_CALL = 24  # instructions of the loop and of entering the copy

MOVED: tuple[type[Operator], ...] = (Assign, KeepRows)
"""Operators that these kernels compute."""


class MoveRows(Kernel):
    """Rows that stay in a state, moved towards its start, or rows that are copied.

    A run that moves within its memory is copied in parts which are no longer than it moves, so that
    none is written where it is read.

    Args:
        name: of the kernel.
        op: whose rows it moves.
        needs: what it takes of a target.
        copy: gives the micro-kernel that copies so many bytes.
        word: bytes that it copies with two instructions.
    """

    def __init__(
        self,
        name: str,
        op: type[Operator],
        needs: Feature,
        copy: Callable[[int], KernelDescription],
        word: int,
    ) -> None:
        self.name = name
        self.operators = (op,)
        self.in_place = op is KeepRows
        self.needs = needs
        self._copy = copy
        self._word = word

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it: the micro-kernels copy bytes."""
        return None if node.output.dtype is DType.INT8 else Refusal.TYPES

    def instructions(self, node: Node, _calls: Calls) -> int:
        """Return the instructions: those that move bytes, and what each part needs."""
        size = node.output.type.elements
        return 2 * size // self._word + _CALL * -(-size // part_of(node))

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Copy the parts in ascending order."""
        node = layer.node
        size, part, first = node.output.type.elements, part_of(node), first_element(node)
        x = layer.input_matrix(0, (node.inputs[0].type.elements, 1)).buffer
        y = layer.output_matrix((size, 1)).buffer
        whole, rest = divmod(size, part)

        def copied(count: int, start: te.Expr | int) -> ir.Stmt:
            return call(self._copy(count), at(x, start + first, 0, 0), at(y, start, 0, 0))

        parts = [loop("part", 0, whole, lambda n: copied(part, n * part))] if whole else []
        body = seq(*parts, *([copied(rest, whole * part)] if rest else []))
        return layer.function(name, None, body)


def part_of(node: Node) -> int:
    """Return the bytes that may be copied at a time: as far as rows move, or all of them."""
    op, size = node.op, node.output.type.elements
    if not isinstance(op, KeepRows):
        return size
    return min(size, op.by * (size // node.output.shape[op.axis]))
