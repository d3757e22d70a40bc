"""The instruction sets whose machine code is read and measured: one module and one line each."""

from __future__ import annotations

from microtir.config import Target
from microtir.config.features import Family
from microtir.instruction_sets.arm import Arm
from microtir.instruction_sets.avr import Avr
from microtir.instruction_sets.record import CpuCosts, InstructionSet
from microtir.instruction_sets.riscv import RiscV

INSTRUCTION_SETS: tuple[InstructionSet, ...] = (Arm(), RiscV(), Avr())
_OTHER = InstructionSet()


def instruction_set(family: Family) -> InstructionSet:
    """Return what is known of the machine code of a family of CPUs."""
    return next((known for known in INSTRUCTION_SETS if family in known.families), _OTHER)


def cpu_costs(target: Target) -> CpuCosts | None:
    """Return the table of cycles of a target's CPU; None where there is none."""
    return instruction_set(target.family).cpu_costs(target)
