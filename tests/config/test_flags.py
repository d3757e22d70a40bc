from __future__ import annotations

import json
from pathlib import Path

import pytest

from microtir.config import (
    FLAGS,
    OPTIONS,
    Budget,
    CompilationConfig,
    Executor,
    Optimize,
    Placement,
    PoolInfoProperties,
    Runtime,
    Section,
    Target,
    config_from_file,
    config_from_flags,
    microcontroller,
)
from microtir.config.flag import FlagValue
from microtir.errors import ConfigError, ConfigFileError, ExitCode

CONTRACT = [
    "--config",
    "--target",
    "--target-host",
    "--executor",
    "--executor-aot-interface-api",
    "--executor-aot-unpacked-api",
    "--executor-aot-link-params",
    "--executor-aot-workspace-byte-alignment",
    "--executor-aot-constant-byte-alignment",
    "--runtime",
    "--runtime-crt-system-lib",
    "--module-name",
    "--numerics",
    "--optimize",
    "--ram-budget",
    "--flash-budget",
    "--stack-budget",
    "--workspace-pools",
    "--workspace-pools-size-hint-bytes",
    "--constant-pools",
    "--pass-config",
]


def test_s2_10_flags_of_the_contract_exist() -> None:
    """The flags that the command line promises are derived from the table, each once."""
    names = [flag.name for flag in FLAGS]
    assert set(CONTRACT) <= set(names)
    assert len(set(names)) == len(names)
    assert len({flag.dest for flag in FLAGS}) == len(FLAGS)


def test_s2_10_every_option_has_a_flag() -> None:
    """Each option with more than one value to give is reachable from the command line."""
    names = {flag.name for flag in FLAGS}
    for option in OPTIONS:
        if option.section in (Section.TARGET, Section.PASS) or None in option.pending:
            continue
        if not option.flag:
            # given through their parts, or with a single legal value
            assert option.name in ("budget", "pass_config") or option.pending
            continue
        assert option.flag in names


def test_flags_describe_themselves() -> None:
    """Each flag has a metavar and a sentence with its legal values and default."""
    by_name = {flag.name: flag for flag in FLAGS}
    interface = by_name["--executor-aot-interface-api"]
    assert interface.metavar == "c|packed"
    assert interface.choices == ("c", "packed")
    assert "Values: c, packed. Default: c." in interface.help
    assert (
        by_name["--numerics"].metavar == "model|tflm|tflite_ref|onnxruntime|pt2e"
    )  # others: not built
    assert by_name["--target"].repeatable and by_name["--pass-config"].repeatable
    assert not by_name["--module-name"].repeatable
    assert by_name["--workspace-pools-size-hint-bytes"].metavar == "POOL:INT"
    for flag in FLAGS:
        assert flag.help.endswith(".")
        assert flag.dest.isidentifier()


def test_s2_10_flags_build_the_same_configuration_as_python() -> None:
    """One command line, one configuration, equal to the one written in Python."""
    flags: dict[str, FlagValue] = {
        "--target": ["c -mcpu=cortex-m4+nofp"],
        "--target-host": "c",
        "--executor": "aot",
        "--executor-aot-interface-api": "c",
        "--executor-aot-unpacked-api": "1",
        "--executor-aot-workspace-byte-alignment": "16",
        "--runtime": "crt",
        "--runtime-crt-system-lib": "1",
        "--module-name": "kws",
        "--numerics": "tflm",
        "--optimize": "ram-least",
        "--ram-budget": "64K",
        "--flash-budget": 1024,
        "--workspace-pools": ["dtcm-2"],
        "--workspace-pools-size-hint-bytes": ["dtcm-2:32KiB"],
        "--constant-pools": None,
        "--pass-config": ["tir.unroll_max_extent=8", "memory.placement = exact"],
    }
    expected = CompilationConfig(
        targets="c -mcpu=cortex-m4 -mattr=-fp",
        target_host="c",
        executor=Executor("aot", {"workspace-byte-alignment": 16}),
        runtime=Runtime("crt", {"system-lib": True}),
        module_name="kws",
        numerics="tflm",
        optimize="ram-least",
        budget=Budget(ram=65536, flash=1024),
        workspace_pools=[
            {
                "pool_name": "dtcm-2",
                "pool_info_properties": {"size_hint_bytes": 32768},
            }
        ],
        pass_config={"tir.unroll_max_extent": 8, "memory.placement": Placement.EXACT},
    )
    assert config_from_flags(flags) == expected
    dests = {key.removeprefix("--").replace("-", "_"): value for key, value in flags.items()}
    assert config_from_flags(dests) == expected


def test_s2_10_a_dumped_configuration_reads_back(tmp_path: Path) -> None:
    """What --dump-config writes gives the same configuration through --config."""
    config = CompilationConfig(targets="c -mcpu=cortex-m7", optimize="speed", module_name="net")
    path = tmp_path / "config.json"
    path.write_text(config.to_json(), encoding="utf-8")
    assert config_from_file(path) == config
    assert config_from_flags({"--config": path}) == config
    changed = config_from_flags({"--config": str(path), "--optimize": "ram-least"})
    assert changed == config.with_(optimize="ram-least")


