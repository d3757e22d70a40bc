"""Costs of instructions in clock cycles: kinds of instructions, and a table for each CPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType


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
    """The number of instructions that start in one cycle."""

    SINGLE = "one"
    PAIRS = "two"  # independent neighbours, one of which at most accesses memory or multiplies


@dataclass(frozen=True, slots=True)
class WorkPercent:
    """The work of a CPU, in percent of the instructions and cycles that were counted on others.

    Kernels in plain C state the instructions and cycles of Cortex-M3 and M4, whatever they are
    compiled for.  Planning compares kernels of one CPU, for which no factor matters; what people
    are told is multiplied by it.  It was measured on an emulator, with networks of MLPerf Tiny and
    the example: their instructions lie within a tenth of it, their cycles within a fifth.
    """

    instructions: int = 100
    cycles: int = 100
    measured_on: str = ""  # whose file has what loops take without an FPU; none: a Cortex-M4


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
        cost = self.costs.get(kind, 1)
        return 1 + cost * registers if kind in (Kind.LOAD_MANY, Kind.STORE_MANY) else cost


def costs_of(**cycles: int) -> Mapping[Kind, int]:
    """Return cycles by kind, kinds given by their names in lower case."""
    return MappingProxyType({Kind[name.upper()]: cost for name, cost in cycles.items()})
