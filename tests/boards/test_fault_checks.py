"""Bits of weights, states and tensors that flip on the emulator, and what noticing them costs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import microtir
from microtir import CompilationConfig
from microtir.artifact import Artifact
from microtir.boards import ProjectType, load_board
from microtir.config.enums import FaultChecks
from microtir.frontend import from_tflite
from microtir.profiling import measure
from microtir.projects import Project, generate
from tests.support.board_projects import TWO_MODELS, code_bytes, digits_with, with_main, with_model
from tests.support.stateful import running_sum

BOARD = "mps2_an386"
PAGE = Path(__file__).parents[2] / "docs" / "executors.md"
STRIDE = 7
"""Bytes from one whose bits flip to the next; no array has a length that it divides alone."""

CALLS = """
#include "digits/digits_weights.h"

static uint8_t saved[SUM_STATE_SAVED_SIZE];

__attribute__((noinline)) int32_t compared(void);
int32_t compared(void)
{
    return COMPARED;
}

__attribute__((noinline)) int32_t restored(void);
int32_t restored(void)
{
    return sum_state_restore(&state, saved, sizeof saved);
}
"""

ONE_OF_EACH = """
int main(void)
{
    platform_init();
    int32_t status = sum_state_init(&state) + once() + compared() + added();
    status += sum_state_save(&state, saved) + restored();
    platform_exit((int16_t)status);
    return 0;
}
"""

FLIPS = """
/* Flips each bit of every STRIDE-th byte, and counts those that nothing notices. */
static int32_t missed(const void *memory_of, uint32_t bytes, int32_t (*run)(void), int32_t status)
{
    volatile uint8_t *const place = (volatile uint8_t *)(uintptr_t)memory_of;
    int32_t result = 0;
    for (uint32_t i = 0; i < bytes; i += STRIDE) {
        for (int32_t bit = 0; bit < 8; bit++) {
            place[i] = (uint8_t)(place[i] ^ (1u << bit));
            result += run() != status;
            place[i] = (uint8_t)(place[i] ^ (1u << bit));
        }
    }
    return result;
}

static int32_t weights_missed(int32_t (*run)(void))
{
    return 0
ARRAYS        ;
}

int main(void)
{
    int32_t faults = 0;
    platform_init();
    faults += once() != DIGITS_OK || compared() != DIGITS_OK;
    faults += weights_missed(RUN);
    faults += once() != DIGITS_OK || compared() != DIGITS_OK;
    faults += sum_state_init(&state) != SUM_OK || added() != SUM_OK || added() != SUM_OK;
    for (uint32_t i = 0; i < sizeof state; i++) {
        faults += missed((const uint8_t *)&state + i, 1, added, SUM_ERROR_STATE);
    }
    faults += added() != SUM_OK || out[1] != 8.0f;
    faults += sum_state_save(&state, saved) != SUM_OK;
    for (uint32_t i = 0; i < sizeof saved; i++) {
        faults += missed(saved + i, 1, restored, SUM_ERROR_STATE);
    }
    faults += restored() != SUM_OK || added() != SUM_OK || out[1] != 12.0f;
    platform_exit((int16_t)(faults > 100 ? 100 : faults));
    return 0;
}
"""

FLIP_TENSORS = """
static uint32_t place;

void flip_tensor(uint8_t *tensor, uint32_t bytes);
void flip_tensor(uint8_t *tensor, uint32_t bytes)
{
    if (place < 8u * bytes) {
        tensor[place / 8u] = (uint8_t)(tensor[place / 8u] ^ (1u << place % 8u));
    }
    place -= 8u * bytes; /* after the flip it is too large for the other tensors */
}

