"""Tensors of an application that are not aligned, and the statuses that a header defines."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import microtir
from microtir import CompilationConfig, Executor, Runtime, te
from microtir.artifact import Artifact
from microtir.config import WorkspacePoolInfo
from microtir.dtype import DType
from microtir.operators.activations.definition import Relu
from microtir.operators.conversion.definition import Quantize
from tests.support.c_compilers import (
    C_COMPILERS,
    INCLUDES,
    STRICT,
    compiler_output,
    strict_problems,
)
from tests.support.graphs import graph, node, quant, tensor
from tests.support.sanitizers import FLAGS
from tests.support.small_models import module_of, quantised_graph, tiny_graph

WIDE = (DType.UINT16, DType.FLOAT32, DType.INT64)
INSIDE = WorkspacePoolInfo("own", (), {"is_internal": True})
INTERFACES: Mapping[str, Mapping[str, Any]] = {
    "structs": {},
    "steps": {"executor": Executor("aot", {"steps": True})},
    "graph": {"executor": Executor("graph", {"link-params": True})},
    "debug": {"executor": Executor("debug", {"link-params": True})},
    "internal": {"workspace_pools": (INSIDE,)},
    "constants_outside": {"executor": Executor("aot", {"link-params": False})},
    "workspace_io": {"pass_config": {"memory.use_workspace_io": True}},
    "rows": {"executor": Executor("aot", {"row-fed-inputs": True})},
    "system_library": {"runtime": Runtime("crt", {"system-lib": True})},
    "microtvm": {"compatibility": "microtvm"},
}  # fmt: skip


def float_artifact(**changes: Any) -> Artifact:
    """A model with a float input, and outputs of one byte and of four."""
    x, y = tensor("x", (1, 7)), tensor("y", (1, 7))
    z = tensor("z", (1, 7), DType.INT8, quant(0.1))
    model = graph([node(Relu(), (x,), y), node(Quantize(), (y,), z)], [x], [z, y])
    return microtir.build(module_of(model), CompilationConfig(targets="c", **changes))


def copy_artifact(dtype: DType) -> Artifact:
    """A function that copies four elements of a type."""
    x = te.placeholder((4,), dtype, "x")
    y = te.compute((4,), lambda i: x[i], "y")
    return microtir.build(microtir.lower(te.create_schedule(y), [x, y], name="copy"))


def status_of(folder: Path, artifact: Artifact, text: str) -> str:
    """Compile an application strictly and with sanitizers, and return what it prints."""
    (folder / "main.c").write_text(text, encoding="utf-8")
    units = ["main.c", *(f.path for f in artifact.sources if f.path.endswith(".c"))]
    command = ["gcc", "-std=c99", *STRICT, *FLAGS, *INCLUDES, *units, "-lm", "-o", "program"]
    assert compiler_output(command, folder) == ""
    done = subprocess.run(
        [str(folder / "program")], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


MODEL = """
#include <stdio.h>
#include <stddef.h>
#include "default.h"
static union { double place; uint8_t bytes[64]; } given, made, small;
static DEFAULT_WORKSPACE(memory);
int main(void)
{
    for (int at = 0; at < 64; at++) {
        const struct default_inputs in = {(const float *)(const void *)(given.bytes + at % 8)};
        const struct default_outputs out = {
            (int8_t *)small.bytes + at % 7, (float *)(void *)(made.bytes + at / 8)};
        const int expected = at % 8 % 4 == 0 && at / 8 % 4 == 0
                ? DEFAULT_OK : DEFAULT_ERROR_TENSOR_ALIGNMENT;
        NEXT
        if (default_RUN != expected) {
            printf("%d ", at);
        }
    }
    return 0;
}
"""


@pytest.mark.parametrize("name", ["structs", "steps", "graph", "debug", "system_library"])
def test_a_misaligned_tensor_is_refused(name: str, tmp_path: Path) -> None:
    """A float has to lie at a multiple of four, and a byte anywhere, before anything is read."""
    artifact = float_artifact(**INTERFACES[name])
    run, next_step = "run(&in, &out, memory)", ""
    if name == "steps":
        run, next_step = "step(&in, &out, memory, &next)", "int32_t next = 0;"
    text = MODEL.replace("RUN", run).replace("NEXT", next_step)
    assert status_of(artifact.export(tmp_path / "out"), artifact, text) == ""


DROP_IN = """
#include <stdio.h>
#include <stddef.h>
#include "tvmgen_default.h"
static union { double place; uint8_t bytes[64]; } given, made, small;
int main(void)
{
    struct tvmgen_default_inputs in = {given.bytes + 1};
    struct tvmgen_default_outputs out = {small.bytes, made.bytes};
    const int refused = tvmgen_default_run(&in, &out);
    in.x = given.bytes + 4;
    out.y = made.bytes + 2;
    printf("%d %d ", refused, (int)tvmgen_default_run(&in, &out));
    out.y = made.bytes + 8;
    out.z = small.bytes + 3;
    printf("%d", (int)tvmgen_default_run(&in, &out));
    return 0;
}
"""


def test_an_application_of_microtvm_is_refused_too(tmp_path: Path) -> None:
    """Its pointers have no type, so that no compiler warns."""
    artifact = float_artifact(compatibility="microtvm")
    folder = artifact.export(tmp_path / "out")
    (folder / "main.c").write_text(DROP_IN, encoding="utf-8")
    units = ["main.c", *(f.path for f in artifact.sources if f.path.endswith(".c"))]
    includes = [*INCLUDES, "-Iruntime/include"]
    command = ["gcc", "-std=c99", *FLAGS, *includes, *units, "-lm", "-o", "program"]
    assert compiler_output(command, folder) == ""
    done = subprocess.run(
        [str(folder / "program")], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "-4 -4 0"


@pytest.mark.parametrize("dtype", WIDE, ids=lambda dtype: dtype.value)
def test_functions_of_a_user_refuse_too(dtype: DType, tmp_path: Path) -> None:
    """By the size of an element, as input and as output."""
    artifact = copy_artifact(dtype)
    name, macro = artifact.metadata.functions[0].function, "DEFAULT"
    c_type = {"float32": "float", "float64": "double"}.get(dtype.value, f"{dtype.value}_t")
    text = (
        '#include <stdio.h>\n#include <stddef.h>\n#include "default.h"\n'
        f"struct known {{ char first; {c_type} second; }};\n"
        "static union { double place; uint8_t bytes[64]; } given, made;\n"
        "int main(void)\n{\n"
        "    const int own = (int)offsetof(struct known, second);\n"
        "    for (int at = 0; at < 64; at++) {\n"
        "        const int expected = at % 8 % own == 0 && at / 8 % own == 0\n"
        f"                ? {macro}_OK : {macro}_ERROR_TENSOR_ALIGNMENT;\n"
        f"        const {c_type} *const x = (const void *)(given.bytes + at % 8);\n"
        f"        {c_type} *const y = ({c_type} *)(void *)(made.bytes + at / 8);\n"
        f'        if ({name}(x, y) != expected) {{\n            printf("%d ", at);\n        }}\n'
        "    }\n    return 0;\n}\n"
    )
    assert status_of(artifact.export(tmp_path / "out"), artifact, text) == ""


@pytest.mark.parametrize("compiler", C_COMPILERS)
def test_the_check_warns_nowhere(compiler: str, tmp_path: Path) -> None:
    """Neither where it can never be true, as on AVR."""
    assert strict_problems(float_artifact().export(tmp_path / "out"), compiler, "c99") == ""


def test_bytes_cost_no_check() -> None:
    """A model of bytes has neither check nor status."""
    artifact = microtir.build(module_of(quantised_graph()), CompilationConfig(targets="c"))
    assert "misaligned" not in artifact.source("default.c")
    assert "TENSOR_ALIGNMENT" not in artifact.source("default.h")


@pytest.mark.parametrize("name", INTERFACES)
@pytest.mark.parametrize("kind", ["bytes", "floats"])
def test_every_status_that_a_header_defines_is_returned(name: str, kind: str) -> None:
    """What no function returns is not defined, and has no text."""
    changes = INTERFACES[name]
    if kind == "floats":
        artifact = float_artifact(**changes)
    else:
        model = quantised_graph() if name == "rows" else tiny_graph()
        config = CompilationConfig(targets="c", **changes)
        artifact = microtir.build(module_of(model), config)
    source = artifact.source("default.c")
    defined = set(re.findall(r"#define DEFAULT_(ERROR_\w+)", artifact.source("default.h")))
    returned = set(re.findall(r"return DEFAULT_(ERROR_\w+);", source))
    told = set(re.findall(r"case DEFAULT_(ERROR_\w+):", source))
    assert defined == returned == told
