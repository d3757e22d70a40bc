"""Every emulated board: the example model, its measurement, and stacks that are too small."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from microtir import CompilationConfig, Executor, build, frontend
from microtir.boards import Console, ProjectType, load_board
from microtir.profiling import measure, profile
from microtir.projects import ProjectOptions, generate
from microtir.support import resources
from tests.support.board_projects import digits, digits_samples, executed_boards, with_main

BOARDS = executed_boards()
COUNTING = [name for name in BOARDS if name != "host"]
STRICT = "CFLAGS=-O2 -Werror -Wconversion -Wcast-qual -Wstrict-prototypes -pedantic"

OVERFLOW = """
#include "application.h"
#include "platform.h"
static volatile uint8_t sink;
__attribute__((noinline)) static void deeper(uint16_t depth)
{
    volatile uint8_t block[64];
    block[depth % 64] = (uint8_t)depth;
    if (depth != 0) {
        deeper((uint16_t)(depth - 1));
    }
    sink = block[0];
}
int main(void)
{
    platform_init();
    deeper(DEPTH);
    platform_exit(application_run());
    return 0;
}
"""


def test_boards_that_must_be_executed() -> None:
    """One board of each kind of CPU that the project promises is run, and the host."""
    promised = {
        *("microbit", "mps2_an385", "mps2_an386", "mps2_an500", "mps2_an505", "mps3_an547"),
        *("riscv32", "riscv32_zbb", "atmega2560", "host"),
    }
    assert promised <= set(BOARDS)


@pytest.mark.parametrize("name", BOARDS)
def test_example_model(name: str, tmp_path: Path) -> None:
    """The example model computes what tflite-micro does, and no line of its project warns."""
    board = load_board(name)
    options = ProjectOptions(samples={"digits": digits_samples(3)})
    project = generate(
        digits(str(board.target)), board, ProjectType.BAREMETAL, tmp_path / "p", options=options
    )
    project.build([STRICT])
    result = project.run(timeout=60)
    assert (result.status, result.output.count(" equal\n")) == (0, 3), result.output

    if name in COUNTING:
        measured = measure(project)
        assert measured.instructions == sum(c.instructions for c in measured.by_function)
        model = project.models[0]
        functions = [model.run, *(layer.function for layer in model.layers)]
        assert [cost.function for cost in measured.by_function] == functions
        assert all(cost.calls >= 1 and cost.instructions > 0 for cost in measured.by_function)
        assert 16 <= measured.stack_painted <= 512
        assert all(cost.cycles is None for cost in measured.by_function) == bool(measured.blocks)


@pytest.mark.parametrize("name", COUNTING)
def test_stack_overflow_is_a_fault(name: str, tmp_path: Path) -> None:
    """A stack that grows out of its memory ends the program; one that fits does not."""
    project = generate([], name, ProjectType.BAREMETAL, tmp_path / "p")
    stack = project.board.support(ProjectType.BAREMETAL).stack
    for depth, status in ((stack // 256, 0), (8192, 97)):
        with_main(project, OVERFLOW.replace("DEPTH", str(depth)))
        project.build(["CFLAGS=-O1"])
        result = project.run(timeout=20)
        assert result.status == status, result.output
        assert ("fault: the stack" in result.output) == (status == 97), result.output


@pytest.mark.parametrize("name", ["mps2_an386", "riscv32"])
def test_both_consoles(name: str, tmp_path: Path) -> None:
    """What comes out of the serial port also comes out through semihosting."""
    outputs = []
    for console in (Console.UART, Console.SEMIHOSTING):
        project = generate(
            digits(str(load_board(name).target)),
            name,
            ProjectType.BAREMETAL,
            tmp_path / console.value,
            options=ProjectOptions(console=console),
        )
        project.build()
        outputs.append(project.run().output)
    assert outputs[0] == outputs[1]
    assert "digits sample 0 probabilities = " in outputs[0]


@pytest.mark.parametrize(
    "name",
    [
        *("mps2_an386", "riscv32", "atmega2560", "host"),
        pytest.param("riscv32_zbb", marks=pytest.mark.soak_only),
    ],
)
def test_cmake(name: str, tmp_path: Path) -> None:
    """CMake builds the same program as make."""
    project = generate(
        digits(str(load_board(name).target)), name, ProjectType.BAREMETAL, tmp_path / "p"
    )
    configure = ["cmake", "-B", "build", "-DCMAKE_TOOLCHAIN_FILE=toolchain.cmake"]
    for command in (configure, ["cmake", "--build", "build"]):
        subprocess.run(command, cwd=project.folder, check=True, capture_output=True)
    result = project.run()
    assert result.status == 0
    assert "digits sample 0 probabilities = " in result.output


@pytest.mark.parametrize("name", ["mps2_an386", "atmega2560"])
def test_rows_are_handed_over(name: str, tmp_path: Path) -> None:
    """Input and output by rows on a board: the same results, in a workspace of a few rows."""
    board = load_board(name)
    executor = Executor("aot", {"row-fed-inputs": True, "row-drained-outputs": True})
    config = CompilationConfig(
        targets=str(board.target), executor=executor, optimize="ram-least", module_name="digits"
    )
    model = frontend.from_tflite(resources.example("digits/digits_int8.tflite"))
    options = ProjectOptions(samples={"digits": digits_samples(3)})
    artifact = build(model, config)
    project = generate(artifact, board, ProjectType.BAREMETAL, tmp_path / "p", options=options)
    project.build([STRICT])
    result = project.run(timeout=60)
    assert (result.status, result.output.count(" equal\n")) == (0, 3), result.output
    assert profile(artifact, board).ram.io == 0
