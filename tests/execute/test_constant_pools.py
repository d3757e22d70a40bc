"""Constants in pools: sections, memory that a run is given, limits, and who gets the fast one."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import microtir
from microtir import CompilationConfig, Executor, Runtime, host, te
from microtir.artifact import Artifact
from microtir.config import ConstantPoolInfo
from microtir.dtype import DType
from microtir.errors import MemoryPlanError
from microtir.memory import Constant, place_constants
from microtir.support.names import c_name, macro_name
from microtir.tir.ir import Buffer
from microtir.tir.memory_plan import ConstantPlan
from tests.support.c_compilers import HOST_COMPILERS, compiler_output, strict_problems
from tests.support.small_models import module_of, quantised_graph, reference_outputs, sample_inputs

_FAST: dict[str, object] = {"size_hint_bytes": 70, "section": ".rodata.fast"}
_SLOW: dict[str, object] = {"section": ".rodata.slow", "byte_alignment": 16}
FAST = ConstantPoolInfo("itcm-rom", (), {**_FAST, "is_internal": True})
SLOW = ConstantPoolInfo("flash", (), {**_SLOW, "is_internal": True})
PASSED_FAST, PASSED_SLOW = (
    ConstantPoolInfo("itcm-rom", (), _FAST),
    ConstantPoolInfo("flash", (), _SLOW),
)
BETWEEN = ConstantPoolInfo("rest", (), {"is_internal": True, "size_hint_bytes": 40})
PACKED = Executor("aot", {"interface-api": "packed"})


def built(*pools: ConstantPoolInfo, **changes: Any) -> Artifact:
    """A convolution, whose weights are read for each pixel, and a layer that reads its own once."""
    config = CompilationConfig(targets="c", optimize="ram-least", constant_pools=pools)
    config = config.with_(**changes)
    return microtir.build(module_of(quantised_graph()), config)


def array(name: str, size: int, alignment: int, users: tuple[str, ...], read: int) -> Constant:
    """An array of constants."""
    return Constant(Buffer(name, (size,), DType.INT8), name, size, alignment, users, read)


def numbers(plan: ConstantPlan) -> dict[str, int]:
    """The pool of each array."""
    return {buffer.name: place.pool for buffer, place in plan.places.items()}


def test_the_weights_that_are_read_most_get_the_fast_pool(tmp_path: Path) -> None:
    """Arrays lie in their sections, the hot ones in the first; nothing else changes."""
    artifact = built(FAST, SLOW)
    text = artifact.source("default_weights.c")
    declared = re.findall(r'CONSTANT_SECTION\("(.*?)"\)\n.*? const \w+ (\w+)\[', text)
    sections = {name: section for section, name in declared}
    assert sections["default_layer0_weights"] == ".rodata.fast"
    assert sections["default_layer2_weights"] == ".rodata.slow"
    fast, slow = artifact.metadata.constant_pools
    assert 0 < fast.size <= 70 and slow.size % 4 == 0
    assert "#define DEFAULT_ITCM_ROM_CONSTANT_POOL_SIZE" in artifact.source("default.h")
    folder = artifact.export(tmp_path / "out")
    assert strict_problems(folder, "gcc", "c99") == ""
    command = ["gcc", "-c", "default_weights.c", "-o", "w.o"]
    subprocess.run(command, cwd=folder, check=True)
    done = subprocess.run(
        ["objdump", "-h", "w.o"], cwd=folder, check=True, capture_output=True, text=True
    )
    assert ".rodata.fast" in done.stdout and ".rodata.slow" in done.stdout


def test_pools_change_no_result() -> None:
    """The outputs are the reference's."""
    model = quantised_graph()
    inputs = sample_inputs(model)
    (expected,) = reference_outputs(model, inputs).values()
    (result,) = host.load(built(SLOW, FAST)).run(inputs).values()
    np.testing.assert_array_equal(result, expected)


