"""What each CPU can do: one table from CPU or architecture names to features.

Decisions, all as arm-none-eabi-gcc decides for the same name (a test compares them):
- A CPU name without suffix stands for the fullest implementation of that CPU. So `cortex-m4` has
  its single precision FPU (Cortex-M4F), `cortex-m7` has single and double precision,
  `cortex-m33` and `cortex-m35p` have DSP and FPU, and `cortex-m52`, `cortex-m55` and
  `cortex-m85` have MVE with floats. A part without one of them says so: `+nofp`, `+nodsp`,
  `+nomve`, `+nofp.dp`, `+nomve.fp`.
- An architecture name (`-march=armv7e-m`) stands for the least implementation; optional parts
  are added by suffix (`+fp`).
- ESP32 CPUs and RISC-V are taken not to allow unaligned access, since it traps or is slow on
  some memories; AVR reads bytes only, so that every address is aligned.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from microtir.config.enums import Spelled


class Feature(Spelled):
    """What kernels may use; the value is the name that `-mattr` takes."""

    MUL_LONG = "mul-long"  # a 32 x 32 -> 64 bit product without a library call
    DIVIDE = "div"  # a hardware integer division
    UNALIGNED = "unaligned"  # a load or store of one word may have any address
    DSP = "dsp"  # Arm SIMD on pairs of 16 and quadruples of 8 bit: SMLAD, SXTB16, SSAT
    MVE = "mve"  # Arm Helium vectors of integers, 128 bit
    MVE_FLOAT = "mve.fp"  # Helium vectors of floats
    FPU = "fp"  # single precision in hardware
    FPU_DOUBLE = "fp.dp"  # double precision in hardware
    VECTOR = "vector"  # vectors of 256 bits or more: AVX2, VNNI; what exactly, the compiler says
    BIT64 = "bit64"  # 64-bit integer registers and pointers
    AVR_PROGMEM = "progmem"  # constants in flash are read by an instruction of their own


class Family(Spelled):
    """Instruction set families."""

    ARM = "arm"
    X86 = "x86"
    RISCV = "riscv"
    AVR = "avr"
    XTENSA = "xtensa"
    GENERIC = "generic"


@dataclass(frozen=True, slots=True)
class Core:
    """A CPU or a bare architecture.

    `features` is what it has; `optional` what an implementation may add, on request.
    """

    name: str
    family: Family
    march: str | None
    features: frozenset[Feature]
    optional: frozenset[Feature] = frozenset()


# Which features a feature cannot be without; Armv8.1-M has no MVE without the DSP extension.
NEEDS: Mapping[Feature, tuple[Feature, ...]] = MappingProxyType(
    {
        Feature.MVE: (Feature.DSP,),
        Feature.MVE_FLOAT: (Feature.MVE, Feature.FPU),
        Feature.FPU_DOUBLE: (Feature.FPU,),
    }
)

# Register width and the reading of flash are facts of the instruction set, not options of it.
FIXED = (Feature.BIT64, Feature.AVR_PROGMEM)

_F = Feature
_V7M = frozenset({_F.MUL_LONG, _F.DIVIDE, _F.UNALIGNED})
_V7EM = _V7M | {_F.DSP}
_FLOAT = frozenset({_F.FPU})
_DOUBLE = frozenset({_F.FPU, _F.FPU_DOUBLE})
_HELIUM = frozenset({_F.MVE, _F.MVE_FLOAT})
_WIDE = frozenset({_F.MUL_LONG, _F.DIVIDE, _F.UNALIGNED, _F.BIT64}) | _DOUBLE
_RV32 = frozenset({_F.MUL_LONG, _F.DIVIDE})
_ESP = frozenset({_F.MUL_LONG, _F.DIVIDE})
_NONE: frozenset[Feature] = frozenset()


def _table(*rows: Core) -> Mapping[str, Core]:
    return MappingProxyType({row.name: row for row in rows})


ARCHITECTURES: Mapping[str, Core] = _table(
    Core("armv6-m", Family.ARM, "armv6-m", _NONE),
    Core("armv7-m", Family.ARM, "armv7-m", _V7M),
    Core("armv7e-m", Family.ARM, "armv7e-m", _V7EM, _DOUBLE),
    Core("armv8-m.base", Family.ARM, "armv8-m.base", frozenset({_F.DIVIDE})),
    Core("armv8-m.main", Family.ARM, "armv8-m.main", _V7M, _DOUBLE | {_F.DSP}),
    Core("armv8.1-m.main", Family.ARM, "armv8.1-m.main", _V7M, _DOUBLE | _HELIUM | {_F.DSP}),
    Core("armv7-r", Family.ARM, "armv7-r", _V7EM, _DOUBLE),
    Core("armv7-a", Family.ARM, "armv7-a", _V7EM - {_F.DIVIDE}, _DOUBLE),
    Core("armv8-a", Family.ARM, "armv8-a", _WIDE),
    Core("x86-64", Family.X86, "x86-64", _WIDE | {_F.VECTOR}),
)

CPUS: Mapping[str, Core] = _table(
    Core("cortex-m0", Family.ARM, "armv6-m", _NONE),
    Core("cortex-m0plus", Family.ARM, "armv6-m", _NONE),
    Core("cortex-m1", Family.ARM, "armv6-m", _NONE),
    Core("cortex-m3", Family.ARM, "armv7-m", _V7M),
    Core("cortex-m4", Family.ARM, "armv7e-m", _V7EM | _FLOAT),
    Core("cortex-m7", Family.ARM, "armv7e-m", _V7EM | _DOUBLE),
    Core("cortex-m23", Family.ARM, "armv8-m.base", frozenset({_F.DIVIDE})),
    Core("cortex-m33", Family.ARM, "armv8-m.main", _V7EM | _FLOAT),
    Core("cortex-m35p", Family.ARM, "armv8-m.main", _V7EM | _FLOAT),
    Core("cortex-m52", Family.ARM, "armv8.1-m.main", _V7EM | _DOUBLE | _HELIUM),
    Core("cortex-m55", Family.ARM, "armv8.1-m.main", _V7EM | _DOUBLE | _HELIUM),
    Core("cortex-m85", Family.ARM, "armv8.1-m.main", _V7EM | _DOUBLE | _HELIUM),
    Core("cortex-r5", Family.ARM, "armv7-r", _V7EM | _DOUBLE),
    Core("cortex-a7", Family.ARM, "armv7-a", _V7EM | _DOUBLE),
    Core("cortex-a9", Family.ARM, "armv7-a", (_V7EM - {_F.DIVIDE}) | _DOUBLE),
    Core("cortex-a53", Family.ARM, "armv8-a", _WIDE),
    Core("cortex-a72", Family.ARM, "armv8-a", _WIDE),
    Core("aarch64", Family.ARM, "armv8-a", _WIDE),
    Core("x86-64", Family.X86, "x86-64", _WIDE | {_F.VECTOR}),
    Core("atmega328p", Family.AVR, "avr5", frozenset({_F.UNALIGNED, _F.AVR_PROGMEM})),
    Core("atmega2560", Family.AVR, "avr6", frozenset({_F.UNALIGNED, _F.AVR_PROGMEM})),
    Core("esp32", Family.XTENSA, None, _ESP | _FLOAT),
    Core("esp32s2", Family.XTENSA, None, _ESP),
    Core("esp32s3", Family.XTENSA, None, _ESP | _FLOAT),
    Core("esp32c3", Family.RISCV, "rv32imc", _RV32),
    Core("esp32c6", Family.RISCV, "rv32imac", _RV32),
)

GENERIC = Core("generic", Family.GENERIC, None, _NONE)

NATIVE_NAME = "native"

# What `-mcpu=native` stands for, by what the operating system calls the machine.
NATIVE: Mapping[str, str] = MappingProxyType(
    {"x86_64": "x86-64", "amd64": "x86-64", "aarch64": "aarch64", "arm64": "aarch64"}
)


def in_order(features: frozenset[Feature]) -> tuple[Feature, ...]:
    """Return the features in the order of the enum, because a set has no order to rely on."""
    return tuple(feature for feature in Feature if feature in features)


def closure(features: frozenset[Feature]) -> frozenset[Feature]:
    """Return `features` with everything that they need."""
    found = set(features)
    for feature in features:
        found |= closure(frozenset(NEEDS.get(feature, ())))
    return frozenset(found)


def without(features: frozenset[Feature], removed: frozenset[Feature]) -> frozenset[Feature]:
    """Return `features` less `removed` and less everything that needs what was removed."""
    return frozenset(f for f in features if not closure(frozenset({f})) & removed)
