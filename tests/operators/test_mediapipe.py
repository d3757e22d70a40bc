"""Custom operators of MediaPipe, against their definitions written out element by element."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import microtir
from microtir.graph.ir import Array
from microtir.rewrite.reference import execute
from microtir.writers.tflite import TfliteBuilder
from tests.frontend.models import refusal
from tests.support.seeds import seeds

F32 = np.float32
SAME, VALID = 1, 2
RELU = 1


def options(padding: int, *numbers: int) -> bytes:
    """TFLite's C structure: padding, then strides, window and activation."""
    return np.array([padding, *numbers], np.int32).tobytes()


def one(name: str, given: list[Array], results: dict[str, tuple[int, ...]], packed: bytes) -> bytes:
    """A model of one custom operator; a constant input is read-only."""
    builder = TfliteBuilder()
    inputs = [
        builder.tensor(f"x{i}", x.shape, F32, x if i > 0 and not x.flags.writeable else None)
        for i, x in enumerate(given)
    ]
    outputs = [builder.tensor(label, shape, F32) for label, shape in results.items()]
    builder.custom_operator(name, inputs, outputs, packed)
    free = [t for t, x in zip(inputs, given, strict=True) if x is given[0] or x.flags.writeable]
    return builder.build(free, outputs)


def outcomes(data: bytes, given: list[Array]) -> list[dict[str, Array]]:
    """What the numpy meaning gives, and what the C gives under sanitizers."""
    module = microtir.frontend.from_tflite(data)
    assert module.graph is not None
    names = [tensor.name for tensor in module.graph.arguments]
    named = {f"x{i}": x for i, x in enumerate(given) if f"x{i}" in names}
    built = microtir.host.load(microtir.build(module), sanitize=True)
    return [execute(module.graph, named), built.run(named)]


def drawn_window(rng: np.random.Generator) -> tuple[tuple[int, ...], tuple[int, int], list[int]]:
    """A shape of an image, a window, and strides that may leave gaps or overlap."""
    shape = (int(rng.integers(1, 3)), *(int(n) for n in rng.integers(1, 9, 2)), 3)
    high, wide = (int(rng.integers(1, min(4, n) + 1)) for n in shape[1:3])
    return shape, (high, wide), [int(n) for n in rng.integers(1, 4, 2)]


# --- MaxPoolingWithArgmax2D ----------------------------------------------------------------------


