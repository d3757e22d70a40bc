"""Read PyTorch's attention."""

from __future__ import annotations

import math

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Tensor
from microtir.operators.common.torch_operands import TorchNode, TorchReader
from microtir.operators.common.torch_rows import readers


def attention(node: TorchNode) -> Tensor:
    """Read scaled_dot_product_attention: (..., L, E), (..., S, E) and (..., S, V)."""
    if node.number("dropout_p", 0.0):
        raise node.unsupported(
            "it drops elements at random", "dropout_p=0", "call model.eval() before the export"
        )
    query, key, value = (node.tensor(name, 2) for name in ("query", "key", "value"))
    if node.flag("enable_gqa", False):
        heads = (node.extent(x, len(x.shape) - 3) for x in (query, key))
        groups = next(heads) // next(heads)
        key, value = (_repeated(node, x, groups) for x in (key, value))
    rank = len(key.shape)
    turned = node.onnx("Transpose", key, perm=(*range(rank - 2), rank - 1, rank - 2))
    stated = node.optional_number("scale")
    scale = 1 / math.sqrt(query.shape[-1]) if stated is None else float(stated)
    weights = node.onnx("Mul", node.onnx("MatMul", query, turned), node.scalar(scale))
    weights = _masked(node, weights)
    return node.onnx("MatMul", node.onnx("Softmax", weights, axis=-1), value)


def _repeated(node: TorchNode, x: Tensor, groups: int) -> Tensor:
    """Return each head as often as queries share it."""
    places = np.repeat(np.arange(x.shape[-3], dtype=np.int64), groups)
    return node.onnx("Gather", x, node.constant(places), axis=len(x.shape) - 3)


_LOWEST = float(np.finfo(np.float32).min)


def _masked(node: TorchNode, weights: Tensor) -> Tensor:
    """Return weights with those left out that a mask, or the order of steps, leaves out."""
    mask = node.optional_tensor("attn_mask" if node.has("attn_mask") else "attn_bias")
    if node.flag("is_causal", False):
        causal = np.tril(np.ones(weights.shape[-2:], np.bool_))
        weights = node.onnx("Where", node.constant(causal), weights, node.scalar(_LOWEST))
    if mask is None:
        return weights
    if mask.dtype is DType.BOOL:
        return node.onnx("Where", mask, weights, node.scalar(_LOWEST))
    return node.onnx("Add", weights, mask)


def fused_attention(node: TorchNode) -> tuple[Tensor | None, ...]:
    """Read the forms of attention that kernels have; their other results are for training."""
    return attention(node), *(None,) * (len(node.results) - 1)


_ARGUMENTS = "query key value attn_mask attn_bias dropout_p is_causal scale enable_gqa"

TORCH_READERS: tuple[TorchReader, ...] = (
    *readers(attention, _ARGUMENTS, "scaled_dot_product_attention"),
    *readers(
        fused_attention, f"{_ARGUMENTS} return_debug_mask compute_log_sumexp compute_logsumexp",
        "_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_flash_attention",
        "_scaled_dot_product_efficient_attention", "_scaled_dot_product_attention_math",
    ),
)  # fmt: skip
