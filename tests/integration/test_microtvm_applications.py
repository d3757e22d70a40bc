"""Applications as people wrote them for microTVM, in C and in C++: they compile, link and run.

What they include, define and call follows microTVM's documentation and demos; the model is none of
those that the interface was developed with. Every warning that applications usually ask for is an
error.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import microtir
from microtir import CompilationConfig, Executor, Runtime
from microtir.artifact import Artifact
from tests.support.c_compilers import INCLUDES, compiler_output
from tests.support.small_models import module_of, reference_outputs, tiny_graph, two_ports_graph

APPS = Path(__file__).with_name("microtvm_apps")
BASE = CompilationConfig(targets="c", compatibility="microtvm")
LANGUAGES = {
    "gcc": ("-std=c99", "c"),
    "g++": ("-std=c++17", "c++"),
    "clang": ("-std=c99", "c"),
    "clang++": ("-std=c++17", "c++"),
}
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Werror", *INCLUDES)

# Application, configuration, macros.
CASES: dict[str, tuple[str, CompilationConfig, tuple[str, ...]]] = {
    "camera": (
        "camera.c",
        BASE.with_(
            workspace_pools=[
                {"pool_name": "dtcm", "pool_info_properties": {"size_hint_bytes": 16}},
                "sram",
            ]
        ),
        (),
    ),
    "stack_hooks": (
        "stack_hooks.c",
        BASE.with_(executor=Executor("aot", {"interface-api": "packed"})),
        (),
    ),
    "bundle": ("bundle.c", BASE.with_(executor="graph"), ()),
    "bundle_with_weights": (
        "bundle.c",
        BASE.with_(executor=Executor("graph", {"link-params": True})),
        (),
    ),
    "bundle_in_place": ("bundle.c", BASE.with_(executor="graph"), ()),
    "shared_params": ("shared_params.c", BASE.with_(executor="graph"), ()),
    "graph_fields": ("graph_fields.c", BASE.with_(executor="graph"), ()),
    "graph_fields_debug": (
        "graph_fields.c",
        BASE.with_(executor=Executor("debug", {"link-params": True})),
        (),
    ),
    "by_name_aot": ("by_name.c", BASE.with_(runtime=Runtime("crt", {"system-lib": True})), ()),
    "by_name_graph": (
        "by_name.c",
        BASE.with_(executor=Executor("graph", {"link-params": True})),
        ("-DGRAPH",),
    ),
}


def expected() -> list[int]:
    """Return the scores, then the features, of what the applications fill the inputs with."""
    steps = np.arange(6).reshape(1, 6)
    inputs = {
        "serving_default_left:0": (13 * steps).astype(np.int8),
        "serving_default_right:0": (100 - 17 * steps).astype(np.int8),
    }
    found = reference_outputs(two_ports_graph(), inputs)
    names = ("StatefulPartitionedCall:0", "StatefulPartitionedCall:1")
    return [int(value) for name in names for value in found[name].ravel()]


def objects(artifact: Artifact, folder: Path) -> list[str]:
    """Return the generated C, compiled as C99: applications in C++ link it, too."""
    units = [file.path for file in artifact.sources if file.path.endswith(".c")]
    command = ["gcc", "-std=c99", *WARNINGS, "-fsanitize=address,undefined", "-c", *units]
    assert not compiler_output(command, folder)
    return [Path(unit).with_suffix(".o").name for unit in units]


def write_headers(
    artifact: Artifact, case: str, folder: Path, *, is_in_place: bool = False
) -> None:
    """Files of an archive as arrays, of weights in one of its forms, and names of an executor."""
    forms = [file for file in artifact.data if is_in_place != file.path.startswith("tvmgen_")]
    write_blobs(forms[0].content if forms else b"", case, folder)


def write_blobs(content: bytes, case: str, folder: Path) -> None:
    """Write a file of weights as an array, and the names of an executor."""
    rows = ", ".join(map(str, content)) or "0"
    (folder / "blobs.h").write_text(
        'static const char build_graph_c_json[] = "{}";\n'
        f"static const unsigned char build_params_c_bin[] = {{{rows}}};\n"
        f"static const unsigned int build_params_c_bin_len = {len(content)};\n"
    )
    kind = "Graph" if "graph" in case else "Aot"
    (folder / "names.h").write_text(
        f"#include <tvm/runtime/crt/{kind.lower()}_executor_module.h>\n"
        f"#define REGISTER TVM{kind}ExecutorModule_Register\n"
        f'#define CREATE "tvm.{kind.lower()}_executor.create"\n'
    )


def executable(source: str, compiler: str, linked: list[str], folder: Path, *macros: str) -> str:
    """Compile and link an application without a warning, under sanitizers, where they are."""
    standard, language = LANGUAGES[compiler]
    flags = [compiler, standard, *WARNINGS, *macros, f"-I{APPS}", "-x", language]
    flags += ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    command = [*flags, str(APPS / source), "-x", "none", *linked, "-o", "app", "-lm"]
    assert not compiler_output(command, folder)
    return "./app"


def run(program: str, folder: Path) -> str:
    """Return what a program prints that succeeds."""
    done = subprocess.run(
        [program], cwd=folder, capture_output=True, text=True, check=False,
        env={"ASAN_OPTIONS": "detect_leaks=0"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("case", CASES)
def test_application_runs(case: str, tmp_path: Path) -> None:
    """In both languages, by every compiler: no warning, and the outputs of the reference."""
    source, config, macros = CASES[case]
    artifact = microtir.build(module_of(two_ports_graph()), config)
    folder = artifact.export(tmp_path / "generated")
    write_headers(artifact, case, folder, is_in_place="in_place" in case)
    linked = objects(artifact, folder)
    for compiler, (standard, language) in LANGUAGES.items():
        if shutil.which(compiler) is None:
            continue
        flags = [compiler, standard, *WARNINGS, *macros, f"-I{APPS}", "-x", language]
        if compiler not in ("gcc", "g++"):  # their sanitizers are another package
            assert not compiler_output([*flags, "-fsyntax-only", str(APPS / source)], folder)
            continue
        program = executable(source, compiler, linked, folder, *macros)
        assert [int(line) for line in run(program, folder).split()] == expected()


@pytest.mark.parametrize("compiler", ["gcc", "g++"])
def test_functions_of_the_runtime_do_what_they_say(compiler: str, tmp_path: Path) -> None:
    """Those that models do not need: streams, memory by shape, arrays of bytes, the registry."""
    config = BASE.with_(runtime=Runtime("crt", {"system-lib": True}))
    artifact = microtir.build(module_of(two_ports_graph()), config)
    folder = artifact.export(tmp_path / "generated")
    run(executable("runtime_functions.c", compiler, objects(artifact, folder), folder), folder)


def test_there_is_no_rpc_server_and_the_header_says_so(tmp_path: Path) -> None:
    """Who includes it is told what to use by the compiler, not by a linker."""
    microtir.build(module_of(two_ports_graph()), BASE).export(tmp_path / "out")
    (tmp_path / "out" / "app.c").write_text("#include <tvm/runtime/crt/microtvm_rpc_server.h>\n")
    said = compiler_output(["gcc", *INCLUDES, "-fsyntax-only", "app.c"], tmp_path / "out")
    assert "project_type=host_driven" in said


@pytest.mark.parametrize("compiler", ["gcc", "g++"])
def test_arrays_of_a_workspace_that_is_not_needed_are_valid(compiler: str, tmp_path: Path) -> None:
    """C has no arrays without elements: a workspace and a pool of nothing count as a byte."""
    model = tiny_graph()
    first = replace(model, nodes=model.nodes[:1], outputs=model.nodes[0].outputs)
    for name, config in {"one": BASE, "pool": BASE.with_(workspace_pools="sram")}.items():
        artifact = microtir.build(module_of(first), config)
        assert artifact.metadata.memory is not None
        assert artifact.metadata.memory.workspace_size == 0
        folder = artifact.export(tmp_path / name)
        pool = "static uint8_t sram[TVMGEN_DEFAULT_SRAM_WORKSPACE_POOL_SIZE];\n"
        (folder / "app.c").write_text(f"""
