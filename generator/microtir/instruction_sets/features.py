"""Features of CPUs that kernels may use: the names that `-mattr` takes, and what each needs.

Names only: which CPU has which of them stands in the folder of its instruction set.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from microtir.support.spelled import Spelled


class Feature(Spelled):
    """A feature of a CPU that kernels may use; the value is the name that `-mattr` takes."""

    MUL_LONG = "mul-long"  # a 32 x 32 -> 64 bit product without a library call
    DIVIDE = "div"  # a hardware integer division
    UNALIGNED = "unaligned"  # a load or store of one word may have any address
    DSP = "dsp"  # Arm SIMD on pairs of 16 and quadruples of 8 bit: SMLAD, SXTB16, SSAT
    MVE = "mve"  # Arm Helium vectors of integers, 128 bit
    MVE_FLOAT = "mve.fp"  # Helium vectors of floats
    FPU = "fp"  # single precision in hardware
    FPU_DOUBLE = "fp.dp"  # double precision in hardware
    VECTOR = "vector"  # vectors of 256 bits or more: AVX2, VNNI; what exactly, the compiler says
    ZBB = "zbb"  # RISC-V: the smaller, the larger, sign extension as one instruction each
    BIT64 = "bit64"  # 64-bit integer registers and pointers
    AVR_PROGMEM = "progmem"  # constants in flash are read by an instruction of their own


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


class Features(tuple[Feature, ...]):
    """The features of a target, in the order of the enum; microTVM asked for two by name."""

    __slots__ = ()

    @property
    def has_dsp(self) -> bool:
        """Return whether there is the DSP extension of Arm."""
        return Feature.DSP in self

    @property
    def has_mve(self) -> bool:
        """Return whether there are Helium vectors."""
        return Feature.MVE in self


def in_order(features: frozenset[Feature]) -> tuple[Feature, ...]:
    """Return the features in the order of the enum, because a set has no order to rely on."""
    return tuple(feature for feature in Feature if feature in features)


def closure(features: frozenset[Feature]) -> frozenset[Feature]:
    """Return `features` with everything that they need."""
    needed = set(features)
    for feature in features:
        needed |= closure(frozenset(NEEDS.get(feature, ())))
    return frozenset(needed)


def without(features: frozenset[Feature], removed: frozenset[Feature]) -> frozenset[Feature]:
    """Return `features` less `removed` and less everything that needs what was removed."""
    return frozenset(f for f in features if not closure(frozenset({f})) & removed)
