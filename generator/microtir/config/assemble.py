"""Assembles one CompilationConfig from single option values, for the command line and tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from microtir.config.compilation import CompilationConfig
from microtir.config.executor import SECTIONS, Executor
from microtir.config.option import Option, Section
from microtir.config.options import find
from microtir.config.pools import ConstantPoolInfo, PoolInfo, WorkspacePoolInfo, pool_from
from microtir.config.runtime import Runtime
from microtir.errors import ConfigError


def assemble(values: Mapping[Option, object], base: CompilationConfig) -> CompilationConfig:
    """Return `base` with the options of `values` changed.

    Values are those of the table: a name for executor and runtime, a sequence of names for
    pools, and for a pool's property a mapping from pool name to value (or one value for all).

    Raises:
        ConfigError: a value is illegal, or an option belongs to an executor or a pool that the
            configuration does not have.
    """
    changes: dict[str, Any] = _of(values, Section.CONFIG)
    executor = _executor(values, changes.get("executor", base.executor.name), base)
    runtime = _runtime(values, changes.get("runtime", base.runtime.name), base)
    changes |= {"executor": executor, "runtime": runtime}
    for kind in (WorkspacePoolInfo, ConstantPoolInfo):
        pools = _pools(values, changes, base, kind)
        if pools is not None:
            changes[kind.field] = pools
    budget = _of(values, Section.BUDGET)
    if budget and "budget" not in changes:
        changes["budget"] = {**base.budget.known(), **budget}
    passes = _of(values, Section.PASS)
    if passes and "pass_config" not in changes:
        changes["pass_config"] = {**base.pass_config.known(), **passes}
    return base.with_(**changes)


def _of(values: Mapping[Option, object], section: Section) -> dict[str, object]:
    return {option.name: value for option, value in values.items() if option.section is section}


def _executor(values: Mapping[Option, object], name: Any, base: CompilationConfig) -> Executor:
    plain = base.executor if name == base.executor.name else Executor(name)
    for kind, section in SECTIONS.items():
        options = _of(values, section)
        if options and kind is not plain.kind:
            raise ConfigError(
                f"{section.label} '{next(iter(options))}' is given, but the executor is "
                f"'{plain.name}'",
                where=f"executor.{next(iter(options))}",
                fix=f"choose executor '{kind}', or leave out the option",
            )
        if options:
            plain = plain.with_options(options)
    return plain


def _runtime(values: Mapping[Option, object], name: Any, base: CompilationConfig) -> Runtime:
    plain = base.runtime if name == base.runtime.name else Runtime(name)
    options = _of(values, Section.RUNTIME_CRT)
    return plain.with_options(options) if options else plain


def _pools(
    values: Mapping[Option, object],
    changes: Mapping[str, Any],
    base: CompilationConfig,
    kind: type[PoolInfo],
) -> tuple[PoolInfo, ...] | None:
    properties = _of(values, kind.section)
    stated = changes.get(kind.field)
    if stated is None and not properties:
        return None
    stated = getattr(base, kind.field) if stated is None else stated
    if isinstance(stated, str) or not isinstance(stated, (list, tuple)):
        stated = (stated,)
    pools = tuple(pool_from(one, kind) for one in stated)
    for name, value in properties.items():
        if not pools:
            raise ConfigError(
                f"{kind.section.label} '{name}' is given, but the configuration declares no pool",
                where=find(kind.section, name).path,
                fix="leave this option out",
            )
        chosen = value if isinstance(value, Mapping) else {p.pool_name: value for p in pools}
        for pool_name in chosen:
            if pool_name not in [pool.pool_name for pool in pools]:
                raise ConfigError(
                    f"{kind.section.label} '{name}' is given for the pool '{pool_name}', which "
                    "is not declared",
                    where=find(kind.section, name).path,
                    legal=", ".join(pool.pool_name for pool in pools),
                )
        pools = tuple(_with_property(pool, name, chosen) for pool in pools)
    return pools


def _with_property(pool: PoolInfo, name: str, chosen: Mapping[str, object]) -> PoolInfo:
    if pool.pool_name not in chosen:
        return pool
    data = pool.pool_info_properties.changed()
    return type(pool)(pool.pool_name, pool.targets, {**data, name: chosen[pool.pool_name]})
