"""Read tflite-micro's operators that cut samples into frames and join frames."""

from __future__ import annotations

import math

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import TensorType
from microtir.operators.common.tflite_flexbuffer import CustomOptions
from microtir.operators.common.tflite_operands import Converted, Memory, Operands, TfliteReader
from microtir.operators.framing import definition as framing

_MOST_DELAYED = 1 << 24


def _samples(operands: Operands, dimensions: int = 1) -> tuple[int, ...]:
    """Return the shape of the input, which has at least so many dimensions."""
    shape = operands.input(0).shape
    if len(shape) < dimensions:
        raise operands.malformed(f"its input has the shape {shape}", f"{dimensions} dimensions")
    return shape


def _check_output(operands: Operands, expected: tuple[int, ...]) -> None:
    """Check the shape of the first output, which bounds what has to be remembered."""
    shape = operands.output.shape
    if shape != expected:
        raise operands.malformed(f"its output has the shape {shape}", f"{expected}")


def _zeros(operands: Operands, label: str, shape: tuple[int, ...]) -> Memory:
    """Return a memory of the input's type that begins with zeros."""
    type_ = TensorType(shape, operands.input(0).dtype)
    return Memory(label, type_, np.zeros(shape, type_.dtype.value))


def _number(label: str, value: int) -> Memory:
    """Return a memory of one integer."""
    return Memory(label, TensorType((), DType.INT32), np.array(value, np.int32))


def window(operands: Operands) -> Converted:
    """Read samples and weights."""
    return Converted(framing.Window(CustomOptions.of(operands).integer("shift")), operands.present)


def framer(operands: Operands) -> Converted:
    """Read samples; the history begins with zeros, which are valid with prefill only."""
    options = CustomOptions.of(operands)
    op = framing.Framer(
        options.positive("frame_size"),
        options.positive("frame_step"),
        bool(options.integer("prefill", 0)),
    )
    shape = _samples(operands)
    _check_output(operands, (*shape[:-1], shape[-1] // op.step, op.size))
    if op.prefill and op.step > op.size:
        raise operands.malformed(f"its step is {op.step}", f"at most {op.size}, with prefill")
    extents, memory = framing.framer_extents(op, shape), []
    if extents.held:
        memory.append(_zeros(operands, "history", (extents.rows, extents.held)))
    if extents.warm_up:
        memory.append(_number("seen", 0))
    return Converted(op, operands.present, memory=tuple(memory))


def stacker(operands: Operands) -> Converted:
    """Read a frame; the number of channels is that of its values."""
    options, shape = CustomOptions.of(operands), _samples(operands)
    channels = options.positive("num_channels")
    if shape != (channels,):
        raise operands.malformed(f"its input has the shape {shape}", f"({channels},)")
    op = framing.Stacker(
        options.natural("stacker_left_context"),
        options.natural("stacker_right_context"),
        options.positive("stacker_step"),
    )
    _check_output(operands, (channels * (op.left + 1 + op.right),))
    held = framing.stacker_extents(op, shape).held
    memory = (_zeros(operands, "history", (held,)), _number("due", -1 - op.right)) if held else ()
    return Converted(op, operands.present, memory=memory)


def overlap_add(operands: Operands) -> Converted:
    """Read frames; sums begin with zeros."""
    options, shape = CustomOptions.of(operands), _samples(operands, 2)
    options.check_type()
    op = framing.OverlapAdd(options.positive("frame_step"))
    if op.step > shape[-1]:
        raise operands.malformed(f"its step is {op.step}", f"at most {shape[-1]}, a frame")
    extents = framing.overlap_extents(op, shape)
    memory = (_zeros(operands, "sums", (extents.rows, extents.held)),) if extents.held else ()
    return Converted(op, operands.present, memory=memory)


def delay(operands: Operands) -> Converted:
    """Read samples; zeros come before them."""
    op = framing.Delay(CustomOptions.of(operands).natural("delay_length"))
    shape = _samples(operands)
    if op.length * math.prod(shape[:-1]) > _MOST_DELAYED:
        legal = f"at most {_MOST_DELAYED} samples"
        raise operands.unsupported(f"it delays by {op.length}", legal, "delay by less")
    held = framing.delay_extents(op, shape)
    memory = (_zeros(operands, "history", (held.rows, op.length)),) if op.length else ()
    return Converted(op, operands.present, memory=memory)


READERS = (
    TfliteReader(framing.Window, "SignalWindow", window, inputs=(2, 2)),
    TfliteReader(framing.Framer, "SignalFramer", framer, outputs=2),
    TfliteReader(framing.Stacker, "SignalStacker", stacker, outputs=2),
    TfliteReader(framing.OverlapAdd, "SignalOverlapAdd", overlap_add),
    TfliteReader(framing.Delay, "SignalDelay", delay),
)
