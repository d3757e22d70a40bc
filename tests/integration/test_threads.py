"""Runs in several threads at once: state lies in what the caller passes, and nowhere else."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import microtir
from microtir import CompilationConfig, Executor
from microtir.config.enums import Optimize
from tests.support.c_compilers import INCLUDES, STRICT, compiler_output

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits_int8.tflite"
APPLICATION = """\
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "default.h"

#define THREADS 4
static struct default_workspace workspaces[THREADS];
static int8_t images[THREADS][DEFAULT_IMAGE_ELEMENTS];
static int8_t scores[THREADS][DEFAULT_PROBABILITIES_ELEMENTS];
static int8_t alone[THREADS][DEFAULT_PROBABILITIES_ELEMENTS];

static int32_t run(int number, int8_t *to)
{
    const struct default_inputs inputs = {images[number]};
    const struct default_outputs outputs = {to};
    return default_run(&inputs, &outputs, &workspaces[number / SHARED * SHARED]);
}

static void *run_often(void *number)
{
    for (int i = 0; i < 3; i++) {
        (void)run(*(int *)number, scores[*(int *)number]);
    }
    return NULL;
}

int main(void)
{
    static int numbers[THREADS];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        for (int pixel = 0; pixel < DEFAULT_IMAGE_ELEMENTS; pixel++) {
            images[i][pixel] = (int8_t)((pixel * (7 + i)) % 128);
        }
        if (run(i, alone[i]) != DEFAULT_OK) {
            return 1;
        }
    }
    for (int i = 0; i < THREADS; i++) {
        if (pthread_create(&threads[i], NULL, run_often, &numbers[i]) != 0) {
            return 2;
        }
    }
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    return memcmp(alone, scores, sizeof alone) == 0 ? 0 : 3;
}
"""


def finished(folder: Path, shared: int) -> subprocess.CompletedProcess[str]:
    """Compile the application with the thread sanitizer and run it.

    Args:
        folder: of the generated files.
        shared: how many threads use one workspace.
    """
    (folder / "application.c").write_text(APPLICATION, encoding="utf-8")
    units = [path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*.c"))]
    flags = ["-std=c99", *STRICT, *INCLUDES, f"-DSHARED={shared}", "-g", "-O1"]
    command = ["gcc", *flags, "-fsanitize=thread", *units, "-o", "program", "-lm", "-lpthread"]
    assert not compiler_output(command, folder)
    # Where addresses are random in many bits, the sanitizer's memory does not fit between them.
    return subprocess.run(
        ["setarch", "-R", "./program"], cwd=folder, capture_output=True, text=True, check=False,
        timeout=120,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("executor", "optimize"),
    [("aot", Optimize.SPEED), ("aot", Optimize.RAM_LEAST), ("graph", Optimize.BALANCED)],
)
def test_threads_do_not_meet(executor: str, optimize: Optimize, tmp_path: Path) -> None:
    """Each with a workspace of its own: no race, and the outputs are those of one thread."""
    config = CompilationConfig(
        targets="c",
        executor=Executor(executor, {"link-params": True}),
        optimize=optimize,
        module_name="default",
    )
    artifact = microtir.build(microtir.frontend.from_tflite(DIGITS), config)
    done = finished(artifact.export(tmp_path / "out"), 1)
    assert done.returncode == 0, done.stderr[-2000:]


def test_a_shared_workspace_is_found(tmp_path: Path) -> None:
    """What the header forbids is a race that the sanitizer sees: the test above can fail."""
    artifact = microtir.build(
        microtir.frontend.from_tflite(DIGITS),
        CompilationConfig(targets="c", module_name="default"),
    )
    done = finished(artifact.export(tmp_path / "out"), 2)
    assert done.returncode != 0 and "data race" in done.stderr
