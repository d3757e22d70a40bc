"""What tvmc spells differently means here what it meant there, or is refused with a way out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from microtir.config import CompilationConfig, Target, config_from_file, config_from_flags, micro
from microtir.config.enums import Placement
from microtir.config.flag import FlagValue
from microtir.config.tvmc_flags import TVMC_FLAGS
from microtir.errors import ConfigError, ConfigFileError


def test_target_options_are_part_of_the_target() -> None:
    """--target-c-mcpu and its like say what -mcpu in the target string says."""
    given: dict[str, FlagValue] = {
        "--target": "c",
        "--target-c-mcpu": "cortex-m7",
        "--target-c-model": "stm32h7xx",
        "--target-c-keys": "arm_cpu,cpu",
    }
    config = config_from_flags(given)
    assert config.primary_target() == Target("c -mcpu=cortex-m7 -model=stm32h7xx")
    alone = config_from_flags({"--target-c-mcpu": "cortex-m7"})
    assert alone.primary_target() == Target("c -mcpu=cortex-m7")


def test_lists_inside_a_target_are_no_targets() -> None:
    """A comma separates targets only before a kind."""
    config = config_from_flags({"--target": "c -keys=arm_cpu,cpu -mcpu=cortex-m33 -mattr=-dsp,-fp"})
    assert config.primary_target() == Target("c -mcpu=cortex-m33 -mattr=-dsp,-fp")


@pytest.mark.parametrize("target", ["cmsis-nn, c", "cmsis-nn -mcpu=cortex-m55,c", "cmsis-nn"])
def test_cmsis_nn_asks_for_its_sources(target: str) -> None:
    """A composite target is understood; without a folder of sources it says what to do."""
    with pytest.raises(ConfigError, match="not part of microtir") as caught:
        config_from_flags({"--target": target})
    assert "--external cmsis-nn=FOLDER" in str(caught.value.fix)


@pytest.mark.parametrize("kind", ["compute-library", "llvm"])
def test_other_generators_are_refused(kind: str) -> None:
    """A code generator that does not exist is named, with those that do."""
    with pytest.raises(ConfigError, match=f"no code generator '{kind}'"):
        config_from_flags({"--target": f"{kind}, c"})


@pytest.mark.parametrize(
    "target",
    ["ethos-u -accelerator_config=ethos-u55-256,cmsis-nn,c", "ethos-u,c", "c, ethos-u"],
)
def test_an_npu_is_asked_for_by_its_compiler(target: str) -> None:
    """The commands of an Ethos-U come from Vela, before; the error names it, and the page."""
    with pytest.raises(ConfigError, match="ethos-u") as caught:
        config_from_flags({"--target": target})
    assert "vela model.tflite" in str(caught.value.fix)
    assert "docs/ethos-u.md" in str(caught.value.fix)


def test_pass_options_that_hold_anyway() -> None:
    """What microtir does in any case may be asked for, the contrary may not."""
    keys = ("tir.disable_vectorize", "tir.usmp.enable", "tir.disable_storage_rewrite")
    for key in keys:
        for value in ("1", "true", "True"):
            assert config_from_flags({"--pass-config": f"{key}={value}"}) == config_from_flags({})
        with pytest.raises(ConfigError, match=key) as caught:
            config_from_flags({"--pass-config": f"{key}=0"})
        assert caught.value.legal == "True"


def test_pass_options_of_the_memory_planner() -> None:
    """Algorithms of USMP become those of placement; workspace I/O is workspace I/O."""
    config = config_from_flags(
        {"--pass-config": ["tir.usmp.algorithm=hill_climb", "tir.usmp.use_workspace_io=1"]}
    )
    assert config.pass_config.placement is Placement.EXACT
    assert config.pass_config.use_workspace_io
    for name in ("greedy_by_size", "greedy_by_conflicts"):
        config = config_from_flags({"--pass-config": f"tir.usmp.algorithm={name}"})
        assert config.pass_config.placement is Placement.GREEDY
    with pytest.raises(ConfigError, match="is 'best'") as caught:
        config_from_flags({"--pass-config": "tir.usmp.algorithm=best"})
    assert caught.value.legal == "greedy_by_size, greedy_by_conflicts, hill_climb"


def test_pools_in_one_argument() -> None:
    """Values of several pools are separated by commas; targets of a pool are checked."""
    config = config_from_flags(
        {
            "--workspace-pools": "sram",
            "--workspace-pools-targets": "sram:c",
            "--workspace-pools-size-hint-bytes": "sram:4096",
        }
    )
    assert config.workspace_pools[0].size_limit == 4096
    with pytest.raises(ConfigError, match="'dtcm', which is not declared"):
        config_from_flags(
            {
                "--workspace-pools": "sram",
                "--workspace-pools-size-hint-bytes": "sram:4096,dtcm:64",
            }
        )
    with pytest.raises(ConfigError, match="--workspace-pools-targets"):
        config_from_flags({"--workspace-pools-targets": "sram:ethos-u"})
    with pytest.raises(ConfigError, match="--constant-pools"):
        config_from_flags({"--workspace-pools-target-access": "sram:c:ro"})


@pytest.mark.parametrize("text", ["sram:c:32", "sram:32"])
def test_bursts_of_a_target(text: str) -> None:
    """Bursts and accesses may name their target, as in microTVM; there is one kind."""
    config = config_from_flags({
        "--workspace-pools": "sram,dtcm",
        "--workspace-pools-target-access": "sram:c:rw,dtcm:c:rw",
        "--workspace-pools-target-burst-bytes": text,
    })  # fmt: skip
    bursts = [p.pool_info_properties.target_burst_bytes for p in config.workspace_pools]
    assert bursts == [32, -1]
    with pytest.raises(ConfigError, match="the pool 'sram:accel', which is not declared"):
        config_from_flags({
            "--workspace-pools": "sram",
            "--workspace-pools-target-burst-bytes": "sram:accel:32",
        })  # fmt: skip


def test_there_are_no_levels() -> None:
    """-O3 is what tvmc takes by default and is what happens; less would be ignored."""
    assert config_from_flags({"--opt-level": "3"}) == config_from_flags({})
    with pytest.raises(ConfigError, match="no optimisation levels"):
        config_from_flags({"--opt-level": "2"})


def test_configuration_by_name() -> None:
    """--config takes the name of a part, as that of a board; a wrong one gets the nearest."""
    assert config_from_flags({"--config": "nrf52840"}) == micro("nrf52840")
    named = config_from_flags({"--config": "mps3_an547", "--optimize": "ram-least"})
    assert named == micro("mps3_an547").with_(optimize="ram-least")
    assert config_from_flags({"--config": "default"}) == config_from_flags({})
    with pytest.raises(ConfigFileError, match="did you mean 'nrf52840'"):
        config_from_flags({"--config": "nrf52841"})


def test_configuration_file_of_tvmc(tmp_path: Path) -> None:
    """Kinds with their options beside them, and pass options as text, mean what they meant."""
    path = tmp_path / "tvmc.json"
    data = {
        "targets": [{"kind": "c", "mcpu": "cortex-m55"}],
        "executor": {"kind": "aot", "interface-api": "c", "unpacked-api": "1"},
        "runtime": {"kind": "crt", "system-lib": False},
        "pass-config": {"tir.disable_vectorize": "1", "tir.usmp.algorithm": "hill_climb"},
    }
    path.write_text(json.dumps(data), encoding="utf-8")
    assert config_from_file(path) == CompilationConfig(
        targets="c -mcpu=cortex-m55", pass_config={"memory.placement": "exact"}
    )
    data["targets"] = [{"kind": "cmsis-nn"}, {"kind": "c"}]
    path.write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(ConfigError, match="not part of microtir") as caught:
        config_from_file(path)
    assert str(path) in str(caught.value.where)


def test_flags_are_no_others() -> None:
    """Tvmc's flags do not collide with those of the table."""
    from microtir.config import FLAGS

    names = [flag.name for flag in (*FLAGS, *TVMC_FLAGS)]
    assert len(set(names)) == len(names)
    assert all(flag.help.endswith(".") for flag in TVMC_FLAGS)


