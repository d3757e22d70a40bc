"""Outputs whose scale the range of a function decides, where a file has nearly that scale."""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt
import pytest

from microtir.config.enums import Numerics
from microtir.operators.common.tflite_schema import BuiltinOperator as Code
from microtir.rewrite.reference import execute
from microtir.rewrite.requests.numerics import ChooseNumerics
from microtir.rewrite.requests.unlike_scales import stored_as_is
from tests.frontend.models import Value, model, read, refusal
from tests.operators.test_unlike_scales import computed, ran
from tests.support.litert import run_litert
from tests.support.sketch import Case
from tests.support.tflm import run_tflm

FIXED = [
    (Code.SOFTMAX, np.int8, np.int16, 2.0**-16, -(1 << 15), (1.000015, 1.0009, 0.9991)),
    (Code.SOFTMAX, np.int16, np.int16, 2.0**-15, 0, (1.000015, 1.0009, 0.9991)),
    (Code.LOGISTIC, np.int8, np.int8, 2.0**-8, -128, (1.000015, 1.0009, 0.9991)),
    (Code.LOGISTIC, np.int16, np.int16, 2.0**-15, 0, (1.000015, 1.0006)),
    (Code.TANH, np.int8, np.int8, 2.0**-7, 0, (1.000015, 1.0009, 0.9991)),
    (Code.TANH, np.int16, np.int16, 2.0**-15, 0, (1.000015, 1.0006)),
]

# A reference takes any scale, and copies what it computes in the fixed one.
_COPIED = {(Code.LOGISTIC, np.int8), (Code.TANH, np.int8), (Code.SOFTMAX, np.int8)}


@pytest.mark.parametrize(("code", "source", "result", "scale", "zero_point", "near"), FIXED)
def test_a_scale_that_is_nearly_the_fixed_one_is_taken_for_it(
    code: Code,
    source: npt.DTypeLike,
    result: npt.DTypeLike,
    scale: float,
    zero_point: int,
    near: tuple[float, ...],
) -> None:
    """It computes what tflite-micro does: with the exact scale; one farther off is refused."""
    ends = np.iinfo(source)
    x = np.random.default_rng(5).integers(ends.min, ends.max + 1, (4, 16)).astype(source)
    step = float(np.float32(0.05 if x.itemsize == 1 else 1e-4))

    def scaled(factor: float) -> bytes:
        given = Value((4, 16), source, None, (step,), (0,))
        made = Value((4, 16), result, None, (float(np.float32(scale * factor)),), (zero_point,))
        return model(code, [given], made)

    for factor in near:
        data = scaled(factor)
        (want,) = run_tflm(data, x)
        np.testing.assert_array_equal(execute(read(data), {"x0": x})["y0"], want)
    if (code, source) not in _COPIED:
        assert f"scale {scale:.9g} and zero point {zero_point}" in refusal(scaled(1.002))


# Zero point and scale of an output, as what is added to the fixed one, and what it is multiplied by
_OTHERS = ((0, 1.0005), (0, 1.3), (0, 2.0), (5, 1.0), (-3, 0.5))
_NARROW: dict[type[np.integer], tuple[int, int]] = {np.int8: (-128, 0), np.uint8: (0, 128)}


@pytest.mark.tools
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize(
    ("code", "scale", "is_signed"),
    [(Code.LOGISTIC, 2.0**-8, False), (Code.TANH, 2.0**-7, True), (Code.SOFTMAX, 2.0**-8, False)],
)
def test_results_in_another_scale_are_those_of_the_references(
    code: Code, scale: float, is_signed: bool, dtype: type[np.integer]
) -> None:
    """Each refuses, copies what it computes in the fixed scale, or rescales.

    tflite-micro has no kernels of uint8: LiteRT's results are those of both numerics.
    """
    rng, info = np.random.default_rng(7), np.iinfo(dtype)
    x = rng.permutation(np.arange(info.min, info.max + 1)).astype(dtype).reshape(4, 64)
    fixed = _NARROW[dtype][is_signed]
    for moved, factor in _OTHERS:
        given = Value((4, 64), dtype, None, (float(np.float32(2.0 ** rng.uniform(-6, -2))),), (7,))
        zero_point = int(np.clip(fixed + moved, info.min, info.max))
        made = Value((4, 64), dtype, None, (float(np.float32(scale * factor)),), (zero_point,))
        data = model(code, [given], made)
        of_litert = ran(partial(run_litert, data, x))
        of_micro = of_litert if dtype is np.uint8 else ran(partial(run_tflm, data, x))
        for numerics, expected in ((Numerics.TFLM, of_micro), (Numerics.TFLITE_REF, of_litert)):
            result = computed(Case("fixed", data, (x,), 1), numerics)
            if factor == 1.0005 and expected is None:
                continue  # taken for the fixed scale, or refused
            assert (result is None) is (expected is None), (made, numerics)
            if result is not None and expected is not None:
                np.testing.assert_array_equal(result[0], expected[0], err_msg=f"{made} {numerics}")


@pytest.mark.tools
@pytest.mark.parametrize(
    ("code", "scale", "zero_point"), [(Code.LOGISTIC, 2.0**-8, -128), (Code.TANH, 2.0**-7, 0)]
)
def test_tables_of_litert(code: Code, scale: float, zero_point: int) -> None:
    """LiteRT computes tables in float32, of which one value in some 1e4 is no fixed point's."""
    rng = np.random.default_rng(1)
    x = np.arange(-128, 128).astype(np.int8).reshape(4, 64)
    for _ in range(60):
        step, zero = float(np.float32(2.0 ** rng.uniform(-10, 0))), int(rng.integers(-128, 128))
        given = Value((4, 64), np.int8, None, (step,), (zero,))
        data = model(code, [given], Value((4, 64), np.int8, None, (scale,), (zero_point,)))
        made = computed(Case("table", data, (x,), 1), Numerics.TFLITE_REF)
        assert made is not None
        np.testing.assert_array_equal(made[0], run_litert(data, x)[0])


def test_a_copied_result_is_told() -> None:
    """What to do is said with it: LiteRT's numerics, where they rescale."""
    x = Value((4,), np.int8, None, (0.05,), (0,))
    graph = read(model(Code.TANH, [x], Value((4,), np.int8, None, (0.01,), (3,))))
    (told,) = stored_as_is(ChooseNumerics(Numerics.TFLM)(graph))
    assert told.name == "y0"
    assert told.what == (
        "it copies integers stored with scale 0.0078125 and zero point 0"
        " as such with scale 0.00999999978 and zero point 3"
    )
    assert "rescales, as LiteRT does" in told.fix.command
    assert not stored_as_is(ChooseNumerics(Numerics.TFLITE_REF)(graph))


@pytest.mark.tools
def test_softmax_of_int8_to_int16_in_another_scale() -> None:
    """LiteRT copies what it computes in 1/65536; tflite-micro refuses it."""
    x = np.random.default_rng(3).integers(-128, 128, (4, 16)).astype(np.int8)
    given = Value((4, 16), np.int8, None, (0.05,), (0,))
    data = model(Code.SOFTMAX, [given], Value((4, 16), np.int16, None, (2.0**-15,), (0,)))
    case = Case("softmax", data, (x,), 1)
    assert ran(partial(run_tflm, data, x)) is computed(case, Numerics.TFLM) is None
    made = computed(case, Numerics.TFLITE_REF)
    assert made is not None
    np.testing.assert_array_equal(made[0], run_litert(data, x)[0])
