"""The packed interface: models found by name, as the RFC's own example configuration asks for."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from microtir import host
from microtir.config import CompilationConfig, Executor, Runtime, Target
from tests.support.c_compilers import INCLUDES, STRICT, compiler_output
from tests.support.programs import artifact_of, image, matmul_module, model_module

SANITIZERS = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


def _rfc_config(name: str) -> CompilationConfig:
    """Return the example of TVM's RFC on its configuration, whose C never compiled there."""
    return CompilationConfig(
        target_host=Target("c"),
        targets=[Target("c -mcpu=cortex-m4")],
        executor=Executor("aot", {"interface-api": "c", "unpacked-api": True}),
        runtime=Runtime("crt", {"system-lib": True}),
        module_name=name,
    )


MODEL_MAIN = r"""
#include <stdio.h>
#include "net.h"
#include "microtir/runtime.h"

static NET_WORKSPACE(memory);

int main(void)
{
    static const int8_t input[NET_IMAGE_ELEMENTS] = {%(input)s};
    int8_t image[NET_IMAGE_ELEMENTS];
    int8_t scores[NET_SCORES_ELEMENTS];
    static const int64_t image_shape[] = NET_IMAGE_SHAPE;
    static const int64_t scores_shape[] = NET_SCORES_SHAPE;
    static const int64_t memory_shape[] = {NET_WORKSPACE_SIZE};
    for (int i = 0; i < NET_IMAGE_ELEMENTS; i++) {
        image[i] = input[i];
    }
    struct microtir_tensor in = {
        image, NET_IMAGE_RANK, {MICROTIR_ELEMENT_SIGNED, 8}, image_shape, NULL, 0};
    struct microtir_tensor out = {
        scores, NET_SCORES_RANK, {MICROTIR_ELEMENT_SIGNED, 8}, scores_shape, NULL, 0};
    struct microtir_tensor workspace = {
        memory, 1, {MICROTIR_ELEMENT_UNSIGNED, 8}, memory_shape, NULL, 0};
    union microtir_value args[] = {{.v_tensor = &in}, {.v_tensor = &out}, {.v_tensor = &workspace}};
    int32_t kinds[] = {MICROTIR_KIND_TENSOR, MICROTIR_KIND_TENSOR, MICROTIR_KIND_TENSOR};
    int32_t count = 3;
    int32_t result_kind = 99;
    microtir_packed_function run = NULL;
    int32_t status = microtir_module_find(microtir_system_lib_entry_point(), "net_run", &run);
    if (status != MICROTIR_OK) {
        return 1;
    }
    %(change)s
    status = run(args, kinds, count, NULL, &result_kind, NULL);
    printf("%%ld %%ld", (long)status, (long)result_kind);
    for (int i = 0; status == MICROTIR_OK && i < NET_SCORES_ELEMENTS; i++) {
        printf(" %%d", scores[i]);
    }
    return 0;
}
"""


def _run_main(folder: Path, text: str) -> list[int]:
    """Compile everything in the folder with `text` as main and return the numbers it prints."""
    (folder / "main.c").write_text(text)
    units = [p.relative_to(folder).as_posix() for p in sorted(folder.rglob("*.c"))]
    command = ["gcc", "-std=c99", *STRICT, *SANITIZERS, *INCLUDES, *units, "-o", "program"]
    assert compiler_output(command, folder) == ""
    done = subprocess.run(
        [str(folder / "program")], capture_output=True, text=True, timeout=60, check=False,
        env={"ASAN_OPTIONS": "detect_leaks=0"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return [int(number) for number in done.stdout.split()]


def _model_main(folder: Path, change: str = "") -> list[int]:
    artifact_of(model_module(_rfc_config("net"))).export(folder)
    values = ", ".join(str(v) for v in image().ravel())
    return _run_main(folder, MODEL_MAIN % {"input": values, "change": change})


def test_example_of_the_rfc(tmp_path: Path) -> None:
    """The RFC's example compiles without a conflicting prototype, links, runs, and is right."""
    status, kind, *scores = _model_main(tmp_path / "out")
    expected = host.load(artifact_of(model_module())).run({"image": image()})["scores"]
    assert (status, kind) == (0, 0)
    assert np.array_equal(np.array(scores), expected.ravel())


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ("count = 2;", -102),
        ("kinds[0] = MICROTIR_KIND_HANDLE;", -103),
        ("in.dtype.element = MICROTIR_ELEMENT_UNSIGNED;", -105),
        ("out.rank = 1;", -106),
        ("in.shape = scores_shape;", -107),
        ("args[1].v_tensor = NULL;", -101),
        ("in.data = NULL;", -101),
        ("workspace.byte_offset = 1;", -109),
        ("static const int64_t few[] = {NET_WORKSPACE_SIZE - 1}; workspace.shape = few;", -110),
    ],
)
def test_wrong_arguments(tmp_path: Path, change: str, status: int) -> None:
    """Each way to call the packed function wrongly is refused with its own status."""
    assert _model_main(tmp_path / "out", change) == [status, 0]


