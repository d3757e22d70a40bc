from __future__ import annotations

import copy
import dataclasses
import json
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import microtir
from microtir.config import (
    Budget,
    CallingConvention,
    Compatibility,
    CompilationConfig,
    Executor,
    Measure,
    Numerics,
    Optimize,
    PassConfig,
    Runtime,
    Target,
    WorkspacePoolInfo,
)
from microtir.config.compilation import resolve_host
from microtir.errors import ConfigError, ExitCode

NAMES = {name: getattr(microtir, name) for name in microtir.__all__}  # from microtir import *
M4 = "c -mcpu=cortex-m4"


def rfc_example() -> CompilationConfig:
    """The example that microTVM's own design document gives."""
    return CompilationConfig(
        target_host=Target("c"),
        targets=[Target(M4)],
        executor=Executor("aot", {"interface-api": "c", "unpacked-api": True}),
        runtime=Runtime("crt", {"system-lib": True}),
    )


def test_s2_1_the_rfc_example_is_legal() -> None:
    """The RFC's own configuration is accepted, and asks for a packed wrapper."""
    config = rfc_example()
    assert config.targets == (Target(M4),)
    assert config.target_host == Target("c")
    assert config.needs_packed_wrapper()
    assert config.should_link_params()
    assert config.entry_calling_convention() is CallingConvention.UNPACKED


def test_s2_1_one_frozen_object_compared_by_value() -> None:
    """Equal, hashable, frozen, and equal again after repr, copy, pickle and JSON."""
    config = rfc_example()
    assert config == rfc_example()
    assert hash(config) == hash(rfc_example())
    assert config != config.with_(module_name="other")
    assert eval(repr(config), dict(NAMES)) == config
    assert copy.deepcopy(config) == config
    assert pickle.loads(pickle.dumps(config)) == config
    assert dataclasses.replace(config, module_name="kws") == config.with_(module_name="kws")
    with pytest.raises(AttributeError):
        config.module_name = "kws"  # type: ignore[misc]


def test_s2_2_nothing_is_unset_after_construction() -> None:
    """Every field has a value of its own type, so that no stage asks twice."""
    config = CompilationConfig(targets="c")
    for field in dataclasses.fields(config):
        assert getattr(config, field.name) is not None
    assert [pool.pool_name for pool in config.workspace_pools] == ["workspace"]
    assert config.constant_pools == ()
    assert config.workspace_pools[0].size_limit is None
    assert config.module_name == ""  # the name of the model's file
    assert config.numerics is Numerics.MODEL
    assert config.optimize is Optimize.BALANCED
    assert config.budget == Budget()
    assert config.pass_config == PassConfig()
    assert not config.needs_packed_wrapper()


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"targets": []}, "targets", "option 'targets' is empty"),
    ({"targets": None}, "targets", "'targets' is None"),
    ({"targets": ["c", "c -mcpu=cortex-m4"]}, "targets", "several targets of kind 'c'"),
    ({"targets": "c -mcu=x"}, "target.mcu", "did you mean 'mcpu'?"),
    ({"target_host": "llvm"}, "target_host", "'llvm' is not a known target"),
    ({"target_host": Target("c", host="c")}, "target_host", "names another host"),
    ({"executor": "vm"}, "executor", "'vm', which is unknown"),
    ({"runtime": "cpp"}, "runtime", "'cpp', which is unknown"),
    ({"workspace_pools": []}, "workspace_pools", "has 0 pools, so that there is no memory to use"),
    ({"constant_pools": ["a"], "executor": "graph"}, "constant_pools", "'link-params' = False"),
    ({"constant_pools": [WorkspacePoolInfo("a")]}, "constant_pools", "ConstantPoolInfo objects"),
    ({"workspace_pools": 5}, "workspace_pools", "'workspace_pools' is 5"),
    ({"module_name": "my-model.v2"}, "module_name", "did you mean 'my_model_v2'?"),
    ({"module_name": 5}, "module_name", "is an integer, not text"),
    ({"numerics": "tflite_opt"}, "numerics", "does not support yet"),
    ({"numerics": Numerics.FLOAT}, "numerics", "use numerics 'tflm'"),
    ({"numerics": "tflmm"}, "numerics", "did you mean 'tflm'?"),
    ({"optimize": "size"}, "optimize", "expected: speed, ram, ram-least, flash, balanced"),
    ({"budget": {"rom": 5}}, "budget", "budget 'rom' is unknown"),
    ({"budget": 5}, "budget", "'budget' is 5"),
    ({"pass_config": {"tir.x": 1}}, "pass_config", "'tir.x' is unknown"),
    ({"stream_hop": 2}, "stream_hop", "is 2, but 'stream_axis' is missing"),
    ({"pass_config": 5}, "pass_config", "pass_config options are 5"),
    (
        {"pass_config": {"tir.disable_unroll": True, "tir.unroll_max_extent": 8}},
        "pass_config.tir.unroll_max_extent",
        "is 8, which cannot be combined with 'tir.disable_unroll' = True",
    ),
]


