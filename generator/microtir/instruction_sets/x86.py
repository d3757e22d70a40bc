"""x86 of 64 bits: this machine, as a rule."""

from __future__ import annotations

from microtir.instruction_sets.core import WIDE, Core, Family
from microtir.instruction_sets.features import Feature
from microtir.instruction_sets.record import InstructionSet

_X86_64 = Core("x86-64", Family.X86, "x86-64", WIDE | {Feature.VECTOR})


class X86(InstructionSet):
    """x86-64, with AVX2 or VNNI where the compiler says so."""

    family = Family.X86
    cpus = architectures = (_X86_64,)
    machines = (("x86_64", "x86-64"), ("amd64", "x86-64"))
