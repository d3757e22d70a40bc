"""Resolve SAME and VALID padding of a TFLite file to rows and columns, and back."""

from __future__ import annotations

from microtir.graph.ir import Tensor
from microtir.operators.common import attributes, tflite_operands, tflite_schema

_MAX_WINDOW = 65_535  # keeps every index of a window within 32 bits


def explicit_padding(
    operands: tflite_operands.Operands,
    window: tuple[int, int],
    strides: tuple[int, int],
    dilations: tuple[int, int],
    padding: tflite_schema.Padding,
) -> attributes.Padding2D:
    """Return the explicit padding of a windowed operator."""
    _, height, width, _ = operands.image(0)
    check_window(operands, window, strides, dilations)
    if padding is tflite_schema.Padding.VALID:
        return attributes.Padding2D()
    top, bottom = same_padding(height, window[0], strides[0], dilations[0])
    left, right = same_padding(width, window[1], strides[1], dilations[1])
    return attributes.Padding2D(top, bottom, left, right)


def check_window(
    operands: tflite_operands.Operands,
    window: tuple[int, ...],
    strides: tuple[int, ...],
    dilations: tuple[int, ...] = (1,),
) -> None:
    """Check that windows have legal extents.

    Raises:
        ModelFileError: some are below 1, or out of all proportion.
    """
    for name, extents in (("window", window), ("strides", strides), ("dilations", dilations)):
        if not 1 <= min(extents) <= max(extents) <= _MAX_WINDOW:
            text = " by ".join(map(str, extents))
            raise operands.malformed(f"{name}: {text}", f"1 to {_MAX_WINDOW} each")


def same_padding(size: int, window: int, stride: int, dilation: int = 1) -> tuple[int, int]:
    """Return the elements that SAME adds before and after an axis.

    There are ceil(size / stride) positions; an odd element of padding goes to the end.
    """
    last = (-(-size // stride) - 1) * stride
    total = max(last + (window - 1) * dilation + 1 - size, 0)
    return total // 2, total - total // 2


def written_padding(
    image: Tensor, window: attributes.SlidingWindow
) -> tflite_schema.Padding | None:
    """Return the option for a padding, None where none adds these rows and columns."""
    if window.padding == attributes.Padding2D():
        return tflite_schema.Padding.VALID
    axes = zip(image.shape[1:3], window.taps, window.strides, window.dilations, strict=True)
    (top, bottom), (left, right) = (same_padding(*axis) for axis in axes)
    return (
        tflite_schema.Padding.SAME
        if window.padding == attributes.Padding2D(top, bottom, left, right)
        else None
    )
