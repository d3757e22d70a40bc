"""Read PyTorch's spectra; complex numbers have a last axis of real and imaginary parts."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from microtir.graph.ir import Tensor
from microtir.operators.common.onnx_parts import along
from microtir.operators.common.torch_operands import TorchNode, TorchReader
from microtir.operators.common.torch_rows import readers
from microtir.operators.unary.torch import of_integers


def _transformed(
    node: TorchNode, x: Tensor, axis: int, length: int, *, inverse: bool = False, half: bool = False
) -> Tensor:
    """Return the transform along an axis of a tensor with parts behind it."""
    return node.onnx(
        "DFT", x, node.ints(length), node.ints(axis), inverse=int(inverse), onesided=int(half)
    )


def _scaled(node: TorchNode, x: Tensor, factor: float) -> Tensor:
    return x if factor == 1.0 else node.onnx("Mul", x, node.scalar(factor))


def _parts(node: TorchNode, x: Tensor, name: str = "self") -> Tensor:
    """Return real numbers with an axis of one part, and complex ones as they are."""
    return x if node.is_complex(name) else node.reshaped(x, (*x.shape, 1))


def _factor(node: TorchNode, length: int, *, is_inverse: bool) -> float:
    """Return what the sums of a transform are multiplied with, by the argument norm."""
    norm = node.text("norm", "backward")
    factors = {"backward": is_inverse, "forward": not is_inverse}
    if norm == "ortho":
        return 1 / math.sqrt(length)
    if norm not in factors:
        raise node.malformed(f"the norm {norm!r}", "backward, forward or ortho")
    return 1 / length if factors[norm] else 1.0


def _transform(node: TorchNode) -> Tensor:
    """Read fft_fft, fft_ifft and fft_rfft."""
    x = _parts(node, node.tensor("self"))
    axis = node.axis(node.integer("dim", -1), len(x.shape) - 1)
    length = node.integer("n", node.extent(x, axis))
    is_inverse, is_half = "ifft" in node.target, "rfft" in node.target
    result = _transformed(node, x, axis, length, inverse=is_inverse, half=is_half)
    factor = _factor(node, length, is_inverse=is_inverse)
    return _scaled(node, result, factor * length if is_inverse else factor)


def real_inverse(node: TorchNode) -> Tensor:
    """Read fft_irfft: a real signal of one half of its spectrum."""
    x = _parts(node, node.tensor("self"))
    if x.shape[-1] == 1:  # a real spectrum
        x = node.onnx("Pad", x, node.ints(*(0,) * (2 * len(x.shape) - 1), 1))
    axis = node.axis(node.integer("dim", -1), len(x.shape) - 1)
    length = node.integer("n", 2 * (node.extent(x, axis) - 1))
    result = _transformed(node, x, axis, length, inverse=True, half=True)
    result = _scaled(node, result, length * _factor(node, length, is_inverse=True))
    return node.reshaped(result, result.shape[:-1])


_BY_ROOT, _BY_SIZE = 1, 2  # numbers of normalisations


def _axes(node: TorchNode, x: Tensor) -> tuple[int, ...]:
    rank = len(x.shape) - 1
    return tuple(node.axis(axis, rank) for axis in node.integers("dim"))


def _normalised(node: TorchNode, x: Tensor, count: int) -> Tensor:
    kind = node.integer("normalization")
    factor = {_BY_ROOT: 1 / math.sqrt(count), _BY_SIZE: 1 / count}.get(kind, 1.0)
    return _scaled(node, x, factor)


def core_transform(node: TorchNode) -> Tensor:
    """Read _fft_r2c and _fft_c2c: along several axes, of which the last is halved if one is."""
    x = _parts(node, node.tensor("self"))
    axes = _axes(node, x)
    count = math.prod(node.extent(x, axis) for axis in axes)
    is_inverse = not node.flag("forward", True)
    for number, axis in enumerate(reversed(axes)):
        is_half = node.flag("onesided", False) and number == 0
        length = node.extent(x, axis)
        x = _transformed(node, x, axis, length, inverse=is_inverse, half=is_half)
        x = _scaled(node, x, float(length) if is_inverse else 1.0)
    return _normalised(node, x, count)


def core_inverse(node: TorchNode) -> Tensor:
    """Read _fft_c2r: a real signal of one half of its spectrum, along one axis at last."""
    x, length = node.tensor("self"), node.integer("last_dim_size")
    axes = _axes(node, x)
    count = length * math.prod(node.extent(x, axis) for axis in axes[:-1])
    for axis in axes[:-1]:
        x = _scaled(
            node,
            _transformed(node, x, axis, node.extent(x, axis), inverse=True),
            node.extent(x, axis),
        )
    x = _transformed(node, x, axes[-1], length, inverse=True, half=True)
    result = _normalised(node, _scaled(node, x, float(length)), count)
    return node.reshaped(result, result.shape[:-1])


def short_time(node: TorchNode) -> Tensor:
    """Read stft: (..., frequencies, frames) of frames with a window, whose middle may be padded."""
    x, size = node.tensor("self"), node.integer("n_fft")
    batch = x if len(x.shape) == 2 else node.reshaped(x, (1, *x.shape))
    if node.flag("center", False):
        mode = {"constant": "constant", "reflect": "reflect", "replicate": "edge"}.get(
            node.text("pad_mode", "reflect"), ""
        )
        batch = node.onnx("Pad", batch, node.ints(0, size // 2, 0, size // 2), mode=mode)
    hop = node.integer("hop_length", size // 4)
    result = node.onnx(
        "STFT", batch, node.ints(hop), _window(node, size), node.ints(size),
        onesided=int(node.flag("onesided", True)),
    )  # fmt: skip
    result = _scaled(node, result, 1 / math.sqrt(size) if node.flag("normalized", False) else 1.0)
    result = node.onnx("Transpose", result, perm=(0, 2, 1, 3))
    return (
        result
        if batch.shape[0] != 1 or len(x.shape) == 2
        else node.reshaped(result, result.shape[1:])
    )


def _window(node: TorchNode, size: int) -> Tensor:
    """Return the window of a frame, in its middle with zeros around it."""
    length, window = node.integer("win_length", size), node.optional_tensor("window")
    if window is None:
        window = node.constant(np.ones(length, np.float32))
    before = (size - length) // 2
    if not 0 < length <= size:
        raise node.malformed(f"a window of {length} for frames of {size}")
    return node.onnx("Pad", window, node.ints(before, size - length - before))


def real_part(node: TorchNode) -> Tensor:
    """Read real."""
    x = node.tensor("self")
    return _part(node, x, 0) if node.is_complex("self") else x


def imaginary_part(node: TorchNode) -> Tensor:
    """Read imag."""
    return _part(node, node.tensor("self"), 1)


def _part(node: TorchNode, x: Tensor, number: int) -> Tensor:
    part = along(node.first, x, len(x.shape) - 1, number, 1)
    return node.reshaped(part, x.shape[:-1])


def parts(node: TorchNode) -> Tensor:
    """Read view_as_real and view_as_complex, between which nothing changes here."""
    return node.tensor("self")


def size_of(node: TorchNode) -> Tensor:
    """Read abs: of complex numbers their distance from 0."""
    x = node.tensor("self")
    if not node.is_complex("self"):
        return node.onnx("Abs", x) if x.dtype.is_float else of_integers(node, "Abs", x)
    return node.onnx("ReduceL2", x, node.ints(-1), keepdims=0)


def complex_of(node: TorchNode) -> Tensor:
    """Read complex: numbers of their real and imaginary parts."""
    both = (node.tensor(name) for name in ("real", "imag"))
    return node.onnx("Concat", *(node.reshaped(x, (*x.shape, 1)) for x in both), axis=-1)


_readers = partial(readers, takes_complex=True)

TORCH_READERS: tuple[TorchReader, ...] = (
    *_readers(_transform, "self n dim norm", "fft_fft", "fft_ifft", "fft_rfft"),
    *_readers(real_inverse, "self n dim norm", "fft_irfft"),
    *_readers(core_transform, "self dim normalization onesided forward", "_fft_r2c", "_fft_c2c"),
    *_readers(core_inverse, "self dim normalization last_dim_size", "_fft_c2r"),
    *_readers(
        short_time,
        "self n_fft hop_length win_length window center pad_mode normalized onesided return_complex"
        " align_to_window",
        "stft", "stft.center",
    ),
    *_readers(real_part, "self", "real"),
    *_readers(imaginary_part, "self", "imag"),
    *_readers(parts, "self", "view_as_real", "view_as_complex", "view_as_real_copy"),
    *_readers(size_of, "self", "abs"),
    *_readers(complex_of, "real imag", "complex"),
)  # fmt: skip
