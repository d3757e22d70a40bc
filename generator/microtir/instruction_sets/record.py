"""The record of an instruction set: all facts about a family of CPUs."""

from __future__ import annotations

import re
from collections.abc import Collection

from microtir.instruction_sets.core import GENERIC, Core, Family
from microtir.instruction_sets.costs import CpuCosts, Kind, WorkPercent
from microtir.instruction_sets.features import Feature


class InstructionSet:
    """The CPUs of a family, and their machine code as objdump prints it.

    What this class says holds where an instruction set says nothing else, and for portable code.

    Attributes:
        family: of the CPUs.
        cpus: by the names that `-mcpu` takes.
        architectures: by the names that `-march` takes.
        prefixes: what the names of architectures begin with that `architecture` reads.
        examples: some of those names, for messages.
        rest: what all of those names are, in a few words.
        machines: what operating systems call a machine, with the CPU that `native` then means.
        keys: of a target, as microTVM gives them.
        hoists_loads: whether compilers read all operands of a straight piece of code first, and
            have too few registers for them, so that fast blocks read operands in turn.
        is_thumb: whether programs are of Thumb code, as on microcontrollers of Arm.
        kinds: patterns of mnemonics with the kind of instruction, the first match counting.
        registers: a pattern of their names.
        percent_of_work: what it takes for estimated work, unless its CPUs differ.
        percent_of_code: how much code it takes for what takes the CPU of the figures a hundred.
    """

    family: Family = GENERIC.family
    cpus: tuple[Core, ...] = ()
    architectures: tuple[Core, ...] = ()
    prefixes: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    rest: str | None = None
    machines: tuple[tuple[str, str], ...] = ()
    keys: tuple[str, ...] = ("cpu",)
    hoists_loads = False
    is_thumb = False
    kinds: tuple[tuple[str, Kind], ...] = ()
    registers = r"[a-z]+\d+"
    percent_of_work = WorkPercent()
    percent_of_code = 100

    # --- CPUs ---------------------------------------------------------------------------------

    def architecture(self, _march: str) -> Core | None:
        """Return the core of an architecture that is named by a rule, not by a row."""
        return None

    def unknown_extensions(self, _march: str) -> tuple[str, ...]:
        """Return what the name of an architecture has that keeps `architecture` from reading it."""
        return ()

    def unused_extensions(self, _core: Core) -> tuple[str, ...]:
        """Return what a core is said to have, for speed, and no kernel uses."""
        return ()

    def abis(self, _core: Core) -> tuple[str, ...]:
        """Return the ABIs of a core, the default last; none where there is one name only."""
        return ()

    def compiler_flags(
        self, _core: Core, _features: Collection[Feature], _abi: str | None
    ) -> tuple[str, ...]:
        """Return what GCC is told of a core; nothing where its name says no more than default."""
        return ()

    def alignment(self, features: Collection[Feature]) -> int:
        """Return the bytes that suit every load of a CPU with these features."""
        return 8 if Feature.BIT64 in features else 4

    def fuses_floats(self, _core: Core, _features: Collection[Feature]) -> bool:
        """Return whether one instruction multiplies and adds float32, and rounds once."""
        return False

    def waits_for_products(self, _core: Core, _features: Collection[Feature]) -> bool:
        """Return whether a multiply-add of floats takes longer than a product and a sum."""
        return False

    def chooses(self, _features: Collection[Feature]) -> bool:
        """Return whether compilers have instructions that choose one of two values, no branch."""
        return False

    def multiplies(self, _features: Collection[Feature]) -> int:
        """Return the bits of integers that are multiplied without a branch of a library."""
        return 64

    def shifts(self, _features: Collection[Feature]) -> int:
        """Return the bits that are shifted without a loop, by as many as a register says."""
        return 32

    def varying(self, _core: Core) -> frozenset[Kind]:
        """Return the kinds of instructions whose cycles depend on the values of operands."""
        return frozenset()

    def cpu_costs(self, _core: Core) -> CpuCosts | None:
        """Return the table of a CPU, or of its architecture; None where there is none."""
        return None

    def work_percent(self, _core: Core) -> WorkPercent:
        """Return what a CPU takes for estimated work; 100 where that was not measured."""
        return self.percent_of_work

    def return_bytes(self, _flash: int) -> int:
        """Return the bytes that a call itself pushes, on a CPU with so much flash."""
        return 0

    # --- code ---------------------------------------------------------------------------------

    def measured_like(self, _features: Collection[Feature]) -> str:
        """Return the CPU whose sizes of compiled code are taken for one with features."""
        return "cortex-m4"

    def kind_of(self, mnemonic: str) -> Kind:
        matches = (kind for pattern, kind in self.kinds if re.match(pattern, mnemonic))
        return next(matches, Kind.PLAIN)

    def registers_of(self, operands: str) -> list[str]:
        return re.findall(rf"\b(?:{self.registers})\b", operands)

    def words_moved(self, _operands: str) -> int:
        """Return how many words a load or store of several registers moves."""
        return 1

    def objdump_options(self, _march: str | None) -> tuple[str, ...]:
        """Return what objdump must be told of an architecture."""
        return ()

    def pushed(self, _mnemonic: str, _operands: str) -> int:
        """Return the bytes that an instruction puts on the stack; negative if it takes them off."""
        return 0

    def is_jump(self, _mnemonic: str) -> bool:
        """Return whether the function that an operand names is run, not only its address taken."""
        return False

    def is_call(self, _mnemonic: str, _operands: str) -> bool:
        """Return whether a jump comes back."""
        return False

    def is_indirect(self, _mnemonic: str, _operands: str, *, is_named: bool) -> bool:
        """Return whether a function is called whose address is in a register.

        Args:
            _mnemonic: of the instruction.
            _operands: as printed.
            is_named: whether an operand names the function.
        """
        del is_named
        return False
