"""Steps on a board: what the header says that each takes, beside what the emulator counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from microtir import CompilationConfig, Executor
from microtir.artifact import Artifact
from microtir.boards import ProjectType, load_board
from microtir.codegen.interface.steps import step_instructions
from microtir.codegen.program import make_program
from microtir.profiling import measure
from microtir.projects import generate
from tests.support.board_projects import digits_with, with_main, with_model

BOARD = "mps2_an386"
COUNTED = 2000
"""Instructions from which on an estimate is a promise: below it the call itself counts."""

MAIN = """
#include "digits/digits.h"
#include "platform.h"

static DIGITS_WORKSPACE(workspace);
static int8_t image[DIGITS_IMAGE_ELEMENTS];
static int8_t probabilities[DIGITS_PROBABILITIES_ELEMENTS];
static int32_t next;

__attribute__((noinline)) static int32_t step(void)
{
    const struct digits_inputs inputs = {image};
    const struct digits_outputs outputs = {probabilities};
    return digits_step(&inputs, &outputs, workspace, &next);
}
"""

# Around the calls of all steps.
RUN_ALL = (
    """
int32_t all_steps(void);
int32_t all_steps(void)
{
    int32_t status = 0;
""",
    """    return status;
}

int main(void)
{
    platform_init();
    for (int i = 0; i < DIGITS_IMAGE_ELEMENTS; i++) {
        image[i] = (int8_t)(i * 37 % 256 - 128);
    }
    platform_exit((int)all_steps());
    return 0;
}
""",
)


def client(steps: int) -> str:
    """Return a program that runs each step in a function of its own."""
    functions = [
        f"__attribute__((noinline)) int32_t step_{n}(void);\n"
        f"int32_t step_{n}(void) {{ return step() + {n}; }}\n"
        for n in range(steps)
    ]
    calls = [f"    status |= step_{n}() - {n};\n" for n in range(steps)]
    return "".join([MAIN, *functions, RUN_ALL[0], *calls, RUN_ALL[1]])


def digits(goal: str) -> Artifact:
    """Return the example, with steps, for the board."""
    config = CompilationConfig(
        targets=str(load_board(BOARD).target),
        optimize=goal,
        module_name="digits",
        executor=Executor("aot", {"steps": True}),
    )
    return digits_with(config)


@pytest.mark.compiler_version
@pytest.mark.parametrize("goal", ["speed", "ram"])
def test_estimates(goal: str, tmp_path: Path) -> None:
    """A step of some size takes what the header says, within a tenth, and a run within 5 %."""
    artifact = digits(goal)
    assert artifact.module.model is not None
    estimated = step_instructions(make_program(artifact.module), artifact.module.model)
    project = generate([artifact], BOARD, ProjectType.BAREMETAL, tmp_path / "p")
    with_main(project, client(len(estimated)))
    project.build()
    names = tuple(f"step_{n}" for n in range(len(estimated)))
    costs = measure(with_model(project, "all_steps", names)).by_function[1:]
    counted = [cost.instructions for cost in costs]
    assert [cost.calls for cost in costs] == [1] * len(estimated)
    large = [n for n, count in enumerate(counted) if count > COUNTED]
    assert len(large) > len(counted) / 4
    for n in large:
        assert estimated[n] == pytest.approx(counted[n], rel=0.1), (n, counted, estimated)
    assert sum(estimated) == pytest.approx(sum(counted), rel=0.05)
