"""Factors that LiteRT computes in float32, where tflite-micro computes them in double."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from microtir.config.enums import Numerics
from microtir.operators.common.tflite_schema import BuiltinOperator as Code
from microtir.operators.common.tflite_schema import FusedOptions, Options
from microtir.writers.tflite import TfliteBuilder
from tests.operators.test_unlike_scales import computed
from tests.support.litert import run_litert
from tests.support.seeds import seeds
from tests.support.sketch import Array, Case, Quant


@dataclass(frozen=True)
class Kind:
    """An operator of two operands, and the ratios of the result's scale that use its range."""

    code: Code
    options: Options
    least: float
    most: float


_KINDS = {
    ("mul", 8): Kind(Code.MUL, FusedOptions(), 2.0**5, 2.0**8),
    ("mul", 16): Kind(Code.MUL, FusedOptions(), 2.0**12, 2.0**15),
    ("prelu", 8): Kind(Code.PRELU, Options(), 2.0**5, 2.0**8),
    ("div", 8): Kind(Code.DIV, FusedOptions(), 2.0**7.1, 2.0**10),
}


def _scale(rng: np.random.Generator) -> float:
    return float(np.float32(2.0 ** rng.uniform(-8, -3)))


def factor_case(name: str, dtype: type[np.integer], seed: int) -> Case:
    """Draw a model of two operands whose values are all pairs of 8 bits, or many of 16."""
    info, rng = np.iinfo(dtype), np.random.default_rng([seed, ord(name[0])])
    kind = _KINDS[name, info.bits]
    zeros = [0, 0, 0] if info.bits > 8 else rng.integers(info.min, info.max, 3).tolist()
    first, second = Quant(_scale(rng), zeros[0]), Quant(_scale(rng), zeros[1])
    ratio = rng.uniform(kind.least, kind.most)
    made = Quant(_scale(rng), zeros[2])
    if name == "div":
        first = Quant(float(np.float32(second.scale * made.scale * ratio)), zeros[0])
    else:
        made = Quant(float(np.float32(first.scale * second.scale * ratio)), zeros[2])
    x, y = _operands(dtype, rng)
    if name == "div":
        other = zeros[1] + 1
        y = np.where(y == zeros[1], other, y).astype(dtype)
    builder = TfliteBuilder()
    tensors = [
        builder.tensor(label, (1, 1, 256, 256), dtype, None, [quant.scale], [quant.zero_point])
        for label, quant in (("x", first), ("y", second), ("z", made))
    ]
    builder.operator(kind.code, tensors[:2], tensors[2:], kind.options)
    return Case(f"{name}_{seed}", builder.build(tensors[:2], tensors[2:]), (x, y), 1)


def _operands(dtype: type[np.integer], rng: np.random.Generator) -> tuple[Array, Array]:
    info, shape = np.iinfo(dtype), (1, 1, 256, 256)
    if info.bits > 8:
        x, y = (rng.integers(info.min, info.max, shape, endpoint=True) for _ in range(2))
    else:
        x, y = np.mgrid[info.min : info.max + 1, info.min : info.max + 1]
    return x.reshape(shape).astype(dtype), y.reshape(shape).astype(dtype)


@pytest.mark.tools
@pytest.mark.soak
@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *((name, dtype) for name in ("mul", "prelu", "div") for dtype in (np.int8, np.uint8)),
        ("mul", np.int16),
    ],
)
def test_factors_are_those_of_litert(name: str, dtype: type[np.integer]) -> None:
    """To the bit, for uint8 with any numerics."""
    for seed in seeds(0, 6):
        case = factor_case(name, dtype, seed)
        (expected,) = run_litert(case.model, *case.inputs)
        kinds = [Numerics.TFLITE_REF, *([Numerics.TFLM] if dtype is np.uint8 else [])]
        for numerics in kinds:
            made = computed(case, numerics)
            assert made is not None
            np.testing.assert_array_equal(made[0], expected, err_msg=f"{case.name} {numerics}")


def test_the_two_factors_differ() -> None:
    """Sixteen bits show the rounding of a factor to float32 in some of the products."""
    case = factor_case("mul", np.int16, 1)
    results = [computed(case, numerics) for numerics in (Numerics.TFLM, Numerics.TFLITE_REF)]
    assert results[0] is not None and results[1] is not None
    assert 0 < np.count_nonzero(results[0][0] != results[1][0]) < 100
