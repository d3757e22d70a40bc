"""Register blocks in plain C, for CPUs without kernels of their own and for floats."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import microtir
from microtir import CompilationConfig, Target
from microtir.config.enums import Measure, Optimize
from microtir.module.ir_module import IRModule
from microtir.plan.ir import Plan
from microtir.rewrite.reference import execute
from microtir.tir.ir import Array
from tests.support.batch import load_batch
from tests.support.c_compilers import strict_problems
from tests.support.dsp_cases import (
    DspCase,
    cases,
    convolution,
    floating,
    floating_dense,
    fully_connected,
    grouped,
    in_floats,
    in_int16,
    matmul,
    transposed,
)
from tests.support.forced import forced
from tests.support.kernel_cases import TILED, found
from tests.support.remainders import thinned
from tests.support.seeds import is_soak, seeds

CONFIG = CompilationConfig.from_target(Target("c -mcpu=cortex-m3"))
RISCV = CompilationConfig.from_target(Target("c -mcpu=esp32c3"))
ZBB = CompilationConfig.from_target(Target("c -march=rv32imc_zbb"))
FLOATS = CompilationConfig(targets="c -mcpu=cortex-m4", measure=Measure.INSTRUCTIONS)
APART = FLOATS.with_(measure=Measure.CYCLES)
PER_KIND, PER_TILED = 40, 3
# At least this many of the cases must reach the blocks, or the tests say little: four fifths
# of those that did when this was written.
EXPECTED = {
    "conv_f32_4x4_c": 8, "conv_f32_4x4_c_no_fp_contract": 7,
    "matmul_f32_4x4_c": 4, "matmul_f32_4x4_c_no_fp_contract": 7,
    "tconv_f32_4x4_c": 2, "tconv_f32_4x4_c_no_fp_contract": 6,
    "conv_s16_4x2_c": 3, "conv_s16_4x4_c": 1, "dense_s16_1x8_c": 2, "dwconv_s16_4x1_c": 1,
    "conv_s8_4x2_c": 20, "conv_s8_4x2_c_compact": 4, "conv_s8_4x4_c": 3, "conv_s8_4x4_zbb": 8,
    "dense_f32_1x8_c": 3, "dense_f32_1x8_c_no_fp_contract": 3, "dense_s8_1x8_c": 8,
    "dense_s8_1x8_zbb": 1, "direct_f32_zbb": 2, "dwconv_f32_6x1_c": 1,
    "dwconv_f32_6x1_c_no_fp_contract": 4, "dwconv_s8_4x1_c": 16, "dwconv_s8_6x1_c": 7,
    "dwconv_s8_6x1_zbb": 4, **dict.fromkeys(TILED, PER_TILED),
}  # fmt: skip


def some_cases() -> list[DspCase]:
    """int8 of every kind, and layers with weights of int16 and of floats."""
    floats = [floating(seed, depthwise=bool(seed % 2)) for seed in seeds(0, PER_KIND)]
    dense = [floating_dense(seed) for seed in seeds(0, PER_KIND // 2)]
    others = [
        in_floats(f"float_{make.__name__}_{seed}", seed, make(seed))
        for seed in seeds(0, PER_KIND)
        for make in (grouped, matmul, transposed)
    ]
    wide = [
        in_int16(seed, make(seed))
        for seed in seeds(0, PER_KIND // 5)
        for make in (convolution, partial(convolution, depthwise=True), fully_connected)
    ]
    drawn = [*cases(PER_KIND, seeds(900, PER_KIND).start), *floats, *dense, *others, *wide]
    return thinned(drawn, several=2)  # each is for one CPU of several


def compiled(case: DspCase, chosen: Counter[str]) -> microtir.Artifact:
    """The C of a case; counts the kernel that was chosen for it."""
    config = FLOATS if case.inputs[0].dtype == np.float32 else CONFIG
    if config is FLOATS and case.name.endswith(("2", "3", "6", "7", "8")):
        config = APART
    if config is CONFIG and case.name.endswith(("1", "4", "7")):
        config = RISCV  # with blocks for 32 registers
    if config in (CONFIG, FLOATS) and case.name.endswith(("5", "9")):
        config = ZBB  # with clamps that take no branch, and without an FPU
    named = config.with_(module_name=f"{case.name}_blocked", optimize=Optimize.SPEED)
    return built(case, named, chosen)


def built(case: DspCase, config: CompilationConfig, chosen: Counter[str]) -> microtir.Artifact:
    """The C of a case with a configuration; counts the kernel that was chosen for it."""

    def observe(stage: str, result: object) -> None:
        if stage == "plan":
            assert isinstance(result, Plan)
            chosen.update(op.candidate.kernel for op in result.operators)

    return microtir.build(IRModule(graph=case.graph), config, observe=observe)


def tiles(folder: Path) -> Iterator[tuple[DspCase, CompilationConfig]]:
    """Cases of Winograd's kernels, each with records by which no other one is chosen."""
    for number, (kernel, config) in enumerate(TILED.items()):
        for case, operator in found(kernel, PER_TILED):
            named = config.with_(
                module_name=f"{case.name}_{number}_blocked", optimize=Optimize.SPEED
            )
            yield case, forced(named, [operator.node], kernel, folder)