PASSED: Mapping[str, Mapping[str, Any]] = {
    "structs": {},
    "packed": {"executor": PACKED},
    "packed_operators": {"executor": PACKED.with_options({"unpacked-api": False})},
    "system_library": {"runtime": Runtime("crt", {"system-lib": True})},
    "graph": {"executor": Executor("graph", {"link-params": True})},
    "debug": {"executor": Executor("debug", {"link-params": True})},
    "shared_bodies": {"optimize": "flash"},
    "several_workspaces": {"workspace_pools": ["in", "constants"]},  # names that C code has, too
}  # fmt: skip


@pytest.mark.parametrize("name", PASSED)
def test_pools_that_are_passed_change_no_result(name: str) -> None:
    """Bytes at the promised alignment, read under sanitizers, give the reference's outputs."""
    model = quantised_graph()
    inputs = sample_inputs(model)
    (expected,) = reference_outputs(model, inputs).values()
    artifact = built(PASSED_FAST, BETWEEN, PASSED_SLOW, **PASSED[name])
    sizes = [pool.size for pool in artifact.metadata.constant_pools]
    assert min(sizes) > 0 and len(artifact.data) == 2
    (result,) = host.load(artifact, sanitize=True).run(inputs).values()
    np.testing.assert_array_equal(result, expected)


APPLICATION = """
#include <stdint.h>
#include <stdio.h>
#include "default.h"
#include "default_constant_pools.h"

static DEFAULT_ITCM_ROM_CONSTANT_POOL(fast) = DEFAULT_ITCM_ROM_CONSTANT_POOL_DATA;
static DEFAULT_FLASH_CONSTANT_POOL(slow) = DEFAULT_FLASH_CONSTANT_POOL_DATA;
static DEFAULT_WORKSPACE(workspace);

int main(void)
{
    static const int8_t image[DEFAULT_IMAGE_SIZE] = {1, 2, 3};
    static int8_t scores[DEFAULT_SCORES_SIZE];
    static DEFAULT_ALIGNED(16) uint8_t moved[sizeof fast + 1];
    const struct default_inputs inputs = {image};
    const struct default_outputs outputs = {scores};

    for (unsigned int i = 0; i < sizeof fast; i++) {
        moved[i + 1] = fast[i];
    }
    if ((uintptr_t)slow % 16 != 0
        || default_run(&inputs, &outputs, workspace, NULL, slow) != DEFAULT_ERROR_NULL_POINTER
        || default_run(&inputs, &outputs, workspace, moved + 1, slow) != DEFAULT_ERROR_PARAMETERS
        || default_run(&inputs, &outputs, workspace, slow, fast) != DEFAULT_ERROR_PARAMETERS
        || default_run(&inputs, &outputs, workspace, fast, slow) != DEFAULT_OK) {
        return 1;
    }
    for (unsigned int i = 0; i < sizeof scores; i++) {
        printf("%d ", scores[i]);
    }
    return 0;
}
"""


@pytest.mark.parametrize("compiler", HOST_COMPILERS)
def test_an_application_declares_what_it_passes(compiler: str, tmp_path: Path) -> None:
    """The header's macros: memory in the section, its bytes; another pool's bytes are refused."""
    artifact = built(PASSED_FAST, PASSED_SLOW)
    folder = artifact.export(tmp_path / "out")
    assert strict_problems(folder, compiler, "c99") == ""
    (folder / "main.c").write_text(APPLICATION)
    units = ["main.c", *(f.path for f in artifact.sources if f.path.endswith(".c"))]
    flags = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    assert compiler_output([compiler, *flags, *units, "-o", "app"], folder) == ""
    done = subprocess.run(["./app"], cwd=folder, check=True, capture_output=True, text=True)
    image = np.zeros((1, 3, 4, 1), np.int8)
    image.flat[:3] = [1, 2, 3]
    (expected,) = reference_outputs(quantised_graph(), {"image": image}).values()
    assert [int(text) for text in done.stdout.split()] == expected.ravel().tolist()
    assert compiler_output([compiler, *flags, "-c", "main.c"], folder) == ""
    listed = subprocess.run(
        ["objdump", "-h", "main.o"], cwd=folder, check=True, capture_output=True, text=True
    )
    assert ".rodata.fast" in listed.stdout and ".rodata.slow" in listed.stdout


