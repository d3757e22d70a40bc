"""Read com.microsoft's products with matrices of few bits, which stay as the file has them."""

from __future__ import annotations

import math

from microtir.dtype import DType
from microtir.graph.ir import Tensor
from microtir.operators.block_dense.definition import BITS, BlockDense
from microtir.operators.common import onnx_operands, onnx_parts

_LEAST_BLOCK = 16
_INT8_LEVEL = 4


def matmul_nbits(node: onnx_operands.OnnxNode) -> Tensor:
    """Read MatMulNBits: x times the transpose of integers less a zero point, times a scale.

    With an `accuracy_level` of 4 rows of x are rounded to 8 bits, as onnxruntime may do it then,
    though by a scale for each row and not for each block; with every other one nothing is rounded.
    """
    x, (channels, depth) = node.input(0), (node.integer("N"), node.integer("K"))
    bits, block = node.integer("bits", 4), node.integer("block_size")
    if bits not in BITS:
        raise node.malformed(f"the attribute 'bits' is {bits}", ", ".join(map(str, BITS)))
    if block < _LEAST_BLOCK or block & (block - 1):
        legal = f"a power of two, {_LEAST_BLOCK} at least"
        raise node.malformed(f"the attribute 'block_size' is {block}", legal)
    if min(channels, depth) < 1 or x.shape[-1:] != (depth,):
        raise node.malformed(f"K {depth} and N {channels} for the shape {x.shape}", "its last axis")
    _refuse_others(node)
    blocks = -(-depth // block)
    inputs = [x, _constant(node, 1, channels, blocks, block * bits // 8)]
    inputs.append(_constant(node, 2, channels, blocks))
    zero_points, bias = node.optional(3), node.optional(5)
    if zero_points is not None:
        is_packed = zero_points.dtype is DType.UINT8
        inputs.append(_constant(node, 3, channels, -(-blocks * bits // 8) if is_packed else blocks))
    if bias is not None:
        inputs.append(_constant(node, 5, channels))
    rounds_rows = node.integer("accuracy_level", 0) == _INT8_LEVEL
    op = BlockDense(bits, block, zero_points is not None, bias is not None, rounds_rows)
    return node.emit(op, *inputs)


def _refuse_others(node: onnx_operands.OnnxNode) -> None:
    """Refuse weights in the order of some processor, and those of the order that GPTQ had."""
    if node.integer("weight_prepacked", 0):
        raise node.unsupported(
            "its weights are laid out for a GPU ('weight_prepacked')", "weights in ONNX's layout",
            "export the model without weight_prepacked",
        )  # fmt: skip
    if node.optional(4) is not None:
        raise node.unsupported(
            "it has 'g_idx', by which inputs go to groups in any order", "blocks along K",
            "quantise the model without act_order (desc_act)",
        )  # fmt: skip


def _constant(node: onnx_operands.OnnxNode, index: int, *shape: int) -> Tensor:
    """Return a constant input, which files may hold as a vector, in its own shape."""
    what = {1: "the weights", 2: "the scales", 3: "the zero points", 5: "the bias"}[index]
    data = node.known(index, what)
    if data.size == 0:
        raise node.unsupported(
            f"{what} are missing: their shape is 0", "weights", "export the model without the layer"
        )
    tensor = node.input(index)
    if data.size != math.prod(shape):
        raise node.malformed(f"{what} have the shape {tensor.shape}", f"{shape}")
    return onnx_parts.reshaped(node, tensor, *shape)


ONNX_READERS = (
    onnx_operands.OnnxReader(
        "MatMulNBits",
        matmul_nbits,
        (3, 6),
        ("K", "N", "accuracy_level", "bits", "block_size", "weight_prepacked"),
        domain=onnx_operands.MICROSOFT,
    ),
)
