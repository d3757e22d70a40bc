"""What counting the elements of inputs takes on a board, in instructions and bytes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from microtir import CompilationConfig, Executor
from microtir.boards import ProjectType, load_board
from microtir.profiling import measure
from microtir.projects import Project, generate
from tests.support.board_projects import digits_with, with_main, with_model

BOARD = "mps2_an386"
PAGE = Path(__file__).parents[2] / "docs" / "executors.md"

MAIN = """
#include <stddef.h>

#include "digits/digits.h"
#include "platform.h"

static DIGITS_WORKSPACE(workspace);
static int8_t image[DIGITS_IMAGE_ELEMENTS];
static int8_t probabilities[DIGITS_PROBABILITIES_ELEMENTS];
static const struct digits_inputs inputs = {image};
static const struct digits_outputs outputs = {probabilities};
GUARD

__attribute__((noinline)) int32_t once(void);
int32_t once(void)
{
    return digits_run(&inputs, &outputs, workspace PLACE);
}

int main(void)
{
    platform_init();
    for (int i = 0; i < DIGITS_IMAGE_ELEMENTS; i++) {
        image[i] = (int8_t)(i % 4 == 0 ? 127 : i);
    }
    platform_exit((int16_t)(once() == 0 ? RESULT : 1));
    return 0;
}
"""


def project_of(folder: Path, *, guarded: bool, place: str = "") -> Project:
    """Return a program that runs the example once, built."""
    config = CompilationConfig(
        targets=str(load_board(BOARD).target),
        module_name="digits",
        executor=Executor("aot", {"guard-inputs": guarded}),
    )
    project = generate([digits_with(config)], BOARD, ProjectType.BAREMETAL, folder)
    text = MAIN.replace("GUARD", "static struct digits_guard guard;" * (place == ", &guard"))
    text = text.replace("PLACE", place)
    with_main(project, text.replace("RESULT", "guard.image != 16" if place == ", &guard" else "0"))
    project.build()
    return project


def bytes_of_run(project: Project) -> int:
    """Return the bytes of the function that runs the model, with what is inlined into it."""
    command = ["arm-none-eabi-nm", "-S", str(project.folder / "build" / "firmware.elf")]
    said = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
    (size,) = (line.split()[1] for line in said.splitlines() if line.endswith(" digits_run"))
    assert "count_unseen" not in said
    return int(size, 16)


def instructions(project: Project) -> int:
    """Return the instructions of a run, with the call."""
    return measure(with_model(project, "once", ("once",))).instructions


@pytest.fixture(scope="module")
def projects(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Project]:
    """The program without a guard, with one that nobody asks, and with one that counts."""
    folder = tmp_path_factory.mktemp("guard")
    return {
        "none": project_of(folder / "none", guarded=False),
        "unasked": project_of(folder / "unasked", guarded=True, place=", NULL"),
        "asked": project_of(folder / "asked", guarded=True, place=", &guard"),
    }


def test_counts_on_the_board(projects: dict[str, Project]) -> None:
    """Every fourth of 64 elements is at the end of its type: the program ends well with that."""
    assert projects["asked"].run().status == 0


@pytest.mark.compiler_version
def test_cost(projects: dict[str, Project]) -> None:
    """The page says what was measured."""
    plain = instructions(projects["none"])
    unasked = instructions(projects["unasked"]) - plain
    asked = instructions(projects["asked"]) - plain
    code = bytes_of_run(projects["asked"]) - bytes_of_run(projects["none"])
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert f"takes {code} bytes of code. With NULL a run takes {unasked} more instructions." in page
    assert f"takes {asked} more instructions for the 64 elements, which is less than 1 %" in page
    assert asked < plain / 100
