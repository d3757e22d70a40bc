"""What an instruction costs on each kind of CPU, in clock cycles: the tables behind estimates.

Where a vendor publishes a table it is the source: Cortex-M0 Technical Reference Manual r0p0,
table 3-1; Cortex-M3 r2p1, table 3-1; Cortex-M4 r0p1, tables 3-1 and 7-1; Ibex Reference Guide,
"Pipeline Details", for RV32.  Arm publishes none for Cortex-M7, M33 and M55: their rows are
assumptions about the issue rules in their manuals, and the estimates are for comparing programs,
not for promising times.  Memories without wait states and without caches are assumed everywhere.
"""

from __future__ import annotations

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


def _costs(**cycles: int) -> Mapping[Kind, int]:
    return MappingProxyType({Kind[name.upper()]: cost for name, cost in cycles.items()})


_M0 = CpuCosts(_costs(load=2, store=2, call=2, jump=1), taken=2)
_M3 = CpuCosts(
    _costs(load=2, multiply_add=2, multiply_long=4, divide=7), taken=2, pipelined_memory=True
)
_M4 = CpuCosts(
    _costs(load=2, divide=7, float_multiply_add=3, float_divide=14), taken=2, pipelined_memory=True
)
# Branches that the predictor knows are free of the refill; the second issue slot is what counts.
_M7 = CpuCosts(
    _costs(divide=8, float_multiply_add=1, float_divide=14),
    taken=1, load_to_use=1, issue=Issue.PAIRS,
)  # fmt: skip
_M33 = CpuCosts(_costs(divide=7, float_multiply_add=2, float_divide=14), taken=2, load_to_use=1)
# A vector instruction takes two cycles for its four beats, and a loop end none when it jumps.
_M55 = CpuCosts(
    _costs(divide=7, float_multiply_add=1, float_divide=14, vector=2, vector_memory=2, loop=0),
    taken=2, load_to_use=1, overlapping_vectors=True,
)  # fmt: skip
_RV32 = CpuCosts(
    _costs(load=2, store=2, multiply=3, multiply_long=4, divide=37, call=2, jump=2), taken=2
)

_BY_CPU: Mapping[str, CpuCosts] = MappingProxyType({"cortex-m7": _M7})
_BY_ARCHITECTURE: Mapping[str, CpuCosts] = MappingProxyType(
    {
        "armv6-m": _M0,
        "armv7-m": _M3,
        "armv7e-m": _M4,
        "armv8-m.base": _M0,
        "armv8-m.main": _M33,
        "armv8.1-m.main": _M55,
    }
)


def cpu_costs(target: Target) -> CpuCosts | None:
    """Return the table of a target's CPU, or of its architecture; None without one."""
    if target.family is Family.RISCV:
        return _RV32
    return _BY_CPU.get(target.mcpu or "") or _BY_ARCHITECTURE.get(target.march or "")