@pytest.mark.parametrize(
    ("fields", "field", "text"), REFUSED, ids=[f"{f}-{n}" for n, (_, f, _) in enumerate(REFUSED)]
)
def test_s2_2_an_invalid_field_is_refused_and_named(
    fields: dict[str, Any], field: str, text: str
) -> None:
    """Every wrong value is refused in the constructor, with the field and what is legal."""
    with pytest.raises(ConfigError) as caught:
        CompilationConfig(**{"targets": "c", **fields})
    assert field in str(caught.value)
    assert text in str(caught.value)
    assert caught.value.exit_code is ExitCode.USAGE


@pytest.mark.parametrize(
    ("given", "host", "expected"),
    [
        # A: the first target with a host decides
        ([Target(M4, host="c -mcpu=cortex-m0")], None, "c -mcpu=cortex-m0"),
        # explicit and named hosts agree
        ([Target(M4, host="c")], "c", "c"),
        # B: else the first target that can host
        ([Target(M4)], None, M4),
        ([Target("c")], None, "c"),
        # C: else plain c
        ([], None, "c"),
        # an explicit host
        ([Target(M4)], "c", "c"),
    ],
)
def test_s2_3_host_rules(given: list[Target], host: str | None, expected: str) -> None:
    """Rules A to C of microTVM's host resolution, the default being c and never llvm."""
    resolved = resolve_host(tuple(given), host)
    assert resolved == Target(expected)
    assert resolved.host is None
    if given:
        config = CompilationConfig(targets=given, target_host=host)
        assert config.target_host == resolved
        assert all(target.host is None for target in config.targets)


def test_s2_3_disagreeing_hosts_are_refused() -> None:
    """TVM overrode the host of a target with no more than a log line."""
    with pytest.raises(ConfigError, match="a target names the host 'c -mcpu=cortex-m0'"):
        CompilationConfig(targets=Target(M4, host="c -mcpu=cortex-m0"), target_host="c")


def test_s2_3_resolution_is_idempotent_and_one_target_is_primary() -> None:
    """Rules E and F: the only target is the default; building a config from one changes nothing."""
    first = CompilationConfig(targets=Target(M4, host="c"))
    again = CompilationConfig(targets=first.targets, target_host=first.target_host)
    assert again == first
    assert first.primary_target() == Target(M4)


def test_s2_4_from_target_is_the_default_configuration() -> None:
    """`from_target` and the constructor with nothing but targets are one."""
    assert CompilationConfig.from_target(M4) == CompilationConfig(targets=[Target(M4)])
    assert CompilationConfig.from_target(Target(M4), "c") == CompilationConfig(
        targets=M4, target_host="c"
    )


@pytest.mark.parametrize(
    ("target", "workspace", "constant", "expected"),
    [
        (M4, None, None, (4, 4)),
        ("c -mcpu=cortex-m55", None, None, (8, 8)),
        ("c -mcpu=atmega328p", None, None, (1, 1)),
        ("c -mcpu=x86-64", None, None, (8, 8)),
        (M4, 16, None, (16, 4)),
        (M4, None, 1, (4, 1)),
        ("c -mcpu=cortex-m55", 4, 32, (4, 32)),
        # the entry function runs on the host, whose pointers need no less
        ({"kind": "c", "mcpu": "cortex-m0", "host": "c -mcpu=x86-64"}, None, None, (8, 8)),
    ],
)
def test_s2_8_alignment_is_one_question(
    target: str | dict[str, str],
    workspace: int | None,
    constant: int | None,
    expected: tuple[int, int],
) -> None:
    """The executor's option where it is given, else what the target needs."""
    options = {"workspace-byte-alignment": workspace, "constant-byte-alignment": constant}
    config = CompilationConfig(targets=target, executor=Executor("aot", options))
    assert (config.workspace_alignment(), config.constant_alignment()) == expected


