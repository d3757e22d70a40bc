"""Headers suit any C and C++ that an application is written in; sources are C99 and later."""

from __future__ import annotations

from pathlib import Path

import pytest

import microtir
from microtir import CompilationConfig, Executor, Runtime
from tests.support.c_compilers import INCLUDES, compiler_output
from tests.support.small_models import module_of, quantised_graph

BASE = CompilationConfig(targets="c", module_name="net")
CONFIGS = {
    "c": BASE,
    "packed": BASE.with_(
        executor=Executor("aot", {"interface-api": "packed"}),
        runtime=Runtime("crt", {"system-lib": True}),
    ),
    "microtvm": BASE.with_(executor="debug", compatibility="microtvm"),
}
FLAGS = ("-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only")
HEADERS = [
    *(("gcc", standard) for standard in ("gnu89", "c99", "c11", "gnu11", "c17")),
    *(("g++", standard) for standard in ("c++11", "c++14", "c++17", "c++20")),
]
STATEMENTS = """
static NET_WORKSPACE(workspace);
static int8_t image[NET_IMAGE_ELEMENTS], scores[NET_SCORES_ELEMENTS];
int application(void);
int application(void)
{
    struct net_inputs inputs;
    struct net_outputs outputs;
    inputs.image = image;
    outputs.scores = scores;
    return (int)net_run(&inputs, &outputs, workspace);
}
"""


@pytest.mark.tools
@pytest.mark.parametrize("name", CONFIGS)
def test_headers_are_of_every_standard(name: str, tmp_path: Path) -> None:
    """All that are generated, and those of the runtime that they name, without a warning."""
    artifact = microtir.build(module_of(quantised_graph()), CONFIGS[name])
    folder = artifact.export(tmp_path / "out")
    headers = [file.path for file in artifact.sources if file.path.endswith(".h")]
    own = [header for header in headers if "/" not in header]
    assert own
    text = "".join(f'#include "{header}"\n' for header in own)
    text += STATEMENTS if name == "c" else "extern int application;\n"
    for compiler, standard in HEADERS:
        unit = f"app_{standard}.{'c' if compiler == 'gcc' else 'cpp'}"
        (folder / unit).write_text(text)
        command = [compiler, f"-std={standard}", *FLAGS, *INCLUDES, unit]
        assert not compiler_output(command, folder), standard


@pytest.mark.tools
@pytest.mark.parametrize("standard", ["c99", "gnu99", "c11", "c17", "gnu17"])
def test_sources_are_c99_and_later(standard: str, tmp_path: Path) -> None:
    """Model, weights and runtime, without a warning."""
    artifact = microtir.build(module_of(quantised_graph()), CONFIGS["microtvm"])
    folder = artifact.export(tmp_path / "out")
    for file in artifact.sources:
        if file.path.endswith(".c"):
            command = ["gcc", f"-std={standard}", *FLAGS, *INCLUDES, file.path]
            assert not compiler_output(command, folder), file.path
