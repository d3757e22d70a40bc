"""Kernels for wide vectors: portable twins, AVX2, and VNNI by emulation, against the reference."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import microtir
from microtir import host
from microtir.module.ir_module import IRModule
from microtir.rewrite.reference import execute
from tests.execute import vector
from tests.execute.vector import Batch, compare
from tests.support import c_compilers
from tests.support.c_compilers import strict_problems
from tests.support.dsp_cases import cases
from tests.support.sanitizers import run_sanitized

VNNI = ("-march=native", "-mavx2", "-include", str(Path(c_compilers.__file__).with_name("vnni.h")))
# Twins are what every other CPU runs; a CPU without AVX2 runs them with -march=native, too.
BODIES = {"twins": (), "native": ("-march=native",), "vnni": VNNI}


@pytest.fixture(scope="module")
def batch() -> Batch:
    """Cases and their artifacts."""
    return vector.batch()


@pytest.mark.soak
@pytest.mark.parametrize("body", BODIES)
def test_kernels_equal_the_reference(batch: Batch, tmp_path: Path, body: str) -> None:
    """Every body gives every bit of the reference: any shape, quantisation and border."""
    compare(batch, tmp_path, BODIES[body])


@pytest.mark.soak
@pytest.mark.timeout(900)  # hundreds of programs
def test_kernels_are_clean_under_sanitizers(tmp_path: Path) -> None:
    """Twins and intrinsics read and write inside their buffers, and nothing is undefined."""
    assert run_sanitized("tests.execute.vector", tmp_path) == "vector kernels clean"


@pytest.mark.parametrize("compiler", c_compilers.HOST_COMPILERS)
@pytest.mark.parametrize("flags", [(), ("-mavx2",), ("-mavx2", "-mavxvnni")], ids="-".join)
def test_no_compiler_warns(
    batch: Batch, tmp_path: Path, compiler: str, flags: tuple[str, ...]
) -> None:
    """All bodies pass the strict set."""
    by_size = sorted(batch[1], key=lambda a: sum(len(file.text) for file in a.sources))
    for artifact in by_size[-2:]:
        for file in artifact.sources:
            (tmp_path / file.path).write_text(file.text, encoding="utf-8")
    assert strict_problems(tmp_path, compiler, "c99", *flags) == ""


def test_parameters_that_c_calls_otherwise() -> None:
    """Bodies know parameters by their names in TIR, also where these are taken in the file."""
    case = next(c for c in cases(1, 500, vector.SIZES) if vector.offers(c, "conv_s8_6x8_avx2"))
    config = vector.CONFIG.with_(optimize="speed", constant_pools=["flash"])
    artifact = microtir.build(IRModule(graph=case.graph), config)
    assert "_constants *constants" in artifact.source("default.c")
    inputs = case.named_inputs()
    result = host.load(artifact).run(inputs)["y"]
    np.testing.assert_array_equal(result, execute(case.graph, inputs)["y"])
