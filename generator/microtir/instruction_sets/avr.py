"""AVR of 8 bits; its cycles are counted by the emulator."""

from __future__ import annotations

import re
from collections.abc import Collection

from microtir.instruction_sets.core import Core, Family
from microtir.instruction_sets.costs import WorkPercent
from microtir.instruction_sets.features import Feature
from microtir.instruction_sets.record import InstructionSet

# It reads bytes only, so that every address is aligned.
_MEGA = frozenset({Feature.UNALIGNED, Feature.AVR_PROGMEM})
_NEAR_FLASH = 0x2_0000  # bytes; addresses of more have a third byte


class Avr(InstructionSet):
    """ATmega."""

    family = Family.AVR
    cpus = (
        Core("atmega328p", Family.AVR, "avr5", _MEGA),
        Core("atmega2560", Family.AVR, "avr6", _MEGA),
    )
    percent_of_work = WorkPercent(instructions=1118, cycles=1090)
    percent_of_code = 330  # arithmetic of 32 bits takes it so much more

    def compiler_flags(
        self, core: Core, _features: Collection[Feature], _abi: str | None
    ) -> tuple[str, ...]:
        return (f"-mmcu={core.name}",)

    def alignment(self, _features: Collection[Feature]) -> int:
        return 1

    def shifts(self, _features: Collection[Feature]) -> int:
        return 0

    def return_bytes(self, flash: int) -> int:
        return 3 if flash > _NEAR_FLASH else 2

    def pushed(self, mnemonic: str, _operands: str) -> int:
        return {"push": 1, "pop": -1}.get(mnemonic.split(".", maxsplit=1)[0], 0)

    def is_jump(self, mnemonic: str) -> bool:
        return bool(re.match(r"(r?call|r?jmp|br[a-z]{2})$", mnemonic))

    def is_call(self, mnemonic: str, _operands: str) -> bool:
        return mnemonic in ("call", "rcall")

    def is_indirect(self, mnemonic: str, _operands: str, *, is_named: bool) -> bool:
        del is_named
        return mnemonic in ("icall", "eicall")
