"""Xtensa: Espressif's ESP32, S2 and S3, whose machine code nothing here reads."""

from __future__ import annotations

from collections.abc import Collection

from microtir.instruction_sets.core import Core, Family
from microtir.instruction_sets.features import Feature
from microtir.instruction_sets.record import InstructionSet

# Not unaligned access: it traps or is slow on some memories.
_ESP = frozenset({Feature.MUL_LONG, Feature.DIVIDE})
_FLOAT = frozenset({Feature.FPU})


class Xtensa(InstructionSet):
    """ESP32 but for those with RISC-V."""

    family = Family.XTENSA
    cpus = (
        Core("esp32", Family.XTENSA, None, _ESP | _FLOAT),
        Core("esp32s2", Family.XTENSA, None, _ESP),
        Core("esp32s3", Family.XTENSA, None, _ESP | _FLOAT),
    )

    def fuses_floats(self, _core: Core, features: Collection[Feature]) -> bool:
        return Feature.FPU in features  # MADD.S
