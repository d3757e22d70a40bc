"""Read ONNX's windows and spectra: a transform is a product with a matrix that is known."""

from __future__ import annotations

import math

import numpy as np

from microtir.graph.ir import Array, Tensor
from microtir.operators.common import onnx_arithmetic, onnx_types
from microtir.operators.common.onnx_operands import OnnxNode, OnnxReader, by_definition
from microtir.operators.common.onnx_parts import int32s, reshaped, transposed
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.indexing.definition import Gather

_OPERAND_AXIS = 20  # since this operator set the axis of DFT is an input


def _matrix(size: int, length: int, parts: int, *, is_inverse: bool, is_one_sided: bool) -> Array:
    """Return what each part of the input adds to each of the output.

    Args:
        size: of the input; what is missing to the length is 0, what is beyond it is left out.
        length: of the transform.
        parts: of each number of the input: 1 of real ones, 2 of complex ones.
        is_inverse: whether it goes from frequencies to a signal.
        is_one_sided: of the two halves of the spectrum of a real signal one is there.
    """
    taken = min(size, length // 2 + 1 if is_inverse and is_one_sided else length)
    outputs = length // 2 + 1 if is_one_sided and not is_inverse else length
    angle = 2 * np.pi * ((np.arange(outputs)[:, None] * np.arange(taken)) % length) / length
    real, imaginary = np.cos(angle), np.sin(angle) * (1 if is_inverse else -1)
    if is_inverse:
        real, imaginary = real / length, imaginary / length
    if is_inverse and is_one_sided:  # the other half adds as much
        twice = np.full(taken, 2.0)
        twice[0] = 1.0
        if length % 2 == 0 and taken == length // 2 + 1:
            twice[-1] = 1.0
        blocks = np.stack([real * twice, -imaginary * twice], axis=-1)[:, None]
    else:
        blocks = np.stack(
            [np.stack([real, -imaginary], axis=-1), np.stack([imaginary, real], axis=-1)], axis=1
        )
    weights = np.zeros((outputs, blocks.shape[1], size, parts))
    weights[:, :, :taken] = blocks[..., :parts]
    return weights.reshape(outputs * blocks.shape[1], size * parts).astype(np.float32)


def _transformed(node: OnnxNode, x: Tensor, weights: Array, parts: int) -> Tensor:
    """Return (..., numbers, parts) as (..., numbers, parts), by a matrix of both together."""
    rows = reshaped(node, x, *x.shape[:-2], x.shape[-2] * x.shape[-1])
    shape = (*rows.shape[:-1], weights.shape[0])
    result = node.emit(FullyConnected(), rows, node.constant(weights), shape=shape)
    return reshaped(node, result, *shape[:-1], weights.shape[0] // parts, parts)


def discrete_fourier(node: OnnxNode) -> Tensor:
    """Read DFT: of real or complex numbers, there and back."""
    x = node.input(0)
    rank, parts = len(x.shape), x.shape[-1]
    if node.version >= _OPERAND_AXIS:
        stated = -2 if node.optional(2) is None else node.whole_number(2, "the axis")
    else:
        stated = node.integer("axis", 1)
    axis = node.axis(stated, rank)
    if parts not in (1, 2) or axis == rank - 1:
        raise node.malformed(f"a signal of shape {x.shape}, axis {axis}", "(..., 1) or (..., 2)")
    is_inverse, is_one_sided = (bool(node.integer(name, 0)) for name in ("inverse", "onesided"))
    size = x.shape[axis]
    length = 2 * (size - 1) if is_inverse and is_one_sided else size
    if node.optional(1) is not None:
        length = node.whole_number(1, "the length")
    if length < 1:
        raise node.malformed(f"a transform of length {length}", "1 or more")
    node.check_room(length, 2, size, parts)
    weights = _matrix(size, length, parts, is_inverse=is_inverse, is_one_sided=is_one_sided)
    order = [*(n for n in range(rank - 1) if n != axis), axis, rank - 1]
    part_count = 1 if is_inverse and is_one_sided else 2
    result = _transformed(node, transposed(node, x, order), weights, part_count)
    return transposed(node, result, np.argsort(order).tolist())


def short_time_fourier(node: OnnxNode) -> Tensor:
    """Read STFT: transforms of frames, each multiplied with a window."""
    x = node.input(0)
    step = node.whole_number(1, "the step")
    window = node.optional(2)
    if node.optional(3) is not None:
        length = node.whole_number(3, "the length")
    else:
        length = x.shape[1] if window is None else window.shape[0]
    n, size, parts = x.shape[0], x.shape[1], x.shape[2] if len(x.shape) == 3 else 1
    count = (size - length) // step + 1 if step > 0 else 0
    if count < 1 or length < 1 or (window is not None and window.shape != (length,)):
        raise node.malformed(f"frames of {length} by {step} of a signal of {size}")
    node.check_room(count, length)
    node.check_room(length, 2, length, parts)
    places = np.arange(count)[:, None] * step + np.arange(length)
    frames = node.emit(Gather(1), reshaped(node, x, n, size, parts), int32s(node, places))
    if window is not None:
        frames = onnx_arithmetic.mul(node, frames, reshaped(node, window, length, 1))
    is_one_sided = bool(node.integer("onesided", 1))
    weights = _matrix(length, length, parts, is_inverse=False, is_one_sided=is_one_sided)
    return _transformed(node, frames, weights, 2)


def mel_weights(node: OnnxNode) -> Tensor:
    """Read MelWeightMatrix: triangles between frequencies that the mel scale spaces evenly."""
    names = ("the bins", "the length", "the rate", "the lower edge", "the upper edge")
    bins, length, rate, low, high = (
        float(node.known_number(index, name)) for index, name in enumerate(names)
    )
    is_legal = all(map(math.isfinite, (bins, length, rate, low, high))) and rate > 0
    if not is_legal or min(bins, length, low, high) < 0:
        raise node.malformed(
            f"{bins} bins of {length} numbers at the rate {rate}, from {low} to {high}",
            "numbers of 0 or more, and a rate above 0",
        )
    count, spectrum = int(bins), int(length) // 2 + 1
    node.check_room(spectrum, count)
    ends = [2595 * math.log10(1 + edge / 700) for edge in (low, high)]
    mels = ends[0] + np.arange(count + 2) * (ends[1] - ends[0]) / (count + 2)
    hertz = 700 * (10 ** (mels / 2595) - 1)
    edges = np.floor((length + 1) * hertz / rate).astype(np.int64)
    result = np.zeros((spectrum, count))
    for number in range(count):
        first, middle, last = edges[number : number + 3]
        if first == middle:
            result[middle, number] = 1
        else:
            rising = np.arange(first, middle + 1)
            result[rising, number] = (rising - first) / (middle - first)
        if last > middle:
            falling = np.arange(middle, last)
            result[falling, number] = (last - falling) / (last - middle)
    dtype = onnx_types.onnx_type(node, node.integer("output_datatype", 1))
    return node.constant(result.astype(dtype.value))


_WINDOW = ("output_datatype", "periodic")

ONNX_READERS = (
    OnnxReader("HannWindow", by_definition, attributes=_WINDOW),
    OnnxReader("HammingWindow", by_definition, attributes=_WINDOW),
    OnnxReader("BlackmanWindow", by_definition, attributes=_WINDOW),
    OnnxReader("DFT", discrete_fourier, (1, 3), ("axis", "inverse", "onesided"), ranks=(2,)),
    OnnxReader("STFT", short_time_fourier, (2, 4), ("onesided",), ranks=(2, 0, 1)),
    OnnxReader("MelWeightMatrix", mel_weights, (5, 5), ("output_datatype",)),
)
