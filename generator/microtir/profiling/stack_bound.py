"""Bounds the stack of a function without running it: frames along the longest chain of calls.

Frames of compiled functions are what gcc wrote with -fstack-usage. It does not see what assembly
inside a function pushes, and says nothing about libraries: those frames are read off the machine
code. Calls are read off the machine code, too, since some compilers have no call graph to give.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from microtir.instruction_sets.record import InstructionSet
from microtir.profiling.disassembly import Instruction

_SU_LINE = re.compile(r"^(?:.*):\d+:\d+:(\S+)\t(\d+)\t(\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class StackBound:
    """A bound of the stack, in bytes, and why it is none: calls that no tool can follow."""

    bytes: int
    unknown: tuple[str, ...]


def read_frames(folder: Path) -> dict[str, int]:
    """Read frames by function from the .su files below a folder.

    Compilers write the name of a copy, as NAME.constprop.0, in different ways: the largest of all
    copies counts for each.
    """
    frames: dict[str, int] = {}
    for path in sorted(folder.rglob("*.su")):
        for name, size, _ in _SU_LINE.findall(path.read_text(encoding="utf-8")):
            plain = name.split(".")[0]
            frames[plain] = max(frames.get(plain, 0), int(size))
    return frames


def stack_bound(
    root: str,
    program: Mapping[int, Instruction],
    frames: Mapping[str, int],
    machine: InstructionSet,
    return_bytes: int,
) -> StackBound:
    """Return the bound of a function and all that it calls.

    Args:
        root: the function's name.
        program: all instructions, by address.
        frames: bytes that functions reserve, where a compiler told.
        machine: whose instructions these are.
        return_bytes: what a call itself puts on the stack.
    """
    functions: dict[str, list[Instruction]] = {}
    for instruction in program.values():
        functions.setdefault(instruction.function, []).append(instruction)
    walker = _Walker(functions, frames, machine, return_bytes)
    depth = walker.depth(root, (), frozenset((root,)))
    return StackBound(depth, tuple(walker.unknown))


class _Walker:
    """A walk along all chains of calls of a function, which adds up frames."""

    def __init__(
        self,
        functions: Mapping[str, list[Instruction]],
        frames: Mapping[str, int],
        machine: InstructionSet,
        return_bytes: int,
    ) -> None:
        self.functions = functions
        self.frames = frames
        self.machine = machine
        self.return_bytes = return_bytes
        self.known: dict[str, int] = {}
        self.unknown: list[str] = []

    def depth(self, name: str, active: tuple[str, ...], called: frozenset[str]) -> int:
        """Return bytes below the stack pointer at the entry of a function.

        Args:
            name: of the function.
            active: the functions on the way to it.
            called: those of them, and this one, that were called and not jumped to.
        """
        if name in self.known:
            return self.known[name]
        if name in active:
            # Parts of one routine that jump back to each other are a loop, and take no stack.
            since = (*active[active.index(name) + 1 :], name)
            if not called.isdisjoint(since):
                self.unknown.append(f"{name} calls itself")
            return 0
        code = self.functions.get(name, [])
        # On AVR a frame that gcc wrote has the return address in it.
        read_off = pushed(code, self.machine) + self.return_bytes
        frame = max(self.frames.get(name.split(".", maxsplit=1)[0], 0), read_off)
        deepest = 0
        for callee, is_call in self._callees(code).items():
            if callee != name and callee in self.functions:
                now = called | {callee} if is_call else called - {callee}
                deepest = max(deepest, self.depth(callee, (*active, name), now))
        self.unknown += [f"{name} calls through a pointer" for i in code if self._is_indirect(i)][
            :1
        ]
        self.known[name] = frame + deepest
        return frame + deepest

    def _callees(self, code: Sequence[Instruction]) -> dict[str, bool]:
        """Return the functions that code runs, and whether it calls them or only jumps there."""
        callees: dict[str, bool] = {}
        for i in code:
            if i.target and self.machine.is_jump(i.mnemonic):
                callees[i.target] = callees.get(i.target, False) or self.machine.is_call(
                    i.mnemonic, i.operands
                )
        return callees

    def _is_indirect(self, i: Instruction) -> bool:
        return self.machine.is_indirect(i.mnemonic, i.operands, is_named=i.target is not None)


def pushed(code: Iterable[Instruction], machine: InstructionSet) -> int:
    """Return the most bytes that a function's instructions have on the stack at once.

    Instructions are taken in their order in memory; what a return takes off is not counted as
    taken, for what follows it belongs to another path.
    """
    depth = deepest = 0
    for instruction in code:
        change = machine.pushed(instruction.mnemonic, instruction.operands)
        if change > 0 or not _is_return(instruction):
            depth = max(depth + change, 0)
        deepest = max(deepest, depth)
    return deepest


def _is_return(instruction: Instruction) -> bool:
    text = f"{instruction.mnemonic} {instruction.operands}"
    return bool(re.match(r"(pop|ldmia)\S* .*pc|ldr\S* pc", text))
