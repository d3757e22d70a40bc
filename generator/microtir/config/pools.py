"""Memory pools: the named memories that activations and weights are placed in.

Names and fields are those of microTVM's `tvm.ir.memory_pools`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import ClassVar, TypeVar

from microtir.config.option import Section
from microtir.config.optionmap import store
from microtir.config.options import find, section_options
from microtir.config.target import Target, TargetsLike, targets_from
from microtir.errors import ConfigError, nearest
from microtir.support.names import c_name, macro_name, pool_name_problem
from microtir.support.shown import shown


@dataclass(frozen=True, slots=True, repr=False)
class PoolInfoProperties:
    """The properties of a pool's memory.

    `size_hint_bytes` is a limit that placement must meet; -1 is no limit. The application
    provides the memory, as it does for microTVM's declared pools, unless the pool is internal.
    From clock, bandwidths and latencies follows what a byte costs there: the buffers that are used
    most go where that is least. `target_burst_bytes` may be a mapping, too, as in microTVM: of the
    target, whose kind is `c`, to bytes.

    Raises:
        ConfigError: a value is out of its range.
    """

    size_hint_bytes: int = -1
    clock_frequency_hz: int = -1
    read_bandwidth_bytes_per_cycle: int = -1
    write_bandwidth_bytes_per_cycle: int = -1
    read_latency_cycles: int = 0
    write_latency_cycles: int = 0
    target_burst_bytes: int = -1
    is_internal: bool = False
    section: str = ""
    byte_alignment: int = 1

    def __post_init__(self) -> None:
        store(self, target_burst_bytes=_burst(self.target_burst_bytes))
        for field in fields(self):
            find(Section.WORKSPACE_POOL, field.name).check(getattr(self, field.name))

    def changed(self) -> dict[str, bool | int | str]:
        """Return the fields whose values differ from their defaults."""
        return {
            field.name: value
            for field in fields(self)
            if (value := getattr(self, field.name)) != field.default
        }

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in self.changed().items())
        return f"PoolInfoProperties({values})"


def _burst(value: object) -> object:
    """Return the bytes of a burst: those of the one target that a mapping names."""
    if not isinstance(value, Mapping) or not value:
        return -1 if value == {} else value
    kinds = {Target(target).kind for target in value}  # which refuses what is no target
    if len(value) > len(kinds):
        raise ConfigError(
            f"pool property 'target_burst_bytes' is {shown(value)}, which names a kind of target "
            "twice",
            where="pool_info_properties.target_burst_bytes",
            legal="a number of bytes, or {'c': bytes}",
        )
    return next(iter(value.values()))


_Pool = TypeVar("_Pool", bound="PoolInfo")


@dataclass(frozen=True, slots=True, init=False)
class PoolInfo:
    """A named memory for some targets.

    Args:
        pool_name: the name in C, where `-` and `.` become underscores.
        targets: targets that can reach the memory; none given means all of the configuration.
        pool_info_properties: what is known of the memory.

    Raises:
        ConfigError: an illegal name, target or property.
    """

    pool_name: str
    targets: tuple[Target, ...]
    pool_info_properties: PoolInfoProperties

    section: ClassVar[Section]
    field: ClassVar[str]

    def __init__(
        self,
        pool_name: str,
        targets: TargetsLike = (),
        pool_info_properties: PoolInfoProperties | Mapping[str, object] | None = None,
    ) -> None:
        store(
            self,
            pool_name=self._checked_name(pool_name),
            targets=tuple(t.without_host() for t in targets_from(targets, f"{self.field}.targets")),
            pool_info_properties=self._checked_properties(pool_info_properties),
        )

    @property
    def c_name(self) -> str:
        """Return the name in generated C."""
        return c_name(self.pool_name)

    def without_limit(self: _Pool) -> _Pool:
        """Return the same pool of any size."""
        properties = replace(self.pool_info_properties, size_hint_bytes=-1)
        return type(self)(self.pool_name, self.targets, properties)

    @property
    def size_limit(self) -> int | None:
        """Return bytes that the pool may take, or None for no limit."""
        size = self.pool_info_properties.size_hint_bytes
        return None if size < 0 else size

    def check_built(self) -> None:
        """Refuse properties whose stages do not exist yet.

        Raises:
            ConfigError: names the property and what to use instead.
        """
        for option in section_options(self.section):
            option.check_built(getattr(self.pool_info_properties, option.name))

    def to_dict(self) -> dict[str, object]:
        """Return the fields as `from_dict` and JSON take them."""
        return {
            "pool_name": self.pool_name,
            "targets": [str(target) for target in self.targets],
            "pool_info_properties": dict(self.pool_info_properties.changed()),
        }

    def _checked_name(self, name: object) -> str:
        problem = "is not a name for a memory"
        if isinstance(name, str) and name:
            problem = pool_name_problem(name)
            if not problem:
                return name
        raise ConfigError(
            f"{self.section.label} 'pool_name' is {shown(name)}, which {problem}",
            where=f"{self.field}.pool_name",
            legal="a letter or underscore, then letters, digits, underscores, dashes or dots",
        )

    def _checked_properties(self, value: object) -> PoolInfoProperties:
        if value is None:
            return PoolInfoProperties()
        if isinstance(value, PoolInfoProperties):
            return value
        if isinstance(value, Mapping):
            for name in value:
                find(self.section, name)
            return PoolInfoProperties(**value)
        raise ConfigError(
            f"{self.section.label} 'pool_info_properties' is {shown(value)}",
            where=f"{self.field}.pool_info_properties",
            legal="PoolInfoProperties, or a mapping of its fields",
        )


class WorkspacePoolInfo(PoolInfo):
    """A memory that is read and written: activations and scratch."""

    __slots__ = ()
    section = Section.WORKSPACE_POOL
    field = "workspace_pools"


class ConstantPoolInfo(PoolInfo):
    """A memory that is read only: weights and tables."""

    __slots__ = ()
    section = Section.CONSTANT_POOL
    field = "constant_pools"


def check_pools(pools: tuple[PoolInfo, ...], targets: tuple[Target, ...], field: str) -> None:
    """Check the rules that hold between the pools of one field and the configuration's targets.

    Raises:
        ConfigError: names that are one name in C, or a foreign target.
    """
    seen: dict[str, str] = {}
    for pool in pools:
        other = seen.get(macro_name(pool.c_name))
        if other is not None:
            raise ConfigError(
                f"{pool.section.label} 'pool_name' is '{pool.pool_name}', which is the same name "
                f"as '{other}' in C",
                where=f"{field}.pool_name",
                fix="give each pool a different name",
            )
        seen[macro_name(pool.c_name)] = pool.pool_name
        for target in pool.targets:
            if target not in targets:
                known = [str(t) for t in targets]
                hint = nearest(str(target), known)
                raise ConfigError(
                    f"pool '{pool.pool_name}' of '{field}' is for target '{target}', which is not "
                    f"a target of this configuration{': ' + hint if hint else ''}",
                    where=f"{field}.targets",
                    legal=", ".join(known),
                )


def pool_from(value: object, kind: type[PoolInfo]) -> PoolInfo:
    """Return a pool from a pool, a name (a pool without a limit), or the mapping that JSON holds.

    Raises:
        ConfigError: `given` is none of these, or names an unknown field.
    """
    if isinstance(value, kind):
        return value
    if isinstance(value, str):
        return kind(value)
    if isinstance(value, Mapping):
        legal = ("pool_name", "targets", "pool_info_properties")
        for name in value:
            if name not in legal:
                raise ConfigError(
                    f"{kind.section.label} '{name}' is unknown: {nearest(str(name), legal)}",
                    where=f"{kind.field}.{name}",
                    legal=", ".join(legal),
                )
        if "pool_name" not in value:
            raise ConfigError(
                f"{kind.section.label} 'pool_name' is missing", where=f"{kind.field}.pool_name"
            )
        return kind(**value)
    raise ConfigError(
        f"option '{kind.field}' is {shown(value)}",
        where=kind.field,
        legal=f"{kind.__name__} objects, or names",
    )
