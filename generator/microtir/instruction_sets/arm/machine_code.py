"""Arm's machine code: Thumb-2 with its extensions."""

from __future__ import annotations

import re
from collections.abc import Collection

from microtir.instruction_sets.arm import cores, cycles
from microtir.instruction_sets.core import Core, Family
from microtir.instruction_sets.costs import CpuCosts, Kind, WorkPercent
from microtir.instruction_sets.features import NEEDS, Feature
from microtir.instruction_sets.record import InstructionSet

# Bit operations whose names begin as a branch does.
_PLAIN = re.compile(r"(bic|bfi|bfc|bkpt)")

# Without the architecture objdump shows vectors of Armv8.1-M as undefined instructions.
_HELIUM = "armv8.1-m.main"

# Architectures whose FPU multiplies and adds in one instruction that rounds once.
_FUSING = ("armv7e-m", "armv8-m.main", "armv8.1-m.main", "armv8-a")

# Features that GCC knows by the same names, each behind what it needs.
_EXTENSIONS = (
    Feature.DSP,
    Feature.FPU,
    Feature.FPU_DOUBLE,
    Feature.MVE,
    Feature.MVE_FLOAT,
)


class Arm(InstructionSet):
    """Cortex-M, R and A."""

    family = Family.ARM
    cpus = cores.CPUS
    architectures = cores.ARCHITECTURES
    machines = (("aarch64", "aarch64"), ("arm64", "aarch64"))
    keys = ("arm_cpu", "cpu")
    is_thumb = True
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

    registers = r"[rsdq]\d+|sp|lr|pc|ip|fp|sl|sb"

    def abis(self, _core: Core) -> tuple[str, ...]:
        return ("aapcs",)

    def compiler_flags(
        self, core: Core, features: Collection[Feature], _abi: str | None
    ) -> tuple[str, ...]:
        is_cpu = core in cores.CPUS and core.name != core.march and core.name != "aarch64"
        name = f"-mcpu={core.name}" if is_cpu else f"-march={core.march}"
        missing = frozenset(core.features) - frozenset(features)
        # GCC takes away what needs a feature with it, and has no names for what is no extension.
        less = [f for f in _EXTENSIONS if f in missing and not missing & set(NEEDS.get(f, ()))]
        more = [f for f in _EXTENSIONS if f in features and f not in core.features]
        word = "".join([name, *(f"+{f}" for f in more), *(f"+no{f}" for f in less)])
        if core.march == "armv8-a":
            return (word,)
        thumb = () if core.march == "armv7-a" else ("-mthumb",)
        can_have = Feature.FPU in core.features | core.optional
        floats = "hard" if Feature.FPU in features else "soft"
        return (word, *thumb, *([f"-mfloat-abi={floats}"] if can_have else ()))

    def alignment(self, features: Collection[Feature]) -> int:
        return 8 if Feature.MVE in features else super().alignment(features)

    def fuses_floats(self, core: Core, features: Collection[Feature]) -> bool:
        """Return whether there is VFMA, as in FPv4 and VFPv4; VMLA of older ones rounds twice."""
        return Feature.FPU in features and (core.march in _FUSING or core.name == "cortex-a7")

    def waits_for_products(self, core: Core, features: Collection[Feature]) -> bool:
        return core.march == "armv7e-m" and Feature.FPU_DOUBLE not in features

    def chooses(self, features: Collection[Feature]) -> bool:
        """Return whether it is Thumb-2, which has IT, or AArch64, which has CSEL."""
        return Feature.MUL_LONG in features

    def multiplies(self, features: Collection[Feature]) -> int:
        return 64 if Feature.MUL_LONG in features else 32

    def varying(self, core: Core) -> frozenset[Kind]:
        return cycles.varying(core)

    def cpu_costs(self, core: Core) -> CpuCosts | None:
        return cycles.cpu_costs(core)

    def work_percent(self, core: Core) -> WorkPercent:
        return cycles.work_percent(core)

    def measured_like(self, features: Collection[Feature]) -> str:
        return "cortex-m4" if Feature.FPU in features else "cortex-m0"  # which has libraries for it

    def kind_of(self, mnemonic: str) -> Kind:
        return Kind.PLAIN if _PLAIN.match(mnemonic) else super().kind_of(mnemonic)

    def words_moved(self, operands: str) -> int:
        return _listed_bytes(operands) // 4 if "{" in operands else 2  # LDRD and STRD

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
