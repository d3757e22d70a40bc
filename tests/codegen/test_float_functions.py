"""Functions of floats by polynomials: how far they are from the exact ones, and their bits."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import microtir
from microtir import CompilationConfig, te
from microtir.codegen.bodies import helper_text
from microtir.codegen.printer.helpers import with_dependencies
from microtir.dtype import DType
from microtir.graph.ir import Array
from microtir.tir.float_functions import HIGHEST, LOWEST, NEAR, OWN, SMALL
from microtir.tir.intrinsics import SIGNATURES
from microtir.tir.ir import Intrinsic
from tests.support.c_compilers import HOST_COMPILERS

FORMS = [form.value for form in OWN.values()]
EXACT: dict[Intrinsic, Callable[[Array], Array]] = {Intrinsic.EXP: np.exp, Intrinsic.TANH: np.tanh}
# What docs/decisions/numerics.md states, in units in the last place.
BOUNDS = {Intrinsic.EXP: 1.0, Intrinsic.TANH: 1.5}
LEAST = 2.0**-126
MODES = [
    (compiler, *flags)
    for compiler in HOST_COMPILERS
    for flags in (
        ("-std=c99", "-O0"),
        ("-std=c99", "-O2"),
        ("-std=gnu99", "-O3", "-march=native", "-ffp-contract=off"),
    )
]


@cache
def numbers() -> Array:
    """Return floats of every exponent and sign, random ones, and those around each limit."""
    rng = np.random.default_rng(0)
    exponents = np.arange(256, dtype=np.uint32) << 23
    mantissas = np.concatenate([[0, 1, (1 << 23) - 1], rng.integers(0, 1 << 23, 400)])
    bits = (exponents[:, None] | mantissas.astype(np.uint32)).ravel()
    of_each_exponent = np.concatenate([bits, bits | np.uint32(1 << 31)]).view(np.float32)
    likely = rng.normal(size=200_000) * rng.choice([0.1, 1.0, 10.0, 40.0], 200_000)
    limits = [HIGHEST, LOWEST, NEAR, -NEAR, SMALL, -SMALL, 88.376, -0.347, 0.347]
    ends = np.array(limits, np.float32)
    near = (ends.view(np.int32)[:, None] + np.arange(-300, 300, dtype=np.int32)).ravel()
    return np.concatenate([of_each_exponent, likely.astype(np.float32), near.view(np.float32)])


def computed(folder: Path, *command: str) -> dict[str, Array]:
    """Return what the C of each form gives for all numbers."""
    folder.mkdir()
    text = ["#include <math.h>\n#include <stdint.h>"]
    text += map(helper_text, with_dependencies(FORMS))
    text += [
        f"void all_{name}(const float *x, float *y, int n)\n"
        f"{{\n    for (int i = 0; i < n; i++)\n        y[i] = {name}(x[i]);\n}}"
        for name in FORMS
    ]
    (folder / "f.c").write_text("\n".join(text) + "\n")
    building = [*command, "-fPIC", "-shared", "-o", "f.so", "f.c", "-lm"]
    subprocess.run(building, cwd=folder, check=True)
    library, x = ctypes.CDLL(str(folder / "f.so")), numbers()
    results = {}
    for name in FORMS:
        y = results[name] = np.zeros_like(x)
        pointers = (ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(y.ctypes.data))
        library[f"all_{name}"](*pointers, len(x))
    return results


def error(got: Array, exact: Array) -> Array:
    """Return the distance in units in the last place of what is exact; 0 or inf if that is none."""
    rounded = exact.astype(np.float32)
    unit = np.exp2(np.floor(np.log2(np.maximum(np.abs(exact), LEAST))) - 23)
    distance = np.abs(got.astype(np.float64) - exact) / unit
    is_same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    special = np.where(is_same, 0.0, np.inf)
    return np.where(np.isfinite(rounded) & np.isfinite(got), distance, special)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Array]:
    """Return what the C of each form gives by one compiler."""
    return computed(tmp_path_factory.mktemp("forms") / "gcc", "gcc", "-std=c99", "-O2", "-Wall")


@pytest.mark.parametrize("of", list(BOUNDS))
@pytest.mark.parametrize("fuses", [False, True], ids=["apart", "fused"])
def test_the_error_is_bounded(results: dict[str, Array], of: Intrinsic, fuses: bool) -> None:
    """No float of any exponent is farther from float64 than stated; powers below 2^-126 are 0."""
    x, got = numbers(), results[OWN[of, fuses].value]
    with np.errstate(all="ignore"):
        exact = EXACT[of](x.astype(np.float64))
        is_zero = (exact < LEAST) & (of is Intrinsic.EXP)
        assert not got[is_zero].any()
        found = error(got, exact)[~is_zero]
    assert 0.6 < found.max() <= BOUNDS[of]


@pytest.mark.parametrize("fuses", [False, True], ids=["apart", "fused"])
def test_limits_are_met(results: dict[str, Array], fuses: bool) -> None:
    """Limits are met to the bit: 0, 1 and infinity, and -1 and 1; NaN stays NaN."""
    x = numbers()
    power, tangent = (results[OWN[of, fuses].value] for of in BOUNDS)
    assert (power[x >= np.float32(HIGHEST)] == np.inf).all()
    assert np.isfinite(power[x < np.float32(HIGHEST)]).all()
    assert (power[x < np.float32(LOWEST)] == 0.0).all()
    assert (power[(x >= np.float32(LOWEST)) & (x < np.float32(HIGHEST))] >= LEAST).all()
    assert (power[np.abs(x) < 2.0**-26] == 1.0).all()
    assert (tangent[np.abs(x) > 9.1] == np.sign(x[np.abs(x) > 9.1])).all()
    assert (np.abs(tangent[np.abs(x) < 100.0]) <= 1.0).all()
    for got in (power, tangent):
        assert np.isnan(got[np.isnan(x)]).all()


@pytest.mark.parametrize("command", MODES, ids=" ".join)
def test_compilers_agree(
    results: dict[str, Array], command: tuple[str, ...], tmp_path: Path
) -> None:
    """Each mode of each compiler gives the same bits, of NaN only that it is one."""
    for name, got in computed(tmp_path / "other", *command).items():
        np.testing.assert_array_equal(got, results[name])


@pytest.mark.parametrize("form", list(OWN.values()), ids=lambda form: str(form.value))
def test_the_meaning_is_what_c_computes(results: dict[str, Array], form: Intrinsic) -> None:
    """The interpreter of TIR gives each bit that the C gives."""
    chosen = np.random.default_rng(1).integers(0, len(numbers()), 4000)
    values = numbers()[chosen]
    meaning = SIGNATURES[form].meaning
    want = np.array([meaning(float(value)) for value in values], np.float32)
    np.testing.assert_array_equal(results[form.value][chosen], want)


CHOICES = {
    ("c", "polynomials"): {"exp_polynomial(", "tanh_polynomial(", "FUSED_MULTIPLY_ADD 0"},
    ("c -mcpu=cortex-m4", "polynomials"): {"exp_fused(", "tanh_fused(", "FUSED_MULTIPLY_ADD 1"},
    ("c -mcpu=cortex-m4", "libm"): {"expf(", "tanhf(", "FUSED_MULTIPLY_ADD 0"},
}


@pytest.mark.parametrize(("target", "functions"), list(CHOICES))
def test_the_option_chooses(target: str, functions: str) -> None:
    """By default nothing of the C library is called; with libm that is, and no polynomial."""
    x = te.placeholder((4,), DType.FLOAT32, "x")
    y = te.compute((4,), lambda i: te.exp(x[i]) + te.tanh(x[i]), "y")
    options = {"tir.float_functions": functions}
    config = CompilationConfig(targets=target, module_name="m", pass_config=options)
    artifact = microtir.build(te.create_schedule(y), config)
    text = artifact.source("m.c") + artifact.source("m.h")
    every = set().union(*CHOICES.values())
    assert {word for word in every if word in text} == CHOICES[target, functions]
