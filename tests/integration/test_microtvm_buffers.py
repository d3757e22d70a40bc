"""What microTVM's functions did with an application's buffers, the drop-in functions do, too.

microTVM v0.8 to v0.18 kept the address of an input and read nothing else of its tensor, copied
parameters and texts, compared rank, bits and number of elements, and looked at the tensors again in
each run.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

import microtir
from microtir import CompilationConfig, Executor, Runtime
from microtir.artifact import Artifact
from microtir.graph.ir import Array, Graph
from microtir.operators.common.attributes import Padding2D
from microtir.operators.convolution.definition import Conv2D
from tests.support.c_compilers import INCLUDES, compiler_output
from tests.support.graphs import constant, graph, node, tensor
from tests.support.small_models import module_of, reference_outputs

APPS = Path(__file__).with_name("microtvm_apps")
SANITIZERS = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
BASE = CompilationConfig(targets="c", compatibility="microtvm")
SYSTEM_LIB = Runtime("crt", {"system-lib": True})
CONFIGS = {
    "graph": BASE.with_(executor="graph"),
    "graph_linked": BASE.with_(executor=Executor("graph", {"link-params": True})),
    "packed": BASE.with_(executor=Executor("aot", {"interface-api": "packed"}), runtime=SYSTEM_LIB),
    "unpacked": BASE.with_(runtime=SYSTEM_LIB),
}
INVALID = "kTvmErrorFunctionCallInvalidArg"


def smoothed() -> Graph:
    """Return a convolution of the input's shape that reads a row which comes later."""
    shape = (1, 4, 5, 1)
    x, y = tensor("image", shape), tensor("smoothed", shape)
    weights = np.array([[1, 0, 2], [0, 1, 0], [3, 0, -2]], np.float32).reshape(1, 3, 3, 1)
    convolution = Conv2D(padding=Padding2D(1, 1, 1, 1))
    return graph([node(convolution, (x, constant("weights", weights)), y)], [x], [y])


def after(image: Array) -> Array:
    """Return the output of the model."""
    [result] = reference_outputs(smoothed(), {"image": image}).values()
    return result


def filled(factor: int) -> Array:
    """As fill() of refilled.h."""
    return (np.arange(20) * factor % 17 - 5).astype(np.float32).reshape(1, 4, 5, 1)


