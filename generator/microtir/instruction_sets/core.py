"""A CPU or a bare architecture, as the rows of the instruction sets describe it.

Decisions, all as arm-none-eabi-gcc decides for the same name (a test compares them):
- A CPU name without suffix stands for the fullest implementation of that CPU.  A part without one
  of its features says so: `+nofp`, `+nodsp`.
- An architecture name (`-march=armv7e-m`) stands for the least implementation; optional parts are
  added by suffix (`+fp`).
"""

from __future__ import annotations

from dataclasses import dataclass

from microtir.instruction_sets.features import Feature
from microtir.support.spelled import Spelled


class Family(Spelled):
    """Instruction set families."""

    ARM = "arm"
    X86 = "x86"
    RISCV = "riscv"
    AVR = "avr"
    XTENSA = "xtensa"
    GENERIC = "generic"


@dataclass(frozen=True, slots=True)
class Core:
    """A CPU or a bare architecture.

    `features` is what it has; `optional` what an implementation may add, on request.
    """

    name: str
    family: Family
    march: str | None
    features: frozenset[Feature]
    optional: frozenset[Feature] = frozenset()


NO_FEATURES: frozenset[Feature] = frozenset()
DOUBLE = frozenset({Feature.FPU, Feature.FPU_DOUBLE})
# What CPUs with registers of 64 bits have, whatever their instruction set.
WIDE = frozenset({Feature.MUL_LONG, Feature.DIVIDE, Feature.UNALIGNED, Feature.BIT64}) | DOUBLE

GENERIC = Core("generic", Family.GENERIC, None, NO_FEATURES)
