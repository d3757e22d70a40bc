"""Programs with debug checks, broken on purpose: each says what went wrong, and where."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import microtir
from microtir import CompilationConfig
from microtir.artifact import Artifact
from microtir.boards import ProjectType, load_board
from microtir.boards.errors import ProjectError
from microtir.boards.toolchain import capture
from microtir.profiling import measure
from microtir.projects import Project, ProjectOptions, generate
from microtir.projects.faults import fault_places
from tests.support.board_projects import digits, digits_samples, with_main, with_model
from tests.support.command import Command
from tests.support.command import microtir as command
from tests.support.stateful import random_model

__all__ = ["command"]

BOARD = "mps2_an386"
CHECKS = ProjectOptions(debug_checks=True, samples={"digits": digits_samples(3)})
STRICT = ["CFLAGS=-O2 -Werror -Wconversion"]
PAGE = Path(__file__).parents[2] / "docs" / "boards.md"
LAYER = "digits_layer05_max_pool_2d"
SIZE = "DIGITS_WORKSPACE_SIZE"
BEHIND = "fault: digits wrote behind 'workspace'"


def project_of(
    folder: Path, board: str = BOARD, artifacts: list[Artifact] | None = None
) -> Project:
    """Return a program of the example with debug checks."""
    given = artifacts or [digits(str(load_board(board).target))]
    return generate(given, board, ProjectType.BAREMETAL, folder, options=CHECKS)


def replaced(project: Project, path: str, old: str, new: str) -> None:
    """Replace the first text of a file that is there."""
    file = project.folder / path
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))


def in_layer(project: Project, statement: str) -> None:
    """Put a statement before all others of a layer."""
    file = project.folder / "model" / "digits" / "digits.c"
    head, name, rest = file.read_text().partition(f"void {LAYER}(")
    assert name
    file.write_text(head + name + rest.replace("\n{\n", f"\n{{\n    {statement}\n", 1))


def without_places(text: str) -> str:
    """Return a text without addresses and bytes of stack, which any change of code moves."""
    return re.sub(r"0x[0-9a-f]+|(?<=stack )\d+", "N", text)


@pytest.mark.parametrize("board", [BOARD, "microbit", "mps3_an547"])
def test_right_programs_run(board: str, tmp_path: Path) -> None:
    """Nothing is found where nothing is wrong, and no compiler warns."""
    project = project_of(tmp_path / "p", board)
    project.build(STRICT)
    result = project.run()
    assert (result.status, result.output.count(" equal\n")) == (0, 3), result.output
    assert "fault" not in result.output
    assert fault_places(project, result.output) == []


@pytest.mark.parametrize(
    ("index", "is_checked", "status", "output"),
    [
        (SIZE, True, 98, f"{BEHIND}: byte 0 of the canary\n"),
        (f"{SIZE} + 31", True, 98, f"{BEHIND}: byte 31 of the canary\n"),
        ("-1", True, 98, "fault: digits wrote before 'workspace': byte 31 of the canary\n"),
        ("-1", False, 0, ""),
    ],
)
def test_the_workspace_is_watched(
    index: str, is_checked: bool, status: int, output: str, tmp_path: Path
) -> None:
    """A run that writes next to the workspace ends the program, and the message says on which side.

    The same program without checks goes on as if nothing had happened.
    """
    options = ProjectOptions(debug_checks=is_checked, samples=CHECKS.samples)
    artifact = digits(str(load_board(BOARD).target))
    project = generate([artifact], BOARD, ProjectType.BAREMETAL, tmp_path / "p", options=options)
    statement = f"((volatile uint8_t *)workspace)[{index}]++;\n    "
    replaced(project, "model/digits/digits.c", "return DIGITS_OK;", f"{statement}return DIGITS_OK;")
    project.build()
    result = project.run()
    assert (result.status, "fault" in result.output) == (status, is_checked), result.output
    assert not is_checked or result.output == output


def test_states_are_watched(tmp_path: Path) -> None:
    """So are the structs of what models keep from run to run, whoever writes beside them."""
    model = microtir.frontend.from_tflite(random_model(5, "mixed"))
    config = CompilationConfig(targets=str(load_board(BOARD).target), module_name="kept")
    kept = microtir.build(model, config)
    options = ProjectOptions(debug_checks=True)
    artifacts = [digits(str(load_board(BOARD).target)), kept]
    project = generate(artifacts, BOARD, ProjectType.BAREMETAL, tmp_path / "p", options=options)
    project.build(STRICT)
    assert project.run().status == 0
    replaced(
        project,
        "src/models.c",
        "static int32_t run_digits(void)\n{",
        "static int32_t run_digits(void)\n{\n    guarded_state_of_kept.behind[1] = 7;",
    )
    project.build()
    result = project.run()
    assert result.status == 98
    assert result.output == ("fault: digits wrote behind the state of kept: byte 4 of the canary\n")


@pytest.mark.parametrize("board", [BOARD, "microbit", "mps3_an547"])
def test_a_fault_is_described(board: str, tmp_path: Path, command: Command) -> None:
    """What is no instruction is a fault with its cause, and the layer in which it was is named."""
    project = project_of(tmp_path / "p", board)
    in_layer(project, '__asm volatile("udf #0");')
    project.build()
    result = command("micro", "run", project.folder)
    cause = "" if board == "microbit" else ", UNDEFINSTR: no instruction"
    lines = result.out.splitlines()
    described = next(line for line in lines if line.startswith("fault: HardFault"))
    assert described.startswith(f"fault: HardFault{cause}, PC 0x000"), lines
    places = [line for line in lines if line.startswith(("PC ", "LR "))]
    assert len(places) == 2
    if board == BOARD:
        page = without_places(PAGE.read_text(encoding="utf-8"))
        assert all(f"\n    {without_places(line)}\n" in page for line in lines if line)
    assert f": {LAYER}+0x" in places[0] and "operator 5 MAX_POOL_2D" in places[0], places
    if board != "microbit":  # a function that has saved LR may use it for something else
        assert ": digits_run+0x" in places[1]
        assert places[1].endswith("the run function of digits, between two layers")
    assert project.run().status == 97


def test_an_address_is_told(tmp_path: Path) -> None:
    """Where memory protection knows the address of an access it is printed."""
    project = project_of(tmp_path / "p")
    in_layer(project, "(void)*(volatile uint32_t *)0x1FFFFF00;")
    project.build()
    result = project.run()
    assert result.status == 97
    assert "fault: MemManage, DACCVIOL: an access that memory protection forbids" in result.output
    *_, described, stack = result.output.splitlines()
    assert described.endswith(", address 0x1fffff00")
    assert re.fullmatch(r"fault: stack [1-9]\d+ of 4096 bytes used", stack)
    assert LAYER in fault_places(project, result.output)[0]


def test_a_jump_out_of_the_program_has_no_place(tmp_path: Path) -> None:
    """An address at which there is no function is said to be none."""
    project = project_of(tmp_path / "p")
    project.build()
    line = "fault: HardFault, PC 0x7ffffff0, LR 0xffffffff"
    assert fault_places(project, f"{line}\n") == [
        "PC 0x7ffffff0: no function of the program",
        "LR 0xffffffff: no function of the program",
    ]


def test_an_overflow_has_no_registers(tmp_path: Path) -> None:
    """Where the stack has no room for them the processor stacks nothing that could be shown."""
    text = """
