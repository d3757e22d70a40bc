"""Keeps what is known of a CPU's registers and stack while its code is followed without data."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, Final

MASK = 0xFFFF_FFFF
STACK_TOP = 0x9000_0000  # no board has RAM below it, so that the stack is apart from all else
_STACK_BOTTOM = STACK_TOP - (1 << 24)


class Unknown:
    """A value that depends on data, as does all that is computed from it."""

    def _itself(self, *_: object) -> Unknown:
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __invert__ = _itself
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _itself
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = _itself
    __floordiv__ = __rfloordiv__ = _itself


UNKNOWN: Final = Unknown()
Value = Any  # an int without a sign, or UNKNOWN: code that is made at run time computes with it


class KnownValues:
    """Registers and words of the stack, as far as they do not depend on data.

    Variables depend on data, constants of the program do not. A store to an address that depends
    on data is taken to change a variable.
    """

    def __init__(self, registers: int, constants: Sequence[tuple[int, bytes]]) -> None:
        self.registers: list[Value] = [UNKNOWN] * registers
        self.stack: dict[int, int] = {}
        self.constants = constants

    def copy(self) -> KnownValues:
        """Return values that change apart from these."""
        twin = copy(self)
        twin.registers, twin.stack = self.registers.copy(), self.stack.copy()
        return twin

    def join(self, other: KnownValues) -> None:
        """Forget what differs from the other values."""
        pairs = zip(self.registers, other.registers, strict=True)
        self.registers[:] = [a if a == b else UNKNOWN for a, b in pairs]
        self.stack = dict(self.stack.items() & other.stack.items())

    def load(self, address: Value, size: int) -> Value:
        """Return some bytes of memory as a number without a sign."""
        if address is UNKNOWN:
            return UNKNOWN
        if _STACK_BOTTOM <= address < STACK_TOP:
            word = self.stack.get(address, UNKNOWN)
            return word & (1 << 8 * size) - 1
        for start, content in self.constants:
            if start <= address < start + len(content):
                return int.from_bytes(content[address - start :][:size], "little")
        return UNKNOWN

    def store(self, address: Value, size: int, value: Value) -> None:
        """Change up to a word of memory; whole words of the stack are kept."""
        if address is UNKNOWN or not _STACK_BOTTOM <= address < STACK_TOP:
            return
        for word in {address & ~3, address + size - 1 & ~3}:
            self.stack.pop(word, None)
        if value is not UNKNOWN and size == 4 and address % 4 == 0:
            self.stack[address] = value
