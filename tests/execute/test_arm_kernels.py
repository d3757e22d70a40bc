"""Kernels in assembly: portable twins on this machine, assembly on emulated Arm cores."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import microtir
from microtir import CompilationConfig, Target
from microtir.config.enums import Optimize
from microtir.dtype import DType
from microtir.kernels.arm_dsp.bilinear import BilinearWords
from microtir.module.ir_module import IRModule
from microtir.operators.pooling.definition import AveragePool2D
from microtir.plan.ir import Plan
from microtir.rewrite.reference import execute
from tests.support import c_compilers
from tests.support.batch import load_batch
from tests.support.block_dense_cases import block_dense
from tests.support.c_compilers import strict_problems
from tests.support.dsp_cases import (
    LONG,
    DspCase,
    cases,
    convolution,
    framed,
    fully_connected,
    grouped,
    in_float_rescaling,
    in_int16,
    in_int16_and_float,
    in_whole_floats,
    lines,
    long_sums,
    longest_sums,
    matmul,
    matmul_of_int16,
    multiplied,
    pool_of_floats,
    pool_of_int16,
    pool_of_uint8,
    summed,
    transposed,
    with_wide_weights,
)
from tests.support.elementwise_cases import (
    arithmetic,
    elementwise,
    of_floats,
    rescaled,
    sigmoid,
)
from tests.support.emulated_arm import M4, M55, Machine, differing
from tests.support.float_edge_cases import float_edge, float_row
from tests.support.forced import forced
from tests.support.kernel_cases import TARGETS, found
from tests.support.lstm_cases import gated
from tests.support.moving_cases import moving
from tests.support.program_text import program_text
from tests.support.reduced_cases import normalised, reduced, softmaxed
from tests.support.remainders import thinned
from tests.support.resize_cases import resized
from tests.support.seeds import is_soak, seeds
from tests.support.svdf_cases import remembering

GATED = DType.INT8, DType.INT16
# Drawn; run are those that add a remainder or an attribute.
PER_KIND, PER_WIDE, PER_FORCED, PER_IN_FLOAT, PER_MOVING, PER_REDUCED = 60, 20, 20, 12, 48, 80
PER_ELEMENTWISE, PER_EDGE, PER_ARITHMETIC = 120, 48, 72
PER_SOFTMAX, PER_SVDF, PER_BLOCKS, PER_LSTM = 24, 10, 40, 16  # all are run
PER_FLOATS, PER_SIGMOID, PER_RESIZED, PER_ROW, PER_NORMALISED = 8, 40, 60, 60, 12
PER_FLOAT_ROW = 17
RARE = ("conv_s8_2x4_dsp_bytes", "conv_s8_2x4_dsp_compact", "conv_s8_4x2_dsp", "conv_s8_8x1_dsp",
        "dwconv_s8_1x4_dsp", "dwconv_s8_4x1_dsp", "conv_s8_1x8_dsp_bytes", "dwconv_s8_1x4_dsp_rows",
        "conv_s8_16x2_dsp_winograd", "conv_s8_8x2_dsp_winograd", "conv_s8_4x4_dsp_winograd",
        "conv_s8_16x2_dsp_winograd_bands_2", "conv_s8_16x2_dsp_winograd_bands_4",
        "conv_s16_2x2_dsp_wide", "dwconv_s16_2x2_dsp_wide", "pool_s8_1x4_dsp_windows",
        "pool_s8_1x4_dsp", "dense_s8_1x8_dsp", "dense_s4_1x8_dsp", "dense_s8_2x4_dsp_compact",
        "conv_s4_2x4_dsp", "dwconv_s8_2x4_dsp", "dwconv_s8_4x1_dsp_windows",
        "dwconv_s8_4x1_dsp_turned")  # fmt: skip


@dataclass(frozen=True)
class Core:
    """A CPU with kernels of its own.

    At least `expected` of the cases must reach each kernel, or the tests say little: four fifths of
    those that did when this was written. Those that are `forced`, since few plans of a single layer
    take them at `speed`, are free by tuning records.
    """

    mcpu: str
    machine: Machine
    triple: str
    instruction: str  # that only its own kernels have
    expected: Mapping[str, int]
    forced: tuple[str, ...] = ()

    @property
    def config(self) -> CompilationConfig:
        return CompilationConfig.from_target(Target(f"c -mcpu={self.mcpu}"))


CORES = {
    "dsp": Core("cortex-m4", M4, "thumbv7em-none-eabi", "smlad", {
        "conv_s8_1x8_dsp_bytes": 13, "conv_s8_2x4_dsp": 23,
        "conv_s8_2x4_dsp_bytes": 12, "conv_s8_2x4_dsp_compact": 7, "conv_s8_4x2_dsp": 16,
        "conv_s8_16x2_dsp_winograd": 6, "conv_s8_8x2_dsp_winograd": 9,
        "conv_s8_4x4_dsp_winograd": 7, "conv_s8_16x2_dsp_winograd_bands_2": 5,
        "conv_s8_16x2_dsp_winograd_bands_4": 5,
        "conv_s16_2x4_dsp": 10, "conv_s16_2x2_dsp_wide": 10, "dense_s16_1x8_dsp": 4,
        "dense_s16_1x4_dsp_wide": 6, "dwconv_s16_4x2_dsp": 3, "dwconv_s16_2x2_dsp_wide": 8,
        "conv_s8_8x1_dsp": 8, "dense_s8_1x8_dsp": 11, "dwconv_s8_1x4_dsp": 6,
        "dwconv_s8_1x4_dsp_rows": 12, "dwconv_s8_1x4_dsp_sums": 6, "dwconv_s8_2x4_dsp": 22,
        "runs_dsp": 25, "dwconv_s8_4x1_dsp": 11, "matmul_s8_2x4_dsp": 10, "matmul_s16_2x2_dsp": 4,
        "pool_s8_1x4_dsp": 3,
        "pool_s8_1x4_dsp_windows": 5,
        "tconv_s8_2x4_dsp": 4, "tconv_s8_4x2_dsp": 1, "frames_conv_s8_2x4_dsp": 4,
        "frames_conv_s8_4x2_dsp": 1,
        "reduce_s8_1x4_dsp": 14, "lanes_s8_1x4_dsp": 36, "tconv_s16_2x4_dsp": 3,
        "quantize_f32_1x4_dsp": 21, "dequantize_f32_1x4_dsp": 5,
        "lanes_f32_1x8_dsp": 30, "pool_f32_1x8_dsp": 4, "sigmoid_s16_1x2_dsp": 10,
        "arithmetic_s8_1x1_dsp": 40, "blocks_s8_1x4_dsp": 2, "lstm_s8_1x8_dsp": 10,
        "dense_s4_1x8_dsp": 2, "conv_s4_2x4_dsp": 6, "dense_s8_2x4_dsp": 12, "dense_s8_4x2_dsp": 1,
        "dense_s8_2x4_dsp_compact": 5,
        "softmax_s8_1x4_dsp": 19, "svdf_s8_1x8_dsp": 8, "l2norm_s8_1x4_dsp": 9,
        "dwconv_s8_4x1_dsp_windows": 14, "dwconv_s8_4x1_dsp_turned": 6, "bilinear_s8_1x4_dsp": 21,
    }, RARE),
    "mve": Core("cortex-m55", M55, "thumbv8.1m.main-none-eabihf", "vqrdmulh.s32", {
        "conv_s16_2x4_mve": 12, "dense_s16_2x4_mve": 3, "dwconv_s16_1x8_mve": 8,
        "conv_s8_2x4_mve": 55, "dense_s8_2x4_mve": 16,
        "dwconv_s8_1x16_mve": 25, "dwconv_s8_1x4_dsp_sums": 6,
        "pool_s8_1x16_mve": 3, "pool_s8_1x16_mve_windows": 5,
        "frames_conv_s8_2x4_mve": 6,
        "tconv_s8_2x4_mve": 8, "tconv_s16_2x4_mve": 3,
        "conv_s16_2x4_mve_wide": 9, "dense_s16_2x4_mve_wide": 6,
        "dwconv_s16_1x8_mve_wide": 9, "runs_mve": 14, "reduce_s8_1x16_mve": 8,
        "lanes_s8_1x16_mve": 48, "arithmetic_s8_1x4_mve": 40,
        "softmax_s8_1x4_mve": 18, "svdf_s8_1x4_mve": 8, "l2norm_s8_1x8_mve": 9,
        "dwconv_s8_1x16_mve_turned": 6, "dwconv_s16_1x8_mve_turned": 6,
        "quantize_f32_1x4_mve": 20, "dequantize_f32_1x4_mve": 5,
        "matmul_s8_2x4_mve": 4, "lstm_s8_1x4_mve": 12, "lstm_s16_1x4_mve": 12,
        "bilinear_s8_1x8_mve": 8,
        "conv_f32_4x4_mve": 6, "dwconv_f32_6x4_mve": 4, "tconv_f32_4x4_mve": 3,
        "dense_f32_1x24_mve": 3, "matmul_f32_4x4_mve": 1, "matmul_s16_2x2_mve": 9,
    }, ("conv_s16_2x4_mve_wide", "dwconv_s16_1x8_mve_wide", "dwconv_s8_1x16_mve_turned",
        "dwconv_s16_1x8_mve_turned", "pool_s8_1x16_mve",
        "pool_s8_1x16_mve_windows")),
}  # fmt: skip

Batch = tuple[Core, list[DspCase], list[microtir.Artifact]]


def layers() -> list[DspCase]:
    """Return random layers of every kind, those that add a remainder or an attribute."""
    drawn = cases(PER_KIND, seeds(0, PER_KIND).start)
    made = (
        make(seed)
        for make in (matmul, matmul_of_int16, grouped, transposed, lines, multiplied)
        for seed in seeds(600, PER_KIND)
    )
    moves = map(moving, seeds(0, PER_MOVING))
    reductions = [*map(reduced, seeds(0, PER_REDUCED)), *layers_of_pooled_types()]
    extremes = map(elementwise, seeds(0, PER_ELEMENTWISE))
    edges = [*map(float_edge, seeds(0, PER_EDGE)), *map(resized, seeds(0, PER_RESIZED))]
    sums = [*map(arithmetic, seeds(0, PER_ARITHMETIC)), *map(rescaled, seeds(0, PER_ARITHMETIC))]
    in_blocks = map(block_dense, seeds(0, PER_BLOCKS))
    floats = [*map(of_floats, seeds(0, PER_KIND)), *map(sigmoid, seeds(0, PER_SIGMOID))]
    pools = map(pool_of_floats, seeds(0, PER_FORCED))
    others = [*layers_of_floats(), *layers_of_int16(), *layers_in_float(), *wide_layers()]
    alone = thinned(
        [
            *drawn,
            *made,
            *moves,
            *reductions,
            *extremes,
            *edges,
            *floats,
            *pools,
            *sums,
            *in_blocks,
            *others,
        ]
    )
    remembered = [*map(remembering, seeds(0, PER_SVDF)), *images_of_words()]
    softmaxes = [*map(softmaxed, seeds(0, PER_SOFTMAX)), *map(normalised, seeds(0, PER_NORMALISED))]
    remembered += (gated(seed, of) for of in GATED for seed in seeds(0, PER_LSTM))
    remembered += map(float_row, seeds(0, PER_FLOAT_ROW))
    return [*alone, *map(framed, seeds(700, 8)), *softmaxes, *remembered]


def images_of_words() -> Iterator[DspCase]:
    """Yield random images of bytes, whose weights have few bits."""
    for case in map(resized, seeds(60, PER_RESIZED)):
        if BilinearWords().refusal(case.graph.nodes[0]) is None:
            yield case


def wide_layers() -> list[DspCase]:
    """Return random layers whose weights are int8 and a number, some with several sums."""
    image = convolution, partial(convolution, depthwise=True), grouped, transposed
    makers = *image, lines, fully_connected
    drawn = [with_wide_weights(n, make(n)) for n in seeds(800, PER_IN_FLOAT) for make in makers]
    long = (convolution(n, sizes=LONG, pointwise=True) for n in seeds(850, 4))
    rows = (with_wide_weights(n, single_row(n)) for n in seeds(860, PER_ROW))
    return [*drawn, *map(with_wide_weights, range(4), long), *filter(has_few_outputs, rows)]


def single_row(seed: int) -> DspCase:
    """Draw a FULLY_CONNECTED of one row; layers of several rows do not stand for it."""
    case = fully_connected(seed, (1,))
    return replace(case, name=case.name.replace("dense", "dense_row"))


def has_few_outputs(case: DspCase) -> bool:
    """Whether a FULLY_CONNECTED has few outputs and reads words: its sums share a block."""
    outputs, depth = case.graph.nodes[0].inputs[1].shape
    return 2 <= outputs <= 7 and depth % 4 == 0


def layers_in_float() -> list[DspCase]:
    """Return random layers with weights whose sums are rescaled in float32."""
    makers = convolution, partial(convolution, depthwise=True), fully_connected
    drawn = [make(seed) for seed in seeds(300, PER_IN_FLOAT) for make in makers]
    return [in_float_rescaling(case, has_ties=bool(n % 2)) for n, case in enumerate(drawn)]


def layers_of_floats() -> list[DspCase]:
    """Return random layers of small whole numbers, which every order of sums gives exactly."""
    makers = convolution, partial(convolution, depthwise=True), fully_connected, grouped, transposed
    drawn = [(seed, make(seed)) for seed in seeds(650, PER_FLOATS) for make in makers]
    drawn += [(seed, matmul(seed)) for seed in seeds(650, PER_WIDE)]
    return [in_whole_floats(seed, case) for seed, case in drawn]


def layers_of_int16() -> list[DspCase]:
    """Return random layers with weights, and some whose sums leave 32 bits."""
    makers = convolution, partial(convolution, depthwise=True), fully_connected
    some = [in_int16(seed, make(seed)) for seed in seeds(0, PER_WIDE) for make in makers]
    some += [
        in_int16(n, make(n))
        for n in seeds(600, PER_IN_FLOAT)
        for make in (grouped, transposed, multiplied)
    ]
    some += [in_int16_and_float(seed, make(seed)) for seed in seeds(400, 5) for make in makers]
    return [*some, *map(long_sums, seeds(0, 4)), *map(longest_sums, seeds(0, 6))]


def layers_of_pooled_types() -> Iterator[DspCase]:
    """Yield random reductions of int16, windows of int16, and means of uint8."""
    yield from (reduced(seed, DType.INT16) for seed in seeds(900, PER_WIDE))
    yield from map(pool_of_int16, seeds(900, PER_WIDE))
    # The largest of uint8 are those of int8.
    of_uint8 = map(pool_of_uint8, seeds(900, PER_WIDE))
    yield from (case for case in of_uint8 if isinstance(case.graph.nodes[0].op, AveragePool2D))


class OthersAlone(Exception):  # noqa: N818 - no error
    """No kernel that only some CPUs have is in a plan."""


def compiled(
    case: DspCase, config: CompilationConfig, chosen: Counter[str]
) -> microtir.Artifact | None:
    """The C of a case, whose kernels are counted; None if its plan has only what every CPU has."""
    kernels: list[str] = []

    def observe(stage: str, result: object) -> None:
        if stage == "plan":
            assert isinstance(result, Plan)
            kernels[:] = [op.candidate.kernel for op in result.operators]
            if not any(re.search("_(dsp|mve)", kernel) for kernel in kernels):
                raise OthersAlone

    try:
        artifact = microtir.build(IRModule(graph=case.graph), config, observe=observe)
    except OthersAlone:
        return None
    chosen.update(kernels)
    return artifact


def forcing(core: Core, kernel: str, folder: Path) -> Iterator[tuple[DspCase, CompilationConfig]]:
    """Cases that a kernel accepts, each with records by which no other one is chosen."""
    offered = found(kernel, PER_FORCED)
    operators = {case.name: operator for case, operator in offered}
    for case in thinned(case for case, _ in offered):
        operator = operators[case.name]
        # By number: names of kernels and of fresh seeds are too long together.
        name = f"{case.name}_{list(core.forced).index(kernel)}"
        config = TARGETS[kernel].with_(module_name=name, optimize=Optimize.SPEED)
        yield case, forced(config, [operator.node], kernel, folder)


@pytest.fixture(scope="module", params=CORES)
def batch(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Batch:
    """Cases and their artifacts; every kernel of the core is among them often enough."""
    core = CORES[request.param]
    chosen: Counter[str] = Counter()
    folder = tmp_path_factory.mktemp("records")
    fast = core.config.with_(optimize=Optimize.SPEED)
    made = [(case, fast.with_(module_name=case.name)) for case in layers()]
    least = core.config.with_(optimize=Optimize.RAM_LEAST)
    made += [(case, least.with_(module_name=case.name)) for case in map(summed, seeds(0, 8))]
    made += [pair for kernel in core.forced for pair in forcing(core, kernel, folder)]
    drawn = [(case, compiled(case, config, chosen)) for case, config in made]
    lacking = {name: chosen[name] for name, n in core.expected.items() if chosen[name] < n}
    assert not lacking or is_soak(), lacking
    # A layer for which two goals mean the same is one program.
    programs = {text_of(case, made): (case, made) for case, made in drawn if made is not None}
    return core, [case for case, _ in programs.values()], [a for _, a in programs.values()]


def text_of(case: DspCase, artifact: microtir.Artifact) -> str:
    """The C of a case, less the name of its module."""
    name = artifact.metadata.module_name
    text = "".join(program_text(artifact).values())
    return f"{case.name} {text.replace(name, '').replace(name.upper(), '')}"


def expected(some: Sequence[DspCase]) -> list[np.ndarray[tuple[int, ...], np.dtype[np.int8]]]:
    """What the numpy reference computes for each case."""
    return [execute(case.graph, case.named_inputs())["y"] for case in some]


@pytest.mark.soak
@pytest.mark.timeout(900)  # hundreds of programs
@pytest.mark.parametrize("level", [0, pytest.param(2, marks=pytest.mark.soak_only)])
def test_portable_twins_equal_the_reference(batch: Batch, tmp_path: Path, level: int) -> None:
    """The C that other compilers print for the kernels gives every bit of the reference."""
    _, some, artifacts = batch
    for case, model, want in zip(
        some, load_batch(artifacts, tmp_path, opt_level=level), expected(some), strict=True
    ):
        got = model.run(case.named_inputs())["y"]
        np.testing.assert_array_equal(got, want, err_msg=case.name)


@pytest.mark.soak
@pytest.mark.timeout(900)  # hundreds of programs
@pytest.mark.parametrize("level", [pytest.param("-O0", marks=pytest.mark.soak_only), "-O2"])
def test_assembly_equals_the_reference(batch: Batch, tmp_path: Path, level: str) -> None:
    """The assembly does, too, with inputs and outputs at every offset, and writes nothing else."""
    core, some, artifacts = batch
    inputs = [case.inputs for case in some]
    assert differing(core.machine, artifacts, inputs, expected(some), tmp_path, (level,)) == []


HEADERS = str(Path(c_compilers.__file__).with_name("freestanding"))


def flags_of(core: Core, compiler: str) -> tuple[str, ...]:
    """How a compiler is told the core; the host's is told nothing and compiles the twins."""
    cpu = f"-mcpu={core.mcpu}"
    if compiler == "clang":
        return (f"--target={core.triple}", cpu, "-ffreestanding", "-isystem", HEADERS)
    return core.machine.compiler[1:] if compiler == "arm-none-eabi-gcc" else ()