#include "platform.h"
int deeper(volatile int *before);
__attribute__((noinline)) int deeper(volatile int *before)
{
    volatile int here[64];
    here[0] = *before + 1;
    return deeper(here) + here[0];
}
int main(void)
{
    volatile int first = 0;
    platform_init();
    return deeper(&first);
}
"""
    options = ProjectOptions(debug_checks=True)
    project = generate([], BOARD, ProjectType.BAREMETAL, tmp_path / "p", options=options)
    with_main(project, text).build(["CFLAGS=-O1"])
    result = project.run(timeout=20)
    assert result.status == 97
    first, second = result.output.splitlines()
    assert first.startswith("fault: the stack is too small")
    assert second.startswith("fault: ") and "PC" not in second


def test_nothing_is_left_where_they_are_off(tmp_path: Path) -> None:
    """Without the option the program has none of it, and no canary is in its memory."""
    artifact = digits(str(load_board(BOARD).target))
    project = generate([artifact], BOARD, ProjectType.BAREMETAL, tmp_path / "p")
    names = {path.name for path in project.folder.rglob("*") if path.is_file()}
    assert not names & {"fault.c", "fault.h", "checks.c", "checks.h"}
    assert "canary" not in (project.folder / "src" / "models.c").read_text().lower()
    assert "DEBUG_CHECKS" not in (project.folder / "Makefile").read_text()


@pytest.mark.parametrize(
    ("board", "kind", "server", "said"),
    [
        ("riscv32", "baremetal", False, "this board's start-up code"),
        ("host", "baremetal", False, "this board's start-up code"),
        (BOARD, "cmake", False, "a project of type 'cmake'"),
        (BOARD, "baremetal", True, "a program that serves"),
    ],
)
def test_other_programs_are_refused(
    board: str, kind: str, server: bool, said: str, tmp_path: Path
) -> None:
    """Where there is no Cortex-M that prints, the option is refused, and nothing is written."""
    options = ProjectOptions(debug_checks=True, server=server)
    with pytest.raises(ProjectError, match=f"{said} cannot have debug checks") as caught:
        generate(digits("c"), board, kind, tmp_path / "p", options=options)
    assert caught.value.where == "options.debug_checks"
    assert not (tmp_path / "p").exists()


def test_cost(tmp_path: Path) -> None:
    """The page and the project's own table say what the checks take."""
    sizes, instructions = [], []
    for is_checked in (False, True):
        options = ProjectOptions(debug_checks=is_checked, samples=CHECKS.samples)
        artifact = digits(str(load_board(BOARD).target))
        folder = tmp_path / str(is_checked)
        project = generate([artifact], BOARD, ProjectType.BAREMETAL, folder, options=options)
        project.build()
        said = capture(["arm-none-eabi-size", str(project.program_path)])
        sizes.append([int(word) for word in said.splitlines()[1].split()[:3]])
        calls = with_model(project, f"{'checked' * is_checked or 'run'}_digits", ())
        instructions.append(measure(calls).instructions)
    code, data, variables = (after - before for before, after in zip(*sizes, strict=True))
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert data == 0
    assert (
        f"| canaries, and a stack for faults | {variables} |"
        in (project.folder / "README.md").read_text()
    )
    assert f"{code:,} bytes of flash, {variables} bytes of RAM" in page
    assert f"{instructions[1] - instructions[0]} instructions for each run" in page
