"""RISC-V's cores: architecture strings (rv32imac, rv32imafc_zicsr, rv64gc) → features and ABIs.

Source of the grammar: "The RISC-V Instruction Set Manual", volume I, chapter on the naming of
extensions: base, single letters in a fixed order, then `_z…` and `_x…` names.  The names are those
of its chapters and of "RISC-V Profiles", and of vendors whose cores GCC or LLVM knows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from microtir.instruction_sets.core import Core, Family
from microtir.instruction_sets.features import Feature

_LETTERS = "mafdqcbpvh"  # the order in which a name lists them
_NAME = re.compile(r"rv(32|64)([ieg])([a-z]*)((?:_[zsx][a-z0-9]+)*)")

# What kernels may use of an extension; others change nothing that is computed here.  Unaligned
# access is none of it, since it traps or is slow on some memories.
_EXTENSIONS: Mapping[str, frozenset[Feature]] = MappingProxyType(
    {
        "m": frozenset({Feature.MUL_LONG, Feature.DIVIDE}),
        "f": frozenset({Feature.FPU}),
        "d": frozenset({Feature.FPU_DOUBLE}),
        "zbb": frozenset({Feature.ZBB}),
        "b": frozenset({Feature.ZBB}),  # Zba, Zbb and Zbs
    }
)
# The C compiler may use them; microtir has no kernel that is written for them.
_FOR_COMPILERS = frozenset({
    "zicsr", "zifencei", "zicntr", "zihpm", "zihintpause", "zihintntl", "zicond", "zimop",
    "zcmop", "zicbom", "zicbop", "zicboz", "zicfilp", "zicfiss", "zilsd", "zclsd", "ziccamoa",
    "ziccamoc", "ziccif", "zicclsm", "ziccrse", "zic64b", "za64rs", "za128rs", "zaamo", "zalrsc",
    "zabha", "zacas", "zalasr", "zama16b", "zawrs", "ztso", "zmmul", "zfa", "zfh", "zfhmin",
    "zfbfmin", "zfinx", "zdinx", "zhinx", "zhinxmin", "zba", "zbc", "zbs", "zbkb", "zbkc", "zbkx",
    "zk", "zkn", "zknd", "zkne", "zknh", "zkr", "zks", "zksed", "zksh", "zkt", "zca", "zcb",
    "zcd", "zce", "zcf", "zcmp", "zcmt", "zcmlsd",
})  # fmt: skip
_PRIVILEGED = re.compile(r"s[msv][a-z0-9]+")  # what an operating system sees of the core
# Nothing uses them yet, and a core that is named with them is named for their sake.
_UNUSED = re.compile(
    r"[pv]|zv(e(32|64)[xfd]|l\d+b|fh(min)?|fbf(min|wma)|b[bc]|k[a-z]*)"
    r"|x(thead|ventana|cv|esp|sf|andes|qc|mips|xl)[a-z0-9]*|xw(chc)?"
)
_VERSION = re.compile(r"\d+p\d+$")


def parse(march: str) -> Core | None:
    """Return the core that a RISC-V architecture string describes, or None where it is none.

    It is none where it names an extension that is not known: `unknown` says which.
    """
    match = _NAME.fullmatch(march)
    if match is None:
        return None
    width, base, letters, named = match.groups()
    if list(letters) != sorted(set(letters), key=_LETTERS.find) or set(letters) - set(_LETTERS):
        return None
    has = set(letters) | (set("mafd") if base == "g" else set())
    if "d" in has and "f" not in has:
        return None
    if unknown(march):
        return None
    has |= set(_named(named))
    features = set[Feature]().union(*(_EXTENSIONS.get(name, ()) for name in has))
    if width == "64":
        features.add(Feature.BIT64)
    return Core(march, Family.RISCV, march, frozenset(features))


def unknown(march: str) -> tuple[str, ...]:
    """Return the extensions of an architecture string that are none."""
    match = _NAME.fullmatch(march)
    return tuple(name for name in _named(match[4]) if not _is_known(name)) if match else ()


def unused(march: str) -> tuple[str, ...]:
    """Return the extensions that a core is chosen for and that no kernel uses."""
    match = _NAME.fullmatch(march)
    names = (*match[3], *_named(match[4])) if match else ()
    return tuple(name for name in names if _UNUSED.fullmatch(name))


def _named(text: str) -> list[str]:
    """Return the long names of extensions, without versions."""
    return [_VERSION.sub("", name) for name in text.split("_") if name]


def _is_known(name: str) -> bool:
    is_named = name in _FOR_COMPILERS or name in _EXTENSIONS
    return is_named or bool(_PRIVILEGED.fullmatch(name) or _UNUSED.fullmatch(name))


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


CPUS = (
    _cpu("esp32c2", "rv32imc"),
    _cpu("esp32c3", "rv32imc"),
    _cpu("esp32c5", "rv32imac"),
    _cpu("esp32c6", "rv32imac"),
    _cpu("esp32c61", "rv32imac"),
    _cpu("esp32h2", "rv32imac"),
    _cpu("esp32p4", "rv32imafc"),  # without the vector unit of Espressif's own
)
