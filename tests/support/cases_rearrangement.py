"""Recipes of operators that repeat elements, move blocks of an image, or compute shapes."""

from __future__ import annotations

import math

import numpy as np

from microtir.operators.common.tflite_schema import TfliteType
from microtir.operators.rearrangement.tflite import BlockOptions
from microtir.operators.repetition.tflite import MirrorPadMode, MirrorPadOptions
from microtir.operators.shapes.tflite import ShapeOptions
from tests.support.sketch import Case, Quant, Sketch


def _quant(s: Sketch) -> Quant | None:
    return s.quant() if s.is_int8 else None


def tile(s: Sketch) -> Case:
    """Draw a case: TILE of one to three copies along each axis."""
    shape = s.shape(1, 4)
    multiples = [s.pick(1, 1, 2, 3) for _ in shape]
    quant = _quant(s)
    result = tuple(n * copies for n, copies in zip(shape, multiples, strict=True))
    return s.finish([s.input(shape, quant), s.ints("multiples", *multiples)],
                    s.output(result, quant))  # fmt: skip


def broadcast_to(s: Sketch) -> Case:
    """Draw a case: BROADCAST_TO of more copies and more axes."""
    result = s.shape(1, 5)
    kept = result[s.integer(0, len(result) - 1) :]
    shape = tuple(1 if s.chance(0.5) else extent for extent in kept)
    quant = _quant(s)
    return s.finish([s.input(shape, quant), s.ints("shape", *result)], s.output(result, quant))


def fill(s: Sketch) -> Case:
    """Draw a case: FILL with a value that is an input."""
    shape, quant = s.shape(1, 4), _quant(s)
    inputs = [s.ints("shape", *shape), s.input((), quant)]
    return s.finish(inputs, s.output(shape, quant))


def mirror_pad(s: Sketch) -> Case:
    """Draw a case: MIRROR_PAD with the edge and without."""
    shape = tuple(extent + 1 for extent in s.shape(1, 4))
    mode = MirrorPadMode(s.integer(0, 1))
    most = [extent - (mode is MirrorPadMode.REFLECT) for extent in shape]
    before, after = ([s.integer(0, min(n, 3)) for n in most] for _ in range(2))
    quant = _quant(s)
    result = tuple(b + n + a for b, n, a in zip(before, shape, after, strict=True))
    pairs = np.array([before, after], np.int32).T
    inputs = [s.input(shape, quant), s.constant("paddings", pairs)]
    return s.finish(inputs, s.output(result, quant), MirrorPadOptions(mode))


def depth_to_space(s: Sketch) -> Case:
    """Draw a case: DEPTH_TO_SPACE."""
    block, (images, height, width, depth) = s.integer(1, 3), s.image(4)
    quant = _quant(s)
    x = s.input((images, height, width, depth * block**2), quant)
    result = (images, height * block, width * block, depth)
    return s.finish([x], s.output(result, quant), BlockOptions(block))


def space_to_depth(s: Sketch) -> Case:
    """Draw a case: SPACE_TO_DEPTH."""
    block, (images, height, width, depth) = s.integer(1, 3), s.image(4)
    quant = _quant(s)
    x = s.input((images, height * block, width * block, depth), quant)
    result = (images, height, width, depth * block**2)
    return s.finish([x], s.output(result, quant), BlockOptions(block))


_UNPADDED = ("float32", "int8")
"""Types for which tflite-micro has SPACE_TO_BATCH_ND, which pads with what lies in its arena."""


def space_to_batch(s: Sketch) -> Case:
    """Draw a case: SPACE_TO_BATCH_ND, without padding where nobody says what that holds."""
    rank = s.integer(1, 2)
    block = [s.integer(1, 3) for _ in range(rank)]
    counts = [s.integer(1, 3) for _ in range(rank)]
    crops = [_crop(s, count * size) for count, size in zip(counts, block, strict=True)]
    if s.dtype.name in _UNPADDED:
        crops = [(0, 0)] * rank
    images, depth, quant = s.integer(1, 2), s.integer(1, 3), _quant(s)
    kept = [n * size - sum(crop) for n, size, crop in zip(counts, block, crops, strict=True)]
    x = s.input((images, *kept, depth), quant)
    inputs = [x, s.ints("block", *block), s.constant("paddings", np.array(crops, np.int32))]
    return s.finish(inputs, s.output((images * math.prod(block), *counts, depth), quant))


def batch_to_space(s: Sketch) -> Case:
    """Draw a case: BATCH_TO_SPACE_ND with crops that leave something."""
    rank = s.integer(1, 2)
    block = [s.integer(1, 3) for _ in range(rank)]
    counts = [s.integer(1, 3) for _ in range(rank)]
    crops = [_crop(s, count * size) for count, size in zip(counts, block, strict=True)]
    images, depth, quant = s.integer(1, 2), s.integer(1, 3), _quant(s)
    kept = [n * size - sum(crop) for n, size, crop in zip(counts, block, crops, strict=True)]
    x = s.input((images * math.prod(block), *counts, depth), quant)
    inputs = [x, s.ints("block", *block), s.constant("crops", np.array(crops, np.int32))]
    return s.finish(inputs, s.output((images, *kept, depth), quant))


def _crop(s: Sketch, extent: int) -> tuple[int, int]:
    """Draw how many elements of an axis are left out at both ends, never all of them."""
    before = s.integer(0, min(2, extent - 1))
    return before, s.integer(0, min(2, extent - 1 - before))


def shape_of(s: Sketch) -> Case:
    """Draw a case: SHAPE."""
    shape = s.shape(1, 4)
    options = ShapeOptions(TfliteType.INT32)
    return s.finish([s.input(shape, _quant(s))], s.output((len(shape),), dtype=np.int32), options)


def rank_of(s: Sketch) -> Case:
    """Draw a case: RANK."""
    return s.finish([s.input(s.shape(0, 4), _quant(s))], s.output((), dtype=np.int32))


def broadcast_args(s: Sketch) -> Case:
    """Draw a case: BROADCAST_ARGS of two shapes that go together."""
    result = s.shape(1, 4)
    shapes = []
    for first in (0, s.integer(0, len(result) - 1)):
        extents = [1 if s.chance(0.4) else n for n in result[first:]]
        shapes.append(s.input((len(extents),), values=np.array(extents, s.dtype)))
    return s.finish(shapes[:: s.pick(1, -1)], s.output((len(result),)))


def range_(s: Sketch) -> Case:
    """Draw a case: RANGE, upwards and downwards; the model's input is not used."""
    s.input((1,))
    is_float = s.dtype.kind == "f"
    start, step = s.integer(-9, 9) + 0.1 * is_float, s.integer(1, 4) * (0.3 if is_float else 1)
    delta, count = step * s.pick(1, -1), s.integer(1, 9)
    limit = start + delta * (count - 0.4 * is_float)
    numbers = zip(("start", "limit", "delta"), (start, limit, delta), strict=True)
    inputs = [s.constant(name, np.array(number, s.dtype)) for name, number in numbers]
    return s.finish(inputs, s.output((count,)))
