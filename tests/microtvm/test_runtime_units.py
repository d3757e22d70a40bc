"""The runtime in an archive for applications of microTVM: its names, and what builds make of it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

import microtir
from microtir import CompilationConfig, Executor, Runtime, export_model_library_format
from tests.integration.test_microtvm_applications import APPS, expected, write_blobs
from tests.support.c_compilers import STRICT, compiler_output
from tests.support.small_models import module_of, two_ports_graph

FOLDER = "runtime/src/runtime/crt"
# What build files of clients name.
NAMES = {
    "common": ["crt_backend_api", "crt_runtime_api", "func_registry", "ndarray", "packed_func"],
    "memory": ["page_allocator", "stack_allocator"],
    "aot_executor": ["aot_executor"],
    "aot_executor_module": ["aot_executor_module"],
    "graph_executor": ["graph_executor", "load_json"],
    "graph_executor_module": ["graph_executor_module"],
}
BASE = CompilationConfig(targets="c", module_name="net", compatibility="microtvm")
SYSTEM_LIB = Runtime("crt", {"system-lib": True})
PACKED = Executor("aot", {"interface-api": "packed"})
CONFIGS = {
    "c": BASE,
    "c_pools": BASE.with_(workspace_pools="sram"),
    "aot": BASE.with_(runtime=SYSTEM_LIB),
    "packed": BASE.with_(executor=PACKED),
    "packed_aot": BASE.with_(executor=PACKED, runtime=SYSTEM_LIB),
    "graph": BASE.with_(executor=Executor("graph", {"link-params": True})),
    "graph_params": BASE.with_(executor="graph"),
    "debug": BASE.with_(executor="debug"),
}
APP = """
#include <tvm/runtime/crt/crt.h>
#include <tvm/runtime/crt/page_allocator.h>
#include <tvm/runtime/crt/stack_allocator.h>
#include "tvmgen_net.h"
static uint8_t g_aot_memory[TVMGEN_NET_WORKSPACE_SIZE];
static uint8_t pages[4096];
int main(void)
{
    static int8_t left[6], right[6], scores[4], features[6];
    struct tvmgen_net_inputs inputs = {left, right};
    struct tvmgen_net_outputs outputs = {scores, features};
    tvm_workspace_t workspace;
    MemoryManagerInterface *manager;
    return TVMInitializeRuntime() != kTvmErrorNoError
        || StackMemoryManager_Init(&workspace, g_aot_memory, sizeof g_aot_memory) != 0
        || PageMemoryManagerCreate(&manager, pages, sizeof pages, 8) != 0
        || tvmgen_net_run(&inputs, &outputs) != 0;
}
"""


def unpacked(name: str, folder: Path) -> Path:
    """The files of an archive."""
    artifact = microtir.build(module_of(two_ports_graph()), CONFIGS[name])
    with tarfile.open(export_model_library_format(artifact, folder / "module.tar")) as tar:
        tar.extractall(folder / "mlf")
    return folder / "mlf"


@pytest.mark.tools
@pytest.mark.parametrize("name", CONFIGS)
def test_the_files_of_microtvm_are_there(name: str, tmp_path: Path) -> None:
    """All that build files name, no C file besides, and each compiles without a warning."""
    folder = unpacked(name, tmp_path)
    found = [path.relative_to(folder / FOLDER) for path in (folder / FOLDER).rglob("*.c")]
    wanted = [Path(f"{part}/{file}.c") for part, files in NAMES.items() for file in files]
    assert sorted(found) == sorted(wanted)
    assert not list((folder / "runtime" / "src").glob("*.c"))
    for path in found:
        command = ["gcc", "-std=c99", *STRICT, "-Iruntime/include", "-c", f"{FOLDER}/{path}"]
        assert not compiler_output([*command, "-o", "/dev/null"], folder), path


@pytest.mark.tools
@pytest.mark.parametrize(
    "units",
    [
        ("memory/stack_allocator", "memory/page_allocator", "common/crt_runtime_api"),
        tuple(f"{part}/*" for part in NAMES),
    ],
    ids=["named", "all"],
)
def test_an_application_links(units: tuple[str, ...], tmp_path: Path) -> None:
    """With the files that it names, or with all of them."""
    folder = unpacked("c", tmp_path)
    (folder / "app.c").write_text(APP)
    parts = [p for unit in units for p in (folder / FOLDER).glob(f"{unit}.c")]
    sources = [str(p) for p in (*parts, *(folder / "codegen" / "host" / "src").glob("*.c"))]
    includes = ["-Iruntime/include", "-Icodegen/host/include"]
    command = ["gcc", "-std=c99", *STRICT, *includes, "app.c", *sources, "-o", "app", "-lm"]
    assert not compiler_output(command, folder)
    assert subprocess.run(["./app"], cwd=folder, check=False).returncode == 0


RUNS = {
    "aot": ("by_name.c", ()),
    "packed_aot": ("by_name.c", ()),
    "graph": ("by_name.c", ("-DGRAPH",)),
    "graph_params": ("bundle.c", ()),
    "debug": ("graph_fields.c", ()),
    "packed": ("stack_hooks.c", ()),
}


@pytest.mark.tools
@pytest.mark.parametrize("name", RUNS)
def test_a_client_of_each_executor_links_with_all_files(name: str, tmp_path: Path) -> None:
    """With the include paths and folders of microTVM's archives, and with the archive's weights."""
    source, macros = RUNS[name]
    config = CONFIGS[name].with_(module_name="default")
    artifact = microtir.build(module_of(two_ports_graph()), config)
    with tarfile.open(export_model_library_format(artifact, tmp_path / "module.tar")) as tar:
        tar.extractall(tmp_path / "mlf")
    folder = tmp_path / "mlf"
    write_blobs((folder / "parameters" / "default.params").read_bytes(), name, folder)
    units = [str(path) for path in (folder / FOLDER).rglob("*.c")]
    units += [str(path) for path in (folder / "codegen" / "host" / "src").glob("*.c")]
    includes = ["-I.", f"-I{APPS}", "-Iruntime/include", "-Icodegen/host/include"]
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", *macros, *includes]
    command = ["gcc", *flags, str(APPS / source), *units, "-o", "app", "-lm"]
    assert not compiler_output(command, folder)
    done = subprocess.run(["./app"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [int(line) for line in done.stdout.split()] == expected()


# What microTVM's project server for Arduino deletes of the runtime, and looks for.
DELETED = (
    *("include/dmlc", "src/support", "src/runtime/minrpc", "src/runtime/crt/graph_executor"),
    *(f"src/runtime/crt/{name}" for name in ("microtvm_rpc_common", "microtvm_rpc_server", "tab")),
)
INCLUDE = re.compile(r'#include\s*[<"]([^>"]*)[>"]')


def as_arduino(mlf: Path, project: Path) -> None:
    """Lay a project out as that server did: C files alone, includes relative to their file."""
    runtime, model = project / "src" / "standalone_crt", project / "src" / "model"
    for part in ("include", "src"):
        shutil.copytree(mlf / "runtime" / part, runtime / part)
    for part in DELETED:
        shutil.rmtree(runtime / part)
    model.mkdir()
    for path in (mlf / "codegen" / "host" / "src").rglob("*.c"):
        shutil.copy(path, model)
    for path in list(project.rglob("*.inc")):
        path.rename(path.with_suffix(".h"))
    for path in project.rglob("*.[ch]"):
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(_relative(line, path, runtime / "include") for line in lines))


def _relative(line: str, path: Path, includes: Path) -> str:
    found = INCLUDE.search(line)
    if found is None:
        return line
    name = re.sub(r"\.inc$", ".h", found[1])
    if not (path.parent / name).exists() and (includes / name).exists():
        name = os.path.relpath(includes / name, path.parent)
    return f'#include "{name}"\n'


@pytest.mark.tools
@pytest.mark.parametrize("name", ["c", "packed", "aot"])
def test_a_project_server_that_copies_no_headers_compiles(name: str, tmp_path: Path) -> None:
    """As microTVM's did for Arduino: every C file by itself, without any include path."""
    as_arduino(unpacked(name, tmp_path), tmp_path / "project")
    found = sorted((tmp_path / "project").rglob("*.c"))
    assert [path for path in found if path.parent.name == "model"]
    for path in found:
        command = ["gcc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-c", path.name]
        assert not compiler_output([*command, "-o", "/dev/null"], path.parent), path


def test_without_the_interface_nothing_moves(tmp_path: Path) -> None:
    """The runtime of other programs lies as it does among exported sources."""
    config = CompilationConfig(targets="c", module_name="net", executor="graph")
    artifact = microtir.build(module_of(two_ports_graph()), config)
    with tarfile.open(export_model_library_format(artifact, tmp_path / "module.tar")) as tar:
        names = tar.getnames()
    assert "./runtime/src/graph.c" in names and not [n for n in names if n.endswith(".inc")]
