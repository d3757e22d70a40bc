"""Arm's CPUs and architectures, with what each has.

The fullest implementation, as for any CPU: `cortex-m4` has its single precision FPU (Cortex-M4F),
`cortex-m7` has single and double precision, `cortex-m33` and `cortex-m35p` have DSP and FPU, and
`cortex-m52`, `cortex-m55` and `cortex-m85` have MVE with floats.
"""

from __future__ import annotations

from microtir.instruction_sets.core import DOUBLE, NO_FEATURES, WIDE, Core, Family
from microtir.instruction_sets.features import Feature

_F = Feature
_DIVIDE = frozenset({_F.DIVIDE})
_V7M = frozenset({_F.MUL_LONG, _F.DIVIDE, _F.UNALIGNED})
_V7EM = _V7M | {_F.DSP}
_FLOAT = frozenset({_F.FPU})
_HELIUM = frozenset({_F.MVE, _F.MVE_FLOAT})


def _arm(
    name: str,
    march: str,
    features: frozenset[Feature],
    optional: frozenset[Feature] = NO_FEATURES,
) -> Core:
    return Core(name, Family.ARM, march, features, optional)


ARCHITECTURES = (
    _arm("armv6-m", "armv6-m", NO_FEATURES),
    _arm("armv7-m", "armv7-m", _V7M),
    _arm("armv7e-m", "armv7e-m", _V7EM, DOUBLE),
    _arm("armv8-m.base", "armv8-m.base", _DIVIDE),
    _arm("armv8-m.main", "armv8-m.main", _V7M, DOUBLE | {_F.DSP}),
    _arm("armv8.1-m.main", "armv8.1-m.main", _V7M, DOUBLE | _HELIUM | {_F.DSP}),
    _arm("armv7-r", "armv7-r", _V7EM, DOUBLE),
    _arm("armv7-a", "armv7-a", _V7EM - _DIVIDE, DOUBLE),
    _arm("armv8-a", "armv8-a", WIDE),
)

CPUS = (
    _arm("cortex-m0", "armv6-m", NO_FEATURES),
    _arm("cortex-m0plus", "armv6-m", NO_FEATURES),
    _arm("cortex-m1", "armv6-m", NO_FEATURES),
    _arm("cortex-m3", "armv7-m", _V7M),
    _arm("cortex-m4", "armv7e-m", _V7EM | _FLOAT),
    _arm("cortex-m7", "armv7e-m", _V7EM | DOUBLE),
    _arm("cortex-m23", "armv8-m.base", _DIVIDE),
    _arm("cortex-m33", "armv8-m.main", _V7EM | _FLOAT),
    _arm("cortex-m35p", "armv8-m.main", _V7EM | _FLOAT),
    _arm("cortex-m52", "armv8.1-m.main", _V7EM | DOUBLE | _HELIUM),
    _arm("cortex-m55", "armv8.1-m.main", _V7EM | DOUBLE | _HELIUM),
    _arm("cortex-m85", "armv8.1-m.main", _V7EM | DOUBLE | _HELIUM),
    _arm("cortex-r5", "armv7-r", _V7EM | DOUBLE),
    _arm("cortex-a7", "armv7-a", _V7EM | DOUBLE),
    _arm("cortex-a9", "armv7-a", (_V7EM - _DIVIDE) | DOUBLE),
    _arm("cortex-a53", "armv8-a", WIDE),
    _arm("cortex-a72", "armv8-a", WIDE),
    _arm("aarch64", "armv8-a", WIDE),
)
