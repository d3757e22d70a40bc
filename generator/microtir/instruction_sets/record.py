"""What is known of the machine code of a family of CPUs: a record for each instruction set."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

from microtir.config import Target
from microtir.config.features import Family


class Kind(Enum):
    """Classes of instructions that cost the same."""

    PLAIN = "plain"
    MULTIPLY = "multiply"
    MULTIPLY_ADD = "multiply and add"  # products of pairs of 16 bit as well
    MULTIPLY_LONG = "long product"
    DIVIDE = "divide"
    LOAD = "load"
    STORE = "store"
    LOAD_MANY = "load of several registers"
    STORE_MANY = "store of several registers"
    BRANCH = "branch"
    CALL = "call"
    JUMP = "jump to a register"
    LOOP = "loop end"  # of Armv8.1-M
    FLOAT = "float"
    FLOAT_MULTIPLY_ADD = "float multiply and add"
    FLOAT_DIVIDE = "float divide"
    VECTOR = "vector arithmetic"
    VECTOR_MEMORY = "vector load or store"


class Issue(Enum):
    """How many instructions start in one cycle."""

    SINGLE = "one"
    PAIRS = "two"  # independent neighbours, one of which at most accesses memory or multiplies


@dataclass(frozen=True, slots=True)
class CpuCosts:
    """Cycles of instructions.

    Args:
        costs: by kind; what is not listed takes one cycle. Of several registers: beyond the
            first cycle per register.
        taken: further cycles of a branch that is taken.
        pipelined_memory: a load or store of one register takes one cycle behind another one.
        load_to_use: further cycles of a load whose value the next instruction needs.
        overlapping_vectors: a vector instruction starts a cycle before its predecessor ends, if
            that uses another unit.
    """

    costs: Mapping[Kind, int]
    taken: int
    pipelined_memory: bool = False
    load_to_use: int = 0
    issue: Issue = Issue.SINGLE
    overlapping_vectors: bool = False

    def cycles(self, kind: Kind, registers: int) -> int:
        """Return the cycles of an instruction by itself."""
        cost = self.costs.get(kind, 1)
        return 1 + cost * registers if kind in (Kind.LOAD_MANY, Kind.STORE_MANY) else cost


def costs_of(**cycles: int) -> Mapping[Kind, int]:
    """Return cycles by kind, kinds given by their names in lower case."""
    return MappingProxyType({Kind[name.upper()]: cost for name, cost in cycles.items()})


class InstructionSet:
    """The machine code of a family of CPUs, as objdump prints it.

    What this class says holds where an instruction set says nothing else.

    Attributes:
        families: of the CPUs.
        kinds: patterns of mnemonics with the kind of instruction, the first match counting.
        percent_of_code: how much code it takes for what takes Thumb-2 a hundred.
    """

    families: tuple[Family, ...] = ()
    kinds: tuple[tuple[str, Kind], ...] = ()
    percent_of_code = 100

    def cpu_costs(self, _target: Target) -> CpuCosts | None:
        """Return the table of a target's CPU, or of its architecture; None where there is none."""
        return None

    def measured_code(self, _target: Target) -> tuple[int, int]:
        """Return what GCC made with -O2, in percent of the estimate of code.

        These are the least and the most of all programs that were measured.
        """
        return 56, 141

    def kind_of(self, mnemonic: str) -> Kind:
        """Return the class that an instruction belongs to."""
        found = (kind for pattern, kind in self.kinds if re.match(pattern, mnemonic))
        return next(found, Kind.PLAIN)

    def objdump_options(self, _march: str | None) -> tuple[str, ...]:
        """Return what objdump must be told of an architecture."""
        return ()

    def pushed(self, _mnemonic: str, _operands: str) -> int:
        """Return the bytes that an instruction puts on the stack; negative if it takes them off."""
        return 0

    def is_jump(self, mnemonic: str) -> bool:
        """Return whether the function that an operand names is run, not only its address taken."""
        return bool(re.match(r"(jal|j|call|tail|b\w+)$", mnemonic))

    def is_call(self, mnemonic: str, operands: str) -> bool:
        """Return whether a jump comes back."""
        return mnemonic in ("jal", "call") and not operands.startswith("zero")

    def is_indirect(self, mnemonic: str, operands: str, *, is_named: bool) -> bool:
        """Return whether a function is called whose address is in a register.

        Args:
            mnemonic: of the instruction.
            operands: as printed.
            is_named: whether an operand names the function.
        """
        del is_named
        return mnemonic == "jalr" and not operands.startswith("zero")