def printed(name: str, artifact: Artifact, folder: Path, *flags: str) -> list[int]:
    """Return the numbers that an application prints, under sanitizers."""
    artifact.export(folder)
    content = artifact.data[0].content if artifact.data else bytes(32)
    if not artifact.data:
        content = 0xF7E58D4F05049CB7.to_bytes(8, "little") + bytes(24)
    rows = ", ".join(map(str, content))
    (folder / "blobs.h").write_text(f"static const unsigned char params_blob[] = {{{rows}}};\n")
    units = [file.path for file in artifact.sources if file.path.endswith(".c")]
    command = ["gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", *INCLUDES, f"-I{APPS}", "-I."]
    command += [*SANITIZERS, *flags, str(APPS / f"{name}.c"), *units, "-o", "app", "-lm"]
    assert not compiler_output(command, folder)
    done = subprocess.run(
        ["./app"], cwd=folder, capture_output=True, text=True, check=False,
        env={"ASAN_OPTIONS": "detect_leaks=0"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return [int(line) for line in done.stdout.split()]


@pytest.mark.parametrize("case", ["graph", "graph_linked"])
def test_the_graph_executor_reads_the_buffer_of_the_application(case: str, tmp_path: Path) -> None:
    """TVMGraphExecutor_SetInput copied, so that a buffer filled again gave the first answer.

    A tensor with lanes 0 was refused, and parameters were read after the application freed them.
    """
    first, second = after(filled(3)), after(filled(7))
    expected = [first, second, first, second]  # aligned, then at an odd address
    expected += [second, after(second)]  # by name, and its output as the next input
    expected += [second, after(second)]  # the same in memory of the application
    artifact = microtir.build(module_of(smoothed()), CONFIGS[case])
    found = printed("refilled_graph", artifact, tmp_path / "out", "-DSTRICT_CODE=0")
    assert found == [int(value) for array in expected for value in array.ravel()]


@pytest.mark.parametrize("case", ["packed", "unpacked"])
def test_packed_functions_read_what_microtvm_read(case: str, tmp_path: Path) -> None:
    """Tensors and arrays with lanes 0, strides and byte_offset unset were refused or misread."""
    artifact = microtir.build(module_of(smoothed()), CONFIGS[case])
    found = printed("refilled_packed", artifact, tmp_path / "out")
    expected = [after(filled(3)), after(filled(7))]
    assert found == [int(value) for array in expected for value in array.ravel()]


@pytest.mark.parametrize(
    ("change", "works"),
    [
        ("", True),
        ("in.dtype.lanes = 0;", False),
        ("in.dtype.code = kDLInt;", False),
        ("in.byte_offset = 4;", False),
        ("strides[2] = 2;", False),
        ("in.strides = NULL;", True),
        ("shape[1] = 5; shape[2] = 4;", False),
    ],
)
def test_strict_tensors_are_compared_whole(change: str, works: bool, tmp_path: Path) -> None:
    """TVM_CRT_STRICT_TENSORS refuses what microTVM never looked at."""
    artifact = microtir.build(module_of(smoothed()), CONFIGS["graph_linked"])
    artifact.export(tmp_path)
    (tmp_path / "app.c").write_text(f"""
#include <tvm/runtime/crt/graph_executor.h>
#include "memory.c"
int main(void)
{{
    static float image[20];
    int64_t shape[4] = {{1, 4, 5, 1}}, strides[4] = {{20, 5, 1, 1}};
    const DLDevice cpu = {{kDLCPU, 0}};
    DLTensor in = {{image, cpu, 4, {{kDLFloat, 32, 1}}, shape, strides, 0}};
    TVMGraphExecutor *executor = NULL;
    TVMModuleHandle module = NULL;
    if (TVMPlatformInitialize() != 0
        || TVMModCreateFromCModule(TVMSystemLibEntryPoint(), &module) != 0
        || TVMGraphExecutor_Create("{{}}", module, &cpu, &executor) != 0) {{
        return 1;
    }}
    {change}
    TVMGraphExecutor_SetInput(executor, "image", &in);
    return 0;
}}
""")
    units = [file.path for file in artifact.sources if file.path.endswith(".c")]
    command = ["gcc", "-std=c99", *INCLUDES, f"-I{APPS}", "-DTVM_CRT_STRICT_TENSORS=1", "app.c"]
    assert not compiler_output([*command, *units, "-o", "app", "-lm"], tmp_path)
    done = subprocess.run(["./app"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == ((0, "") if works else (9, "stopped: 0x803\n"))


def test_parameters_may_stay_where_they_are(tmp_path: Path) -> None:
    """With TVM_CRT_PARAMETERS_IN_PLACE a file in flash takes no RAM; microTVM copied it."""
    artifact = microtir.build(module_of(smoothed()), CONFIGS["graph"])
    artifact.export(tmp_path)
    rows = ", ".join(map(str, artifact.data[0].content))
    (tmp_path / "app.c").write_text(f"""
#include <tvm/runtime/crt/graph_executor.h>
#include "memory.c"
static const unsigned char file[] __attribute__((aligned(16))) = {{{rows}}};
int main(void)
{{
    const DLDevice cpu = {{kDLCPU, 0}};
    TVMGraphExecutor *executor = NULL;
    TVMModuleHandle module = NULL;
    if (TVMPlatformInitialize() != 0
        || TVMModCreateFromCModule(TVMSystemLibEntryPoint(), &module) != 0
        || TVMGraphExecutor_Create("{{}}", module, &cpu, &executor) != 0
        || TVMGraphExecutor_LoadParams(executor, (const char *)file, sizeof file) != 0) {{
        return 1;
    }}
    printf("%d\\n", (int)manager->vleak_size);
    return TVMGraphExecutor_Release(&executor) != 0 || manager->vleak_size != 0;
}}
""")
    units = [file.path for file in artifact.sources if file.path.endswith(".c")]
    for flag, blocks in (("0", "2\n"), ("1", "1\n")):
        macro = f"-DTVM_CRT_PARAMETERS_IN_PLACE={flag}"
        command = ["gcc", "-std=c99", *INCLUDES, f"-I{APPS}", macro, "app.c", *units]
        assert not compiler_output([*command, "-o", "app", "-lm"], tmp_path)
        done = subprocess.run(["./app"], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, blocks)
