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
