"""The instruction sets, one folder or module and one line each: CPUs, cycles, machine code."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from microtir.instruction_sets.arm import Arm
from microtir.instruction_sets.avr import Avr
from microtir.instruction_sets.core import Core, Family
from microtir.instruction_sets.record import InstructionSet
from microtir.instruction_sets.riscv import RiscV
from microtir.instruction_sets.x86 import X86
from microtir.instruction_sets.xtensa import Xtensa

INSTRUCTION_SETS: tuple[InstructionSet, ...] = (
    Arm(),
    X86(),
    Avr(),
    Xtensa(),
    RiscV(),
)
_OTHER = InstructionSet()

CPUS: Mapping[str, Core] = MappingProxyType(
    {core.name: core for known in INSTRUCTION_SETS for core in known.cpus}
)
ARCHITECTURES: Mapping[str, Core] = MappingProxyType(
    {core.name: core for known in INSTRUCTION_SETS for core in known.architectures}
)
# What `-mcpu=native` stands for, by what the operating system calls the machine.
NATIVE: Mapping[str, str] = MappingProxyType(
    {machine: cpu for known in INSTRUCTION_SETS for machine, cpu in known.machines}
)
# Names of architectures for messages, and what else may be named.
ARCHITECTURE_NAMES: tuple[str, ...] = (
    *ARCHITECTURES,
    *(name for known in INSTRUCTION_SETS for name in known.examples),
)
MORE_ARCHITECTURES = ", ".join(known.rest for known in INSTRUCTION_SETS if known.rest)


def instruction_set(family: Family) -> InstructionSet:
    """Return what is known of a family of CPUs and of its machine code."""
    return next((known for known in INSTRUCTION_SETS if known.family is family), _OTHER)


def architecture(march: str) -> Core | None:
    """Return the core that the name of an architecture stands for, or None."""
    architectures = (known.architecture(march) for known in INSTRUCTION_SETS)
    return ARCHITECTURES.get(march) or next(filter(None, architectures), None)


def unknown_extensions(march: str) -> tuple[str, ...]:
    """Return the extensions in the name of an architecture that are none."""
    return tuple(name for known in INSTRUCTION_SETS for name in known.unknown_extensions(march))


def is_architecture(name: str) -> bool:
    """Return whether a word can only be meant as the name of an architecture."""
    prefixes = tuple(prefix for known in INSTRUCTION_SETS for prefix in known.prefixes)
    return name in ARCHITECTURES or name.startswith(prefixes)