@pytest.mark.parametrize("system_lib", [False, True])
def test_s2_8_packed_wrapper_is_one_question(system_lib: bool) -> None:
    """Only a registered entry function with the C interface needs a wrapper."""
    runtime = Runtime("crt", {"system-lib": system_lib})
    assert CompilationConfig(targets="c", runtime=runtime).needs_packed_wrapper() is system_lib


def test_s2_11_two_threads_do_not_influence_each_other() -> None:
    """Configurations made at the same time in many threads are what each thread asked for."""

    def make(number: int) -> bool:
        budget = {"ram": number + 1}
        config = CompilationConfig(targets=M4, module_name=f"net{number}", budget=budget)
        return config.module_name == f"net{number}" and config.budget.ram == number + 1

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(make, range(200)))


def test_with_changes_one_field_and_keeps_the_rest() -> None:
    """A changed copy; the original is untouched; a misspelt field says the nearest."""
    config = rfc_example()
    changed = config.with_(optimize="ram-least", budget={"ram": 1024})
    assert changed.optimize is Optimize.RAM_LEAST
    assert changed.budget == Budget(ram=1024)
    assert changed.runtime == config.runtime
    assert config == rfc_example()
    with pytest.raises(ConfigError, match="'optimise' is unknown: did you mean 'optimize'"):
        config.with_(optimise="ram")


def test_with_targets_derives_the_host_anew() -> None:
    """A host that followed from the targets follows again; an explicit one stays."""
    derived = CompilationConfig(targets=M4)
    assert derived.with_(targets="c -mcpu=cortex-m7").target_host == Target("c -mcpu=cortex-m7")
    explicit = CompilationConfig(targets=M4, target_host="c")
    assert explicit.with_(targets="c -mcpu=cortex-m7").target_host == Target("c")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not JSON"),
        ("[]", "not a JSON object"),
        ("{}", "'targets' is missing"),
        ('{"target": ["c"]}', "did you mean 'targets'?"),
        ('{"targets": ["c"], "targets": ["c"]}', "'targets' twice"),
        ('{"targets": 5}', "'targets' is 5"),
        ('{"targets": ["c"], "executor": {"nam": "aot"}}', "'executor' is"),
        ('{"targets": ["c"], "executor": {"name": "aot", "option": {}}}', "'option': did you mean"),
        ('{"targets": ["c"], "executor": {"name": "aot", "options": 5}}', "not a mapping"),
        ('{"targets": ["c"], "runtime": 5}', "'runtime' is 5"),
        ('{"targets": ["c"], "module_name": null}', "option 'module_name' has no value"),
        ('{"targets": ["c"], "workspace_pools": [{"name": "a"}]}', "did you mean 'pool_name'?"),
        ('{"targets": ["c"], "workspace_pools": [{"targets": []}]}', "'pool_name' is missing"),
        ('{"targets": ["c"], "budget": {"ram": "64K"}}', "'ram' is '64K'"),
        ("[" * 100_000, "is not JSON"),
    ],
)
def test_malformed_json_is_refused(text: str, message: str) -> None:
    """Anything but a configuration is a ConfigError, never a traceback of the JSON reader."""
    with pytest.raises(ConfigError) as caught:
        CompilationConfig.from_json(text)
    assert message in str(caught.value)


def test_json_states_every_option() -> None:
    """Defaults are written out: a file means the same when a default changes."""
    data = json.loads(CompilationConfig(targets=M4).to_json())
    assert data["executor"] == {
        "name": "aot",
        "options": {
            "interface-api": "c",
            "unpacked-api": True,
            "link-params": True,
            "row-fed-inputs": False,
            "row-drained-outputs": False,
            "steps": False,
        },
    }
    assert data["pass_config"]["memory.placement"] == "greedy"
    names = [field.name for field in dataclasses.fields(CompilationConfig)]
    newer = ("annotations", "constant_time", "fault_checks", "canaries")
    assert list(data) == [name for name in names if name not in newer]
    config = CompilationConfig(
        targets=M4, annotations="acsl", constant_time=True, fault_checks="start", canaries=True
    )
    assert list(json.loads(config.to_json())) == names


