"""Models that keep something, by every interface: 50 runs equal the reference, and a reset forgets.

Interfaces of microTVM have no place for a state. There the program has one instance.
"""

from __future__ import annotations

import ctypes
import json
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

import microtir
from microtir import CompilationConfig, Executor, Runtime, host
from microtir.config import WorkspacePoolInfo
from microtir.graph.ir import Array
from microtir.host.tensors import aligned
from microtir.rewrite.reference import execute_steps
from tests.execute.stateful import RUNS, Step, steps_of
from tests.support.archives import unpack
from tests.support.c_compilers import (
    C_COMPILERS,
    HOST_COMPILERS,
    INCLUDES,
    STRICT,
    compiler_output,
    strict_problems,
)
from tests.support.calling import PROGRAM, compiled, make_runtime, run_packed
from tests.support.stateful import random_model, running_sum

APPS = Path(__file__).with_name("microtvm_apps")
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
FIRST = np.array([[3.0, -8.0]], np.float32)
# The others' warnings are those of programs that keep nothing, but for a few lines.
COMPILERS, C_ONLY = (
    [name if name == "gcc" else pytest.param(name, marks=pytest.mark.soak_only) for name in names]
    for names in (HOST_COMPILERS, C_COMPILERS)
)
PACKED = Executor("aot", {"interface-api": "packed"})
SYSTEM_LIB = Runtime("crt", {"system-lib": True})
BASE = CompilationConfig(targets="c")
OWN = {
    "packed": BASE.with_(executor=PACKED),
    "packed_with_unpacked_operators": BASE.with_(
        executor=Executor("aot", {"interface-api": "packed", "unpacked-api": True})
    ),
    "packed_in_pool": BASE.with_(
        executor=PACKED,
        workspace_pools=[WorkspacePoolInfo("state"), WorkspacePoolInfo("dtcm")],
        constant_pools="flash",
    ),
    "system_lib": BASE.with_(runtime=SYSTEM_LIB),
    "graph": BASE.with_(executor="graph"),
    "debug": BASE.with_(executor="debug"),
    "graph_workspace_io": BASE.with_(
        executor=Executor("graph", {"link-params": True}),
        pass_config={"memory.use_workspace_io": True},
    ),
}  # fmt: skip
_MICROTVM = BASE.with_(compatibility="microtvm")
MICROTVM = {
    "STRUCTS": _MICROTVM,
    "POOLS": _MICROTVM.with_(workspace_pools="sram"),
    "PACKED": _MICROTVM.with_(executor=PACKED),
    "AOT": _MICROTVM.with_(runtime=SYSTEM_LIB),
    "GRAPH": _MICROTVM.with_(executor=Executor("graph", {"link-params": True})),
}


@pytest.mark.parametrize("interface", OWN)
def test_own_interfaces_keep_the_state(interface: str) -> None:
    """What a run leaves is what the next one begins with, and another instance knows nothing."""
    module = microtir.frontend.from_tflite(random_model(5, "mixed"))
    assert module.graph is not None and len(module.graph.states) > 1
    model = host.load(microtir.build(module, OWN[interface]))
    steps = steps_of(module.graph, 1, RUNS)
    wanted = list(execute_steps(module.graph, steps))
    other = model.instance()
    for number, outputs in enumerate(wanted):
        for name, array in model.run(steps[number]).items():
            np.testing.assert_array_equal(array, outputs[name], err_msg=f"run {number}")
        other.run(steps[0])
    model.reset()
    for name, array in model.run(steps[0]).items():
        np.testing.assert_array_equal(array, wanted[0][name])


@pytest.mark.parametrize(
    "interface",
    ["packed", "graph", pytest.param("packed_in_pool", marks=pytest.mark.soak_only)],
)
def test_own_interfaces_are_clean_under_sanitizers(interface: str) -> None:
    """No run reads or writes beside the state that it is given."""
    module = microtir.frontend.from_tflite(random_model(3, "int8"))
    assert module.graph is not None
    steps = steps_of(module.graph, 2, 4)
    model = host.load(microtir.build(module, OWN[interface]), sanitize=True)
    wanted = execute_steps(module.graph, steps)
    for got, outputs in zip(model.run_sequence(steps), wanted, strict=True):
        for name, array in outputs.items():
            np.testing.assert_array_equal(got[name], array)


