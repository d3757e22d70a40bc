"""Divisions for which other implementations fail or are undefined, by meaning and by C."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from microtir.operators.common.tflite_schema import BuiltinOperator as Code
from microtir.rewrite.reference import execute
from tests.execute.cases import compile_case
from tests.frontend.models import Value, int8, model, read, refusal, zeros
from tests.support.batch import load_batch
from tests.support.litert import run_litert
from tests.support.sketch import Case, Quant, Sketch

LOW, HIGH = -(1 << 31), (1 << 31) - 1
PAIRS = np.array(list(product([LOW, LOW + 1, -7, -1, 0, 1, 7, HIGH], [LOW, -3, -1, 0, 1, 2, HIGH])))
EVERY = np.array(list(product(range(-128, 128), range(-128, 128))), np.int8)
BY_ZERO = np.array([(a, 0) for a in (LOW, -1, 0, 1, HIGH)])


def case(code: Code, dtype: npt.DTypeLike, pairs: npt.ArrayLike, *quants: Quant) -> Case:
    """A model that divides the first of each pair by the second."""
    values = np.asarray(pairs).astype(dtype)
    name = f"{code.name.lower()}_{np.dtype(dtype).name}_{quants[0].scale if quants else 0:.0f}"
    s = Sketch(name, code.name, np.dtype(dtype), np.random.default_rng(0))
    given = quants or (None, None, None)
    shape = values.shape[:1]
    columns = [
        s.input(shape, quant, np.ascontiguousarray(column))
        for quant, column in zip(given, values.T, strict=False)
    ]
    return s.finish(columns, s.output(shape, given[2]))


def test_every_pair_has_a_result(tmp_path: Path) -> None:
    """C divides by 0 and by -1 as the meaning says, and takes any shift of an int8 quotient."""
    cases = [
        *(case(code, np.int32, PAIRS) for code in (Code.DIV, Code.FLOOR_DIV, Code.FLOOR_MOD)),
        case(Code.FLOOR_MOD, np.int64, PAIRS << 32),
        *(
            case(Code.DIV, np.int8, EVERY, Quant(scale, 3), Quant(0.1, -5), Quant(0.1, 7))
            for scale in (1.0, 1000.0)
        ),
    ]
    models = load_batch([compile_case(one) for one in cases], tmp_path)
    for one, compiled in zip(cases, models, strict=True):
        (expected,) = execute(one.graph(), one.named_inputs()).values()
        (result,) = compiled.run(one.named_inputs()).values()
        np.testing.assert_array_equal(result, expected, err_msg=one.name)


def test_int16_is_divided_as_litert_divides_it() -> None:
    """Its factor is a float32 there: rounded in double one quotient of 30,000 is another."""
    count = 60_000
    for seed in range(3):
        rng = np.random.default_rng(seed)
        scales = [float(scale) for scale in np.float32(rng.uniform(1e-3, 1e-2, 2))]
        numerator = float(np.float32(scales[0] * scales[1] * 2 ** rng.uniform(14.1, 15)))
        x, divisor, y = (
            Value((count,), np.int16, None, (scale,), (0,)) for scale in (numerator, *scales)
        )
        data = model(Code.DIV, [x, divisor], y)
        given = [
            rng.integers(*ends, count).astype(np.int16) for ends in ((-32768, 32768), (1, 999))
        ]
        (want,) = run_litert(data, *given)
        got = execute(read(data), dict(zip(("x0", "x1"), given, strict=True)))["y0"]
        np.testing.assert_array_equal(got, want, err_msg=f"seed {seed}")


def far_case(dtype: type[np.integer], bits: float) -> Case:
    """A model that divides many pairs of integers, the ratio of whose scales is 2^bits."""
    info, rng = np.iinfo(dtype), np.random.default_rng(int(bits * 10))
    numerator = rng.integers(info.min, info.max, 20_000, endpoint=True)
    numerator[::2] = rng.integers(-9, 9, 10_000)
    divisor = rng.integers(1, info.max, 20_000, endpoint=True) * rng.choice([-1, 1], 20_000)
    quants = [Quant(float(np.float32(scale)), 0) for scale in (0.005 * 2**bits, 0.02, 0.25)]
    return case(Code.DIV, dtype, np.stack([numerator, divisor], 1), *quants)


@pytest.mark.tools
@pytest.mark.parametrize("dtype", [np.int8, np.int16])
@pytest.mark.parametrize("bits", [15.2, 18.0, 22.3, 24.0, 26.7, 29.9])
def test_large_ratios_divide_as_the_references(
    dtype: type[np.integer], bits: float, tmp_path: Path
) -> None:
    """What they shift to the left, and is their processor's, is far beyond the type: it saturates.

    Models of int16 with ratios from 2^15 on, and of int8 from 2^23 on, were refused.
    """
    one = far_case(dtype, bits)
    first, second = (x.astype(np.float64) for x in one.inputs)
    steps = first / second * 2**bits
    (want,) = run_litert(one.model, *one.inputs)
    (got,) = execute(one.graph(), one.named_inputs()).values()
    beyond = np.abs(steps) >= 2.0**28
    assert (got[~beyond] == want[~beyond]).all() and (beyond.any() or bits < 22)
    info = np.iinfo(dtype)
    assert (got[beyond] == np.where(steps[beyond] < 0, info.min, info.max)).all()
    (model,) = load_batch([compile_case(one)], tmp_path)
    (compiled,) = model.run(one.named_inputs()).values()
    np.testing.assert_array_equal(compiled, got)


@pytest.mark.tools
@pytest.mark.parametrize("code", [Code.FLOOR_DIV, Code.FLOOR_MOD])
def test_int8_is_divided_as_stored(code: Code, tmp_path: Path) -> None:
    """LiteRT divides stored integers; a divisor of 0 ends it, and C leaves -128 by -1 open."""
    is_open = (EVERY[:, 1] == 0) | (EVERY == (-128, -1)).all(axis=1)
    one = case(code, np.int8, EVERY[~is_open])
    (want,) = run_litert(one.model, *one.inputs)
    for made in (
        execute(one.graph(), one.named_inputs()),
        load_batch([compile_case(one)], tmp_path)[0].run(one.named_inputs()),
    ):
        (got,) = made.values()
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (Code.DIV, [LOW, LOW, 0, HIGH, HIGH]),
        (Code.FLOOR_DIV, [LOW, LOW, 0, HIGH, HIGH]),
        (Code.FLOOR_MOD, [0, 0, 0, 0, 0]),
    ],
)
def test_division_by_zero(code: Code, expected: list[int]) -> None:
    """Integers saturate by the sign of the numerator; nothing is left over."""
    one = case(code, np.int32, BY_ZERO)
    (result,) = execute(one.graph(), one.named_inputs()).values()
    assert result.tolist() == expected


def test_constant_zeros_are_refused() -> None:
    """What fails in every run of another implementation is refused."""
    number = Value((4,), np.int32)
    for code in (Code.DIV, Code.FLOOR_DIV, Code.FLOOR_MOD):
        text = refusal(model(code, [number, zeros(4, dtype=np.int32)], number))
        assert "its constant divisor holds 0" in text
    assert "holds 0" in refusal(model(Code.FLOOR_DIV, [Value((4,)), zeros(4)], Value((4,))))
    stored = zeros(4, dtype=np.int8, scales=(0.5,), zero_points=(0,))
    assert "holds 0" in refusal(model(Code.DIV, [int8(4), stored], int8(4)))
