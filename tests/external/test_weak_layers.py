"""Layers that an application replaces when it is linked, as the page says."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import microtir
from microtir import CompilationConfig
from tests.support.c_compilers import HOST_COMPILERS, compiler_output
from tests.support.small_models import module_of, tiny_graph

APPLICATION = """
#include <stdio.h>
#include "default.h"
static DEFAULT_WORKSPACE(workspace);
int main(void)
{
    static const int8_t x[5] = {1, 2, 3, 4, 5};
    int8_t y[3];
    const struct default_inputs inputs = {x};
    const struct default_outputs outputs = {y};
    const int32_t status = default_run(&inputs, &outputs, workspace);
    printf("%d %d %d\\n", y[0], y[1], y[2]);
    return (int)status;
}
"""


def printed(compiler: str, folder: Path, *more: str) -> str:
    """What the application prints."""
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-O2", "-I."]
    command = [
        compiler,
        *flags,
        *more,
        "app.c",
        "default.c",
        "default_weights.c",
        "-o",
        "app",
        "-lm",
    ]
    assert not compiler_output(command, folder)
    done = subprocess.run(["./app"], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.parametrize("compiler", HOST_COMPILERS)
def test_a_function_of_the_application_takes_the_place_of_a_layer(
    compiler: str, tmp_path: Path
) -> None:
    """Weak layers compute the same; one that is replaced is not called, and the others are."""
    config = CompilationConfig(targets="c")
    artifact = microtir.build(module_of(tiny_graph()), config)
    folder = artifact.export(tmp_path / "out")
    (folder / "app.c").write_text(APPLICATION)
    last = artifact.metadata.layers[-1].function
    head = re.search(rf"^DEFAULT_LAYER (void {last}\([^)]*\))", artifact.source("default.c"), re.M)
    assert head is not None
    names = re.findall(r"(\w+)[,)]", head[1])
    unused = "".join(f"    (void){name};\n" for name in names if name != "y")
    body = f"    for (int i = 0; i < 3; i++) {{\n        y[i] = (int8_t)(40 + i);\n    }}\n{unused}"
    (folder / "own.c").write_text(f"#include <stdint.h>\n{head[1]};\n{head[1]}\n{{\n{body}}}\n")
    plain = printed(compiler, folder)
    weak = "-DDEFAULT_LAYER=__attribute__((weak))"
    assert printed(compiler, folder, weak) == plain != "40 41 42\n"
    assert printed(compiler, folder, weak, "own.c") == "40 41 42\n"