MATMUL_MAIN = r"""
#include <stdio.h>
#include "algebra_packed.h"

int main(void)
{
    float a[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    float b[12] = {1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1};
    float c[6] = {0};
    const int64_t shapes[3][2] = {{2, 4}, {4, 3}, {2, 3}};
    const struct microtir_dtype real = {MICROTIR_ELEMENT_FLOAT, 32};
    const struct microtir_tensor ta = {a, 2, real, shapes[0], NULL, 0};
    const struct microtir_tensor tb = {b, 2, real, shapes[1], NULL, 0};
    const struct microtir_tensor tc = {c, 2, real, shapes[2], NULL, 0};
    const union microtir_value args[] = {
        {.v_tensor = &ta}, {.v_tensor = &tb}, {.v_tensor = &tc}, {.v_integer = %(n)s}};
    const int32_t kinds[] = {MICROTIR_KIND_TENSOR, MICROTIR_KIND_TENSOR, MICROTIR_KIND_TENSOR,
                             MICROTIR_KIND_INTEGER};
    struct microtir_registry registry = {{NULL}, 0};
    microtir_packed_function run = NULL;
    if (microtir_registry_add(&registry, algebra_module()) != MICROTIR_OK
        || microtir_registry_find(&registry, "algebra_matmul", &run) != MICROTIR_OK) {
        return 1;
    }
    printf("%%ld", (long)run(args, kinds, 4, NULL, NULL, NULL));
    for (int i = 0; i < 6; i++) {
        printf(" %%d", (int)c[i]);
    }
    return 0;
}
"""


@pytest.mark.parametrize(
    ("n", "expected"),
    [
        ("2", [0, 5, 6, 7, 13, 14, 15]),
        ("9", [-104, 0, 0, 0, 0, 0, 0]),  # outside the declared range
        ("3", [-107, 0, 0, 0, 0, 0, 0]),  # the tensors have two rows
        ("INT64_C(4294967298)", [-104, 0, 0, 0, 0, 0, 0]),  # 2 in the lower 32 bits
    ],
)
def test_function_with_an_integer(tmp_path: Path, n: str, expected: list[int]) -> None:
    """A user's function takes its integer and checks shapes that depend on it."""
    folder = artifact_of(matmul_module(_rfc_config("algebra"))).export(tmp_path / "out")
    assert _run_main(folder, MATMUL_MAIN % {"n": n}) == expected


def test_two_models_in_one_program(tmp_path: Path) -> None:
    """Without their system libraries two models link together, and a registry finds both."""
    folder = tmp_path / "out"
    artifact_of(model_module(_rfc_config("one"))).export(folder)
    for file in artifact_of(model_module(_rfc_config("two"))).sources:
        (folder / file.path).parent.mkdir(parents=True, exist_ok=True)
        (folder / file.path).write_text(file.text)
    for name in ("one", "two"):
        (folder / f"{name}_system_lib.c").unlink()
    main = """
#include <stdio.h>
#include "one_packed.h"
#include "two_packed.h"

int main(void)
{
    struct microtir_registry registry = {{NULL}, 0};
    microtir_packed_function one = NULL;
    microtir_packed_function two = NULL;
    printf("%d ", (int)microtir_registry_add(&registry, one_module()));
    printf("%d ", (int)microtir_registry_add(&registry, two_module()));
    printf("%d ", (int)microtir_registry_find(&registry, "one_run", &one));
    printf("%d ", (int)microtir_registry_find(&registry, "two_run", &two));
    printf("%d", one != two);
    return 0;
}
"""
    assert _run_main(folder, main) == [0, 0, 0, 0, 1]
