"""Bits of words around a workspace that flip on the emulator, and what comparing them costs."""

from __future__ import annotations

from pathlib import Path

import pytest

import microtir
from microtir import CompilationConfig
from microtir.artifact import Artifact
from microtir.boards import ProjectType, load_board
from microtir.frontend import from_tflite
from microtir.profiling import measure
from microtir.projects import Project, generate
from tests.support.board_projects import TWO_MODELS, code_bytes, digits_with, with_main, with_model
from tests.support.stateful import running_sum

BOARD = "mps2_an386"
PAGE = Path(__file__).parents[2] / "docs" / "executors.md"
CANARY = 16
"""Bytes at each end of a workspace."""

ONE_OF_EACH = """
int main(void)
{
    platform_init();
    platform_exit((int16_t)(sum_state_init(&state) + once() + added()));
    return 0;
}
"""

HOOK = """
void after(int32_t layer);
#define {macro}_LAYER_HOOK(layer, output, data, first, last) after(layer)
"""

FLIPS = """
void after(int32_t layer);

static volatile uint8_t *place;
static uint8_t flipped;
static int32_t when, last;

/* Flips a bit once, after the layer whose turn it is. */
void after(int32_t layer)
{
    last = layer;
    if (layer == when) {
        *place = (uint8_t)(*place ^ flipped);
        flipped = 0;
    }
}

/* Flips each bit of a canary, and counts those that a run of so many layers does not notice
 * before the next layer. */
static int32_t missed(uint8_t *canary, int32_t layers, int32_t (*run)(void), int32_t status)
{
    int32_t result = 0;
    for (uint32_t bit = 0; bit < 8u * CANARY_BYTES; bit++) {
        place = &canary[bit / 8u];
        flipped = (uint8_t)(1u << bit % 8u);
        when = (int32_t)(bit % (uint32_t)layers);
        /* The first two layers of the example run row by row, in one loop. */
        result += run() != status || last > (when == 0 ? 1 : when);
        result += run() != 0;
    }
    return result;
}

int main(void)
{
    int32_t faults = 0;
    platform_init();
    when = -1;
    faults += once() != DIGITS_OK || last != DIGITS_LAYERS - 1 || sum_state_init(&state) != SUM_OK;
    faults += added() != SUM_OK || last != SUM_LAYERS - 1;
    faults += missed(workspace, DIGITS_LAYERS, once, DIGITS_ERROR_CANARY);
    faults += missed(
            &workspace[DIGITS_WORKSPACE_SIZE - CANARY_BYTES], DIGITS_LAYERS, once,
            DIGITS_ERROR_CANARY);
    faults += missed(memory, SUM_LAYERS, added, SUM_ERROR_CANARY);
    faults += missed(
            &memory[SUM_WORKSPACE_SIZE - CANARY_BYTES], SUM_LAYERS, added, SUM_ERROR_CANARY);
    platform_exit((int16_t)(faults > 100 ? 100 : faults));
    return 0;
}
"""


def artifacts_of(canaries: bool) -> list[Artifact]:
    """Return the example, and a model with a state and a tensor in its workspace."""
    target = str(load_board(BOARD).target)
    config = CompilationConfig(targets=target, module_name="digits", canaries=canaries)
    summed = config.with_(module_name="sum", append="softmax")
    return [digits_with(config), microtir.build(from_tflite(running_sum()), summed)]


def project_of(folder: Path, artifacts: list[Artifact], main: str) -> Project:
    """Return a program of both models with this main function."""
    project = generate(artifacts, BOARD, ProjectType.BAREMETAL, folder)
    return with_main(project, TWO_MODELS + main)


def test_every_bit_is_noticed(tmp_path: Path) -> None:
    """A flipped bit of a canary ends the run before the next layer, and no other run."""
    artifacts = artifacts_of(canaries=True)
    main = FLIPS.replace("CANARY_BYTES", f"{CANARY}u")
    for artifact in artifacts:
        macro = artifact.metadata.module_name.upper()
        main = main.replace(f"{macro}_LAYERS", str(len(artifact.metadata.layers)))
    project = project_of(tmp_path / "project", artifacts, main)
    for artifact in artifacts:
        name = artifact.metadata.module_name
        file = project.folder / "model" / name / f"{name}.c"
        include = f'#include "{name}.h"\n'
        text = file.read_text()
        assert include in text
        hook = HOOK.replace("{macro}", name.upper())
        file.write_text(text.replace(include, include + hook, 1))
    project.build()
    assert project.run().status == 0


@pytest.mark.compiler_version
def test_cost(tmp_path: Path) -> None:
    """The page says what canaries cost: bytes of flash and of RAM, and instructions of a run."""
    rows = ""
    for index, (model, run) in enumerate((("digits", "once"), ("a running sum", "added"))):
        costs: list[tuple[int, int, int]] = []
        for canaries in (False, True):
            # The other model has no canaries.
            artifacts = artifacts_of(canaries=False)
            artifacts[index] = artifacts_of(canaries)[index]
            folder = tmp_path / f"{index}{canaries}"
            project = project_of(folder, artifacts, ONE_OF_EACH)
            project.build()
            counted = measure(with_model(project, run, (run,))).instructions
            memory = artifacts[index].metadata.memory
            assert memory is not None
            costs.append((code_bytes(project), memory.workspace_size, counted))
        flash, ram, instructions = (after - before for before, after in zip(*costs, strict=True))
        layers = len(artifacts[index].metadata.layers)
        rows += (
            f"| {model} | {layers} | {flash} | {ram} | {instructions} more than {costs[0][2]:,} |\n"
        )
    assert rows in PAGE.read_text(encoding="utf-8"), rows
