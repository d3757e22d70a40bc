"""The loops and branches of a graph as those of main."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from microtir.graph.ir import Node, Tensor
from microtir.operators.control.definition import EndIf, EndRepeat, Guard, Otherwise, Repeat, Then
from microtir.tir.ir import Expr, For, If, IntImm, Seq, Stmt, Var

Flag = Callable[[Tensor], Expr]
"""Reads the truth value of a tensor of one element."""


@dataclass(slots=True)
class _Block:
    """An operator of control that has begun a block, with the statements in it so far."""

    node: Node | None
    statements: list[Stmt] = field(default_factory=list)

    @property
    def body(self) -> Stmt:
        return Seq(tuple(self.statements))


class Blocks:
    """Statements of main in the blocks that loops and branches make of them."""

    def __init__(self) -> None:
        self._open = [_Block(None)]

    def add(self, statements: Sequence[Stmt]) -> None:
        self._open[-1].statements += statements

    def control(self, node: Node, flag: Flag) -> None:
        """Begin or end a block, as an operator of control says."""
        match node.op:
            case Repeat() | Guard() | Then() | Otherwise():
                self._open.append(_Block(node))
            case EndRepeat(is_guarded):
                if is_guarded:
                    guard = self._ended(Guard)
                    self.add([If(_condition(guard, flag), guard.body)])
                loop = self._ended(Repeat)
                assert loop.node is not None and isinstance(loop.node.op, Repeat)
                turn = Var(f"turn_{max(loop.node.source.index, 0)}")
                self.add([For(turn, IntImm(0), IntImm(loop.node.op.turns), loop.body)])
            case EndIf():
                otherwise, then = self._ended(Otherwise), self._ended(Then)
                self.add([If(_condition(then, flag), then.body, otherwise.body)])
            case _:
                raise AssertionError(f"'{node.op.name}' is not an operator of control")

    def body(self) -> Stmt:
        """Return everything, once all blocks have ended."""
        (whole,) = self._open
        return whole.body

    def _ended(self, kind: type[object]) -> _Block:
        block = self._open.pop()
        assert block.node is not None and isinstance(block.node.op, kind), "blocks nest"
        return block


def _condition(block: _Block, flag: Flag) -> Expr:
    assert block.node is not None
    return flag(block.node.inputs[0])