def test_a_system_library_has_it_among_the_arguments(tmp_path: Path) -> None:
    """By its packed function the state is a tensor of bytes; a wrong one is refused."""
    module = microtir.frontend.from_tflite(running_sum(FIRST))
    artifact = microtir.build(module, OWN["system_lib"])
    (tmp_path / "crt").mkdir()
    runtime = make_runtime(tmp_path / "crt")
    assert not compiled(artifact, tmp_path / "out", runtime)
    library = ctypes.CDLL(str(tmp_path / "out" / PROGRAM))
    facts, memory = artifact.metadata.state, artifact.metadata.memory
    assert facts is not None and memory is not None
    state = aligned(facts.size, facts.alignment, 0xA5)
    (pool,) = memory.pools
    x, y = np.ones((1, 2), np.float32), np.zeros((1, 2), np.float32)
    arguments: list[Array] = [x, y, state, aligned(pool.size, pool.alignment, 0xA5)]
    assert run_packed(library.model_run_packed, arguments) == -8
    assert library.model_state_init(ctypes.c_void_p(state.ctypes.data)) == 0
    for number in range(3):
        assert run_packed(library.model_run_packed, arguments) == 0
        np.testing.assert_array_equal(y, 2 * (FIRST + number))
    del arguments[2]
    assert run_packed(library.model_run_packed, arguments) < -100


def application(how: str, compiler: str, folder: Path) -> list[int]:
    """Return what an application of microTVM prints with the model that keeps a sum."""
    module = microtir.frontend.from_tflite(running_sum(FIRST))
    artifact = microtir.build(module, MICROTVM[how])
    out = artifact.export(folder / "out")
    units = [file.path for file in artifact.sources if file.path.endswith(".c")]
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", *INCLUDES, f"-I{APPS}", f"-D{how}"]
    flags += SANITIZERS if compiler == "gcc" else ()  # clang's libraries are another package
    command = [compiler, *flags, str(APPS / "stateful.c"), *units, "-o", "app", "-lm"]
    assert not compiler_output(command, out)
    return printed(out)


def printed(folder: Path) -> list[int]:
    """Run an application and read the numbers that it prints."""
    done = subprocess.run(["./app"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return [int(line) for line in done.stdout.split()]


def numbers(runs: int) -> list[int]:
    """Return what it has to print in some runs after it has forgotten everything."""
    module = microtir.frontend.from_tflite(running_sum(FIRST))
    assert module.graph is not None
    steps: list[Step] = [{"x": np.array([[n, 3 - n]], np.float32)} for n in range(runs)]
    outputs = execute_steps(module.graph, steps)
    return [int(value) for run in outputs for value in run["out"].ravel()]


@pytest.mark.parametrize("how", MICROTVM)
@pytest.mark.parametrize("compiler", COMPILERS)
def test_applications_of_microtvm_have_an_instance(how: str, compiler: str, tmp_path: Path) -> None:
    """It begins with their first run, goes on, and forgets by a function that microTVM lacked."""
    assert application(how, compiler, tmp_path) == [*numbers(50), *numbers(4)]


@pytest.mark.parametrize("compiler", C_ONLY)
@pytest.mark.parametrize("interface", ["PACKED", "GRAPH", "STRUCTS"])
def test_no_warning(interface: str, compiler: str, tmp_path: Path) -> None:
    """Every generated file passes the project's flags on every compiler."""
    module = microtir.frontend.from_tflite(random_model(5, "mixed"))
    microtir.build(module, MICROTVM[interface]).export(tmp_path / "out")
    for path in (tmp_path / "out" / "runtime_crt" / "src").glob("*.c"):
        if not path.name.startswith("tvm"):
            path.unlink()  # tests/crt compiles them
    assert not strict_problems(tmp_path / "out", compiler, "c99")


def test_nothing_is_static_unless_asked() -> None:
    """Only the interface of microTVM has an instance, and a graph executor's is the executor's."""
    module = microtir.frontend.from_tflite(running_sum(FIRST))
    for name, config in (OWN | MICROTVM).items():
        texts = [file.text for file in microtir.build(module, config).sources]
        has_instance = any(re.search(r"static struct \w+_state instance;", text) for text in texts)
        assert has_instance == (name in ("STRUCTS", "POOLS", "PACKED", "AOT")), name


def test_archives_name_the_state(tmp_path: Path) -> None:
    """Unpacked, an archive has the sources of the instance and the size of what it keeps."""
    module = microtir.frontend.from_tflite(running_sum(FIRST))
    artifact = microtir.build(module, MICROTVM["STRUCTS"])
    path = microtir.export_model_library_format(artifact, tmp_path / "kept.tar")
    root = tmp_path / "unpacked"
    unpack(path, root)
    metadata = json.loads((root / "metadata.json").read_text())
    (main,) = metadata["modules"]["default"]["memory"]["functions"]["main"]
    assert main["state_size_bytes"] == 12
    assert main["state"] == {"sum": {"size": 8, "dtype": "float32", "shape": [1, 2]}}
    units = sorted(str(p.relative_to(root)) for p in root.glob("codegen/host/src/*.c"))
    flags = ["-std=c99", *STRICT, "-Icodegen/host/include", "-Iruntime/include", "-DSTRUCTS"]
    command = ["gcc", *flags, str(APPS / "stateful.c"), *units, "-o", "app"]
    assert not compiler_output(command, root)
    assert printed(root) == [*numbers(50), *numbers(4)]
    (found,) = microtir.import_model_library_format(path)
    assert found.metadata == artifact.metadata
