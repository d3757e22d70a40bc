from __future__ import annotations

from typing import Any

import pytest

from microtir.config import (
    Budget,
    CompilationConfig,
    ConstantPoolInfo,
    Executor,
    PoolInfoProperties,
    Target,
    WorkspacePoolInfo,
)
from microtir.config.pools import check_pools
from microtir.errors import ConfigError

NAMES = {
    "Target": Target,
    "PoolInfoProperties": PoolInfoProperties,
    "WorkspacePoolInfo": WorkspacePoolInfo,
}


def test_defaults_are_those_of_microtvm() -> None:
    """A declared pool is unlimited and external, as existing applications expect."""
    pool = WorkspacePoolInfo("sram", [Target("c")])
    assert pool.pool_info_properties == PoolInfoProperties()
    assert pool.size_limit is None
    assert not pool.pool_info_properties.is_internal
    assert pool.targets == (Target("c"),)


def test_a15_pool_name_is_mapped_to_c() -> None:
    """`dtcm-2` is a legal pool name; TVM wrote it into C as it was."""
    pool = WorkspacePoolInfo("dtcm-2")
    assert pool.pool_name == "dtcm-2"
    assert pool.c_name == "dtcm_2"


@pytest.mark.parametrize("name", ["", "9 lives", "2x", "a b", "a/b", "int", "errno", "né", 5, None])
def test_illegal_pool_names(name: Any) -> None:
    """A name that no C identifier follows from is refused, as are reserved words."""
    with pytest.raises(ConfigError, match="'pool_name' is"):
        WorkspacePoolInfo(name)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("size_hint_bytes", 0),
        ("size_hint_bytes", -2),
        ("size_hint_bytes", True),
        ("size_hint_bytes", 2**31),
        ("clock_frequency_hz", 0),
        ("read_bandwidth_bytes_per_cycle", 1.5),
        ("read_latency_cycles", -1),
        ("is_internal", 1),
    ],
)
def test_properties_are_checked(field: str, value: object) -> None:
    """Each property has a range, and flags are no ints."""
    with pytest.raises(ConfigError, match=f"'{field}' is"):
        PoolInfoProperties(**{field: value})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "arguments", "text"),
    [
        (WorkspacePoolInfo, ("a", (), {"size_hint": 5}), "did you mean 'size_hint_bytes'?"),
        (WorkspacePoolInfo, ("a", (), 5), "'pool_info_properties' is 5"),
        (WorkspacePoolInfo, ("a", 5), "'workspace_pools.targets' is 5"),
        (ConstantPoolInfo, ("a", ["c -mcpu=x"]), "'mcpu' is 'x'"),
    ],
)
def test_malformed_pools_are_refused(kind: Any, arguments: tuple[object, ...], text: str) -> None:
    """What is no target or property is named, with the nearest name."""
    with pytest.raises(ConfigError) as caught:
        kind(*arguments)
    assert text in str(caught.value)


def test_pool_of_a_foreign_target_is_refused() -> None:
    """A pool's targets are targets of the configuration, whichever host they came with."""
    mine, other = Target("c -mcpu=cortex-m4"), Target("c -mcpu=cortex-m7")
    accepted = WorkspacePoolInfo("ram", [Target(mine, host="c")])
    CompilationConfig(targets=mine, workspace_pools=[accepted])
    foreign = WorkspacePoolInfo("ram", [other])
    with pytest.raises(ConfigError, match="'c -mcpu=cortex-m7', which is not a target") as caught:
        CompilationConfig(targets=mine, workspace_pools=[foreign])
    assert caught.value.where == "workspace_pools.targets"


@pytest.mark.parametrize("other", ["ram-a", "ram_A", "ram.a"])
def test_pools_that_are_one_name_in_c_are_refused(other: str) -> None:
    """Names differ in upper case, too, since macros carry them."""
    pools = (WorkspacePoolInfo("ram_a"), WorkspacePoolInfo(other))
    with pytest.raises(ConfigError, match="is the same name as 'ram_a' in C"):
        check_pools(pools, (Target("c"),), "workspace_pools")


def test_size_hint_is_a_limit() -> None:
    """The size of a pool reaches the planner as a limit in bytes."""
    pool = WorkspacePoolInfo("ram", (), PoolInfoProperties(size_hint_bytes=4096))
    config = CompilationConfig(targets="c", workspace_pools=[pool])
    assert config.workspace_pools[0].size_limit == 4096
    assert eval(repr(pool), dict(NAMES)) == pool
    constant = ConstantPoolInfo("ram", (), pool.pool_info_properties)
    assert len({pool, constant}) == 2