def test_no_flag_is_the_base_or_a_microcontroller() -> None:
    """Without flags the board's configuration stands, else that of a microcontroller."""
    board = CompilationConfig(targets="c -mcpu=cortex-m3", budget=Budget(ram=100))
    assert config_from_flags({}) == microcontroller()
    assert config_from_flags({"--target": (), "--optimize": None}) == microcontroller()
    assert config_from_flags({}, board) == board


def test_flags_change_single_options_of_the_base() -> None:
    """A flag changes its own option; the others of executor, budget and passes stay."""
    base = CompilationConfig(
        targets="c -mcpu=cortex-m3",
        executor=Executor("aot", {"constant-byte-alignment": 32}),
        runtime=Runtime("crt", {"system-lib": True}),
        budget=Budget(ram=100),
        pass_config={"tir.disable_unroll": True},
    )
    changed = config_from_flags(
        {
            "--executor-aot-workspace-byte-alignment": "8",
            "--flash-budget": "1M",
            "--pass-config": "tir.verify_each_pass=on",
            "--target": "c -mcpu=cortex-m7",
            "--workspace-pools-size-hint-bytes": "workspace:512",
        },
        base,
    )
    assert (changed.workspace_alignment(), changed.constant_alignment()) == (8, 32)
    assert changed.budget == Budget(ram=100, flash=2**20)
    assert changed.pass_config.disable_unroll and changed.pass_config.verify_each_pass
    assert changed.runtime.system_lib
    assert changed.target_host == Target("c -mcpu=cortex-m7")
    assert changed.workspace_pools[0].size_limit == 512
    assert changed.optimize is Optimize.BALANCED


def test_pool_flags_take_names_in_either_form() -> None:
    """Pool names come one by one or separated by commas, as microTVM's flag took them."""
    one = config_from_flags({"--workspace-pools": "sram"})
    assert [pool.pool_name for pool in one.workspace_pools] == ["sram"]
    given = {
        "--workspace-pools": "sram,dtcm",
        "--workspace-pools-is-internal": "dtcm:1",
        "--workspace-pools-section": "dtcm:.dtcm",
        "--workspace-pools-read-latency-cycles": "sram:2",
    }
    sram, dtcm = config_from_flags(given).workspace_pools
    assert sram.pool_info_properties == PoolInfoProperties(read_latency_cycles=2)
    assert dtcm.pool_info_properties == PoolInfoProperties(is_internal=True, section=".dtcm")


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        ({"--module_nam": "x"}, "did you mean '--module-name'?"),
        ({"--qq": "x"}, "the flag '--qq' is unknown"),
        ({"--module-name": ["a", "b"]}, "'--module-name' is given 2 times"),
        ({"--optimize": "size"}, "'optimize' is 'size'"),
        ({"--executor-aot-unpacked-api": "2"}, "'unpacked-api' is '2'"),
        ({"--executor-aot-unpacked-api": "0"}, "cannot be combined with 'interface-api'"),
        ({"--executor-aot-workspace-byte-alignment": "3"}, "not a power of two"),
        ({"--executor": "grap"}, "did you mean 'graph'?"),
        (
            {"--executor": "graph", "--executor-aot-unpacked-api": "1"},
            "the executor is 'graph'",
        ),
        ({"--executor-graph-link-params": "1"}, "choose executor 'graph'"),
        ({"--constant-pools-section": "flash:.fast"}, "declares no pool"),
        ({"--stack-budget": "2Q"}, "'stack' is '2Q'"),
        ({"--ram-budget": "64Q"}, "'ram' is '64Q'"),
        ({"--ram-budget": "-1"}, "'ram' is -1"),
        ({"--ram-budget": "9" * 5000}, "'ram' is '999"),
        ({"--pass-config": "tir.disable_unroll"}, "without a value"),
        ({"--pass-config": "tir.disable_unrol=1"}, "did you mean 'tir.disable_unroll'?"),
        ({"--pass-config": "tir.disable_unroll=7"}, "'tir.disable_unroll' is '7'"),
        ({"--workspace-pools-size-hint-bytes": "5"}, "which names no pool"),
        ({"--workspace-pools-size-hint-bytes": "x:5"}, "the pool 'x', which is not declared"),
        ({"--target": "c -mcpu=cortex-m99"}, "'mcpu' is 'cortex-m99'"),
    ],
)
def test_wrong_flags_are_refused(flags: dict[str, FlagValue], text: str) -> None:
    """A wrong command line is a ConfigError that names the flag or the field."""
    with pytest.raises(ConfigError) as caught:
        config_from_flags(flags)
    assert text in str(caught.value)


def test_missing_or_unreadable_file(tmp_path: Path) -> None:
    """A file that is not there is a missing file, one that is no text says so."""
    with pytest.raises(ConfigFileError) as caught:
        config_from_file(tmp_path / "absent.json")
    assert caught.value.exit_code is ExitCode.ENVIRONMENT
    assert "absent.json" in str(caught.value)
    binary = tmp_path / "binary.json"
    binary.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigFileError, match="not UTF-8"):
        config_from_flags({"config": binary})


@pytest.mark.parametrize("data", [{"targets": ["c"], "optimise": "ram"}, {}, []])
def test_wrong_file_is_named(tmp_path: Path, data: object) -> None:
    """A wrong content is wrong usage, and the message starts with the file."""
    path = tmp_path / "wrong.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        config_from_file(str(path))
    assert str(caught.value).startswith(str(path))
    assert caught.value.exit_code is ExitCode.USAGE
