"""Rules on workspace pools: which fields contradict each other, which pools hold model inputs."""

from __future__ import annotations

from microtir.config.enums import CallingConvention, Compatibility
from microtir.config.fields import ConfigFields
from microtir.errors import ConfigError, Fix, nearest
from microtir.instruction_sets.features import Feature


def check_pool_use(config: ConfigFields) -> None:
    """Check that pools and tensors in them suit the interface, the executor and the runtime.

    Raises:
        ConfigError: names the option and what it contradicts.
    """
    _check_constants(config)
    passes = config.pass_config
    for key, name in (
        ("memory.input_pool", passes.input_pool),
        ("memory.output_pool", passes.output_pool),
    ):
        if name:
            _check_port_pool(config, key, name)
    for key, name in (
        ("ethos_u.scratch_pool", passes.ethos_u_scratch_pool),
        ("ethos_u.fast_scratch_pool", passes.ethos_u_fast_scratch_pool),
    ):
        if name:
            _check_pool_name(config, key, name)
    if passes.use_workspace_io and not config.passed_pools():
        raise ConfigError(
            "pass_config option 'memory.use_workspace_io' is True, but every workspace pool has "
            "'is_internal' = True. The application could therefore not access the inputs and "
            "outputs",
            where="pass_config.memory.use_workspace_io",
            legal="True with a workspace pool that the application passes",
            fix="leave out one of the two options",
        )


def _check_constants(config: ConfigFields) -> None:
    if not config.constant_pools:
        return
    names = ", ".join(pool.pool_name for pool in config.constant_pools)
    conflict, fix = "", ""
    if not config.should_link_params():
        conflict = f"'link-params' = False of executor '{config.executor.name}'"
        why = "weights in a file are in no pool"
        flag = f"--executor-{config.executor.name}-link-params 1"
        fix = Fix(f"use link-params True: {why}", f"use {flag}: {why}")
    elif config.primary_target().has(Feature.AVR_PROGMEM):
        conflict = f"the target '{config.primary_target()}'"
        fix = "leave it out: on an AVR constants have a section of their own"
    elif config.passed_constant_pools():
        conflict, fix = _passed_constants_conflict(config)
    if conflict:
        raise ConfigError(
            f"option 'constant_pools' is '{names}', which excludes {conflict}",
            where="constant_pools",
            fix=fix,
        )


def _passed_constants_conflict(config: ConfigFields) -> tuple[str, str]:
    """Return what contradicts constant pools that are passed, and what to do; or nothing."""
    why = "which makes them sections of the generated code"
    fix = Fix(f"set is_internal to True, {why}", f"add --constant-pools-is-internal POOL:1, {why}")
    if config.compatibility is Compatibility.MICROTVM:
        packed = config.entry_calling_convention() is CallingConvention.PACKED
        for is_refused, what in (
            (config.is_graph(), f"executor '{config.executor.name}'"),
            (packed, "interface-api 'packed'"),
        ):
            if is_refused:
                what += " and 'compatibility' = 'microtvm', whose functions take no such pointer"
                return what, fix
    memories = {pool.c_name: pool.pool_name for pool in config.passed_pools()}
    for pool in config.passed_constant_pools():
        if pool.c_name in memories:
            what = f"the workspace pool '{memories[pool.c_name]}': both have the same name in C"
            return what, "name each pool differently"
    return "", ""


def _check_port_pool(config: ConfigFields, key: str, name: str) -> None:
    names = [pool.pool_name for pool in config.passed_pools()]
    if name not in names:
        hint = nearest(name, names)
        raise ConfigError(
            f"pass_config option '{key}' is '{name}', which is not a workspace pool that the "
            f"application passes{': ' + hint if hint else ''}",
            where=f"pass_config.{key}",
            legal=", ".join(names) or "no pool, because every pool is internal",
        )
    if not config.pass_config.use_workspace_io:
        raise ConfigError(
            f"pass_config option '{key}' is '{name}', but memory.use_workspace_io is not set. The "
            "application then provides the memory of inputs and outputs, outside of all pools",
            where=f"pass_config.{key}",
            fix="also set memory.use_workspace_io",
        )


def _check_pool_name(config: ConfigFields, key: str, name: str) -> None:
    names = [pool.pool_name for pool in config.workspace_pools]
    if name not in names:
        hint = nearest(name, names)
        raise ConfigError(
            f"pass_config option '{key}' is '{name}', which is not a workspace pool"
            f"{': ' + hint if hint else ''}",
            where=f"pass_config.{key}",
            legal=", ".join(names),
            fix="name a pool of workspace_pools",
        )


def port_pools(config: ConfigFields, name: str) -> tuple[int, ...]:
    """Return the positions of the pools that a tensor may lie in: `name`, else the passed ones."""
    passed = config.passed_pools()
    return tuple(
        number
        for number, pool in enumerate(config.workspace_pools)
        if pool in passed and name in ("", pool.pool_name)
    )
