"""Resizing by rows that are weighed once: every bit is that of four products."""

from __future__ import annotations

import numpy as np
import pytest

from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels import emit
from microtir.kernels.arm_dsp.bilinear import BilinearWords
from microtir.kernels.arm_mve.bilinear import BilinearVectors
from microtir.kernels.portable.bilinear import Bilinear
from microtir.operators.resize.definition import ResizeBilinear
from microtir.plan.ir import Layout, PlannedOperator, Refusal
from microtir.rewrite.reference.evaluate import evaluate
from microtir.tir.analysis.access import prove_accesses
from microtir.tir.function import LayerName
from microtir.tir.interpreter import Interpreter
from microtir.tir.verify import verify
from tests.support.graphs import node, quant, tensor

CHANNELS = (1, 2, 3, 4, 5, 7, 8, 9, 16, 17)
EXTREMES = -1, 0, 1, 2, -2


def layer(shape: tuple[int, ...], size: tuple[int, int], op: ResizeBilinear, dtype: DType) -> Node:
    """Return a node that gives images of a size."""
    types = shape, (shape[0], *size, shape[3])
    x, y = (tensor(name, of, dtype, quant(0.1)) for name, of in zip("xy", types, strict=True))
    return node(op, [x], [y])


@pytest.mark.parametrize("dtype", [DType.INT8, DType.INT16])
@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize(
    "op", [ResizeBilinear(*flags) for flags in ((False, False), (True, False), (False, True))]
)
def test_equal_to_the_meaning(op: ResizeBilinear, channels: int, dtype: DType) -> None:
    """Larger and smaller images, ties among their sums, of every number of channels."""
    rng = np.random.default_rng(channels)
    for seed in range(4 if dtype is DType.INT8 else 2):
        images, *sizes = (int(n) for n in rng.integers(1, 9, 5))
        if seed == 0:  # of int16 the sums of twice as many rows and columns have 32 bits
            sizes[2:] = 2 * sizes[0], 2 * sizes[1]
        resized = layer((1 + images % 2, *sizes[:2], channels), (sizes[2], sizes[3]), op, dtype)
        x, y = resized.inputs[0], resized.output
        layouts = {t: Layout.whole(t.type) for t in (x, y)}
        operator = PlannedOperator(resized, Bilinear().candidate(resized))
        function = emit(operator, layouts, LayerName("layer"))
        verify(function)
        prove_accesses(function)
        values = rng.integers(dtype.min, dtype.max + 1, x.shape)
        if seed % 2:
            values = rng.choice([dtype.min, dtype.max, *EXTREMES], x.shape)
        values = values.astype(dtype.value)
        output = np.zeros(y.shape, values.dtype)
        scratch = np.full(x.shape[2] * channels, 77, np.int32)
        Interpreter([function]).run("layer", [values, output, scratch])
        np.testing.assert_array_equal(output, evaluate(resized, [values])[0])


@pytest.mark.parametrize("kernel", [BilinearVectors(), BilinearWords()], ids=lambda k: k.name)
def test_uint8_where_floats_are_exact(kernel: BilinearWords) -> None:
    """Thirds of a border, at which every weight is one element's, make ties that floats round."""
    rng, refused = np.random.default_rng(0), 0
    for number in range(300):
        image, times = rng.integers(1, 4, 2), rng.choice([1, 2, 3, 4, 6], 2)
        flags = ((False, False), (True, False), (False, True))[number % 3]
        height, width = (int(n) for n in image * times)
        shape = (1, int(image[0]), int(image[1]), 4)
        resized = layer(shape, (height, width), ResizeBilinear(*flags), DType.UINT8)
        if kernel.refusal(resized) is not None:
            refused += 1
            continue
        x, y = resized.inputs[0], resized.output
        layouts = {t: Layout.whole(t.type) for t in (x, y)}
        operator = PlannedOperator(resized, kernel.candidate(resized))
        functions = [emit(operator, layouts, LayerName("layer"))]
        values = rng.integers(0, 256, x.shape).astype(np.uint8)
        output = np.zeros(y.shape, np.uint8)
        scratch = [np.zeros(n // 2, np.uint16)] if (n := operator.candidate.scratch_bytes) else []
        Interpreter(functions).run("layer", [values, output, *scratch])
        np.testing.assert_array_equal(output, evaluate(resized, [values])[0])
    assert 30 < refused < 270


def test_int8_by_words_rounds_halves_away_from_zero() -> None:
    """Weights of a quarter to a sixteenth, and values whose sums are halves of either sign."""
    rng = np.random.default_rng(0)
    for number in range(40):
        channels = (4, 3, 5, 8, 6, 7, 13)[number % 7]
        height, width = (int(n) for n in rng.integers(1, 4, 2))
        width += channels < 4
        size = height * int(rng.choice([1, 2, 4, 8])), width * int(rng.choice([1, 2, 4, 8]))
        op = ResizeBilinear(*((False, False), (False, True))[number % 2])
        resized = layer((2, height, width, channels), size, op, DType.INT8)
        x, y = resized.inputs[0], resized.output
        operator = PlannedOperator(resized, BilinearWords().candidate(resized))
        layouts = {t: Layout.whole(t.type) for t in (x, y)}
        values = rng.choice([-128, 127, *EXTREMES], x.shape).astype(np.int8)
        output, scratch = (
            np.zeros(y.shape, np.int8),
            np.full(width * channels + (channels < 4), 77, np.uint16),
        )
        function = emit(operator, layouts, LayerName("layer"))
        verify(function)
        prove_accesses(function)
        Interpreter([function]).run("layer", [values, output, scratch])
        np.testing.assert_array_equal(output, evaluate(resized, [values])[0])


def test_other_types_are_refused() -> None:
    """Those of uint8 are weighed by floats."""
    x, y = (tensor(name, (1, 2, 2, 3), DType.UINT8, quant(0.1)) for name in "xy")
    assert Bilinear().refusal(node(ResizeBilinear(False, False), [x], [y])) is Refusal.TYPES
