"""Arm: Thumb-2 with its extensions, and what its instructions cost in clock cycles.

Where Arm publishes a table it is the source: Cortex-M0 Technical Reference Manual r0p0, table 3-1;
Cortex-M3 r2p1, table 3-1; Cortex-M4 r0p1, tables 3-1 and 7-1.  Arm publishes none for Cortex-M7,
M33 and M55: their rows are assumptions about the issue rules in their manuals, and the estimates
are for comparing programs, not for promising times.  Memories without wait states and without
caches are assumed everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from microtir.config import Target
from microtir.config.features import Family
from microtir.instruction_sets.record import CpuCosts, InstructionSet, Issue, Kind, costs_of

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

# Bit operations whose names begin as a branch does.
_PLAIN = re.compile(r"(bic|bfi|bfc|bkpt)")

# Without the architecture objdump shows vectors of Armv8.1-M as undefined instructions.
_HELIUM = "armv8.1-m.main"


class Arm(InstructionSet):
    """Cortex-M, R and A."""

    families = (Family.ARM,)
    kinds = (
        (r"v(ldm|pop)", Kind.LOAD_MANY),
        (r"v(stm|push)", Kind.STORE_MANY),
        (r"v(ldr|ld[24])[bhwd]?[0-9]?\.[us]?(8|16|32|64)$|vld[24]", Kind.VECTOR_MEMORY),
        (r"v(str|st[24])[bhwd]?[0-9]?\.(8|16|32|64)$|vst[24]", Kind.VECTOR_MEMORY),
        (r"vldr", Kind.LOAD),
        (r"vstr", Kind.STORE),
        (r"v(div|sqrt)", Kind.FLOAT_DIVIDE),
        (r"v(n?ml[as]|fn?m[as])\w*\.f(32|64)$", Kind.FLOAT_MULTIPLY_ADD),
        (r"v\w*\.f(32|64)|v(mov|mrs|msr|cvt)", Kind.FLOAT),
        (r"v", Kind.VECTOR),
        (r"[su]div", Kind.DIVIDE),
        (r"([su]mull|[su]mlal|umaal)", Kind.MULTIPLY_LONG),
        (r"(ml[as]|sm[lu]|smm|smus)", Kind.MULTIPLY_ADD),
        (r"mul", Kind.MULTIPLY),
        (r"(ldm|pop)", Kind.LOAD_MANY),
        (r"(stm|push)", Kind.STORE_MANY),
        (r"ldrd", Kind.LOAD_MANY),
        (r"strd", Kind.STORE_MANY),
        (r"(ldr|tb[bh])", Kind.LOAD),
        (r"str", Kind.STORE),
        (r"l(e|etp)$", Kind.LOOP),
        (r"(bl|blx)(\.|$)", Kind.CALL),
        (r"bx", Kind.JUMP),
        (r"(b|b[a-z]{2}|cbn?z)(\.|$)", Kind.BRANCH),
    )

    def cpu_costs(self, target: Target) -> CpuCosts | None:
        return _BY_CPU.get(target.mcpu or "") or _BY_ARCHITECTURE.get(target.march or "")

    def measured_code(self, target: Target) -> tuple[int, int]:
        return (64, 109) if target.mcpu == "cortex-m4" else super().measured_code(target)

    def kind_of(self, mnemonic: str) -> Kind:
        return Kind.PLAIN if _PLAIN.match(mnemonic) else super().kind_of(mnemonic)

    def objdump_options(self, march: str | None) -> tuple[str, ...]:
        return ("-m", _HELIUM) if march == _HELIUM else ()

    def pushed(self, mnemonic: str, operands: str) -> int:
        mnemonic = mnemonic.split(".", maxsplit=1)[0]
        if mnemonic in ("push", "vpush") or (mnemonic in _STORES and "sp!" in operands):
            return _listed_bytes(operands)
        if mnemonic in ("pop", "vpop") or (mnemonic in _LOADS and "sp!" in operands):
            return -_listed_bytes(operands)
        match = re.fullmatch(r"(?:sp, ){1,2}#(\d+)", operands)
        if match and mnemonic in ("sub", "subw", "add", "addw"):
            return int(match[1]) if mnemonic.startswith("sub") else -int(match[1])
        match = re.search(r"\[sp, #(-?\d+)\]!", operands)
        return -int(match[1]) if match and mnemonic in ("str", "strd") else 0

    def is_jump(self, mnemonic: str) -> bool:
        return bool(re.match(r"(b|bl|blx|b[a-z]{2}|cbn?z)(\.|$)", mnemonic))

    def is_call(self, mnemonic: str, _operands: str) -> bool:
        return bool(re.match(r"blx?(\.|$)", mnemonic))

    def is_indirect(self, mnemonic: str, _operands: str, *, is_named: bool) -> bool:
        return mnemonic == "blx" and not is_named


_STORES, _LOADS = ("stmdb", "vstmdb"), ("ldmia", "vldmia")


def _listed_bytes(operands: str) -> int:
    listed = operands[operands.find("{") + 1 : operands.find("}")]
    count = 0
    for part in listed.split(","):
        numbers = [int(number) for number in re.findall(r"\d+", part)]
        count += numbers[1] - numbers[0] + 1 if "-" in part and len(numbers) == 2 else 1
    return count * (8 if listed.strip().startswith("d") else 4)
