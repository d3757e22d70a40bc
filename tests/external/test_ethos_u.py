"""Models that Vela has compiled for an Ethos-U: how they are read, and the calls of the driver.

The driver is a stand-in: it checks what Arm's driver checks, and plays the NPU.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import microtir
from microtir import CompilationConfig
from microtir.codegen.metadata import MemoryData
from microtir.config import WorkspacePoolInfo
from microtir.errors import ConfigError, MicrotirError, UnsupportedModelError, UsageError
from microtir.frontend import check, from_tflite
from microtir.operators.npu.definition import EthosU
from microtir.rewrite import reference
from tests.support.c_compilers import INCLUDES, STRICT, compiler_output
from tests.support.ethos_u import NpuModel, expected

APPS = Path(__file__).with_name("ethos_u_apps")
DRIVER = Path(__file__).with_name("ethos_u_driver")
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
GIVEN = (np.arange(24, dtype=np.float32) - 12) * np.float32(0.5)


def config(pools: Sequence[WorkspacePoolInfo] = (), **options: object) -> CompilationConfig:
    """A configuration of the module `npu`, with options of passes."""
    keys = {name.replace("ethos_u_", "ethos_u."): value for name, value in options.items()}
    return CompilationConfig(
        targets="c", module_name="npu", workspace_pools=pools or None, pass_config=keys
    )


def run(
    model: NpuModel,
    chosen: CompilationConfig,
    folder: Path,
    flags: tuple[str, ...] = (),
    arguments: tuple[str, ...] = (),
    apps: tuple[str, ...] = ("own.c",),
) -> list[str]:
    """Return the lines that driver and application print, without a warning of the compiler."""
    microtir.build(from_tflite(model.file()), chosen).export(folder / "generated")
    for file in (*DRIVER.iterdir(), *(APPS / app for app in apps)):
        shutil.copy(file, folder / "generated")
    top = folder / "generated"
    units = [path.relative_to(top).as_posix() for path in sorted(top.rglob("*.c"))]
    command = [
        "gcc",
        "-std=c99",
        *STRICT,
        *SANITIZERS,
        *flags,
        *INCLUDES,
        *units,
        "-o",
        "app",
        "-lm",
    ]
    problems = compiler_output(command, folder / "generated")
    assert not problems, problems
    done = subprocess.run(
        ["./app", *arguments], cwd=folder / "generated",
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def memory_of(model: NpuModel, chosen: CompilationConfig) -> MemoryData:
    """What the metadata says of memory."""
    memory = microtir.build(from_tflite(model.file()), chosen).metadata.memory
    assert memory is not None
    return memory


def workspace(model: NpuModel, chosen: CompilationConfig) -> int:
    """Bytes of the only pool."""
    (pool,) = memory_of(model, chosen).pools
    return pool.size


def numbers(model: NpuModel) -> str:
    """The outputs as the application prints them."""
    return " ".join(f"{value:g}" for value in expected(model, GIVEN).reshape(-1))


EXTERN = "a C function outside the model reported a failure"
CALL = [
    "reserve",
    "invoke 7 bytes, 5 addresses: 7 128 128 24 24",
    "address 3 is byte 16 of the scratch",
    "address 4 is byte 64 of the scratch",
    "release",
]


OLD = ("-DOLD_DRIVER",)


@pytest.mark.parametrize(
    ("invoke", "driver"),
    [
        ("ethosu_invoke_v3", ()),
        ("ethosu_invoke", ()),
        ("ethosu_invoke", OLD),
        ("ethosu_invoke_v2", ()),
        ("ethosu_invoke_v2", OLD),
    ],
)
def test_the_driver_is_called_as_documented(
    invoke: str, driver: tuple[str, ...], tmp_path: Path
) -> None:
    """Order, addresses, sizes and alignment; an error of the NPU ends the run with an error."""
    model = NpuModel()
    lines = run(model, config(ethos_u_invoke=invoke), tmp_path, driver)
    done, failed = lines.index("done"), len(CALL) * 2 + 2
    assert lines[: len(CALL)] == CALL
    assert lines[done : done + 2] == ["done", numbers(model)]
    assert lines[done + 2 : failed] == CALL
    assert lines[failed] == EXTERN
    rest = lines[failed + 1 :]
    if invoke == "ethosu_invoke_v2":
        assert rest[-1] == EXTERN  # the driver's own function goes on without a driver
    else:
        assert rest == ["reserve", EXTERN]


def test_memory_is_shared_with_other_layers(tmp_path: Path) -> None:
    """Two calls use the same scratch, which holds nothing between them."""
    model = NpuModel(calls=2)
    lines = run(model, config(), tmp_path)
    back = [
        line.replace("16 of", "X").replace("64 of", "16 of").replace("X", "64 of") for line in CALL
    ]
    assert lines[:11] == [*CALL, *back, "done"]
    assert lines[11] == numbers(model)
    assert workspace(model, config()) == 128 + 2 * 24  # and what goes in and comes out


def test_a_fast_scratch_of_its_own_lies_in_its_pool(tmp_path: Path) -> None:
    """Scratch and fast scratch are where the configuration puts them."""
    model = NpuModel(fast=96)
    chosen = config(
        [WorkspacePoolInfo("sram"), WorkspacePoolInfo("dram")],
        ethos_u_scratch_pool="dram",
        ethos_u_fast_scratch_pool="sram",
    )
    lines = run(model, chosen, tmp_path, ("-DPOOLS",))
    assert lines[1] == "invoke 7 bytes, 5 addresses: 7 128 96 24 24"
    assert lines[5:7] == ["done", numbers(model)]
    where = {p.name: p.pool for p in memory_of(model, chosen).placements}
    assert where["activation_1_2"] == "dram" and where["activation_1_3"] == "sram"


def test_fast_scratch_of_the_driver(tmp_path: Path) -> None:
    """The workspace has none; a driver with too little memory ends the run with an error."""
    model = NpuModel(fast=96)
    chosen = config(ethos_u_fast_scratch="driver")
    lines = run(model, chosen, tmp_path, arguments=("100",))
    assert lines[1] == "invoke 7 bytes, 5 addresses: 7 128 96 24 24"
    assert lines[5:7] == ["done", numbers(model)]
    assert workspace(model, chosen) == workspace(model, config()) - 96
    without = run(NpuModel(fast=96), chosen, tmp_path / "without")
    assert without[:3] == ["reserve", "release", EXTERN]


def test_no_weights(tmp_path: Path) -> None:
    """An operator without weights has an address of 0 with no bytes."""
    generated = microtir.build(
        from_tflite(NpuModel(weights=np.zeros(0, np.uint8)).file()), config()
    )
    text = generated.source("npu_ethos_u.c")
    assert "        0,\n        (uint64_t)(uintptr_t)scratch," in text


def test_same_bytes_each_time() -> None:
    """Nothing in the generated files depends on the run."""
    model = NpuModel(fast=96).file()
    first, second = (microtir.build(from_tflite(model), config()) for _ in range(2))
    assert [f.text for f in first.sources] == [f.text for f in second.sources]


WRONG = {
    "payload": (NpuModel(payload=b"COP2"), "its payload is COP2"),
    "damaged": (NpuModel(payload=b"XOP1"), "its payload begins with b'XOP1'"),
    "options": (NpuModel(options=b"\x02\x04\x01"), "its options are 02 04 01"),
    "no options": (NpuModel(options=b""), "its options are empty"),
    "no plan": (NpuModel(has_plan=False), "does not say where 'given' lies"),
    "outside": (NpuModel(result=112), "24 bytes, at byte 112"),
    "unaligned": (NpuModel(given=20), "24 bytes, at byte 20"),
}


@pytest.mark.parametrize("name", WRONG)
def test_damaged_operators_are_refused(name: str) -> None:
    """What does not fit together names the operator."""
    model, message = WRONG[name]
    with pytest.raises(MicrotirError, match=message) as caught:
        from_tflite(model.file())
    assert "CUSTOM 'ethos-u'" in str(caught.value)


def test_what_an_npu_computes_is_not_known() -> None:
    """The reference executor refuses; `check` finds nothing wrong."""
    file = NpuModel().file()
    graph = from_tflite(file).graph
    assert graph is not None and not check(file)
    assert [type(node.op) for node in graph.nodes][1] is EthosU
    with pytest.raises(UnsupportedModelError, match="an Ethos-U computes it"):
        reference.execute(graph, {"x": np.zeros((1, 4, 6), np.float32)})


def test_contradictions_are_refused() -> None:
    """A function that reserves a driver has no place for another one."""
    model = from_tflite(NpuModel(fast=96).file())
    for chosen in (
        config(ethos_u_invoke="ethosu_invoke_v2", ethos_u_fast_scratch="driver"),
        config(ethos_u_invoke="ethosu_invoke_v2").with_(compatibility="microtvm"),
    ):
        with pytest.raises(UsageError, match="itself reserves a driver"):
            microtir.build(model, chosen)
    with pytest.raises(ConfigError, match="which is not a workspace pool"):
        config(ethos_u_scratch_pool="sram")


@pytest.mark.parametrize("has_hooks", [False, True])
def test_an_application_of_microtvm_passes_the_driver(has_hooks: bool, tmp_path: Path) -> None:
    """The device `ethos_u` is a driver that the application reserved; its status is the run's."""
    model = NpuModel()
    apps = ("microtvm.c", "hooks.c") if has_hooks else ("microtvm.c",)
    lines = run(model, config().with_(compatibility="microtvm"), tmp_path, apps=apps)
    calls = CALL[1:4]
    if has_hooks:
        before, after = ["activate", "open"], ["close", "deactivate"]
        calls = [*before, *calls, *after]
        last = [f"{line} nothing" for line in (*before, *after)]
    else:
        last = []
    assert lines == [
        "reserve", *calls, "0", numbers(model), *calls, "-7", "release", *last, "-1",
    ]  # fmt: skip
