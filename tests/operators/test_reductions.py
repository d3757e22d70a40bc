"""Values and types of reductions that random cases do not meet, against both oracles."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from microtir.graph.ir import Array
from microtir.operators.common.tflite_schema import Options, TfliteType
from microtir.operators.reduction.tflite import PlaceOptions, ReducerOptions
from microtir.rewrite.reference import execute
from tests.execute.cases import compare
from tests.support.c_compilers import STRICT
from tests.support.litert import run_litert
from tests.support.seeds import seeds
from tests.support.sketch import Case, Quant, Sketch
from tests.support.tflm import run_tflm

NAN, INF = np.nan, np.inf
_OPTIONS: dict[str, Options] = {
    "ARG_MAX": PlaceOptions(TfliteType.INT64), "ARG_MIN": PlaceOptions(TfliteType.INT64)
}  # fmt: skip


def reduced(
    operator: str, x: Array, result: type, *quants: Quant | None, by_litert: bool = False
) -> tuple[Array, Array]:
    """What we and an oracle make of the last axis."""
    s = Sketch(operator.lower(), operator, x.dtype, np.random.default_rng(0))
    x_quant, y_quant = quants or (None, None)
    options = _OPTIONS.get(operator, ReducerOptions())
    inputs = [s.input(x.shape, x_quant, x), s.ints("axis", -1)]
    case = s.finish(inputs, s.output(x.shape[:-1], y_quant, result), options)
    (ours,) = execute(case.graph(), case.named_inputs()).values()
    run = run_litert if by_litert else run_tflm
    return ours, run(case.model, *case.inputs)[0]


@pytest.mark.tools
@pytest.mark.parametrize("operator", ["REDUCE_MAX", "REDUCE_MIN", "ARG_MAX", "ARG_MIN"])
def test_nan_and_infinity(operator: str) -> None:
    """A NaN is no extreme, but its place is found where it is first; so are infinities."""
    rows = [[NAN, 1, 2], [1, NAN, 2], [1, 2, NAN], [NAN] * 3, [-INF] * 3, [INF, NAN, -INF]]
    x = np.array(rows, np.float32)
    is_place = operator in _OPTIONS
    ours, theirs = reduced(operator, x, np.int32 if is_place else np.float32)
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.tools
@pytest.mark.parametrize("operator", ["ARG_MAX", "ARG_MIN"])
@pytest.mark.parametrize("dtype", [np.int8, np.float32])
def test_places_of_64_bits(operator: str, dtype: type) -> None:
    """LiteRT gives them where a converter asks for them; tflite-micro does not."""
    x: Array = np.random.default_rng(1).integers(-3, 4, (40, 5)).astype(dtype)
    quants = (Quant(0.5, 3), None) if dtype is np.int8 else (None, None)
    ours, theirs = reduced(operator, x, np.int64, *quants, by_litert=True)
    assert ours.dtype == np.int64
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.tools
@pytest.mark.parametrize(
    ("operator", "dtype"),
    [("SUM", np.int32), ("SUM", np.int64), ("REDUCE_PROD", np.int32), ("REDUCE_PROD", np.int64)],
)
def test_integers_wrap(operator: str, dtype: type) -> None:
    """What leaves the type is taken modulo its range, as LiteRT's kernels are compiled."""
    x = np.random.default_rng(2).integers(np.iinfo(dtype).max // 2, np.iinfo(dtype).max, (9, 7))
    ours, theirs = reduced(operator, x.astype(dtype), dtype, by_litert=True)
    np.testing.assert_array_equal(ours, theirs)


def product_case(dtype: type[np.integer], seed: int) -> Case:
    """Draw a product of up to six numbers around 1, in the last axes and the first."""
    rng, info = np.random.default_rng(seed), np.iinfo(dtype)
    shape = (int(rng.integers(1, 3)), 40, int(rng.integers(1, 4)))
    s = Sketch(f"product_{seed}", "REDUCE_PROD", np.dtype(dtype), rng)
    zeros = (0, 0) if info.bits > 8 else rng.integers(-30, 30, 2).tolist()
    given, made = (
        Quant(float(np.float32(rng.uniform(1, 3) / info.max)), int(zero)) for zero in zeros
    )
    x = s.input(shape, given, rng.integers(info.min, info.max, shape, endpoint=True).astype(dtype))
    return s.finish([x, s.ints("axes", 0, 2)], s.output((40,), made), ReducerOptions())


@pytest.mark.tools
@pytest.mark.parametrize("dtype", [np.int8, np.int16])
def test_quantised_products(dtype: type[np.integer], tmp_path: Path) -> None:
    """LiteRT rescales behind each factor; C, the meaning and it give the same bits."""
    cases = [product_case(dtype, seed) for seed in seeds(32, 12)]
    distinct = 0
    for case in cases:
        (want,) = run_litert(case.model, *case.inputs)
        (got,) = execute(case.graph(), case.named_inputs()).values()
        np.testing.assert_array_equal(got, want, err_msg=case.name)
        distinct += len(np.unique(got))
    assert distinct > 12 * 15
    compare(cases, tmp_path, STRICT)


@pytest.mark.tools
@pytest.mark.parametrize("operator", ["MEAN", "SUM"])
def test_sums_of_int16_wrap(operator: str) -> None:
    """More than 2^16 large elements leave the int32 that tflite-micro adds in."""
    x = np.full((1, 70_000), 32767, np.int16)
    ours, theirs = reduced(operator, x, np.int16, Quant(1.0, 0), Quant(9000.0, 0))
    np.testing.assert_array_equal(ours, theirs)
