"""Resolves the attributes of a target to a core and its features, and refuses contradictions."""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from microtir.errors import ConfigError, nearest, nearest_part
from microtir.instruction_sets import (
    ARCHITECTURE_NAMES,
    CPUS,
    MORE_ARCHITECTURES,
    NATIVE,
    architecture,
    instruction_set,
    unknown_extensions,
)
from microtir.instruction_sets.core import GENERIC, Core
from microtir.instruction_sets.features import FIXED, Feature, closure, in_order, without
from microtir.support.shown import shown

NATIVE_NAME = "native"

_FREE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")


@dataclass(frozen=True, slots=True)
class Request:
    """A target as the user names it, suffixes split off: ``cortex-m4+nodsp`` asks to remove dsp."""

    mcpu: str | None = None
    march: str | None = None
    mabi: str | None = None
    model: str | None = None
    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    keys: tuple[str, ...] | None = None

    @staticmethod
    def from_attributes(attributes: Mapping[str, object]) -> Request:
        """Split and check the attributes of a target.

        Raises:
            ConfigError: a value is no text, or a feature is asked for and refused at once.
        """
        mcpu, cpu_suffixes = _split("mcpu", attributes.get("mcpu"))
        march, march_suffixes = _split("march", attributes.get("march"))
        if mcpu == NATIVE_NAME:
            mcpu = NATIVE.get(platform.machine().lower())
        wishes = [*cpu_suffixes, *march_suffixes, *_listed("mattr", attributes.get("mattr"))]
        add = tuple(wish[1:] for wish in wishes if wish[0] == "+")
        remove = tuple(wish[1:] for wish in wishes if wish[0] == "-")
        for name in add:
            if name in remove:
                raise ConfigError(
                    f"target option 'mattr' both adds and removes '{name}'", where="target.mattr"
                )
        keys = attributes.get("keys")
        return Request(
            mcpu=mcpu,
            march=march,
            mabi=_text("mabi", attributes.get("mabi")),
            model=_model(attributes.get("model")),
            add=add,
            remove=remove,
            keys=None if keys is None else tuple(_listed("keys", keys)),
        )

    def abi(self, core: Core) -> str | None:
        """Return the ABI: the one asked for, else the fullest of the core, else None.

        Raises:
            ConfigError: the core cannot run the one asked for.
        """
        choices = instruction_set(core.family).abis(core)
        if self.mabi is None:
            return choices[-1] if choices else None
        if self.mabi not in choices:
            raise ConfigError(
                f"target option 'mabi' is '{self.mabi}', which {core.name} does not have",
                where="target.mabi",
                legal=", ".join(choices) or "none: the family has one calling convention",
            )
        return self.mabi


def core_of(request: Request) -> Core:
    """Return the row of the tables that a target names by CPU, by architecture or not at all.

    Raises:
        ConfigError: an unknown name, or an architecture that is not the CPU's.
    """
    core = GENERIC
    if request.mcpu is not None:
        core = _cpu(request.mcpu)
    if request.march is not None and request.march != core.march:
        known = architecture(request.march)
        if known is None:
            _check_extensions(request.march)
            raise _unknown("march", request.march, ARCHITECTURE_NAMES, MORE_ARCHITECTURES)
        if request.mcpu is not None:
            raise ConfigError(
                f"target option 'march' is '{request.march}', but the architecture of {core.name} "
                f"is {core.march or 'not one that -march names'}",
                where="target.march",
                fix="leave out -march, which follows from -mcpu",
            )
        core = known
    if request.keys is not None:
        _check_keys(request.keys, core)
    return core


