"""Devices: who is told what, in which order, with which state, and what becomes of their errors."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import microtir
from microtir import CompilationConfig, Executor, Runtime
from microtir.artifact import Artifact
from microtir.errors import RunError, UsageError
from microtir.external import Code, Hooks, Library, Match, Rule, device
from microtir.operators.activations.definition import LeakyRelu
from microtir.operators.arithmetic.definition import Mul
from microtir.rewrite import reference
from microtir.tir.ir import ExternSource
from tests.external.test_library import X, model
from tests.support.c_compilers import INCLUDES, STRICT, compiler_output

APPS = Path(__file__).with_name("device_apps")
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")

# A driver without state of the application: it refuses every call out of order.
DRIVER = """
#include <stdint.h>
int32_t TVMDeviceMyNpuActivate(void *context);
int32_t TVMDeviceMyNpuOpen(void *context);
int32_t TVMDeviceMyNpuClose(void *context);
int32_t TVMDeviceMyNpuDeactivate(void *context);
static int32_t state;
static int32_t step(const void *context, int32_t from, int32_t to)
{
    if (context != 0 || state != from) {
        return 70 + state;
    }
    state = to;
    return 0;
}
int32_t TVMDeviceMyNpuActivate(void *context) { return step(context, 0, 1); }
int32_t TVMDeviceMyNpuOpen(void *context) { return step(context, 1, 2); }
int32_t TVMDeviceMyNpuClose(void *context) { return step(context, 2, 1); }
int32_t TVMDeviceMyNpuDeactivate(void *context) { return step(context, 1, 0); }
"""
SCALE = """    for (int32_t i = 0; i < 6; i++) {
        const float product = x[i] * factor[0];
        y[i] = product > 0.0f ? product : product * 0.5f;
    }
    if (x[0] == 99.0f) {
        status = -77;
    }"""


def emit(match: Match) -> Code:
    """MUL by a constant and LEAKY_RELU, which fails where the first element is 99."""
    factor = match.first.inputs[1].data
    assert factor is not None
    return Code(SCALE, constants={"factor": factor})


def with_driver(match: Match) -> Code:
    """The same, with a driver that the program brings along."""
    return replace(emit(match), sources=(ExternSource("driver.c", DRIVER),))


def library(driver: bool = True) -> Library:
    """Two nodes of the model, on the device `my-npu`."""
    rule = Rule((Mul, LeakyRelu), with_driver if driver else emit, cost=lambda _: 1)
    return Library("lib", (rule,), device=device("my-npu"))


CONFIGS = {
    "aot": CompilationConfig(targets="c"),
    "debug": CompilationConfig(targets="c", executor="debug"),
    "packed": CompilationConfig(targets="c", executor=Executor("aot", {"interface-api": "packed"})),
    "system-lib": CompilationConfig(targets="c", runtime=Runtime("crt", {"system-lib": True})),
    "apart": CompilationConfig(targets="c", executor=Executor("aot", {"link-params": False})),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_every_executor_keeps_the_order(name: str) -> None:
    """The driver refuses a call out of order, also after a run that failed in between."""
    module = model()
    assert module.graph is not None
    artifact = microtir.build(module, CONFIGS[name], libraries=[library()])
    assert artifact.metadata.devices == ("my_npu",)
    loaded = microtir.host.load(artifact)
    with pytest.raises(RunError, match="-77"):
        loaded.run({"x": np.full((2, 3), 99, np.float32)})
    expected = reference.execute(module.graph, {"x": X})["y"]
    for _ in range(2):
        assert np.array_equal(loaded.run({"x": X})["y"], expected)


def test_sanitizers_see_nothing() -> None:
    """The harness passes a struct of devices, too."""
    artifact = microtir.build(model(), CONFIGS["aot"], libraries=[library()])
    assert microtir.host.load(artifact, sanitize=True).run({"x": X})["y"].shape == (2, 3)


APPLICATIONS = {
    "own.c": CONFIGS["aot"],
    "graph.c": CompilationConfig(targets="c", executor=Executor("graph", {"link-params": True})),
    "microtvm.c": CompilationConfig(targets="c", compatibility="microtvm"),
    "microtvm_pools.c": CompilationConfig(
        targets="c", compatibility="microtvm", workspace_pools="sram"
    ),
}


def build_application(app: str, folder: Path) -> Artifact:
    """The model for an application that has the driver."""
    artifact = microtir.build(model(), APPLICATIONS[app], libraries=[library(driver=False)])
    artifact.export(folder / "generated")
    source = (APPS / app).read_text() + (APPS / "driver.c").read_text()
    (folder / "app.c").write_text(source)
    return artifact


@pytest.mark.parametrize("app", APPLICATIONS)
def test_the_application_s_state_reaches_the_driver(app: str, tmp_path: Path) -> None:
    """Call order and state; every error of a driver ends the run, which returns it."""
    artifact = build_application(app, tmp_path)
    units = [file.path for file in artifact.sources if file.path.endswith(".c")]
    flags = ["-std=c99", *STRICT, *SANITIZERS, *INCLUDES]
    folder = tmp_path / "generated"
    command = ["gcc", *flags, "../app.c", *units, "-o", "app", "-lm"]
    problems = compiler_output(command, folder)
    assert not problems, problems
    run = subprocess.run(["./app"], cwd=folder, capture_output=True, text=True, check=False)
    lines = run.stdout.splitlines()
    assert lines == [
        "AOCOCD 0",  # activate, twice open and close, deactivate
        "A -11",
        "AOD -12",
        "AOCD -13",
        "AOCOCD -14",
        "state 5, y 0.75",
    ], run.stderr


def test_what_cannot_be_is_refused() -> None:
    """Names that are no C, two ways to wake one device, two arguments where one has a place."""
    with pytest.raises(UsageError, match="'2d' is not a valid name for a device"):
        device("2d")
    with pytest.raises(UsageError, match="has both hooks and a device"):
        replace(library(), hooks=Hooks("a", "b"))
    both = CompilationConfig(
        targets="c", executor=Executor("aot", {"interface-api": "packed", "link-params": False})
    )
    with pytest.raises(UsageError, match="uses a device and reads constants"):
        microtir.build(model(), both, libraries=[library()])


def test_names_are_those_of_microtvm() -> None:
    """`TVMDevice<Name>Activate` and the others, unless another prefix is given."""
    made = device("ethos-u")
    assert (made.name, made.activate, made.deactivate) == (
        "ethos_u", "TVMDeviceEthosUActivate", "TVMDeviceEthosUDeactivate",
    )  # fmt: skip
    assert device("npu", prefix="npu_").open == "npu_Open"