@pytest.fixture(scope="module")
def batch(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[list[DspCase], list[microtir.Artifact]]:
    """Cases and their artifacts; blocks are among them often enough."""
    chosen: Counter[str] = Counter()
    some = some_cases()
    artifacts = [compiled(case, chosen) for case in some]
    for case, config in tiles(tmp_path_factory.mktemp("records")):
        some.append(case)
        artifacts.append(built(case, config, chosen))
    reached = all(chosen[kernel] >= least for kernel, least in EXPECTED.items())
    assert reached or is_soak(), chosen
    return some, artifacts


def expected(some: Sequence[DspCase]) -> list[Array]:
    """What the numpy reference computes for each case."""
    return [execute(case.graph, case.named_inputs())["y"] for case in some]


@pytest.mark.soak
@pytest.mark.timeout(900)  # hundreds of programs
def test_blocks_equal_the_reference(
    batch: tuple[list[DspCase], list[microtir.Artifact]], tmp_path: Path
) -> None:
    """Integers to the bit, floats within 1e-5, for any shape, border and quantisation."""
    some, artifacts = batch
    for case, model, want in zip(
        some, load_batch(artifacts, tmp_path), expected(some), strict=True
    ):
        got = model.run(case.named_inputs())["y"]
        if want.dtype == np.float32:
            # Terms of size 1 may cancel: what matters is how large their sum could have been.
            scale = max(1.0, float(case.inputs[0].size) ** 0.5, float(np.abs(want).max(initial=0)))
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6 * scale, err_msg=case.name)
        else:
            np.testing.assert_array_equal(got, want, err_msg=case.name)


def multiply_adds(artifact: microtir.Artifact, folder: Path) -> int:
    """Instructions of a Cortex-M4 that multiply floats and add."""
    for file in artifact.sources:
        (folder / file.path).write_text(file.text, encoding="utf-8")
    source = next(f.path for f in artifact.sources if f.path.endswith("_blocked.c"))
    flags = ("-mcpu=cortex-m4", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16", "-mthumb", "-O2")
    text = subprocess.run(
        ["arm-none-eabi-gcc", *flags, "-S", "-o", "-", source],
        cwd=folder, check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    return len(re.findall(r"vfn?m[as]|vn?ml[as]", text))


@pytest.mark.parametrize("depthwise", [False, True])
def test_products_and_sums_stay_apart(tmp_path: Path, depthwise: bool) -> None:
    """Gcc joins them wherever it may, and nowhere in kernels that keep them apart."""
    case = floating(4, depthwise=depthwise)
    found = []
    for config in (FLOATS, APART):
        named = config.with_(module_name="m_blocked", optimize=Optimize.SPEED)
        artifact = microtir.build(IRModule(graph=case.graph), named)
        found.append(multiply_adds(artifact, tmp_path))
    assert found[0] > 0 and found[1] == 0


COMPILERS = {"arm-none-eabi-gcc": ("-mcpu=cortex-m3", "-mthumb"), "clang": (), "gcc": ()}


@pytest.mark.parametrize("compiler", COMPILERS)
def test_no_compiler_warns(
    batch: tuple[list[DspCase], list[microtir.Artifact]], tmp_path: Path, compiler: str
) -> None:
    """The blocks pass the strict set."""
    _, artifacts = batch
    by_size = sorted(artifacts, key=lambda a: sum(len(file.text) for file in a.sources))
    for artifact in by_size[-2:]:
        for file in artifact.sources:
            (tmp_path / file.path).write_text(file.text, encoding="utf-8")
    assert strict_problems(tmp_path, compiler, "c99", *COMPILERS[compiler]) == ""
