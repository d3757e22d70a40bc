"""Read TFLite's operators that repeat elements."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from microtir.dtype import DType
from microtir.graph.ir import Node, Tensor
from microtir.operators.common import tflite_written as written
from microtir.operators.common.tflite_operands import Converted, Operands, TfliteReader
from microtir.operators.common.tflite_schema import BuiltinOperator, Options
from microtir.operators.common.unlike_scales import COPIED, copied_by_micro
from microtir.operators.repetition.definition import MirrorPad, Tile, aligned


class MirrorPadMode(IntEnum):
    """The mirroring of PAD: with or without the element at the edge."""

    REFLECT = 0
    SYMMETRIC = 1


@dataclass(frozen=True, slots=True)
class MirrorPadOptions(Options):
    mode: MirrorPadMode = MirrorPadMode.REFLECT


def tile(operands: Operands) -> Converted:
    """Read TILE: data, the number of copies along each axis."""
    data = operands.input(0)
    multiples = operands.integers(1, "the multiples")
    if len(multiples) != len(data.shape):
        raise operands.malformed(f"multiples {multiples} for data of shape {data.shape}")
    return Converted(Tile(multiples), (data,))


def broadcast_to(operands: Operands) -> Converted:
    """Read BROADCAST_TO: data, shape."""
    return _stretched(operands, operands.input(0), operands.integers(1, "the shape"))


def fill(operands: Operands) -> Converted:
    """Read FILL: shape, the value of all elements."""
    value = operands.input(1)
    if value.shape:
        raise operands.malformed(f"the value has the shape {value.shape}", "a scalar")
    return _stretched(operands, value, operands.integers(0, "the shape"))


def _stretched(operands: Operands, data: Tensor, shape: tuple[int, ...]) -> Converted:
    """Return what copies elements along axes of one element, and along new ones in front."""
    own = aligned(data.shape, len(shape))
    if len(own) != len(shape) or any(a not in (1, b) for a, b in zip(own, shape, strict=True)):
        raise operands.malformed(
            f"the shape {data.shape} cannot become {shape}", "extents that are 1 or stay"
        )
    multiples = tuple(b if a == 1 else 1 for a, b in zip(own, shape, strict=True))
    return Converted(Tile(multiples), (data,))


def mirror_pad(operands: Operands) -> Converted:
    """Read MIRROR_PAD: data, (before, after) per dimension."""
    data = operands.input(0)
    edge = operands.table(MirrorPadOptions).mode is MirrorPadMode.SYMMETRIC
    before, after = operands.paddings(1, len(data.shape))
    return Converted(MirrorPad(before, after, edge), (data,))


def write_tile(node: Node) -> written.Written | None:
    """Write TILE, which adds no axes, where BROADCAST_TO does not do: tflite-micro lacks TILE."""
    multiples = node.attributes(Tile).multiples
    if len(multiples) != len(node.inputs[0].shape) or write_broadcast_to(node):
        return None
    return written.Written((*node.inputs, written.numbers(node, "multiples", multiples)))


def write_broadcast_to(node: Node) -> written.Written | None:
    """Write BROADCAST_TO, which copies along axes of one element."""
    shape = node.output.shape
    own = aligned(node.inputs[0].shape, len(shape))
    if any(a not in (1, b) for a, b in zip(own, shape, strict=True)):
        return None
    return written.Written((*node.inputs, written.numbers(node, "shape", shape)))


def write_mirror_pad(node: Node) -> written.Written:
    """Write MIRROR_PAD."""
    op = node.attributes(MirrorPad)
    paddings = written.constant(node, "paddings", written.pairs(op.before, op.after))
    mode = MirrorPadMode.SYMMETRIC if op.edge else MirrorPadMode.REFLECT
    return written.Written((*node.inputs, paddings), MirrorPadOptions(mode))


_Code = BuiltinOperator
READERS = (
    TfliteReader(Tile, _Code.TILE, tile, inputs=(2, 2), moved=COPIED, write=write_tile),
    TfliteReader(
        Tile,
        _Code.BROADCAST_TO,
        broadcast_to,
        inputs=(2, 2),
        moved=COPIED,
        write=write_broadcast_to,
    ),
    TfliteReader(Tile, _Code.FILL, fill, inputs=(2, 2), moved=copied_by_micro(DType.INT8)),
    TfliteReader(
        MirrorPad,
        _Code.MIRROR_PAD,
        mirror_pad,
        MirrorPadOptions,
        (2, 2),
        write=write_mirror_pad,
        moved=copied_by_micro(DType.INT8),
    ),
)
