"""Floats of one plan are the same bits, whatever compiles it, in any mode and at any level."""

from __future__ import annotations

import ctypes
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import microtir
from microtir import CompilationConfig, packages
from microtir.artifact import Artifact
from microtir.dtype import DType
from microtir.graph.ir import Array, Graph
from microtir.operators.activations.definition import Logistic, Tanh
from microtir.operators.arithmetic.definition import Add, Atan2, Mul, Pow
from microtir.operators.common.attributes import Activation, Padding2D
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.movement.definition import Reshape
from microtir.operators.pooling.definition import AveragePool2D
from microtir.operators.softmax.definition import Softmax
from microtir.operators.transposed_convolution.definition import TransposeConv
from microtir.operators.unary.definition import Cos, Log, Sin
from tests.support.batch import Program, write_unit
from tests.support.c_compilers import HOST_COMPILERS
from tests.support.emulated_arm import AARCH64, M4, M55, differing
from tests.support.graphs import constant, graph, node, tensor
from tests.support.small_models import module_of, quantised_graph

F32 = DType.FLOAT32
ON = {"c": "for any CPU", "c -mcpu=cortex-m4": "for one that fuses"}
MODES = (("c99", "-O0"), ("gnu99", "-O2"))  # products and sums apart, and joined
FUSING = r"\s(vfn?m[as]\w*\.f32|vn?ml[as]\w*\.f32|fn?m(add|sub)(\.s)?|vfn?m(add|sub)\w+)\s"


