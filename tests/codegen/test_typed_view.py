"""What compilers check of a header: sizes of types, and in C++ the arrays that tensors lie in."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

import microtir
from microtir import CompilationConfig
from tests.support.c_compilers import CPP_COMPILERS, INCLUDES, STRICT_CPP, compiler_output
from tests.support.command import FLOAT
from tests.support.small_models import module_of, reference_outputs, two_ports_graph

pytestmark = pytest.mark.tools

CONFIG = CompilationConfig(targets="c", module_name="net")
APP = """
#include <cstdint>
#include <cstdio>
#include "net.h"
static net_workspace memory;
int main()
{
    std::int8_t left[6], right[6], scores[4], features[6];
    for (int i = 0; i < 6; i++) {
        left[i] = static_cast<std::int8_t>(13 * i);
        right[i] = static_cast<std::int8_t>(100 - 17 * i);
    }
    const net_inputs given = net_view::inputs(left, right);
    const net_outputs made = net_view::outputs(scores, features);
    if (net_run(&given, &made, &memory) != NET_OK) {
        return 1;
    }
    for (int score : scores) {
        std::printf("%d\\n", score);
    }
    return 0;
}
"""
WRONG = {
    "length": ("left[6]", "left[5]"),
    "type": ("std::int8_t left[6], right[6]", "std::uint8_t left[6]; std::int8_t right[6]"),
    "order": ("outputs(scores, features)", "outputs(features, scores)"),
    "pointer": ("inputs(left, right)", "inputs(left, &right[0])"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Generated files, and objects of them."""
    artifact = microtir.build(module_of(two_ports_graph()), CONFIG)
    folder = artifact.export(tmp_path_factory.mktemp("view") / "out")
    assert not compiler_output(["gcc", "-std=c99", "-c", "net.c", "net_weights.c"], folder)
    return folder


def test_arrays_of_the_right_type_and_length_run(folder: Path) -> None:
    """In C++, without a warning: the outputs of the reference."""
    (folder / "app.cpp").write_text(APP)
    for compiler in CPP_COMPILERS:
        command = [compiler, "-std=c++11", *STRICT_CPP, *INCLUDES, "-fsyntax-only", "app.cpp"]
        assert not compiler_output(command, folder)
    command = ["g++", "-std=c++11", *STRICT_CPP, *INCLUDES, "app.cpp", "net.o", "net_weights.o"]
    assert not compiler_output([*command, "-o", "app", "-lm"], folder)
    done = subprocess.run(["./app"], cwd=folder, capture_output=True, text=True, check=True)
    steps = np.arange(6).reshape(1, 6)
    found = reference_outputs(
        two_ports_graph(),
        {
            "serving_default_left:0": (13 * steps).astype(np.int8),
            "serving_default_right:0": (100 - 17 * steps).astype(np.int8),
        },
    )
    wanted = found["StatefulPartitionedCall:0"].ravel().tolist()
    assert [int(line) for line in done.stdout.split()] == wanted


@pytest.mark.parametrize("what", WRONG)
def test_other_arrays_do_not_compile(what: str, folder: Path) -> None:
    """Of another length or type, in another order, and pointers, whose length nobody knows."""
    right, wrong = WRONG[what]
    assert right in APP
    (folder / f"{what}.cpp").write_text(APP.replace(right, wrong))
    command = ["g++", "-std=c++11", *INCLUDES, "-fsyntax-only", f"{what}.cpp"]
    assert "error" in compiler_output(command, folder)


@pytest.mark.parametrize(
    ("compiler", "standard", "unit"),
    [("gcc", "c11", "c"), ("g++", "c++11", "cpp"), ("gcc", "c99", "")],
)
def test_types_of_other_sizes_are_refused(
    compiler: str, standard: str, unit: str, tmp_path: Path
) -> None:
    """A compiler whose float has other bytes than those of the file says so; C99 cannot."""
    model = microtir.frontend.from_tflite(FLOAT)
    folder = microtir.build(model, CONFIG).export(tmp_path / "out")
    name = f"app.{unit or 'c'}"
    (folder / name).write_text('#include "net.h"\nextern int application;\n')
    command = [compiler, f"-std={standard}", "-fsyntax-only", name]
    assert not compiler_output(command, folder)
    said = compiler_output([*command, "-Dfloat=double"], folder)
    assert ("sizeof" in said or "static assertion" in said) == bool(unit)