def test_explain_lists_values_and_origins() -> None:
    """Each option is a line with its value, and says whether it is set, default or derived."""
    lines = rfc_example().explain().splitlines()
    rows = {line.split("  ")[0]: line.rsplit("  ", 1)[1].strip() for line in lines}
    values = {line.split("  ")[0]: line for line in lines}
    assert rows["field"] == "origin"
    assert rows["targets"] == "set"
    assert rows["target_host"] == "set"
    assert rows["runtime.system-lib"] == "set"
    assert rows["module_name"] == "default"
    assert rows["executor.workspace-byte-alignment"] == "derived"
    assert " 4 " in values["executor.workspace-byte-alignment"]
    bounded = rfc_example().with_(
        budget=Budget(ram=512),
        workspace_pools=[{"pool_name": "ram"}],
        executor=Executor("aot", {"workspace-byte-alignment": 16}),
    )
    text = bounded.explain()
    assert "ram (no limit)" in text
    assert " 512 " in text
    values = dict(line.split()[:2] for line in text.splitlines())
    assert values["executor.workspace-byte-alignment"] == "16"


@st.composite
def configurations(draw: st.DrawFn) -> CompilationConfig:
    """Any legal configuration."""
    size = st.none() | st.integers(1, 2**31 - 1)
    alignment = st.none() | st.sampled_from([1, 2, 4, 8, 16, 32, 64, 128])
    target = Target(draw(st.sampled_from(["c", M4, "c -mcpu=cortex-m55+nomve", "c -march=rv32gc"])))
    unroll = draw(st.integers(0, 256))
    properties = {"size_hint_bytes": draw(st.just(-1) | st.integers(1, 9999))}
    pool = {
        "pool_name": draw(st.sampled_from(["ram", "dtcm-2"])),
        "targets": draw(st.sampled_from([[], [target]])),
        "pool_info_properties": properties,
    }
    streams: list[dict[str, Any]] = [
        {"stateful": True},
        {"states": "past=present, kept.*=left.*"},
        {"stream_axis": "1"},
        {"stream_axis": "m=2"},
    ]
    streamed = draw(st.sampled_from(streams))
    return CompilationConfig(
        targets=target,
        target_host=draw(st.sampled_from([None, "c", "c -mcpu=cortex-m0"])),
        executor=Executor(
            "aot",
            {
                "workspace-byte-alignment": draw(alignment),
                "constant-byte-alignment": draw(alignment),
            },
        ),
        runtime=Runtime("crt", {"system-lib": draw(st.booleans())}),
        workspace_pools=draw(st.sampled_from([None, [pool]])),
        module_name=draw(st.sampled_from(["default", "kws", "MyNet"])),
        optimize=draw(st.sampled_from(list(Optimize))),
        compatibility=draw(st.sampled_from(list(Compatibility))),
        measure=draw(st.sampled_from(list(Measure))),
        budget=Budget(draw(size), draw(size)),
        constant_pools=draw(st.sampled_from([None, ["flash2"]])),
        external=draw(st.sampled_from([None, "cmsis-nn=a folder", "cmsis-nn=x'y,1,2"])),
        tuning_records=draw(st.sampled_from(["", 'my "records".json'])),
        **streamed,
        stream_hop=draw(st.integers(1, 5)) if streamed.get("stream_axis") else 1,
        pass_config={
            "tir.disable_unroll": unroll == 0 and draw(st.booleans()),
            "tir.unroll_max_extent": unroll,
            "memory.placement": draw(st.sampled_from(["greedy", "exact"])),
        },
    )


def test_repr_leaves_out_defaults() -> None:
    """What is shown is what was chosen."""
    assert repr(CompilationConfig(targets="c")) == "CompilationConfig(targets=Target('c'))"
    config = CompilationConfig(targets=M4, optimize="ram-least", budget=Budget(ram=9))
    told = "targets=Target('c -mcpu=cortex-m4'), optimize='ram-least', budget={'ram': 9}"
    assert repr(config) == f"CompilationConfig({told})"


@given(configurations())
def test_s2_1_round_trips(config: CompilationConfig) -> None:
    """repr, JSON and dictionaries give an equal one; repr named classes that nobody imports."""
    assert eval(repr(config), dict(NAMES)) == config
    again = CompilationConfig.from_json(config.to_json())
    assert again == config
    assert hash(again) == hash(config)
    assert again.to_json() == config.to_json()
    assert CompilationConfig.from_dict(config.to_dict()) == config
    assert config.with_() == config
