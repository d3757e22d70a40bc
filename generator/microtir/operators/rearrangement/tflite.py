"""Read TFLite's operators that move blocks of an image."""

from __future__ import annotations

from dataclasses import dataclass

from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.operators.common import tflite_written as written
from microtir.operators.common.tflite_operands import Converted, Operands, TfliteReader
from microtir.operators.common.tflite_schema import BuiltinOperator, Options
from microtir.operators.common.unlike_scales import COPIED, copied_by_micro
from microtir.operators.rearrangement import definition as rearrangement


@dataclass(frozen=True, slots=True)
class BlockOptions(Options):
    """Options of DEPTH_TO_SPACE and SPACE_TO_DEPTH."""

    block_size: int = 0


def depth_to_space(operands: Operands) -> Converted:
    """Read DEPTH_TO_SPACE."""
    block = operands.table(BlockOptions).block_size
    return Converted(rearrangement.DepthToSpace(block), operands.present)


def space_to_depth(operands: Operands) -> Converted:
    """Read SPACE_TO_DEPTH."""
    block = operands.table(BlockOptions).block_size
    return Converted(rearrangement.SpaceToDepth(block), operands.present)


def space_to_batch(operands: Operands) -> Converted:
    """Read SPACE_TO_BATCH_ND: data, block, (before, after) per axis of the block.

    tflite-micro reads the value to pad with from memory that nobody has written; LiteRT pads with
    the real number 0.
    """
    block = operands.integers(1, "the block")
    before, after = operands.paddings(2, len(block))
    op = rearrangement.SpaceToBatch(block, before, after, operands.stored_zero)
    return Converted(op, (operands.input(0),))


def batch_to_space(operands: Operands) -> Converted:
    """Read BATCH_TO_SPACE_ND: data, block, (before, after) per axis of the block."""
    block = operands.integers(1, "the block")
    before, after = operands.paddings(2, len(block))
    return Converted(rearrangement.BatchToSpace(block, before, after), (operands.input(0),))


def write_depth_to_space(node: Node) -> written.Written:
    """Write DEPTH_TO_SPACE."""
    block = node.attributes(rearrangement.DepthToSpace).block
    return written.Written(node.inputs, BlockOptions(block))


def write_space_to_depth(node: Node) -> written.Written:
    """Write SPACE_TO_DEPTH."""
    block = node.attributes(rearrangement.SpaceToDepth).block
    return written.Written(node.inputs, BlockOptions(block))


def write_batches(node: Node) -> written.Written:
    """Write SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND."""
    op = node.attributes(rearrangement.SpaceToBatch, rearrangement.BatchToSpace)
    block = written.numbers(node, "block", op.block)
    paddings = written.constant(node, "paddings", written.pairs(op.before, op.after))
    return written.Written((*node.inputs, block, paddings))


_Code = BuiltinOperator
READERS = (
    TfliteReader(
        rearrangement.DepthToSpace,
        _Code.DEPTH_TO_SPACE,
        depth_to_space,
        BlockOptions,
        moved=COPIED,
        write=write_depth_to_space,
    ),
    TfliteReader(
        rearrangement.SpaceToDepth,
        _Code.SPACE_TO_DEPTH,
        space_to_depth,
        BlockOptions,
        moved=COPIED,
        write=write_space_to_depth,
    ),
    TfliteReader(
        rearrangement.SpaceToBatch,
        _Code.SPACE_TO_BATCH_ND,
        space_to_batch,
        inputs=(3, 3),
        write=write_batches,
        moved=copied_by_micro(DType.INT8),
    ),
    TfliteReader(
        rearrangement.BatchToSpace,
        _Code.BATCH_TO_SPACE_ND,
        batch_to_space,
        inputs=(3, 3),
        write=write_batches,
        moved=copied_by_micro(DType.INT8),
    ),
)