def test_files_hold_what_the_macros_say() -> None:
    """Memory may be filled from a file as well: it begins with the identity of the header."""
    artifact = built(PASSED_FAST, PASSED_SLOW)
    header = artifact.source("default_constant_pools.h")
    for file, pool in zip(artifact.data, artifact.metadata.constant_pools, strict=True):
        assert file.path == pool.file and len(file.content) == pool.size
        assert pool.identity == f"0x{int.from_bytes(file.content[:4], 'little'):08x}"
        macro = f"{macro_name(c_name(pool.name))}_CONSTANT_POOL_DATA"
        text = re.sub(r"/\*.*?\*/", "", header.split(macro)[1].split("}")[0])
        assert bytes(map(int, re.findall(r"\d+", text))) == file.content


def test_functions_of_a_user_take_pools() -> None:
    """A table in a pool comes after the function's own arguments."""
    table = te.constant(np.arange(7, dtype=np.int32), "table")
    x = te.placeholder((7,), DType.INT32, "x")
    schedule = te.create_schedule(te.compute((7,), lambda i: x[i] + table[i], "y"))
    config = CompilationConfig(targets="c", constant_pools=["flash"])
    artifact = microtir.build(schedule, config)
    assert "const int32_t *x, int32_t *y, const void *flash);" in artifact.source("default.h")
    y = np.zeros(7, np.int32)
    host.load(artifact, sanitize=True)["main"](np.full(7, 5, np.int32), y)
    np.testing.assert_array_equal(y, np.arange(5, 12))


def test_costs_decide_before_the_order() -> None:
    """A pool that is slow to read is taken last, wherever it is declared."""
    slow = ConstantPoolInfo("slow", (), {"read_latency_cycles": 8})
    config = CompilationConfig(targets="c", constant_pools=[slow, FAST])
    arrays = [array("a", 60, 4, ("f",), 600), array("b", 30, 4, ("g",), 30)]
    assert numbers(place_constants(config, arrays)) == {"a": 1, "b": 0}


def test_large_arrays_choose_first_where_hot_ones_leave_no_room() -> None:
    """Two pools that hold all only if the large array gets the large one."""
    pools = [
        ConstantPoolInfo(name, (), {"size_hint_bytes": size, "is_internal": True})
        for name, size in (("large", 64), ("small", 16))
    ]
    config = CompilationConfig(targets="c", constant_pools=pools)
    arrays = [array("hot", 16, 4, ("f",), 900), array("large", 64, 4, ("g",), 64)]
    assert numbers(place_constants(config, arrays)) == {"hot": 1, "large": 0}


def test_exhaustion_names_arrays_layers_and_bytes() -> None:
    """What has room nowhere, who reads it, and what the pools hold."""
    with pytest.raises(MemoryPlanError) as caught:
        built(FAST)
    assert caught.value.where == "constant_pools.size_hint_bytes"
    text = str(caught.value)
    assert re.search(r"constants of \d+ bytes do not fit into any pool", text)
    assert re.search(r"'itcm-rom' has a limit of 70 bytes, of which \d+ are used", text)
    assert "layer2_weights: 180 bytes for FULLY_CONNECTED 'scores_node'" in text


@pytest.mark.parametrize("is_internal", [True, False])
def test_exhaustion_of_passed_pools_counts_what_they_begin_with(is_internal: bool) -> None:
    """The number that a passed pool begins with takes room: 264 bytes of arrays need 268."""
    pool = ConstantPoolInfo("all", (), {"size_hint_bytes": 266, "is_internal": is_internal})
    if is_internal:
        assert built(pool).metadata.constant_pools[0].size <= 266
        return
    with pytest.raises(
        MemoryPlanError, match=r"'all' has a limit of 266 bytes, of which \d+ are used"
    ):
        built(pool)
