"""Read MediaPipe's custom operators of pooling that keeps where the maxima are."""

from __future__ import annotations

import struct

from microtir.operators.argmax_pooling.definition import MaxPoolWithPlaces, MaxUnpool
from microtir.operators.common.tflite_operands import Converted, Operands, TfliteReader
from microtir.operators.common.tflite_schema import Padding, TfliteActivation
from microtir.operators.common.tflite_windows import check_window, explicit_padding

_PADDINGS = {1: Padding.SAME, 2: Padding.VALID}


def _options(operands: Operands) -> tuple[Padding, tuple[int, int], tuple[int, int], int]:
    """Return padding, strides, window and activation: the options are TFLite's C structure."""
    size = len(operands.custom_options)
    if size < 24:
        raise operands.malformed(f"{size} bytes of options", "24: six numbers of int32")
    padding, right, down, wide, high, activation = struct.unpack(
        "<6i", operands.custom_options[:24]
    )
    if padding not in _PADDINGS:
        raise operands.malformed(f"its padding is {padding}", "1 (SAME) or 2 (VALID)")
    strides, window = (down, right), (high, wide)
    check_window(operands, window, strides)
    return _PADDINGS[padding], strides, window, activation


def max_pool_with_places(operands: Operands) -> Converted:
    """Read MaxPoolingWithArgmax2D: an image; values and places."""
    kind, strides, window, activation = _options(operands)
    legal = [int(value) for value in TfliteActivation]
    if activation not in legal:
        raise operands.malformed(f"its activation is {activation}", f"one of {legal}")
    padding = explicit_padding(operands, window, strides, (1, 1), kind)
    fused = operands.activation(TfliteActivation(activation))
    op = MaxPoolWithPlaces(window, strides, padding, fused)
    return Converted(op, (operands.input(0),))


def max_unpool(operands: Operands) -> Converted:
    """Read MaxUnpooling2D: values and places.  Padding and activation are not looked at."""
    _, strides, window, _ = _options(operands)
    operands.image(0)
    return Converted(MaxUnpool(window, strides), operands.present)


READERS = (
    TfliteReader(
        MaxPoolWithPlaces, "MaxPoolingWithArgmax2D", max_pool_with_places, inputs=(1, 1), outputs=2
    ),
    TfliteReader(MaxUnpool, "MaxUnpooling2D", max_unpool, inputs=(2, 2)),
)