#include "tvmgen_default.h"
#include <tvm/runtime/crt/crt.h>
static uint8_t g_aot_memory[TVMGEN_DEFAULT_WORKSPACE_SIZE];
{pool if name == "pool" else "static uint8_t sram[1];"}
int main(void)
{{
    tvm_crt_error_t (*const initialize)(void) = &TVMInitializeRuntime;
    return initialize() != kTvmErrorNoError || g_aot_memory[0] != sram[0];
}}
""")
        language = "c++" if compiler == "g++" else "c"
        source = "runtime_crt/src/tvm_crt.c"
        command = [compiler, *WARNINGS, "-pedantic", "-x", language, "app.c", source, "-o", "app"]
        assert not compiler_output(command, folder)
        assert subprocess.run(["./app"], cwd=folder, check=False).returncode == 0


@pytest.mark.parametrize("compiler", ["gcc", "g++"])
def test_workspaces_are_a_type(compiler: str, tmp_path: Path) -> None:
    """An array, a member, a section: each is aligned, also where the size is no multiple."""
    config = CompilationConfig(targets="c", workspace_pools=[
        {"pool_name": "dtcm", "pool_info_properties": {"byte_alignment": 32}}])  # fmt: skip
    artifact = microtir.build(module_of(two_ports_graph()), config)
    folder = artifact.export(tmp_path / "out")
    (folder / "app.c").write_text("""
#include "default.h"
static struct default_workspace two[2] __attribute__((section(".bss.fast")));
struct application { uint8_t state; struct default_workspace memory; };
static struct application app;
int main(void)
{
    static int8_t in[2][6], out[4], features[6];
    struct default_inputs inputs;
    struct default_outputs outputs;
    inputs.serving_default_left_0 = in[0];
    inputs.serving_default_right_0 = in[1];
    outputs.StatefulPartitionedCall_0 = out;
    outputs.StatefulPartitionedCall_1 = features;
    return DEFAULT_WORKSPACE_SIZE % 32 == 0 || default_run(&inputs, &outputs, &two[1]) != DEFAULT_OK
        || default_run(&inputs, &outputs, &app.memory) != DEFAULT_OK;
}
""")
    language = "c++" if compiler == "g++" else "c"
    assert not compiler_output(["gcc", *WARNINGS, "-c", "default.c", "default_weights.c"], folder)
    command = [compiler, *WARNINGS, "-x", language, "app.c", "-x", "none", "default.o",
               "default_weights.o", "-o", "app", "-lm"]  # fmt: skip
    assert not compiler_output(command, folder)
    assert subprocess.run(["./app"], cwd=folder, check=False).returncode == 0
