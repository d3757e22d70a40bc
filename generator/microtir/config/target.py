"""Target: the processor that code is generated for."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from microtir.config.cores import Request, core_of, features_of
from microtir.config.enums import TargetKind
from microtir.config.option import Section
from microtir.config.optionmap import store
from microtir.config.options import find
from microtir.config.target_text import attributes_of
from microtir.errors import ConfigError
from microtir.instruction_sets import instruction_set
from microtir.instruction_sets.core import Core, Family
from microtir.instruction_sets.costs import WorkPercent
from microtir.instruction_sets.features import Feature, Features, in_order
from microtir.support.arguments import checked_arguments
from microtir.support.shown import shown


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Target:
    """A processor, by CPU or architecture name, with features that differ from the usual.

    Args:
        spec: a target string ``"c -mcpu=cortex-m4 -model=nrf52840"``, a mapping or JSON text of
            the same attributes with `kind`, or a Target.
        host: the target that runs the entry function, if `spec` does not name it.

    Attributes:
        kind: what is generated.
        mcpu: name of the CPU without suffixes, or None for portable code.
        march: the architecture, or None where none is known.
        mabi: the C calling convention, or None where the family has only one.
        model: name of the part or board, or None.
        features: all that kernels may use, in the order of the enum; `features.has_dsp` and
            `features.has_mve` ask for two of them, as in microTVM.
        host: the host that came with this target, or None.

    Two targets that mean the same are equal, however they were spelt: ``+nodsp`` and
    ``-mattr=-dsp`` are one thing, and an architecture that the CPU implies adds nothing.

    Raises:
        ConfigError: an unknown or contradictory attribute; says the nearest name.
    """

    kind: TargetKind
    mcpu: str | None
    march: str | None
    mabi: str | None
    model: str | None
    features: Features
    host: Target | None

    def __init__(self, spec: TargetLike, host: TargetLike | None = None) -> None:
        attributes = spec.export() if isinstance(spec, Target) else attributes_of(spec)
        kind = TargetKind(find(Section.TARGET, "kind").check(attributes.get("kind")))
        request = Request.from_attributes(attributes)
        core = core_of(request)
        given_host = _checked_host(attributes.get("host"))
        if host is not None and given_host is not None and Target(host) != given_host:
            raise ConfigError(
                f"target option 'host' is {shown(host)}, but the target names '{given_host}'",
                where="target.host",
                fix="name the host only once",
            )
        store(
            self,
            kind=kind,
            mcpu=core.name if request.mcpu else None,
            march=core.march,
            mabi=request.abi(core),
            model=request.model,
            features=Features(in_order(features_of(request, core))),
            host=given_host or _checked_host(host),
        )

    @checked_arguments
    def has(self, feature: Feature) -> bool:
        """Return whether kernels may use `feature`."""
        return feature in self.features

    @property
    def core(self) -> Core:
        """Return the row of the CPU table, before features were added or taken away."""
        return core_of(Request(mcpu=self.mcpu, march=self.march))

    @property
    def family(self) -> Family:
        return self.core.family

    @property
    def fuses_floats(self) -> bool:
        """Return whether the CPU multiplies and adds float32 in one instruction, rounding once."""
        return instruction_set(self.family).fuses_floats(self.core, self.features)

    @property
    def work_percent(self) -> WorkPercent:
        """Return what the CPU takes for estimated work."""
        return instruction_set(self.family).work_percent(self.core)

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the keys that microTVM gives this target."""
        return instruction_set(self.family).keys

    def natural_alignment(self) -> int:
        """Return bytes that suit every load the target has: the default alignment of all memory."""
        return instruction_set(self.family).alignment(self.features)

    @staticmethod
    def list_kinds() -> list[str]:
        """Return the kinds of targets that there are."""
        return [str(kind) for kind in TargetKind]

    def with_host(self, host: TargetLike) -> Target:
        """Return this target with a host, instead of the one that it may have.

        Raises:
            ConfigError: it is no target, or has a host of its own.
        """
        return Target(self.without_host(), host=host)

    def without_host(self) -> Target:
        """Return this target alone."""
        if self.host is None:
            return self
        return Target({k: v for k, v in self.export().items() if k != "host"})

    def export(self) -> dict[str, object]:
        """Return the attributes in canonical form, as `Target` and JSON take them."""
        core = self.core
        result: dict[str, object] = {"kind": str(self.kind)}
        if self.mcpu is not None:
            result["mcpu"] = self.mcpu
        elif self.march is not None:
            result["march"] = self.march
        default_abi = instruction_set(core.family).abis(core)[-1:]
        if self.mabi is not None and (self.mabi,) != default_abi:
            result["mabi"] = self.mabi
        mattr = [f"-{f}" for f in in_order(core.features) if f not in self.features]
        mattr += [f"+{f}" for f in self.features if f not in core.features]
        if mattr:
            result["mattr"] = ",".join(mattr)
        if self.model is not None:
            result["model"] = self.model
        if self.host is not None:
            result["host"] = str(self.host)
        return result

    def __str__(self) -> str:
        attributes = self.export()
        if self.host is not None:
            return json.dumps(attributes)
        kind = attributes.pop("kind")
        return " ".join([str(kind), *(f"-{name}={value}" for name, value in attributes.items())])

    def __repr__(self) -> str:
        if self.host is None:
            return f"Target({str(self)!r})"
        return f"Target({str(self.without_host())!r}, host={self.host!r})"


TargetLike = Target | str | Mapping[str, object]
TargetsLike = TargetLike | Sequence[TargetLike]


def targets_from(value: object, where: str) -> tuple[Target, ...]:
    """Return the targets that `given` spells: one, or a sequence of them.

    Raises:
        ConfigError: `given` is neither, or one of them is wrong.
    """
    if isinstance(value, (Target, str, Mapping)):
        return (Target(value),)
    if isinstance(value, Sequence):
        return tuple(Target(one) for one in value)
    raise ConfigError(
        f"'{where}' is {shown(value)}, which is neither a target nor a sequence of them",
        where=where,
    )


def _checked_host(host: object) -> Target | None:
    if host is None:
        return None
    if not isinstance(host, (Target, str, Mapping)):
        raise ConfigError(
            f"target option 'host' is {shown(host)}, which is not a target", where="target.host"
        )
    result = Target(host)
    if result.host is not None:
        raise ConfigError(
            f"target option 'host' is '{result}', which names another host",
            where="target.host",
            fix=f"use '{result.without_host()}'",
        )
    return result