def pooled(x: Array, padding: int, window: tuple[int, int], strides: list[int]) -> list[Array]:
    """Values and places of an image, one window after another."""
    extents = [
        -(-n // s) if padding == SAME else (n - k) // s + 1
        for n, k, s in zip(x.shape[1:3], window, strides, strict=True)
    ]
    before = [
        max((m - 1) * s + k - n, 0) // 2
        for m, s, k, n in zip(extents, strides, window, x.shape[1:3], strict=True)
    ]
    shape = (x.shape[0], *extents, x.shape[3])
    values, places = np.zeros(shape, F32), np.zeros(shape, F32)
    for n, y, c_x, c in np.ndindex(*shape):
        best = (-np.inf, 0)
        for ky, kx in product(range(window[0]), range(window[1])):
            row, column = y * strides[0] - before[0] + ky, c_x * strides[1] - before[1] + kx
            if (
                0 <= row < x.shape[1]
                and 0 <= column < x.shape[2]
                and x[n, row, column, c] > best[0]
            ):
                best = (x[n, row, column, c], ky * window[1] + kx)
        values[n, y, c_x, c], places[n, y, c_x, c] = best[0], F32(best[1]) + F32(0.1)
    return [values, places]


@pytest.mark.tools
@pytest.mark.soak
def test_max_pooling_with_places() -> None:
    """Values and places of any window, with equal values in it."""
    for seed in seeds(10, 5):
        rng = np.random.default_rng([seed, 1])
        shape, window, strides = drawn_window(rng)
        padding = int(rng.integers(1, 3))
        x = rng.integers(-3, 4, shape).astype(F32)
        values, places = pooled(x, padding, window, strides)
        results = {"values": values.shape, "places": places.shape}
        activation = int(rng.integers(2)) * RELU
        numbers = (*strides[::-1], *window[::-1], activation)
        data = one("MaxPoolingWithArgmax2D", [x], results, options(padding, *numbers))
        if activation:
            values = values.clip(0)
        for got in outcomes(data, [x]):
            np.testing.assert_array_equal(got["values"], values, err_msg=str(seed))
            np.testing.assert_array_equal(got["places"], places, err_msg=str(seed))


# --- MaxUnpooling2D ------------------------------------------------------------------------------


def unpooled(x: Array, places: Array, window: tuple[int, int], strides: list[int]) -> Array:
    """The image that values stand in, one value after another."""
    size = [n * k for n, k in zip(x.shape[1:3], window, strict=True)]
    before = [
        max((n - 1) * s + k - m, 0) // 2
        for n, s, k, m in zip(x.shape[1:3], strides, window, size, strict=True)
    ]
    result = np.zeros((x.shape[0], *size, x.shape[3]), F32)
    for n, y, c_x, c in np.ndindex(*x.shape):
        tap = int(places[n, y, c_x, c])
        row = y * strides[0] - before[0] + tap // window[1]
        column = c_x * strides[1] - before[1] + tap % window[1]
        if 0 <= row < size[0] and 0 <= column < size[1]:
            result[n, row, column, c] = x[n, y, c_x, c]
    return result


@pytest.mark.tools
@pytest.mark.soak
def test_max_unpooling() -> None:
    """Values go where they came from; windows that overlap and such that leave gaps."""
    for seed in seeds(20, 5):
        rng = np.random.default_rng([seed, 2])
        shape, window, strides = drawn_window(rng)
        x = rng.normal(0, 1, shape).astype(F32)
        places = rng.integers(0, window[0] * window[1], shape).astype(F32) + F32(0.1)
        places.flags.writeable = bool(rng.integers(2))
        want = unpooled(x, places, window, strides)
        packed = options(SAME, *strides[::-1], *window[::-1], 0)
        for got in outcomes(
            one("MaxUnpooling2D", [x, places], {"y": want.shape}, packed), [x, places]
        ):
            np.testing.assert_array_equal(got["y"], want, err_msg=str(seed))


@pytest.mark.tools
def test_places_that_are_none_take_nothing() -> None:
    """Neither those outside of a window nor what is no number."""
    x = np.ones((1, 1, 5, 1), F32)
    places = np.array([-1, 4, np.nan, 1e30, 3.1], F32).reshape(x.shape)
    packed = options(SAME, 2, 2, 2, 2, 0)
    for got in outcomes(
        one("MaxUnpooling2D", [x, places], {"y": (1, 2, 10, 1)}, packed), [x, places]
    ):
        assert got["y"].sum() == got["y"][0, 1, 9, 0] == 1


# --- Convolution2DTransposeBias ------------------------------------------------------------------


def transposed(x: Array, w: Array, b: Array, padding: int, strides: list[int]) -> Array:
    """Each value times its window, added up where it falls, and the bias."""
    _, *sizes, _ = x.shape
    cut = [
        max(0, k - (n - 1) % s - 1) if padding == SAME else 0
        for n, k, s in zip(sizes, w.shape[1:3], strides, strict=True)
    ]
    rows, columns = (
        s * (n - 1) + k - c for n, k, s, c in zip(sizes, w.shape[1:3], strides, cut, strict=True)
    )
    result = np.zeros((x.shape[0], rows, columns, w.shape[0])) + b
    for n, y, c_x in np.ndindex(*x.shape[:3]):
        for ky, kx in np.ndindex(*w.shape[1:3]):
            row, column = y * strides[0] - cut[0] // 2 + ky, c_x * strides[1] - cut[1] // 2 + kx
            if 0 <= row < rows and 0 <= column < columns:
                result[n, row, column] += w[:, ky, kx].astype(np.float64) @ x[n, y, c_x]
    return result.astype(F32)


@pytest.mark.tools
@pytest.mark.soak
def test_transposed_convolution_with_bias() -> None:
    """Any window and strides, with the smallest output that either padding can have come from."""
    for seed in seeds(30, 5):
        rng = np.random.default_rng([seed, 3])
        shape, window, strides = drawn_window(rng)
        x = rng.normal(0, 1, shape).astype(F32)
        w, b = (rng.normal(0, 1, s).astype(F32) for s in ((2, *window, 3), (2,)))
        w.flags.writeable = b.flags.writeable = False
        padding = int(rng.integers(1, 3))
        want = transposed(x, w, b, padding, strides)
        if 0 in want.shape:
            continue
        packed = options(padding, *strides[::-1])
        data = one("Convolution2DTransposeBias", [x, w, b], {"y": want.shape}, packed)
        for got in outcomes(data, [x, w, b]):
            np.testing.assert_allclose(got["y"], want, rtol=1e-5, atol=1e-5, err_msg=str(seed))


@pytest.mark.parametrize(
    ("packed", "text"),
    [
        (b"\1\0\0\0", "4 bytes of options"),
        (options(3, 1, 1, 1, 1, 0), "its padding is 3"),
        (options(SAME, 1, 0, 1, 1, 0), "strides: 0 by 1"),
        (options(SAME, 1, 1, 1, 1, 9), "its activation is 9"),
        (options(SAME, 1, 1, 1, 1, 4), "its fused activation is TANH"),
    ],
)
def test_refusals(packed: bytes, text: str) -> None:
    """Options cut short, and numbers that mean nothing."""
    x = np.zeros((1, 2, 2, 1), F32)
    data = one("MaxPoolingWithArgmax2D", [x], {"v": x.shape, "p": x.shape}, packed)
    assert text in refusal(data)
