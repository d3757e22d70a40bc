"""Programs that compare checksums of their memory compute the same, and check all weights."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import microtir
from microtir import CompilationConfig
from microtir.artifact import Artifact
from microtir.config.enums import FaultChecks
from microtir.frontend import from_tflite
from microtir.graph.ir import Graph
from microtir.module.ir_module import IRModule
from microtir.support import resources
from tests.support.small_models import mixed_graph, module_of, quantised_graph, sample_inputs
from tests.support.stateful import running_sum

pytestmark = pytest.mark.tools

STRICT = ("-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-pedantic", "-Werror")
SANITIZED = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")


def built(module: IRModule, checks: FaultChecks, target: str = "c") -> Artifact:
    """Compile a model."""
    config = CompilationConfig(targets=target, module_name="net", fault_checks=checks)
    return microtir.build(module, config)


def text_of(artifact: Artifact, name: str) -> str:
    """Return a generated file."""
    return next(file.text for file in artifact.sources if file.path == name)


@pytest.mark.parametrize("make", [quantised_graph, mixed_graph])
def test_results_are_the_same(make: Callable[[], Graph]) -> None:
    """A run with checks gives what one without gives."""
    graph = make()
    inputs = sample_inputs(graph)
    module = module_of(graph)
    plain = microtir.host.load(built(module, FaultChecks.NONE)).run(inputs)
    for checks in (FaultChecks.START, FaultChecks.LAYERS, FaultChecks.TENSORS):
        outputs = microtir.host.load(built(module, checks), sanitize=False).run(inputs)
        for name, values in plain.items():
            np.testing.assert_array_equal(outputs[name], values)


@pytest.mark.parametrize("target", ["c", "c -mcpu=cortex-m4", "c -mcpu=cortex-m55"])
def test_layers_check_every_array(target: str) -> None:
    """The weights that some layer reads are all arrays: a run leaves none unchecked."""
    module = from_tflite(resources.example("digits/digits_int8.tflite"))
    artifact = built(module, FaultChecks.LAYERS, target)
    arrays = re.findall(r"extern const", text_of(artifact, "net_weights.h"))
    run = text_of(artifact, "net.c").split("int32_t net_run(")[1]
    checked = {int(number) for number in re.findall(r"net_is_damaged\((\d+)\)", run)}
    assert checked == set(range(len(arrays))) and len(arrays) > 5


STATES = """
#include <stdio.h>
#include <string.h>
#include "net.h"

int main(void)
{
    static NET_WORKSPACE(workspace);
    static float x[NET_X_ELEMENTS] = {1.0f, 2.0f};
    static float out[NET_OUT_ELEMENTS];
    const struct net_inputs inputs = {x};
    const struct net_outputs outputs = {out};
    struct net_state state, other;
    uint8_t saved[NET_STATE_SAVED_SIZE];
    (void)net_state_init(&state);
    (void)net_run(&inputs, &outputs, &state, workspace);
    printf("%d", (int)net_state_save(&state, saved));
    (void)memset(&other, 0, sizeof other);
    printf(" %d", (int)net_state_restore(&other, saved, sizeof saved));
    printf(" %d", (int)net_run(&inputs, &outputs, &other, workspace));
    ((uint8_t *)&other)[sizeof other - 1] ^= 1u;
    printf(" %d", (int)net_run(&inputs, &outputs, &other, workspace));
    printf(" %d", (int)net_state_save(&other, saved));
    printf(" %d", (int)net_state_reset(&other));
    printf(" %d", (int)net_run(&inputs, &outputs, &other, workspace));
    printf(" %d", (int)net_check_weights());
    int refused = 0;
    for (unsigned bit = 0; bit < 8u * sizeof saved; bit++) {
        saved[bit / 8u] ^= (uint8_t)(1u << bit % 8u);
        refused += net_state_restore(&state, saved, sizeof saved) == NET_ERROR_STATE;
        saved[bit / 8u] ^= (uint8_t)(1u << bit % 8u);
    }
    printf(" %d", refused - 8 * (int)sizeof saved);
    printf(" %d\\n", (int)net_run(&inputs, &outputs, &state, workspace));
    return 0;
}
"""


def test_a_state_is_saved_restored_and_refused(tmp_path: Path) -> None:
    """A state that was restored runs on; a damaged one is neither run, saved nor restored."""
    artifact = built(from_tflite(running_sum(np.ones((1, 2), np.float32))), FaultChecks.START)
    for file in artifact.sources:
        (tmp_path / file.path).write_text(file.text)
    (tmp_path / "main.c").write_text(STATES)
    sources = [str(path) for path in tmp_path.glob("*.c")]
    command = ["gcc", *STRICT, *SANITIZED, *sources, "-o", str(tmp_path / "program"), "-lm"]
    subprocess.run(command, check=True, timeout=60)
    program = [str(tmp_path / "program")]
    said = subprocess.run(program, check=True, capture_output=True, text=True, timeout=60).stdout
    assert said.split() == ["0", "0", "0", "-8", "-8", "0", "0", "0", "0", "0"]
