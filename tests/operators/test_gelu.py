"""GELU, int8, int16 and float32, against LiteRT's reference kernels."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

import microtir
from microtir.graph.ir import Array
from microtir.operators.activations.tflite import GeluOptions
from microtir.operators.common.tflite_schema import BuiltinOperator
from microtir.rewrite.reference import execute
from microtir.writers.tflite import TfliteBuilder
from tests.support.litert import run_litert

STORED = np.arange(-128, 128).astype(np.int8)
UNIT = 2.0**-24


def model(
    dtype: npt.DTypeLike, shape: tuple[int, ...], approximate: bool, *quants: tuple[float, int]
) -> bytes:
    """A model of one GELU; `quants` are scale and zero point of input and output."""
    builder = TfliteBuilder()
    given: list[tuple[list[float] | None, list[int] | None]]
    given = [([scale], [zero]) for scale, zero in quants] or [(None, None)] * 2
    x, y = (
        builder.tensor(name, shape, dtype, scales=scales, zero_points=zero_points)
        for name, (scales, zero_points) in zip("xy", given, strict=True)
    )
    builder.operator(BuiltinOperator.GELU, [x], [y], GeluOptions(approximate))
    return bytes(builder.build([x], [y]))


def by_reference(data: bytes, x: Array) -> Array:
    """The output that our own meaning gives."""
    graph = microtir.frontend.from_tflite(data).graph
    assert graph is not None
    return execute(graph, {"x": x})["y"]


@pytest.mark.parametrize("approximate", [False, True])
def test_tables_equal_those_of_litert(approximate: bool) -> None:
    """All 256 results, for scales and zero points of any kind, to the bit."""
    generator = np.random.default_rng(11)
    for _ in range(60):
        quants = [
            (float(np.float32(generator.uniform(1e-3, 0.1))), int(generator.integers(-128, 128)))
            for _ in "xy"
        ]
        data = model(np.int8, STORED.shape, approximate, *quants)
        want = run_litert(data, STORED)[0]
        np.testing.assert_array_equal(by_reference(data, STORED), want, err_msg=str(quants))


@pytest.mark.parametrize("approximate", [False, True])
def test_tables_of_int16_equal_those_of_litert(approximate: bool) -> None:
    """All 65,536 results, for scales and zero points of any kind, to the bit."""
    generator = np.random.default_rng(12)
    stored = np.arange(-(1 << 15), 1 << 15).astype(np.int16)
    for zero_points in [(0, 0), (0, 0), (0, 0), (300, -77)]:
        scales = np.float32(generator.uniform(1e-5, 1e-3, 2))
        quants = list(zip(map(float, scales), zero_points, strict=True))
        data = model(np.int16, stored.shape, approximate, *quants)
        want = run_litert(data, stored)[0]
        np.testing.assert_array_equal(by_reference(data, stored), want, err_msg=str(quants))


@pytest.mark.parametrize("approximate", [False, True])
def test_floats_are_near_those_of_litert(approximate: bool) -> None:
    """Both are within a few units of float32 of the real function."""
    x = np.linspace(-9, 9, 4001, dtype=np.float32)
    data = model(np.float32, x.shape, approximate)
    got, want = by_reference(data, x), run_litert(data, x)[0]
    np.testing.assert_allclose(got, want, rtol=0, atol=32 * UNIT)


@pytest.mark.parametrize("approximate", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.int16])
def test_c_is_what_the_meaning_says(dtype: type, approximate: bool) -> None:
    """The C gives the same bytes, and floats that differ by a few units at most."""
    values: Array = np.linspace(-9, 9, 256, dtype=np.float32) if dtype is np.float32 else STORED
    values = values if dtype is not np.int16 else STORED.astype(np.int16) * 199
    quants = [] if dtype is np.float32 else [(0.05, -3), (0.03, -90)]
    quants = quants if dtype is not np.int16 else [(2e-4, 0), (1e-4, 9)]
    data = model(dtype, (1, 16, 4, 4), approximate, *quants)
    x = values.reshape(1, 16, 4, 4)
    artifact = microtir.build(microtir.frontend.from_tflite(data))
    got = microtir.host.load(artifact, sanitize=True).run({"x": x})["y"]
    want = by_reference(data, x)
    if dtype is not np.float32:
        np.testing.assert_array_equal(got, want)
    else:
        np.testing.assert_allclose(got, want, rtol=0, atol=16 * UNIT)