def _values(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def network() -> Graph:
    """Return convolutions, products and sums, pooling, functions, a dense layer."""
    x, y = tensor("x", (1, 6, 6, 3), F32), tensor("y", (1, 7), F32)
    a, b = tensor("a", (1, 6, 6, 8), F32), tensor("b", (1, 6, 6, 8), F32)
    c, d = tensor("c", (1, 6, 6, 8), F32), tensor("d", (1, 6, 6, 8), F32)
    e, f = tensor("e", (1, 2, 2, 8), F32), tensor("f", (1, 72), F32)
    g, u = tensor("g", (1, 6, 6, 8), F32), tensor("u", (1, 3, 3, 8), F32)
    p, q, r, h, i, j, k, m = (tensor(name, (1, 3, 3, 8), F32) for name in "pqrhijkm")
    same = Padding2D(1, 1, 1, 1)
    kernel, bias = constant("kk", _values(1, 8, 3, 3, 3)), constant("kb", _values(2, 8))
    taps, more = constant("t", _values(3, 1, 3, 3, 8)), constant("tb", _values(4, 8))
    scale, shift = constant("s", _values(5, 8)), constant("o", _values(6, 8))
    groups, up = constant("g", _values(10, 8, 3, 3, 4)), constant("u", _values(11, 8, 2, 2, 8))
    weights, last = constant("w", _values(7, 7, 72)), constant("wb", _values(8, 7))
    return graph(
        [
            node(Conv2D(padding=same, activation=Activation.RELU), (x, kernel, bias), a),
            node(DepthwiseConv2D(padding=same), (a, taps, more), b),
            node(Conv2D(padding=same), (b, groups), g),
            node(Mul(), (g, scale), c),
            node(Add(), (c, shift), d),
            node(AveragePool2D(window=(3, 3), strides=(3, 3)), (d,), e),
            node(TransposeConv((2, 2), (0, 0), Activation.NONE), (e, up), u),
            node(Tanh(), (u,), p),
            node(Logistic(), (p,), q),
            node(Softmax(), (q,), r),
            node(Log(), (r,), h),
            node(Sin(), (h,), i),
            node(Cos(), (h,), j),
            node(Atan2(), (i, j), k),
            node(Pow(), (q, k), m),
            node(Reshape(), (m,), f),
            node(FullyConnected(), (f, weights, last), y),
        ],
        [x],
        [y],
    )


EMULATED = (
    *((M4, (f"-std={standard}", level)) for standard, level in MODES),
    (M55, ("-std=gnu99", "-O2")),
    (AARCH64, ("-std=gnu99", "-O2")),
)


@cache
def plan(target: str) -> Artifact:
    """Return the network as it is planned for a target."""
    config = CompilationConfig(targets=target, module_name="bits")
    return microtir.build(module_of(network()), config)


INPUT = _values(9, 1, 6, 6, 3)


def computed(target: str, folder: Path, *command: str) -> Array:
    """Return what the program of one compiler computes here."""
    folder.mkdir()
    write_unit([plan(target)], folder)
    compiling = [*command, "-fPIC", "-I.", "-c", "-o", "batch.o", "batch.c"]
    subprocess.run(compiling, cwd=folder, check=True)
    # Linked without the flags: those of fast floats flush small numbers to zero in this process.
    linking = ["gcc", "-shared", "-o", "b.so", "batch.o", "-lm"]
    subprocess.run(linking, cwd=folder, check=True)
    info = plan(target).module.model
    assert info is not None
    y = np.zeros((1, 7), np.float32)
    memory = np.zeros(info.memory.workspace_size + 64, np.uint8)
    program = Program(ctypes.CDLL(str(folder / "b.so")), "bits")
    assert program.run([INPUT], [y], memory[-memory.ctypes.data % 64 :]) == 0
    return y


def host_commands() -> Iterator[tuple[str, ...]]:
    """Yield compilers of this machine in two modes at two levels, and with all it can do."""
    for compiler in HOST_COMPILERS:
        for standard, level in MODES:
            yield compiler, f"-std={standard}", level
        yield compiler, "-std=gnu99", "-O3", "-march=native", "-ffp-contract=fast"


@pytest.mark.parametrize("target", ON, ids=["generic", "fusing"])
def test_modes_of_compilers_give_the_same_bits(tmp_path: Path, target: str) -> None:
    """Host compilers and emulated cores agree on every bit, in modes of GNU and of C."""
    want, *others = (
        computed(target, tmp_path / str(number), *command)
        for number, command in enumerate(host_commands())
    )
    for other in others:
        assert other.tobytes() == want.tobytes()
    for number, (machine, flags) in enumerate(EMULATED):
        folder = tmp_path / f"emulated{number}"
        folder.mkdir()
        assert not differing(machine, [plan(target)], [[INPUT]], [want], folder, flags)


def test_vectors_give_the_same_bits_as_their_twins(tmp_path: Path) -> None:
    """Helium multiplies and adds in the order of the C that this machine compiles."""
    target = "c -mcpu=cortex-m55"
    want = computed(target, tmp_path / "here", "gcc", "-std=c99", "-O2")
    kernels = {
        op.candidate.kernel for op in plan(target).module.require_program("bits").plan.operators
    }
    assert kernels >= {"conv_f32_4x4_mve", "dwconv_f32_6x4_mve", "dense_f32_1x24_mve"}
    (tmp_path / "emulated").mkdir()
    assert not differing(M55, [plan(target)], [[INPUT]], [want], tmp_path / "emulated")


def test_plans_differ() -> None:
    """The plan says whether products and sums are rounded once, and its header names it."""
    generic, fusing = (plan(target) for target in ON)
    assert "#define BITS_FUSED_MULTIPLY_ADD 0\n" in generic.source("bits.h")
    assert "#define BITS_FUSED_MULTIPLY_ADD 1\n" in fusing.source("bits.h")
    assert "fused_multiply_add(" not in generic.source("bits.c")


CROSS = {
    "gcc-m4": M4.compiler[:5],
    "gcc-rv32f": ("riscv64-unknown-elf-gcc", "-march=rv32imafc", "-mabi=ilp32f"),
    "gcc-aarch64": ("aarch64-linux-gnu-gcc",),
    "gcc-fma": ("gcc", "-mfma"),
    "clang-m4": ("clang", "--target=arm-none-eabi", "-mthumb", "-mcpu=cortex-m4",
                 "-mfloat-abi=hard"),
    "clang-rv32f": ("clang", "--target=riscv32", "-march=rv32imafc", "-mabi=ilp32f"),
    "clang-aarch64": ("clang", "--target=aarch64-linux-gnu"),
    "clang-fma": ("clang", "-mfma"),
}  # fmt: skip


def instructions(target: str, folder: Path, *command: str) -> str:
    """Return the assembly that a compiler makes of the program."""
    folder.mkdir()
    write_unit([plan(target)], folder)
    done = subprocess.run(
        [*command, "-ffreestanding", "-I.", "-S", "-o", "-", "bits.c"],
        cwd=folder, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout


# Of both compilers two instruction sets each; x86-64 by GCC is that of packages below.
OFTEN = ("gcc-m4", "gcc-rv32f", "clang-aarch64", "clang-fma")
WHERE = [name if name in OFTEN else pytest.param(name, marks=pytest.mark.soak_only)
         for name in CROSS]  # fmt: skip


@pytest.mark.parametrize("where", WHERE)
def test_compilers_fuse_what_the_program_says(tmp_path: Path, where: str) -> None:
    """There are as many fused instructions in GNU C as in C99, and none in a plan without them."""
    for target in ON:
        found = []
        for mode in (("-std=c99",), ("-std=gnu99", "-ffp-contract=fast")):
            folder = tmp_path / f"{mode[0]}{len(target)}"
            text = instructions(target, folder, *CROSS[where], *mode, "-O2")
            found.append(len(re.findall(FUSING, text)))
            assert "fmaf" not in text
        assert len(set(found)) == 1
        assert (found[0] > 0) is (target != "c")


WITHOUT_FLAGS = ("arduino", "cmsis-pack", "single-header")


@pytest.mark.parametrize("kind", WITHOUT_FLAGS)
def test_the_source_of_a_package_suffices(tmp_path: Path, kind: str) -> None:
    """Formats that cannot ask for flags of compilers: what GCC may fuse, the C does not let it."""
    for target in ON:
        folder = tmp_path / str(len(target))
        manifest = packages.generate(
            plan(target), kind, folder, options=packages.PackageOptions(name="floats")
        )
        units = [path for path in manifest.sources if path.endswith(".c")]
        if kind == "single-header":
            (folder / "unit.c").write_text('#define FLOATS_IMPLEMENTATION\n#include "floats.h"\n')
            units = ["unit.c"]
        assert units
        found = []
        for mode in (("-std=c99",), ("-std=gnu99", "-ffp-contract=fast")):
            done = subprocess.run(
                ["gcc", "-mfma", "-O2", *mode, "-S", "-o", "-", *units[:1]],
                cwd=folder, capture_output=True, text=True, check=True,
            )  # fmt: skip
            found.append(len(re.findall(FUSING, done.stdout)))
        assert found[0] == found[1]
        assert (found[0] > 0) is (target != "c")


REFUSED = {
    "-ffast-math": "leave out -ffast-math",
    "-Ofast": "leave out -ffast-math",
    "-mfpmath=387": "computed as a wider type",
}


@pytest.mark.parametrize("flag", REFUSED)
def test_modes_with_other_bits_are_refused(tmp_path: Path, flag: str) -> None:
    """An error says what to do; a macro accepts the stated bound, within which outputs lie."""
    write_unit([plan("c")], tmp_path)
    command = ["gcc", flag, "-I.", "-c", "-o", "bits.o", "bits.c"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert REFUSED[flag] in done.stderr
    assert "MICROTIR_FLOATS_WITHIN_TOLERANCE" in done.stderr
    accepted = ("gcc", "-O2", flag, "-DMICROTIR_FLOATS_WITHIN_TOLERANCE")
    got = computed("c", tmp_path / "accepted", *accepted)
    want = computed("c", tmp_path / "strict", "gcc", "-O2")
    assert np.abs(got - want).max() <= 8 * np.sqrt(72) * 2.0**-24 * np.abs(want).max()


def test_integers_are_compiled_in_any_mode() -> None:
    """A model without floats has neither the errors nor the macro."""
    config = CompilationConfig(targets="c -mcpu=cortex-m4", module_name="whole")
    artifact = microtir.build(module_of(quantised_graph()), config)
    for name in ("whole.c", "whole.h"):
        text = artifact.source(name)
        assert "FUSED_MULTIPLY_ADD" not in text
        assert "FAST_MATH" not in text
