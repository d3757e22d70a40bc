"""Defines what the machine code of an instruction set is translated to, to follow it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from microtir.profiling.disassembly import Instruction

JUMP_TARGET = re.compile(r"(?:^|, ?)([0-9a-f]+)$")


@dataclass(frozen=True, slots=True)
class Step:
    """Effect of an instruction, as statements and expressions over registers `r` of values `v`.

    It does `first`. If there is no condition, or it holds, it does more and leaves for somewhere.
    """

    first: tuple[str, ...] = ()
    does: tuple[str, ...] = ()
    condition: str = ""
    leaves: str = ""
    target: int | None = None
    is_call: bool = False


@dataclass(frozen=True, slots=True)
class Machine:
    """An instruction set: its registers, and what an instruction before an address does.

    The last argument of `translate` is the condition of IT, if there is one. `fixed` returns the
    registers that no function changes. `objdump` are options for the form that is translated.
    """

    registers: int
    stack: int
    link: int
    translate: Callable[[Instruction, int, str], Step]
    fixed: Callable[[Iterable[Instruction]], dict[int, int]] = lambda _: {}
    objdump: tuple[str, ...] = ()


def with_opposites(pairs: Mapping[str, str]) -> dict[str, str]:
    """Return conditions by name, from pairs of which one holds where the other does not."""
    return {
        name: form.format(truth)
        for names, truth in pairs.items()
        for name, form in zip(names.split(), ("{}", "1 - ({})"), strict=True)
    }


def targets(program: Iterable[Instruction]) -> frozenset[int]:
    """Return where the jumps of a program lead, as far as that is constant."""
    jumps = (JUMP_TARGET.search(i.operands) for i in program if i.mnemonic[0] in "bcjlw")
    return frozenset(int(match[1], 16) for match in jumps if match)
