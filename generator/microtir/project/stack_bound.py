"""The deepest stack of a function, without running it: frames along the longest chain of calls.

Frames of compiled functions are what gcc wrote with -fstack-usage. It does not see what assembly
inside a function pushes, and says nothing about libraries: those frames are read off the machine
code. Calls are read off the machine code, too, since some compilers have no call graph to give.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from microtir.config.features import Family
from microtir.project.disassembly import Instruction

_SU_LINE = re.compile(r"^(?:.*):\d+:\d+:(\S+)\t(\d+)\t(\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class StackBound:
    """The bound, in bytes, and why it is none: calls that no tool can follow."""

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
    family: Family,
    return_bytes: int,
) -> StackBound:
    """Return the bound of a function and all that it calls.

    Args:
        root: the function's name.
        program: all instructions, by address.
        frames: bytes that functions reserve, where a compiler told.
        family: of the CPU.
        return_bytes: what a call itself puts on the stack.
    """
    functions: dict[str, list[Instruction]] = {}
    for instruction in program.values():
        functions.setdefault(instruction.function, []).append(instruction)
    walker = _Walker(functions, frames, family, return_bytes)
    depth = walker.depth(root, (), frozenset((root,)))
    return StackBound(depth, tuple(walker.unknown))


class _Walker:
    def __init__(
        self,
        functions: Mapping[str, list[Instruction]],
        frames: Mapping[str, int],
        family: Family,
        return_bytes: int,
    ) -> None:
        self.functions = functions
        self.frames = frames
        self.family = family
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
        read_off = pushed(code, self.family) + self.return_bytes
        frame = max(self.frames.get(name.split(".", maxsplit=1)[0], 0), read_off)
        deepest = 0
        for callee, is_call in self._callees(code).items():
            if callee != name and callee in self.functions:
                now = called | {callee} if is_call else called - {callee}
                deepest = max(deepest, self.depth(callee, (*active, name), now))
        self.unknown += [
            f"{name} calls through a pointer" for i in code if _is_indirect(i, self.family)
        ][:1]
        self.known[name] = frame + deepest
        return frame + deepest

    def _callees(self, code: Sequence[Instruction]) -> dict[str, bool]:
        """Return the functions that code runs, and whether it calls them or only jumps there."""
        found: dict[str, bool] = {}
        for i in code:
            if i.target and _is_jump(i, self.family):
                found[i.target] = found.get(i.target, False) or _is_call(i, self.family)
        return found


def pushed(code: Iterable[Instruction], family: Family) -> int:
    """Return the most bytes that a function's instructions have on the stack at once.

    Instructions are taken in their order in memory; what a return takes off is not counted as
    taken, for what follows it belongs to another path.
    """
    depth = deepest = 0
    for instruction in code:
        change = _change(instruction, family)
        if change > 0 or not _is_return(instruction):
            depth = max(depth + change, 0)
        deepest = max(deepest, depth)
    return deepest


def _change(instruction: Instruction, family: Family) -> int:
    """Return the bytes an instruction puts on the stack; negative if it takes them off."""
    mnemonic, operands = instruction.mnemonic.split(".")[0], instruction.operands
    if family is Family.AVR:
        return {"push": 1, "pop": -1}.get(mnemonic, 0)
    if family is Family.RISCV:
        match = re.fullmatch(r"(?:sp,){1,2}(-?\d+)", operands)
        return -int(match[1]) if mnemonic in ("add", "addi") and match else 0
    if mnemonic in ("push", "vpush") or (mnemonic in ("stmdb", "vstmdb") and "sp!" in operands):
        return _listed_bytes(operands)
    if mnemonic in ("pop", "vpop") or (mnemonic in ("ldmia", "vldmia") and "sp!" in operands):
        return -_listed_bytes(operands)
    match = re.fullmatch(r"(?:sp, ){1,2}#(\d+)", operands)
    if match and mnemonic in ("sub", "subw", "add", "addw"):
        return int(match[1]) if mnemonic.startswith("sub") else -int(match[1])
    match = re.search(r"\[sp, #(-?\d+)\]!", operands)
    return -int(match[1]) if match and mnemonic in ("str", "strd") else 0


def _listed_bytes(operands: str) -> int:
    listed = operands[operands.find("{") + 1 : operands.find("}")]
    count = 0
    for part in listed.split(","):
        numbers = [int(number) for number in re.findall(r"\d+", part)]
        count += numbers[1] - numbers[0] + 1 if "-" in part and len(numbers) == 2 else 1
    return count * (8 if listed.strip().startswith("d") else 4)


def _is_return(instruction: Instruction) -> bool:
    text = f"{instruction.mnemonic} {instruction.operands}"
    return bool(re.match(r"(pop|ldmia)\S* .*pc|ldr\S* pc", text))


def _is_jump(instruction: Instruction, family: Family) -> bool:
    """Return whether an operand's function is run, and not only its address taken."""
    if family is Family.ARM:
        return bool(re.match(r"(b|bl|blx|b[a-z]{2}|cbn?z)(\.|$)", instruction.mnemonic))
    if family is Family.AVR:
        return bool(re.match(r"(r?call|r?jmp|br[a-z]{2})$", instruction.mnemonic))
    return bool(re.match(r"(jal|j|call|tail|b\w+)$", instruction.mnemonic))


def _is_call(instruction: Instruction, family: Family) -> bool:
    """Return whether a jump comes back."""
    if family is Family.ARM:
        return bool(re.match(r"blx?(\.|$)", instruction.mnemonic))
    if family is Family.AVR:
        return instruction.mnemonic in ("call", "rcall")
    return instruction.mnemonic in ("jal", "call") and not instruction.operands.startswith("zero")


def _is_indirect(instruction: Instruction, family: Family) -> bool:
    """Return whether a function is called whose address is in a register."""
    mnemonic, operands = instruction.mnemonic, instruction.operands
    if family is Family.ARM:
        return mnemonic == "blx" and not instruction.target
    if family is Family.AVR:
        return mnemonic in ("icall", "eicall")
    return mnemonic == "jalr" and not operands.startswith("zero")