def test_cmsis_nn_with_its_sources() -> None:
    """With a folder, `cmsis-nn, c` is what --external says, and its CPU is that of the target."""
    given = {"--target": "cmsis-nn -mcpu=cortex-m55, c", "--external": "cmsis-nn=lib,all"}
    config = config_from_flags(given)
    assert config.targets == (Target("c -mcpu=cortex-m55"),)
    assert [str(library) for library in config.external] == ["cmsis-nn=lib,all"]
    apart = config_from_flags(
        {
            "--target": "cmsis-nn,c",
            "--target-cmsis-nn-mcpu": "cortex-m4",
            "--external": "cmsis-nn=lib,all",
        }
    )
    assert apart == config.with_(targets="c -mcpu=cortex-m4")


def test_options_that_targets_had() -> None:
    """Until 0.9 executor and runtime were options of the target; a contradiction is refused."""
    words = "-keys=cpu -mcpu=cortex-m7 -runtime=c --system-lib --executor=aot -link-params=1"
    more = "--interface-api=packed --unpacked-api=0 -workspace-byte-alignment=8"
    found = config_from_flags({"--target": f"c {words} {more}"})
    flags: dict[str, FlagValue] = {
        "--target": "c -mcpu=cortex-m7",
        "--executor": "aot",
        "--executor-aot-interface-api": "packed",
        "--executor-aot-unpacked-api": "0",
        "--executor-aot-link-params": "1",
        "--executor-aot-workspace-byte-alignment": "8",
        "--runtime-crt-system-lib": "1",
    }
    assert found == config_from_flags(flags)
    graph = config_from_flags({"--target": "c --executor=graph -link-params=1"})
    assert graph == config_from_flags({"--executor": "graph", "--executor-graph-link-params": "1",
                                       "--target": "c"})  # fmt: skip
    for target, flag, text in (
        ("c -executor=aot", {"--executor": "graph"}, "a different value"),
        ("c -runtime=c++", {}, "runtime"),
        ("c -interface-api", {}, "interface-api"),
    ):
        with pytest.raises(ConfigError, match=text):
            config_from_flags({"--target": target, **flag})


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("tir.usmp.enabl", "did you mean 'tir.usmp.enable'"),
        ("tir.add_lower_pas", "did you mean 'tir.add_lower_pass'"),
        ("tir.add_lower_pass", "ExtraPasses"),
        ("relay.FuseOps.max_depth", "leave it out"),
        ("relay.ext.cmsisnn.options", "external"),
    ],
)
def test_keys_of_passes_that_are_gone(key: str, text: str) -> None:
    """Each says what took its place; a misspelt one gets its name."""
    with pytest.raises(ConfigError) as caught:
        config_from_flags({"--pass-config": f"{key}=1"})
    assert text in str(caught.value)
