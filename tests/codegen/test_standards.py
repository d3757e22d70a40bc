"""Headers suit any C and C++ that an application is written in; sources are C99 to C23."""

from __future__ import annotations

from pathlib import Path

import pytest

import microtir
from microtir import CompilationConfig, Executor, Runtime
from tests.support.c_compilers import C_COMPILERS, CPP_COMPILERS, INCLUDES, compiler_output
from tests.support.small_models import module_of, quantised_graph
from tests.support.stateful import random_model

BASE = CompilationConfig(targets="c", module_name="net")
CONFIGS = {
    "c": BASE,
    "packed": BASE.with_(
        executor=Executor("aot", {"interface-api": "packed"}),
        runtime=Runtime("crt", {"system-lib": True}),
    ),
    "microtvm": BASE.with_(executor="debug", compatibility="microtvm"),
    "more": BASE.with_(
        executor=Executor("aot", {"guard-inputs": True, "steps": True}),
        constant_pools=["flash"],
        workspace_pools=["fast", "slow"],
    ),
    "rows": BASE.with_(
        executor=Executor("aot", {"row-fed-inputs": True, "row-drained-outputs": True})
    ),
}
FLAGS = ("-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only")
C = ("c89", "gnu89", "c99", "c11", "gnu11", "c17", "c2x")
CPP = ("c++98", "c++11", "c++14", "c++17", "c++20", "c++2b")
HEADERS = [
    *(("gcc", standard) for standard in C),
    *(("g++", standard) for standard in CPP),
    *(
        (compiler, standard)
        for compiler in ("clang", "arm-none-eabi-gcc", "avr-gcc")  # Debian's for AVR is GCC 5
        if compiler in C_COMPILERS
        for standard in ("c89", "gnu89", "c11")
    ),
    *((name, standard) for name in CPP_COMPILERS if name != "g++" for standard in CPP),
]
SOURCES = ("c99", "gnu99", "c11", "c17", "gnu17", "c2x")
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
        unit = f"app_{standard}.{'cpp' if '++' in compiler else 'c'}"
        (folder / unit).write_text(text)
        command = [compiler, f"-std={standard}", *FLAGS, *INCLUDES, unit]
        assert not compiler_output(command, folder), (compiler, standard)


@pytest.mark.tools
def test_headers_of_states_are_of_every_standard(tmp_path: Path) -> None:
    """The struct of a state, and the functions that begin, save and restore it, too."""
    module = microtir.frontend.from_tflite(random_model(5, "mixed"))
    folder = microtir.build(module, BASE).export(tmp_path / "out")
    text = '#include "net.h"\nextern struct net_state kept;\n'
    for compiler, standard in HEADERS:
        unit = f"app_{standard}.{'cpp' if '++' in compiler else 'c'}"
        (folder / unit).write_text(text)
        command = [compiler, f"-std={standard}", *FLAGS, *INCLUDES, unit]
        assert not compiler_output(command, folder), (compiler, standard)


@pytest.mark.tools
def test_a_compiler_that_nobody_knows(tmp_path: Path) -> None:
    """An application says how it aligns variables, without a change of the header; tcc is known."""
    folder = microtir.build(module_of(quantised_graph()), BASE).export(tmp_path / "out")
    command = ["gcc", "-std=c99", "-U__GNUC__", *FLAGS[:-2], FLAGS[-1], "net.c", "net_weights.c"]
    assert '"define NET_ALIGNED(bytes) as this' in compiler_output(command, folder)
    known = "-DNET_ALIGNED(bytes)=__attribute__((aligned(bytes)))"
    assert not compiler_output([*command, known], folder)
    assert not compiler_output([*command, "-D__TINYC__"], folder)


@pytest.mark.tools
def test_sources_are_no_c89(tmp_path: Path) -> None:
    """The page says why: integers of 64 bits, and declarations where C89 has none."""
    artifact = microtir.build(module_of(quantised_graph()), BASE)
    folder = artifact.export(tmp_path / "out")
    command = ["gcc", "-std=c89", *FLAGS, *INCLUDES, "net.c"]
    said = compiler_output(command, folder)
    assert "loop initial declarations are only allowed in C99" in said
    (folder / "wide.c").write_text("extern long long wide;\n")
    said = compiler_output(["gcc", "-std=c89", *FLAGS, "wide.c"], folder)
    assert "ISO C90 does not support" in said
    assert "int64_t" in artifact.source("net.c")


@pytest.mark.tools
@pytest.mark.parametrize("name", ["microtvm", "more", "rows"])
@pytest.mark.parametrize("standard", SOURCES)
def test_sources_are_c99_and_later(standard: str, name: str, tmp_path: Path) -> None:
    """Model, weights and runtime, without a warning."""
    artifact = microtir.build(module_of(quantised_graph()), CONFIGS[name])
    folder = artifact.export(tmp_path / "out")
    for file in artifact.sources:
        if file.path.endswith(".c"):
            command = ["gcc", f"-std={standard}", *FLAGS, *INCLUDES, file.path]
            assert not compiler_output(command, folder), file.path
