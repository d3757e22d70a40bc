"""Costs of Arm's instructions in clock cycles.

Where Arm publishes a table it is the source: Cortex-M0 Technical Reference Manual r0p0, table 3-1;
Cortex-M3 r2p1, table 3-1; Cortex-M4 r0p1, tables 3-1 and 7-1.  Arm publishes none for Cortex-M7,
M33 and M55: their rows are assumptions about the issue rules in their manuals, and the estimates
are for comparing programs, not for promising times.  Memories without wait states and without
caches are assumed everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from microtir.instruction_sets.core import Core
from microtir.instruction_sets.costs import CpuCosts, Issue, Kind, WorkPercent, costs_of

_M0 = CpuCosts(costs_of(load=2, store=2, call=2, jump=1), taken=2)
_M3 = CpuCosts(
    costs_of(load=2, multiply_add=2, multiply_long=4, divide=7), taken=2, pipelined_memory=True
)
_M4 = CpuCosts(
    costs_of(load=2, divide=7, float_multiply_add=3, float_divide=14),
    taken=2,
    pipelined_memory=True,
)
# Branches that the predictor knows are free of the refill; the second issue slot is what counts.
_M7 = CpuCosts(
    costs_of(divide=8, float_multiply_add=1, float_divide=14),
    taken=1, load_to_use=1, issue=Issue.PAIRS,
)  # fmt: skip
_M33 = CpuCosts(costs_of(divide=7, float_multiply_add=2, float_divide=14), taken=2, load_to_use=1)
# A vector instruction takes two cycles for its four beats, and a loop end none when it jumps.
_M55 = CpuCosts(
    costs_of(divide=7, float_multiply_add=1, float_divide=14, vector=2, vector_memory=2, loop=0),
    taken=2, load_to_use=1, overlapping_vectors=True,
)  # fmt: skip
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

# An M0 has few registers, and products of two operands.
_SMALL = WorkPercent(instructions=292, cycles=308, measured_on="cortex-m0")
_WORK_BY_CPU: Mapping[str, WorkPercent] = MappingProxyType({"cortex-m7": WorkPercent(cycles=80)})
_WORK_BY_ARCHITECTURE: Mapping[str, WorkPercent] = MappingProxyType(
    {"armv6-m": _SMALL, "armv7-m": WorkPercent(cycles=131), "armv8-m.base": _SMALL}
)


def work_percent(core: Core) -> WorkPercent:
    """Return what a CPU takes for estimated work, as the emulator counts it."""
    work = _WORK_BY_CPU.get(core.name) or _WORK_BY_ARCHITECTURE.get(core.march or "")
    return work or WorkPercent()


def cpu_costs(core: Core) -> CpuCosts | None:
    """Return the table of a CPU, or of its architecture; None where there is none."""
    return _BY_CPU.get(core.name) or _BY_ARCHITECTURE.get(core.march or "")


def varying(core: Core) -> frozenset[Kind]:
    """Return the kinds whose cycles depend on operands: divisions end early, an M3's products too.

    An M0 multiplies in 1 or in 32 cycles, as it was built, whatever is multiplied.
    """
    if core.march == "armv6-m":
        return frozenset()
    return frozenset({Kind.DIVIDE, *([Kind.MULTIPLY_LONG] if core.march == "armv7-m" else [])})