def features_of(request: Request, core: Core) -> frozenset[Feature]:
    """Return the features of `core` with the additions and removals of the request.

    Raises:
        ConfigError: an unknown feature, one that the core cannot have, or a contradiction.
    """
    add = frozenset(_feature(name) for name in request.add)
    remove = frozenset(_feature(name) for name in request.remove)
    possible = core.features | core.optional
    for feature in in_order(add):
        if feature not in possible:
            raise ConfigError(
                f"target option 'mattr' adds '{feature}', which {core.name} cannot have",
                where="target.mattr",
                legal=", ".join(f"+{f}" for f in in_order(possible - set(FIXED))) or "nothing",
                fix="name the CPU with -mcpu" if core is GENERIC else None,
            )
    for feature in in_order(remove & set(FIXED)):
        raise ConfigError(
            f"target option 'mattr' removes '{feature}', which belongs to the instruction set",
            where="target.mattr",
        )
    result = without(core.features | closure(add), remove)
    for feature in in_order(add - result):
        raise ConfigError(
            f"target option 'mattr' adds '{feature}', which needs a removed feature",
            where="target.mattr",
            legal=f"'{feature}' needs {', '.join(str(f) for f in in_order(closure(add)))}",
        )
    return result


def _check_extensions(march: str) -> None:
    for name in unknown_extensions(march):
        raise ConfigError(
            f"target option 'march' is '{march}', which contains the unknown extension '{name}'",
            where="target.march",
            legal="ratified extensions, and vendor extensions that GCC or LLVM supports",
            fix=f"leave out _{name}, which no kernel uses. Pass it directly to the C compiler",
        )


def _cpu(name: str) -> Core:
    core = CPUS.get(name)
    if core is None:
        raise _unknown("mcpu", name, [*CPUS, NATIVE_NAME], "")
    return core


def _unknown(option: str, name: str, names: Sequence[str], more: str) -> ConfigError:
    hint = nearest_part(name, names) if option != "mattr" else nearest(name, names)
    what = f"target option '{option}' is '{name}', which is unknown"
    return ConfigError(
        f"{what}: {hint}" if hint else what,
        where=f"target.{option}",
        legal=", ".join([*names, more] if more else names),
        fix="leave out the option for portable code",
    )


def _feature(name: str) -> Feature:
    names = [str(feature) for feature in Feature if feature not in FIXED]
    for feature in Feature:
        if str(feature) == name:
            return feature
    raise _unknown("mattr", name, names, "")


def _check_keys(keys: tuple[str, ...], core: Core) -> None:
    expected = instruction_set(core.family).keys
    # A target string without -mcpu lists only what its writer knew; `cpu` is true of all.
    if sorted(keys) not in (sorted(expected), ["cpu"]):
        raise ConfigError(
            f"target option 'keys' is '{','.join(keys)}', but {core.name} has "
            f"'{','.join(expected)}'",
            where="target.keys",
            fix="leave out -keys, which follows from the CPU",
        )


def _split(option: str, value: object) -> tuple[str | None, list[str]]:
    text = _text(option, value)
    if text is None:
        return None, []
    if text == "cortex-m0+":  # what Arm prints on its data sheets; no suffix follows
        return "cortex-m0plus", []
    name, *suffixes = text.split("+")
    if any(not suffix for suffix in suffixes) or not name:
        raise ConfigError(
            f"target option '{option}' is '{text}', which has an empty suffix",
            where=f"target.{option}",
            fix=f"write {option} as NAME, NAME+FEATURE or NAME+noFEATURE",
        )
    return name, [f"-{s[2:]}" if s.startswith("no") else f"+{s}" for s in suffixes]


def _listed(option: str, value: object) -> list[str]:
    if value is None:
        return []
    if isinstance(value, str):
        items: list[object] = list(value.split(","))
    elif isinstance(value, Sequence):
        items = list(value)
    else:
        items = [value]
    signed = option == "mattr"
    for item in items:
        if not isinstance(item, str) or len(item) < 1 + signed or (signed and item[0] not in "+-"):
            raise ConfigError(
                f"target option '{option}' is {shown(value)}",
                where=f"target.{option}",
                legal="+name and -name, separated by commas" if signed else "names",
            )
    return [str(item) for item in items]


def _model(value: object) -> str | None:
    text = _text("model", value)
    if text is not None and not _FREE_NAME.fullmatch(text):
        raise ConfigError(
            f"target option 'model' is {shown(text)}, which is not a name",
            where="target.model",
            legal="letters, digits, and . _ + -",
        )
    return text


def _text(option: str, value: object) -> str | None:
    if value is None or (isinstance(value, str) and value):
        return value
    raise ConfigError(
        f"target option '{option}' is {shown(value)}, which is not text",
        where=f"target.{option}",
    )
