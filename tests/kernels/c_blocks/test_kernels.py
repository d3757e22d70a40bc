"""Register blocks by themselves: their meaning, and what a schedule makes of them."""

from __future__ import annotations

import numpy as np
import pytest

from microtir.dtype import DType
from microtir.kernels.c_blocks.finish import Activate, Requantise
from microtir.kernels.c_blocks.kernel import copy
from microtir.kernels.c_blocks.kernels import Block, depthwise, product
from microtir.kernels.common.requantise import Rescaling
from microtir.kernels.common.runs import Runs, Taps, turns_of
from microtir.operators.common.attributes import Activation
from microtir.schedule import KernelDescription
from microtir.tir.analysis.access import prove_accesses
from microtir.tir.ir import Allocate, Array, Let, Load, PrimFunc
from microtir.tir.verify import verify
from microtir.tir.visitor import walk
from tests.te.running import run

FLOATS = Activate(has_bias=True, activation=Activation.RELU)


def computed(kernel: KernelDescription, **inputs: Array) -> Array:
    """The output of a kernel that keeps the rules; its sums are variables, not arrays."""
    verify(kernel.meaning)
    prove_accesses(kernel.meaning)
    assert all(not n.buffer.shape for n in walk(kernel.meaning) if isinstance(n, Allocate))
    return run(kernel.meaning, dict(inputs))["y"]


def whole(rng: np.random.Generator, *shape: int) -> Array:
    """Floats whose sums are exact."""
    return rng.integers(-9, 9, shape).astype(np.float32)


@pytest.mark.parametrize(
    ("block", "runs", "channels"),
    [
        (Block(2, 2, turn=2), Runs(2, 1, 5, 20, 5, 3), 3),  # a rest, and a turn that overlaps
        (Block(1, 3, turn=2), Runs(1, 2, 1, 9, 4, 1), 3),  # runs that are no whole turn
        (Block(3, 1, turn=4), Runs(1, 1, 8, 8, 8, 2), 2),
    ],
)
def test_product_sums_runs(block: Block, runs: Runs, channels: int) -> None:
    """Pixels, rows and parts lie as far apart as the runs say."""
    rng = np.random.default_rng(1)
    starts, together = turns_of(channels, block.channels), block.channels
    x, bias = whole(rng, runs.reach(block.pixels)), whole(rng, channels)
    weights = whole(rng, channels, runs.rows, runs.parts, runs.length)
    order = [start + n for start in starts for n in range(together)]
    packed = weights[order].reshape(len(starts), together, runs.rows, runs.parts, runs.length)
    packed = np.ascontiguousarray(packed.transpose(0, 2, 3, 4, 1))
    packed = packed.reshape(len(starts), runs.rows, runs.parts, -1)
    kernel = product(block, runs, channels, FLOATS)
    got = computed(kernel, x=x, weights=packed, table=bias[order].reshape(-1, 1))
    expected = np.empty((block.pixels, channels), np.float32)
    for pixel in range(block.pixels):
        place = (
            pixel * runs.pixel_step
            + np.arange(runs.rows)[:, None, None] * runs.row_step
            + np.arange(runs.parts)[:, None] * runs.part_step
            + np.arange(runs.length)
        )
        expected[pixel] = np.maximum((weights * x[place]).sum((1, 2, 3)) + bias, 0)
    np.testing.assert_array_equal(got.reshape(expected.shape), expected)


@pytest.mark.parametrize(
    ("pixels", "taps"),
    [
        (3, Taps(2, 3, 40, 2, 2)),  # neighbours share all but one column
        (2, Taps(1, 3, 40, 2, 6)),  # strides that leave no column to share
        (3, Taps(2, 2, 60, 6, 2)),  # dilated windows, one in the gaps of the other
        (1, Taps(1, 260, 0, 2, 2)),  # wider than a schedule unrolls unasked
    ],
)
@pytest.mark.parametrize("rolled", [False, True])
def test_depthwise_reads_each_element_once(pixels: int, taps: Taps, rolled: bool) -> None:
    """Windows overlap in any way; a row's element is loaded once for all pixels."""
    rng, channels = np.random.default_rng(2), 2
    x, bias = whole(rng, taps.reach(pixels, channels)), whole(rng, channels)
    weights = whole(rng, channels, taps.rows, taps.columns)
    kernel = depthwise(pixels, taps, channels, FLOATS, rolled=rolled, in_turn=False)
    got = computed(kernel, x=x, weights=weights, table=bias.reshape(-1, 1))
    expected = np.empty((pixels, channels), np.float32)
    for pixel in range(pixels):
        for channel in range(channels):
            place = (
                channel + pixel * taps.pixel_step
                + np.arange(taps.rows)[:, None] * taps.row_step
                + np.arange(taps.columns) * taps.column_step
            )  # fmt: skip
            total = (weights[channel] * x[place]).sum() + bias[channel]
            expected[pixel, channel] = max(total, 0)
    np.testing.assert_array_equal(got.reshape(expected.shape), expected)
    rows = 1 if rolled else taps.rows
    assert loads_of(kernel.meaning, "x") == rows * taps.loads(pixels)
    assert loads_of(kernel.meaning, "weights") == rows * taps.columns


def loads_of(func: PrimFunc, name: str) -> int:
    """How often the text of a function loads from a buffer."""
    return sum(1 for n in walk(func) if isinstance(n, Load) and n.buffer.name == name)


def test_constants_of_a_channel_are_read_behind_its_sums() -> None:
    """While products are added, no register holds what only the output needs."""
    finish = Requantise(Rescaling(corrects_ties=True, shift=None, low=0, high=255))
    func = depthwise(2, Taps(1, 2, 9, 1, 1), 4, finish, rolled=False, in_turn=False).meaning
    names = [node.var.name for node in walk(func) if isinstance(node, Let)]
    sums, outputs = ["w0", "w1", *["value"] * 3], ["product", "high"] * 2
    assert names == [*sums, "bias", "factor", "rounding", "shift", *outputs]


@pytest.mark.parametrize(("size", "turn"), [(1, 1), (7, 1), (3, 8), (8, 8), (21, 8)])
def test_copy_moves_every_element(size: int, turn: int) -> None:
    """Whole turns and what is left of them."""
    source = np.arange(size, dtype=np.int8)
    kernel = copy(size, DType.INT8, turn)
    assert np.array_equal(run(kernel.meaning, {"source": source})["target"], source)