@pytest.mark.parametrize("compiler", ["arm-none-eabi-gcc", "clang", "gcc"])
def test_no_compiler_warns(batch: Batch, tmp_path: Path, compiler: str) -> None:
    """Assembly and twins pass the strict set: literals are short, nothing is unused."""
    core, _, artifacts = batch
    by_size = sorted(artifacts, key=lambda a: sum(len(file.text) for file in a.sources))
    for artifact in by_size[-2:]:
        for file in artifact.sources:
            (tmp_path / file.path).write_text(file.text, encoding="utf-8")
    assert strict_problems(tmp_path, compiler, "c99", *flags_of(core, compiler)) == ""


@pytest.mark.parametrize("compiler", ["arm-none-eabi-gcc", "clang"])
def test_the_assembly_is_what_is_compiled(batch: Batch, tmp_path: Path, compiler: str) -> None:
    """Of both bodies of a kernel these compilers see the assembly, for the core it is made for."""
    core, _, artifacts = batch
    artifact = next(a for a in artifacts if any(core.instruction in f.text for f in a.sources))
    for file in artifact.sources:
        (tmp_path / file.path).write_text(file.text, encoding="utf-8")
    unit = next(file.path for file in artifact.sources if core.instruction in file.text)
    command = [compiler, *flags_of(core, compiler), "-S", "-o", "-", unit]
    seen = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60
    )
    assert core.instruction in seen.stdout
