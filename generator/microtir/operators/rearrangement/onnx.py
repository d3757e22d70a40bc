"""Read ONNX's moves between channels and rows and columns."""

from __future__ import annotations

from microtir.graph.ir import Tensor
from microtir.operators.common.onnx_operands import OnnxNode, OnnxReader
from microtir.operators.movement.definition import Reshape, Transpose


def depth_to_space(node: OnnxNode) -> Tensor:
    """Read DepthToSpace: blocks by depth, column and row (DCR), or column, row, depth (CRD)."""
    n, c, h, w, block = _image(node)
    if c % (block * block):
        raise node.malformed(
            f"{c} channels in blocks of {block}", "a multiple of the block squared"
        )
    depth, mode = c // (block * block), node.word("mode", "DCR")
    if mode == "CRD":
        split, order = (n, depth, block, block, h, w), (0, 1, 4, 2, 5, 3)
    else:
        split, order = (n, block, block, depth, h, w), (0, 3, 4, 1, 5, 2)
    split_tensor = node.emit(Reshape(), node.input(0), shape=split)
    moved = node.emit(Transpose(order), split_tensor)
    return node.emit(Reshape(), moved, shape=(n, depth, h * block, w * block))


def space_to_depth(node: OnnxNode) -> Tensor:
    """Read SpaceToDepth, in the orders of DepthToSpace."""
    n, c, h, w, block = _image(node)
    if h % block or w % block:
        raise node.malformed(f"{h} by {w} in blocks of {block}", "multiples of the block")
    split = (n, c, h // block, block, w // block, block)
    split_tensor = node.emit(Reshape(), node.input(0), shape=split)
    is_by_column = node.word("mode", "DCR") == "CRD"
    order = (0, 1, 3, 5, 2, 4) if is_by_column else (0, 3, 5, 1, 2, 4)
    moved = node.emit(Transpose(order), split_tensor)
    shape = (n, c * block * block, h // block, w // block)
    return node.emit(Reshape(), moved, shape=shape)


def _image(node: OnnxNode) -> tuple[int, int, int, int, int]:
    shape, block = node.input(0).shape, node.integer("blocksize")
    if len(shape) != 4 or block < 1:
        raise node.malformed(f"an image of shape {shape} in blocks of {block}", "(N, C, H, W)")
    n, c, h, w = shape
    return n, c, h, w, block


ONNX_READERS = (
    OnnxReader("DepthToSpace", depth_to_space, attributes=("blocksize", "mode")),
    OnnxReader("SpaceToDepth", space_to_depth, attributes=("blocksize", "mode")),
)
