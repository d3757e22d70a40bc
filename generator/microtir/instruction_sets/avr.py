"""AVR of 8 bits; its cycles are counted by the emulator."""

from __future__ import annotations

import re

from microtir.config import Target
from microtir.config.features import Family
from microtir.instruction_sets.record import InstructionSet


class Avr(InstructionSet):
    """ATmega."""

    families = (Family.AVR,)
    percent_of_code = 270  # arithmetic of 32 bits takes it so much more

    def measured_code(self, _target: Target) -> tuple[int, int]:
        return 90, 115

    def pushed(self, mnemonic: str, _operands: str) -> int:
        return {"push": 1, "pop": -1}.get(mnemonic.split(".", maxsplit=1)[0], 0)

    def is_jump(self, mnemonic: str) -> bool:
        return bool(re.match(r"(r?call|r?jmp|br[a-z]{2})$", mnemonic))

    def is_call(self, mnemonic: str, _operands: str) -> bool:
        return mnemonic in ("call", "rcall")

    def is_indirect(self, mnemonic: str, _operands: str, *, is_named: bool) -> bool:
        del is_named
        return mnemonic in ("icall", "eicall")