int main(void)
{
    int32_t faults = 0;
    platform_init();
    place = UINT32_MAX;
    faults += once() != DIGITS_OK;
    const uint32_t bits = UINT32_MAX - place;
    faults += bits != 8u * BYTES;
    for (uint32_t bit = 0; bit < bits; bit += STRIDE) {
        place = bit;
        faults += once() != DIGITS_ERROR_TENSOR;
    }
    place = UINT32_MAX;
    faults += once() != DIGITS_OK;
    platform_exit((int16_t)(faults > 100 ? 100 : faults));
    return 0;
}
"""


def summed(checks: FaultChecks) -> Artifact:
    """Return a model whose state is the sum of its inputs."""
    target = str(load_board(BOARD).target)
    config = CompilationConfig(targets=target, module_name="sum", fault_checks=checks)
    return microtir.build(from_tflite(running_sum()), config)


def artifacts_of(checks: FaultChecks) -> list[Artifact]:
    """Return the example, which has weights, and a model that has a state."""
    target = str(load_board(BOARD).target)
    config = CompilationConfig(targets=target, module_name="digits", fault_checks=checks)
    return [digits_with(config), summed(checks)]


def built(folder: Path, artifacts: list[Artifact], main: str, compared: str) -> Project:
    """Return a program of both models with this main function."""
    project = generate(artifacts, BOARD, ProjectType.BAREMETAL, folder)
    with_main(project, TWO_MODELS + CALLS.replace("COMPARED", compared) + main)
    project.build()
    return project


@pytest.mark.parametrize("checks", [FaultChecks.START, FaultChecks.TENSORS])
def test_every_bit_is_noticed(checks: FaultChecks, tmp_path: Path) -> None:
    """Each flipped bit of weights, of a state and of a saved one is reported, and nothing else."""
    artifacts = artifacts_of(checks)
    (text,) = (f.text for f in artifacts[0].sources if f.path.endswith("_weights.h"))
    arrays = re.findall(r"const \w+ (digits_\w+)\[", text)
    assert len(arrays) == 10
    rows = "".join(
        f"        + missed({a}, sizeof {a}, run, DIGITS_ERROR_WEIGHTS)\n" for a in arrays
    )
    run = "once" if checks is FaultChecks.TENSORS else "compared"
    main = FLIPS.replace("ARRAYS", rows).replace("STRIDE", str(STRIDE)).replace("RUN", run)
    project = built(tmp_path / "project", artifacts, main, "digits_check_weights()")
    assert project.run().status == 0


def test_every_bit_of_a_tensor_is_noticed(tmp_path: Path) -> None:
    """A bit of a tensor that flips before a layer reads the tensor ends the run."""
    artifacts = artifacts_of(FaultChecks.TENSORS)
    (source,) = (f for f in artifacts[0].sources if f.path == "digits.c")
    check = re.compile(r"if \(digits_checksum\((&memory\[\d+\], (\d+)u), UINT32_C")
    read = sum(int(size) for _, size in check.findall(source.text))
    assert read == 2234
    text = check.sub(lambda found: f"flip_tensor({found[1]});\n    {found[0]}", source.text)
    declared = "void flip_tensor(uint8_t *tensor, uint32_t bytes);\n"
    main = FLIP_TENSORS.replace("STRIDE", f"{STRIDE}u").replace("BYTES", f"{read}u")
    project = generate(artifacts, BOARD, ProjectType.BAREMETAL, tmp_path / "project")
    with_main(project, TWO_MODELS + main)
    include = '#include "digits.h"\n'
    file = project.folder / "model" / "digits" / "digits.c"
    file.write_text(text.replace(include, include + declared, 1))
    project.build()
    assert project.run().status == 0


@pytest.mark.compiler_version
def test_cost(tmp_path: Path) -> None:
    """The page says what checks cost: instructions of a run and of a comparison, and flash."""
    flash: list[int] = []
    runs: list[int] = []
    added: list[int] = []
    compared: list[int] = []
    restored: list[int] = []
    for checks in FaultChecks:
        call = "0" if checks is FaultChecks.NONE else "digits_check_weights()"
        project = built(tmp_path / str(checks), artifacts_of(checks), ONE_OF_EACH, call)
        flash.append(code_bytes(project))
        for name, counts in (
            ("once", runs), ("added", added), ("compared", compared), ("restored", restored),
        ):  # fmt: skip
            counts.append(measure(with_model(project, name, (name,))).instructions)
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    rows = (
        f"| `start` | {flash[1] - flash[0]} | {compared[1]:,} in each `NAME_check_weights` |",
        f"| `layers` | {flash[2] - flash[0]} | {runs[2] - runs[0]:,} in each run |",
        f"| `tensors` | {flash[3] - flash[0]:,} | {runs[3] - runs[0]:,} in each run |",
        f"which takes {added[1] - added[0]} instructions for a state of 8 bytes",
        f"Restoring this state takes {restored[1] - restored[0]} more",
    )
    missing = "\n".join(row for row in rows if row not in page)
    assert not missing, missing
    assert runs[0] == runs[1] and added[1] == added[2]
