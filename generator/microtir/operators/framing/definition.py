"""Define operators that cut samples into frames, window them, and join, delay or stack frames.

They are those of tflite-micro's Signal library.  What they remember comes last among inputs, as the
old value, and among outputs, as the new one; where there is nothing to remember, it is left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.graph.operator import Operator
from microtir.operators.common.quantization import UNUSED
from microtir.operators.common.shapes import Shape, input_shape, require
from microtir.operators.common.types import TypeRule, TypeSignature
from microtir.operators.definition import Definition, Trait


@dataclass(frozen=True, slots=True)
class Window(Operator):
    """SignalWindow: samples times weights, shifted right by `shift` and clamped to int16.

    Inputs: samples (..., N), weights (W,), which begin again after each W samples.
    """

    name: ClassVar[str] = "signal_window"
    shift: int = 0


@dataclass(frozen=True, slots=True)
class Framer(Operator):
    """SignalFramer: overlapping frames of samples that come in pieces.

    Inputs: samples (..., N * `step`), perhaps the history (rows, held), perhaps the number of
    steps that came before.  Outputs: frames (..., N, `size`), whether all of them are valid, then
    history and number.  Without `prefill` the first frames are not valid, and are zeros.
    """

    name: ClassVar[str] = "signal_framer"
    size: int = 1
    step: int = 1
    prefill: bool = False


@dataclass(frozen=True, slots=True)
class Stacker(Operator):
    """SignalStacker: a frame with those before and after it, every `step` frames.

    Inputs: a frame (C,), perhaps the frames before it, and when the next stack is due.  Outputs:
    the stack (C * (`left` + 1 + `right`),), zeros if none is due; whether one is; then what is
    remembered.  The first frame stands for all those before it.
    """

    name: ClassVar[str] = "signal_stacker"
    left: int = 0
    right: int = 0
    step: int = 1


@dataclass(frozen=True, slots=True)
class OverlapAdd(Operator):
    """SignalOverlapAdd: samples from overlapping frames, which are added up.

    Inputs: frames (..., N, size), perhaps sums that are not complete (rows, size - `step`).
    Outputs: samples (..., N * `step`), the sums.
    """

    name: ClassVar[str] = "signal_overlap_add"
    step: int = 1


@dataclass(frozen=True, slots=True)
class Delay(Operator):
    """SignalDelay: each row of samples `length` samples later; zeros come first.

    Inputs: samples (..., N), perhaps the samples that are kept back (rows, `length`).
    """

    name: ClassVar[str] = "signal_delay"
    length: int = 0


# --- extents --------------------------------------------------------------------------------------


class FramerExtents(NamedTuple):
    """Numbers that say how samples become frames.

    `held` samples of each row are kept from one run to the next; the first `warm_up` steps
    complete no frame.
    """

    rows: int
    frames: int
    size: int
    step: int
    held: int
    warm_up: int


def framer_extents(op: Framer, samples: Shape) -> FramerExtents:
    """Return the extents of a framer.

    Without prefill tflite-micro keeps whole steps, so that frames begin at a step.
    """
    steps = -(-op.size // op.step)
    held = op.size - op.step if op.prefill else (steps - 1) * op.step
    warm_up = 0 if op.prefill else steps - 1
    rows = math.prod(samples[:-1])
    return FramerExtents(rows, samples[-1] // op.step, op.size, op.step, held, warm_up)


class StackerExtents(NamedTuple):
    """The number of values of a frame, and of those that are kept before and behind it."""

    channels: int
    held: int


def stacker_extents(op: Stacker, frame: Shape) -> StackerExtents:
    """Return the extents of a stacker."""
    return StackerExtents(frame[0], frame[0] * (op.left + op.right))


class OverlapExtents(NamedTuple):
    """Numbers that say how frames become samples; `held` sums of a row await the next run."""

    rows: int
    frames: int
    size: int
    step: int
    held: int


def overlap_extents(op: OverlapAdd, frames: Shape) -> OverlapExtents:
    """Return the extents of an addition of overlapping frames."""
    rows, size = math.prod(frames[:-2]), frames[-1]
    return OverlapExtents(rows, frames[-2], size, op.step, size - op.step)


class DelayExtents(NamedTuple):
    """The number of rows, the samples that a run adds to each, and the samples of the delay."""

    rows: int
    samples: int
    held: int


def delay_extents(op: Delay, samples: Shape) -> DelayExtents:
    """Return the extents of a delay."""
    return DelayExtents(math.prod(samples[:-1]), samples[-1], op.length)


# --- shapes ---------------------------------------------------------------------------------------


def _window_shape(node: Node) -> tuple[Shape, ...]:
    op, shape, (weights,) = node.attributes(Window), node.inputs[0].shape, input_shape(node, 1, 1)
    require(len(shape) >= 1, "samples without a dimension", "1 or more dimensions")
    whole = node.inputs[0].type.elements % weights == 0
    legal = "a divisor of their number"
    require(whole, f"{weights} weights for samples of the shape {shape}", legal)
    require(0 <= op.shift <= _LARGEST_SHIFT, f"a shift by {op.shift}", f"0 to {_LARGEST_SHIFT}")
    return (shape,)


def _framer_shapes(node: Node) -> tuple[Shape, ...]:
    op, shape = node.attributes(Framer), node.inputs[0].shape
    require(len(shape) >= 1, "samples without a dimension", "1 or more dimensions")
    legal = "a size and a step of 1 or more"
    require(min(op.size, op.step) >= 1, f"frames of {op.size} every {op.step} samples", legal)
    whole = shape[-1] % op.step == 0 and shape[-1] > 0
    require(whole, f"{shape[-1]} samples, a step of {op.step}", "a multiple of the step")
    fits = op.size >= op.step or not op.prefill
    require(fits, f"a step of {op.step} over frames of {op.size}, with prefill", "at most the size")
    extents = framer_extents(op, shape)
    held: tuple[Shape, ...] = ((extents.rows, extents.held),) if extents.held else ()
    memory = (*held, *([()] if extents.warm_up else []))
    return ((*shape[:-1], extents.frames, op.size), (), *_remembered(node, memory))


def _stacker_shapes(node: Node) -> tuple[Shape, ...]:
    op, shape = node.attributes(Stacker), input_shape(node, 0, 1)
    contexts = f"{op.left} frames before and {op.right} after"
    require(min(op.left, op.right) >= 0, contexts, "0 or more")
    frames = op.left + 1 + op.right
    require(1 <= op.step <= frames, f"a step of {op.step} frames", f"1 to {frames}, a stack")
    held = stacker_extents(op, shape).held
    return ((shape[0] * frames,), (), *_remembered(node, ((held,), ()) if held else ()))


def _overlap_add_shapes(node: Node) -> tuple[Shape, ...]:
    op, shape = node.attributes(OverlapAdd), node.inputs[0].shape
    require(len(shape) >= 2, f"frames of the shape {shape}", "2 or more dimensions")
    require(1 <= op.step <= shape[-1], f"a step of {op.step}", f"1 to {shape[-1]}, a frame")
    extents = overlap_extents(op, shape)
    memory: tuple[Shape, ...] = ((extents.rows, extents.held),) if extents.held else ()
    return ((*shape[:-2], extents.frames * op.step), *_remembered(node, memory))


def _delay_shapes(node: Node) -> tuple[Shape, ...]:
    op, shape = node.attributes(Delay), node.inputs[0].shape
    require(len(shape) >= 1, "samples without a dimension", "1 or more dimensions")
    require(op.length >= 0, f"a delay by {op.length} samples", "0 or more")
    extents = delay_extents(op, shape)
    memory: tuple[Shape, ...] = ((extents.rows, op.length),) if op.length else ()
    return (shape, *_remembered(node, memory))


def _remembered(node: Node, expected: tuple[Shape, ...]) -> tuple[Shape, ...]:
    """Return the shapes of what is remembered, once the node has it among its inputs."""
    shapes = tuple(tensor.shape for tensor in node.inputs[1:])
    if not shapes:  # asked by a reader, before it knows
        return expected[: len(node.outputs) - _RESULTS[type(node.op)]]
    require(shapes == expected, f"memory of the shapes {shapes}", f"{expected}")
    return shapes


_RESULTS = {Framer: 2, Stacker: 2, OverlapAdd: 1, Delay: 1}
"""Number of outputs that each operator has in the file."""


_LARGEST_SHIFT = 31
_F32, _I16, _I32, _BOOL = DType.FLOAT32, DType.INT16, DType.INT32, DType.BOOL
_KEEPS = frozenset({Trait.KEEPS_LAST})

DEFINITIONS = (
    Definition(
        Window,
        TypeRule((TypeSignature((_I16,), _I16),)),
        UNUSED,
        shapes=_window_shape,
        inputs=(2, 2),
    ),
    Definition(
        Framer,
        TypeRule(
            (
                TypeSignature((_I16,), _I16, (_BOOL,)),
                TypeSignature((_I16, _I16), _I16, (_BOOL, _I16)),
                TypeSignature((_I16, _I16, _I32), _I16, (_BOOL, _I16, _I32)),
            )
        ),
        UNUSED,
        shapes=_framer_shapes,
        inputs=(1, 3),
        outputs=4,
        traits=_KEEPS,
        limits="samples in whole steps; zeros where no frame is complete",
    ),
    Definition(
        Stacker,
        TypeRule(
            (
                TypeSignature((_I16,), _I16, (_BOOL,)),
                TypeSignature((_I16, _I16, _I32), _I16, (_BOOL, _I16, _I32)),
            )
        ),
        UNUSED,
        shapes=_stacker_shapes,
        inputs=(1, 3),
        outputs=4,
        traits=_KEEPS,
        limits="a step of at most a stack; zeros where none is due",
    ),
    Definition(
        OverlapAdd,
        TypeRule(
            tuple(
                TypeSignature((dtype,), dtype, more)
                for dtype in (_I16, _F32)
                for more in ((), (dtype,))
            )
        ),
        UNUSED,
        shapes=_overlap_add_shapes,
        inputs=(1, 2),
        outputs=2,
        traits=_KEEPS,
        limits="a step of at most a frame",
    ),
    Definition(
        Delay,
        TypeRule((TypeSignature((_I16,), _I16), TypeSignature((_I16, _I16), _I16, (_I16,)))),
        UNUSED,
        shapes=_delay_shapes,
        inputs=(1, 2),
        outputs=2,
        traits=_KEEPS,
    ),
)
