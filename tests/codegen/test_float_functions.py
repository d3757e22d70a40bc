"""Functions of floats by polynomials: how far they are from the exact ones, and their bits."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import microtir
from microtir import CompilationConfig, te
from microtir.codegen.bodies import helper_text
from microtir.codegen.printer.helpers import with_dependencies
from microtir.dtype import DType
from microtir.graph.ir import Array
from microtir.tir.float_functions import (
    FAR,
    HIGHEST,
    LEAST_REST,
    LOWEST,
    NEAR,
    OF_TWO,
    OWN,
    SMALL,
    TINY,
)
from microtir.tir.intrinsics import SIGNATURES
from microtir.tir.ir import Intrinsic
from tests.support.c_compilers import HOST_COMPILERS, STRICT

FORMS = {form: of for (of, _), form in OWN.items()}
EXACT: dict[Intrinsic, Callable[..., Array]] = {
    Intrinsic.EXP: np.exp, Intrinsic.TANH: np.tanh, Intrinsic.LOG: np.log, Intrinsic.SIN: np.sin,
    Intrinsic.COS: np.cos, Intrinsic.ATAN2: np.arctan2, Intrinsic.POW: np.power,
}  # fmt: skip
# What docs/decisions/numerics.md states, in units in the last place.
BOUNDS = {
    Intrinsic.EXP: 1.0, Intrinsic.TANH: 1.5, Intrinsic.LOG: 1.0, Intrinsic.SIN: 2.0,
    Intrinsic.COS: 2.0, Intrinsic.ATAN2: 2.0, Intrinsic.POW: 1.0,
}  # fmt: skip
AS_C_HAS_IT = [of for of in BOUNDS if of not in {Intrinsic.EXP, Intrinsic.TANH}]
SPECIAL = np.array(
    [0, 0.5, 1, 1.5, 2, 3, 2**23 + 1, 2**24, 2**24 + 2, 3e38, 1e-45, 1e-38, np.inf, np.nan],
    np.float32,
)
LEAST = 2.0**-126
MODES = [
    (compiler, *flags)
    for compiler in HOST_COMPILERS
    for flags in (
        ("-std=c99", "-O0"),  # the results themselves are of -O2
        ("-std=gnu99", "-O3", "-march=native", "-ffp-contract=off"),
    )
]


def around(*limits: Array | list[float]) -> Array:
    """Return the floats nearest to each limit, 300 on either side."""
    ends = np.concatenate(limits).astype(np.float32)
    near = ends.view(np.int32)[:, None] + np.arange(-300, 300, dtype=np.int32)
    return near.ravel().view(np.float32)


@cache
def numbers() -> Array:
    """Return floats of every exponent and sign, random ones, and those around each limit."""
    rng = np.random.default_rng(0)
    exponents = np.arange(256, dtype=np.uint32) << 23
    mantissas = np.concatenate([[0, 1, (1 << 23) - 1], rng.integers(0, 1 << 23, 400)])
    bits = (exponents[:, None] | mantissas.astype(np.uint32)).ravel()
    of_each_exponent = np.concatenate([bits, bits | np.uint32(1 << 31)]).view(np.float32)
    likely = rng.normal(size=200_000) * rng.choice([0.1, 1.0, 10.0, 40.0], 200_000)
    limits = [HIGHEST, LOWEST, NEAR, SMALL, 88.376, 0.347, 1.0, LEAST_REST, TINY, FAR, 2.0**-126]
    quarters = np.pi / 4 * np.concatenate([np.arange(1, 180), 2.0 ** np.arange(8, 60)])
    near = around([*limits, *(-limit for limit in limits)], quarters)
    return np.concatenate([of_each_exponent, likely.astype(np.float32), near])


@cache
def pairs() -> tuple[Array, Array]:
    """Return random floats, ratios near 1, and powers of which few overflow, some of about 1."""
    rng = np.random.default_rng(2)
    x, y = rng.integers(0, 1 << 32, (2, 300_000), np.uint32).view(np.float32)
    near = rng.uniform(-1.0, 1.0, (2, 200_000)).astype(np.float32)
    bases = np.concatenate([np.abs(x), np.abs(near[0]), around([1.0, 2.0**-126]).repeat(100)])
    with np.errstate(all="ignore"):
        logs = np.log2(bases.astype(np.float64))
        exponents = (rng.uniform(-151.0, 129.0, len(bases)) / logs).astype(np.float32)
    special = np.concatenate([SPECIAL, -SPECIAL])
    first = np.concatenate([x, near[0], bases, np.repeat(special, len(special))])
    return first, np.concatenate([y, near[1], exponents, np.tile(special, len(special))])


def arguments(form: Intrinsic) -> tuple[Array, ...]:
    """Return what a form is computed of."""
    return pairs() if form in OF_TWO else (numbers(),)


def exact(of: Intrinsic) -> Array:
    """Return what float64 gives."""
    with np.errstate(all="ignore"):
        return EXACT[of](*(x.astype(np.float64) for x in arguments(OWN[of, False])))


def computed(folder: Path, *command: str) -> dict[Intrinsic, Array]:
    """Return what the C of each form gives for all numbers."""
    folder.mkdir()
    text = ["#include <math.h>\n#include <stdint.h>"]
    text += map(helper_text, with_dependencies(form.value for form in FORMS))
    for form in FORMS:
        names = ("x", "y")[: len(arguments(form))]
        parameters, values = ", ".join(f"const float *{i}" for i in names), "[i], ".join(names)
        head = f"void all_{form.value}({parameters}, float *z, int n)"
        turn = f"        z[i] = {form.value}({values}[i]);"
        text.append(f"{head};\n{head}\n{{\n    for (int i = 0; i < n; i++)\n{turn}\n}}")
    (folder / "f.c").write_text("\n".join(text) + "\n")
    building = [*command, "-fPIC", "-shared", "-o", "f.so", "f.c", "-lm"]
    subprocess.run(building, cwd=folder, check=True)
    library = ctypes.CDLL(str(folder / "f.so"))
    results = {}
    for form in FORMS:
        inputs = arguments(form)
        z = results[form] = np.zeros_like(inputs[0])
        pointers = (ctypes.c_void_p(each.ctypes.data) for each in (*inputs, z))
        library[f"all_{form.value}"](*pointers, len(z))
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
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[Intrinsic, Array]:
    """Return what the C of each form gives by one compiler, with sanitizers."""
    flags = ("-std=c99", "-O2", *STRICT, "-fsanitize=undefined", "-fno-sanitize-recover")
    return computed(tmp_path_factory.mktemp("forms") / "gcc", "gcc", *flags)


@pytest.mark.parametrize("of", list(BOUNDS))
@pytest.mark.parametrize("fuses", [False, True], ids=["apart", "fused"])
def test_the_error_is_bounded(results: dict[Intrinsic, Array], of: Intrinsic, fuses: bool) -> None:
    """No float of any exponent is farther from float64 than stated; powers below 2^-126 are 0."""
    got, want = results[OWN[of, fuses]], exact(of)
    is_zero = (want < LEAST) & (of is Intrinsic.EXP)
    assert not got[is_zero].any()
    with np.errstate(all="ignore"):
        found = error(got, want)[~is_zero]
    assert 0.5 < found.max() <= BOUNDS[of]


@pytest.mark.parametrize("of", AS_C_HAS_IT)
@pytest.mark.parametrize("fuses", [False, True], ids=["apart", "fused"])
def test_special_values_are_those_of_c(of: Intrinsic, fuses: bool) -> None:
    """Zeros have the sign, and infinities and NaN the place, that Annex F of C99 says."""
    meaning = SIGNATURES[OWN[of, fuses]].meaning
    values = np.concatenate([SPECIAL, -SPECIAL]).astype(np.float64)
    parameters = len(arguments(OWN[of, fuses]))
    each = np.array(list(product(values, repeat=parameters))).T
    with np.errstate(all="ignore"):
        want = EXACT[of](*each).astype(np.float32)
    got = np.array([meaning(*map(float, some)) for some in each.T], np.float32)
    is_special = (want == 0.0) | ~np.isfinite(want)
    np.testing.assert_array_equal(got[is_special], want[is_special])
    np.testing.assert_array_equal(signs(got), signs(want))


@pytest.mark.parametrize("fuses", [False, True], ids=["apart", "fused"])
def test_limits_are_met(results: dict[Intrinsic, Array], fuses: bool) -> None:
    """Limits are met to the bit: 0, 1 and infinity, and -1 and 1; NaN stays NaN."""
    x = numbers()
    power, tangent = (results[OWN[of, fuses]] for of in (Intrinsic.EXP, Intrinsic.TANH))
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
    results: dict[Intrinsic, Array], command: tuple[str, ...], tmp_path: Path
) -> None:
    """Each mode of each compiler gives the same bits, of NaN only that it is one."""
    for form, got in computed(tmp_path / "other", *command).items():
        np.testing.assert_array_equal(got, results[form])
        np.testing.assert_array_equal(signs(got), signs(results[form]))


def signs(x: Array) -> Array:
    """Return which numbers have a sign; zeros may, NaN do not."""
    return np.signbit(x) & ~np.isnan(x)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: str(form.value))
def test_the_meaning_is_what_c_computes(results: dict[Intrinsic, Array], form: Intrinsic) -> None:
    """The interpreter of TIR gives each bit that the C gives."""
    inputs = arguments(form)
    chosen = np.random.default_rng(1).integers(0, len(inputs[0]), 4000)
    chosen = np.concatenate([chosen, np.arange(len(inputs[0]) - 800, len(inputs[0]))])
    meaning = SIGNATURES[form].meaning
    values = zip(*(x[chosen].tolist() for x in inputs), strict=True)
    want = np.array([meaning(*each) for each in values], np.float32)
    np.testing.assert_array_equal(results[form][chosen], want)
    np.testing.assert_array_equal(signs(results[form][chosen]), signs(want))


NAMES = ("exp", "tanh", "log", "sin", "cos", "atan2")
CHOICES = {
    ("c", "polynomials"): {*(f"{name}_polynomial(" for name in NAMES), "pow_by_integers("},
    ("c -mcpu=cortex-m4", "polynomials"): {*(f"{n}_fused(" for n in NAMES), "pow_by_integers("},
    ("c -mcpu=cortex-m4", "libm"): {f"{name}f(" for name in (*NAMES, "pow")},
}


@pytest.mark.parametrize(("target", "functions"), list(CHOICES))
def test_the_option_chooses(target: str, functions: str) -> None:
    """By default nothing of the C library is called; with libm that is, and no polynomial."""
    x = te.placeholder((4,), DType.FLOAT32, "x")

    def every(i: te.Expr) -> te.Expr:
        of_two = te.atan2(x[i], te.const(2.0, DType.FLOAT32)) + te.pow(x[i], x[i])
        return sum((f(x[i]) for f in (te.exp, te.tanh, te.log, te.sin, te.cos)), of_two)

    options = {"tir.float_functions": functions}
    config = CompilationConfig(targets=target, module_name="m", pass_config=options)
    artifact = microtir.build(te.create_schedule(te.compute((4,), every, "y")), config)
    text = artifact.source("m.c")
    every_name = set().union(*CHOICES.values())
    assert {word for word in every_name if word in text} == CHOICES[target, functions]
    fuses = target != "c" and functions != "libm"
    assert f"FUSED_MULTIPLY_ADD {int(fuses)}\n" in artifact.source("m.h")
