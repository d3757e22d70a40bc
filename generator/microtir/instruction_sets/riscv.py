"""RISC-V of 32 bits; cycles by the Ibex Reference Guide, "Pipeline Details"."""

from __future__ import annotations

import re

from microtir.config import Target
from microtir.config.features import Family
from microtir.instruction_sets.record import CpuCosts, InstructionSet, Kind, costs_of

_RV32 = CpuCosts(
    costs_of(load=2, store=2, multiply=3, multiply_long=4, divide=37, call=2, jump=2), taken=2
)


class RiscV(InstructionSet):
    """RV32 with the extensions that compilers use."""

    families = (Family.RISCV,)
    kinds = (
        (r"mulh", Kind.MULTIPLY_LONG),
        (r"mul", Kind.MULTIPLY),
        (r"(div|rem)", Kind.DIVIDE),
        (r"l[bhw]u?$", Kind.LOAD),
        (r"s[bhw]$", Kind.STORE),
        (r"(jal|j|call|tail)$", Kind.CALL),
        (r"(jalr|jr|ret)$", Kind.JUMP),
        (r"b", Kind.BRANCH),
    )

    def cpu_costs(self, _target: Target) -> CpuCosts | None:
        return _RV32

    def pushed(self, mnemonic: str, operands: str) -> int:
        match = re.fullmatch(r"(?:sp,){1,2}(-?\d+)", operands)
        is_addition = mnemonic.split(".", maxsplit=1)[0] in ("add", "addi")
        return -int(match[1]) if is_addition and match else 0
