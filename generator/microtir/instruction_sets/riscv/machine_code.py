"""RISC-V of 32 bits; cycles by the Ibex Reference Guide, "Pipeline Details"."""

from __future__ import annotations

import re
from collections.abc import Collection

from microtir.instruction_sets.core import Core, Family
from microtir.instruction_sets.costs import CpuCosts, Kind, WorkPercent, costs_of
from microtir.instruction_sets.features import Feature
from microtir.instruction_sets.record import InstructionSet
from microtir.instruction_sets.riscv import cores

_RV32 = CpuCosts(
    costs_of(load=2, store=2, multiply=3, multiply_long=4, divide=37, call=2, jump=2), taken=2
)


class RiscV(InstructionSet):
    """RV32 with the extensions that compilers use."""

    family = Family.RISCV
    cpus = cores.CPUS
    prefixes = ("rv32", "rv64")
    examples = ("rv32imac", "rv32imc", "rv32imafc")
    rest = "any RISC-V string"
    # Zbb takes as much; RV64 was not measured.
    percent_of_work = WorkPercent(instructions=143, cycles=218, measured_on="rv32imc")
    hoists_loads = True
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

    registers = r"[ats]\d+|sp|ra|gp|tp|fp"

    def architecture(self, march: str) -> Core | None:
        return cores.parse(march)

    def unknown_extensions(self, march: str) -> tuple[str, ...]:
        return cores.unknown(march)

    def unused_extensions(self, core: Core) -> tuple[str, ...]:
        return cores.unused(core.march or "")

    def abis(self, core: Core) -> tuple[str, ...]:
        return cores.abis(core)

    def compiler_flags(
        self, core: Core, _features: Collection[Feature], abi: str | None
    ) -> tuple[str, ...]:
        return (f"-march={core.march}", *([f"-mabi={abi}"] if abi else ()))

    def fuses_floats(self, _core: Core, features: Collection[Feature]) -> bool:
        return Feature.FPU in features

    def multiplies(self, features: Collection[Feature]) -> int:
        return 64 if Feature.MUL_LONG in features else 0

    def varying(self, _core: Core) -> frozenset[Kind]:
        """Return divisions: the instruction set leaves open what they and products take."""
        return frozenset({Kind.DIVIDE})

    def cpu_costs(self, _core: Core) -> CpuCosts | None:
        return _RV32

    def measured_like(self, _features: Collection[Feature]) -> str:
        return "rv32imc"

    def pushed(self, mnemonic: str, operands: str) -> int:
        match = re.fullmatch(r"(?:sp,){1,2}(-?\d+)", operands)
        is_addition = mnemonic.split(".", maxsplit=1)[0] in ("add", "addi")
        return -int(match[1]) if is_addition and match else 0

    def is_jump(self, mnemonic: str) -> bool:
        return bool(re.match(r"(jal|j|call|tail|b\w+)$", mnemonic))

    def is_call(self, mnemonic: str, operands: str) -> bool:
        return mnemonic in ("jal", "call") and not operands.startswith("zero")

    def is_indirect(self, mnemonic: str, operands: str, *, is_named: bool) -> bool:
        del is_named
        return mnemonic == "jalr" and not operands.startswith("zero")
