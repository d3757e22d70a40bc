"""RISC-V's cores: architecture strings (rv32imac, rv32imafc_zicsr, rv64gc) → features and ABIs.

Source of the grammar: "The RISC-V Instruction Set Manual", volume I, chapter on the naming of
extensions: base, single letters in a fixed order, then `_z…` and `_x…` names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from microtir.instruction_sets.core import Core, Family
from microtir.instruction_sets.features import Feature

_LETTERS = "mafdqlcbjtpv"  # the order in which a name lists them
_NAME = re.compile(r"rv(32|64)([ieg])([a-z]*)((?:_[zsx][a-z0-9]+)*)")

# What kernels may use of an extension; others change nothing that is computed here.  Unaligned
# access is none of it, since it traps or is slow on some memories.
_EXTENSIONS: Mapping[str, frozenset[Feature]] = MappingProxyType(
    {
        "m": frozenset({Feature.MUL_LONG, Feature.DIVIDE}),
        "f": frozenset({Feature.FPU}),
        "d": frozenset({Feature.FPU_DOUBLE}),
        "zbb": frozenset({Feature.ZBB}),
    }
)


def parse(march: str) -> Core | None:
    """Return the core that a RISC-V architecture string describes, or None where it is none."""
    match = _NAME.fullmatch(march)
    if match is None:
        return None
    width, base, letters, named = match.groups()
    if list(letters) != sorted(set(letters), key=_LETTERS.find) or set(letters) - set(_LETTERS):
        return None
    has = set(letters) | (set("mafd") if base == "g" else set())
    if "d" in has and "f" not in has:
        return None
    has |= set(named.split("_"))
    features = set[Feature]().union(*(_EXTENSIONS.get(name, ()) for name in has))
    if width == "64":
        features.add(Feature.BIT64)
    return Core(march, Family.RISCV, march, frozenset(features))


def abis(core: Core) -> tuple[str, ...]:
    """Return ABIs that a RISC-V core can run, the default one (all registers it has) last."""
    march = core.march or ""
    stem = "lp64" if Feature.BIT64 in core.features else "ilp32"
    if march.startswith(("rv32e", "rv64e")):
        return (f"{stem}e",)
    names = [stem]
    if Feature.FPU in core.features:
        names.append(f"{stem}f")
    if Feature.FPU_DOUBLE in core.features:
        names.append(f"{stem}d")
    return tuple(names)


def _cpu(name: str, march: str) -> Core:
    core = parse(march)
    assert core is not None, march
    return replace(core, name=name)


CPUS = (_cpu("esp32c3", "rv32imc"), _cpu("esp32c6", "rv32imac"))
