"""The example model on boards: what tests of projects compile once and share."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

import microtir
from microtir.artifact import Artifact
from microtir.boards import Label, ProjectType, all_boards, load_board
from microtir.profiling import Profile, profile
from microtir.projects import Project, Samples
from microtir.projects.project import ProjectLayer, ProjectModel
from microtir.support import resources
from tests.support import shared_programs

TWO_MODELS = """
#include "digits/digits.h"
#include "sum/sum.h"
#include "platform.h"

static DIGITS_WORKSPACE(workspace);
static int8_t image[DIGITS_IMAGE_ELEMENTS];
static int8_t probabilities[DIGITS_PROBABILITIES_ELEMENTS];
static const struct digits_inputs inputs = {image};
static const struct digits_outputs outputs = {probabilities};

static SUM_WORKSPACE(memory);
static float x[SUM_X_ELEMENTS] = {1.0f, 2.0f};
static float out[SUM_OUT_ELEMENTS];
static const struct sum_inputs addends = {x};
static const struct sum_outputs sums = {out};
static struct sum_state state;

__attribute__((noinline)) int32_t once(void);
int32_t once(void)
{
    return digits_run(&inputs, &outputs, workspace);
}

__attribute__((noinline)) int32_t added(void);
int32_t added(void)
{
    return sum_run(&addends, &sums, &state, memory);
}
"""
"""What a program of the example and a running sum begins with: one function runs each."""

BOARD_OF_EACH_TYPE = (
    ("mps2_an386", "baremetal"),
    ("mps2_an386", "cmake"),
    ("nrf52840dk", "zephyr"),
    ("esp32c3_devkitm", "esp-idf"),
    ("teensy41", "platformio"),
    ("teensy41", "arduino"),
)
"""A board for each type of project."""


@cache
def digits(target: str, module_name: str = "digits", *, workspace_io: bool = False) -> Artifact:
    """Compile the example model for a target."""
    config = microtir.CompilationConfig.from_target(microtir.Target(target))
    config = config.with_(pass_config={"memory.use_workspace_io": workspace_io})
    return digits_with(config.with_(module_name=module_name))


@cache
def profiled(board: str) -> Profile:
    """Measure the example model on a board."""
    described = load_board(board)
    return profile(digits(str(described.target)), described)


def digits_with(config: microtir.CompilationConfig) -> Artifact:
    """Compile the example model with a configuration."""
    model = microtir.frontend.from_tflite(resources.example("digits/digits_int8.tflite"))
    return shared_programs.build(model, config)


def digits_samples(count: int) -> Samples:
    """Test images and what tflite-micro computed for them."""
    data = np.load(resources.example("digits/digits_test.npz"))
    inputs, outputs = data["inputs"][:count], data["outputs"][:count]
    return Samples({"image": inputs}, {"probabilities": outputs})


def executed_boards() -> list[str]:
    """Return the boards whose file says that bare-metal projects run in an emulator."""
    return [
        board.name
        for board in all_boards()
        for support in board.projects
        if (support.type, support.label) == (ProjectType.BAREMETAL, Label.EXECUTED)
    ]


def code_bytes(project: Project) -> int:
    """Return the bytes of the program in flash."""
    command = ["arm-none-eabi-size", str(project.folder / "build" / "firmware.elf")]
    said = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
    return int(said.splitlines()[1].split()[0])


def with_main(project: Project, text: str) -> Project:
    """Return the project with another main.c."""
    (project.folder / "src" / "main.c").write_text(text)
    return project


def with_model(project: Project, run: str, layers: tuple[str, ...]) -> Project:
    """Return the project as if a model with these C functions were in it."""
    rows = tuple(ProjectLayer(name, "TEST", name, 0) for name in layers)
    return replace(project, models=(ProjectModel("test", run, rows),))


def is_left_alone(folder: Path, before: dict[str, bytes]) -> bool:
    """Return whether a folder has exactly these files, and none was left beside it."""
    now = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
    return now == before and list(folder.parent.iterdir()) == [folder]