def test_bursts_may_be_given_by_target() -> None:
    """A mapping from targets to bytes, as in microTVM; there is one kind of target."""
    given = {"target_burst_bytes": {Target("c -mcpu=cortex-m7"): 32}}
    pool = ConstantPoolInfo("qspi", (), given)
    assert pool.pool_info_properties == PoolInfoProperties(target_burst_bytes=32)
    assert ConstantPoolInfo("qspi", (), {"target_burst_bytes": {}}) == ConstantPoolInfo("qspi")
    with pytest.raises(ConfigError, match="names a kind of target twice"):
        ConstantPoolInfo("qspi", (), {"target_burst_bytes": {"c": 8, "c -mcpu=cortex-m7": 32}})
    with pytest.raises(ConfigError, match="'accel' is not a known target"):
        ConstantPoolInfo("qspi", (), {"target_burst_bytes": {"accel": 8}})


def test_a_workspace_is_what_its_pools_have() -> None:
    """Bytes add up, unless a pool has no limit; internal pools are not passed."""
    dtcm = WorkspacePoolInfo("dtcm", (), {"size_hint_bytes": 100, "is_internal": True})
    sram = WorkspacePoolInfo("sram", (), {"size_hint_bytes": 28})
    config = CompilationConfig(targets="c", workspace_pools=[dtcm, sram])
    assert config.workspace_room() == 128
    assert config.passed_pools() == (sram,)
    assert config.with_(workspace_pools=[dtcm, "sram"]).workspace_room() is None


def test_tensors_lie_in_pools_that_are_passed() -> None:
    """Inputs and outputs lie where they are pinned, else in any pool that the application has."""
    internal = WorkspacePoolInfo("dtcm", (), {"is_internal": True})
    config = CompilationConfig(
        targets="c",
        workspace_pools=["sram", internal, "psram"],
        pass_config={"memory.use_workspace_io": True, "memory.output_pool": "psram"},
    )
    assert (config.input_pools(), config.output_pools()) == ((0, 2), (2,))


@pytest.mark.parametrize(
    ("pools", "changes", "where", "text"),
    [
        (
            [WorkspacePoolInfo("ram", (), {"is_internal": True})],
            {"executor": "graph", "compatibility": "microtvm"},
            "compatibility",
            "a declared workspace pool with executor 'graph'",
        ),
        (
            [WorkspacePoolInfo("ram", (), {"is_internal": True})],
            {"pass_config": {"memory.use_workspace_io": True}},
            "pass_config.memory.use_workspace_io",
            "every workspace pool has 'is_internal' = True",
        ),
        (
            ["sram", "psram"],
            {"pass_config": {"memory.input_pool": "psram"}},
            "pass_config.memory.input_pool",
            "memory.use_workspace_io is not set. The application then provides",
        ),
        (
            ["sram", "psram"],
            {"pass_config": {"memory.use_workspace_io": True, "memory.input_pool": "psra"}},
            "pass_config.memory.input_pool",
            "did you mean 'psram'?",
        ),
    ],
)
def test_pools_that_nobody_can_use_are_refused(
    pools: list[WorkspacePoolInfo | str], changes: dict[str, object], where: str, text: str
) -> None:
    """What contradicts the pools is named, with the field."""
    config = CompilationConfig(targets="c", workspace_pools=pools)
    with pytest.raises(ConfigError) as caught:
        config.with_(**changes)
    assert caught.value.where == where
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"executor": Executor("aot", {"link-params": False})}, "'link-params' = False"),
        (
            {
                "compatibility": "microtvm",
                "executor": Executor("aot", {"interface-api": "packed"}),
            },
            "whose functions take no such pointer",
        ),
        ({"targets": "c -mcpu=atmega328p", "target_host": "c"}, "atmega328p"),
        ({"workspace_pools": "flash"}, "the workspace pool 'flash': both have the same name in C"),
    ],
)
def test_constant_pools_that_nobody_can_use_are_refused(
    changes: dict[str, object], text: str
) -> None:
    """Weights in a file are in no pool, and who passes one needs an argument for it."""
    config = CompilationConfig(targets="c", constant_pools=["flash"])
    with pytest.raises(ConfigError) as caught:
        config.with_(**changes)
    assert caught.value.where == "constant_pools"
    assert text in str(caught.value)


@pytest.mark.parametrize("field", ["ram", "flash", "stack"])
@pytest.mark.parametrize("value", [0, -1, True, "64K", 1.5, 2**31])
def test_budget_is_bytes(field: str, value: object) -> None:
    """A limit is a number of bytes from 1, and no bool passes for one."""
    with pytest.raises(ConfigError, match=f"budget '{field}' is"):
        Budget(**{field: value})  # type: ignore[arg-type]
    assert Budget(**{field: 1}).known() == {field: 1}
