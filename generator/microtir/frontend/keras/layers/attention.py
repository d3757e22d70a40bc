"""Read attention: by products, by sums, and of several heads."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from microtir.dtype import DType
from microtir.frontend.keras.layer import KerasLayer, KerasReader, Operand
from microtir.frontend.keras.layers.core import dense
from microtir.graph.ir import Tensor
from microtir.operators.activations.definition import Tanh
from microtir.operators.common import onnx_arithmetic as arithmetic
from microtir.operators.common.onnx_parts import joined, reshaped, transposed
from microtir.operators.conversion.definition import CastTo
from microtir.operators.matmul.definition import BatchMatmul
from microtir.operators.reduction.definition import Sum
from microtir.operators.softmax.definition import Softmax

_NEVER = -1e9  # added to the score of what is left out


def _flags(layer: KerasLayer, mask: Tensor) -> Tensor:
    return mask if mask.dtype is DType.BOOL else layer.emit(CastTo(), mask, dtype=DType.BOOL)


def _both(layer: KerasLayer, masks: Sequence[Tensor | None]) -> Tensor | None:
    """Return where all masks hold; they broadcast."""
    whole: Tensor | None = None
    for mask in masks:
        if mask is not None:
            flags = _flags(layer, mask)
            whole = flags if whole is None else layer.onnx("And", whole, flags)
    return whole


def _causal(layer: KerasLayer, queries: int, keys: int) -> Tensor:
    """Return whether a query sees a key, (1, Tq, Tv): one that is no later."""
    layer.node.check_room(queries, keys)
    return layer.node.constant(np.tril(np.ones((1, queries, keys), np.bool_)))


def _weighted(
    layer: KerasLayer, scores: Tensor, values: Tensor, mask: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Return sums of values weighed by the softmax of scores, and the weights."""
    if mask is not None:
        penalty = arithmetic.choose(layer.node, mask, layer.node.scalar_like(0.0, scores), _NEVER)
        scores = arithmetic.add(layer.node, scores, penalty)
    weights = layer.emit(Softmax(), scores)
    return layer.emit(BatchMatmul(), weights, values), weights


def _masks(layer: KerasLayer, tensors: Sequence[Tensor]) -> list[Tensor | None]:
    """Return the masks of tensors: those of the argument, or what layers have said."""
    stated = layer.named.get("mask")
    listed: list[Operand] = [*stated] if isinstance(stated, tuple) else []
    listed += [None] * (len(tensors) - len(listed))
    return [
        layer.inner.mask(x) if mask is None else layer.as_tensor(mask)
        for x, mask in zip(tensors, listed, strict=False)
    ]


def _causes(layer: KerasLayer) -> bool:
    return bool(layer.named.get("use_causal_mask"))


def _attention(layer: KerasLayer) -> Tensor | tuple[Tensor, ...]:
    """Read Attention: query, value and perhaps key."""
    node, inputs = layer.node, layer.inputs
    if len(inputs) not in (2, 3) or any(len(x.shape) != 3 for x in inputs):
        raise layer.malformed(f"inputs of shapes {[x.shape for x in inputs]}",
                              "2 or 3 inputs of 3 dimensions")  # fmt: skip
    query, value, key = (*inputs, inputs[1])[:3]
    is_dot = layer.record.kind == "Attention" and layer.word(
        "score_mode", "dot", "concat", default="dot") == "dot"  # fmt: skip
    has_scale = layer.flag("use_scale", default=layer.record.kind == "AdditiveAttention")
    has_weight = layer.record.kind == "Attention" and not is_dot
    parameters = list(layer.arrays(*["scale"] * has_scale, *["concat_score_weight"] * has_weight))
    if is_dot:
        scores = layer.emit(BatchMatmul(adj_y=True), query, key)
        if has_scale:
            scores = arithmetic.mul(node, scores, parameters[0])
    else:
        scores = _sums(layer, query, key, parameters, is_inner=has_weight)
    query_mask, value_mask, *_ = _masks(layer, (query, value))
    if value_mask is not None:
        value_mask = reshaped(node, value_mask, value_mask.shape[0], 1, value_mask.shape[1])
    causal = _causal(layer, query.shape[1], key.shape[1]) if _causes(layer) else None
    y, weights = _weighted(layer, scores, value, _both(layer, [value_mask, causal]))
    if query_mask is not None:
        rows = _flags(layer, reshaped(node, query_mask, *query_mask.shape, 1))
        y = arithmetic.choose(node, rows, y, 0.0)
        layer.inner.set_mask(y, query_mask)
    return (y, weights) if layer.named.get("return_attention_scores") else y


def _sums(
    layer: KerasLayer, query: Tensor, key: Tensor, parameters: list[Tensor], *, is_inner: bool
) -> Tensor:
    """Return scores that are sums of tanh(query + key), scaled inside or outside of it."""
    node = layer.node
    a = reshaped(node, query, query.shape[0], query.shape[1], 1, query.shape[2])
    b = reshaped(node, key, key.shape[0], 1, *key.shape[1:])
    total = arithmetic.add(node, a, b)
    if is_inner:
        *scale, weight = parameters
        inner = arithmetic.mul(node, total, scale[0]) if scale else total
        scores = layer.emit(Sum((3,)), layer.emit(Tanh(), inner))
        return arithmetic.mul(node, scores, weight)
    curve = layer.emit(Tanh(), total)
    return layer.emit(
        Sum((3,)), arithmetic.mul(node, curve, parameters[0]) if parameters else curve
    )


# --- several heads --------------------------------------------------------------------------------


def _projected(layer: KerasLayer, x: Tensor, attribute: str, name: str) -> Tensor:
    """Return (N, T, D) as (N, heads, T, size) by a kernel of (D, heads, size)."""
    node = layer.node
    kernel, *bias = _inner_arrays(layer, attribute, name)
    if len(kernel.shape) != 3 or kernel.shape[0] != x.shape[-1]:
        raise layer.malformed(f"a kernel of shape {kernel.shape} for an input of shape {x.shape}")
    _, heads, size = kernel.shape
    flat = [reshaped(node, b, heads * size) for b in bias]
    y = dense(layer, x, reshaped(node, kernel, kernel.shape[0], heads * size), *flat)
    return transposed(node, reshaped(node, y, *x.shape[:2], heads, size), (0, 2, 1, 3))


def _inner_arrays(layer: KerasLayer, attribute: str, name: str) -> tuple[Tensor, ...]:
    arrays = layer.weights.child(attribute, name).variables()
    if len(arrays) != 1 + layer.flag("use_bias", default=True):
        raise layer.malformed(f"the file has {len(arrays)} arrays for its part {name!r}")
    return tuple(map(layer.constant, arrays))


def _flattened(layer: KerasLayer, x: Tensor) -> Tensor:
    """Return a tensor with all axes that attention goes over as one."""
    axes = layer.setting("attention_axes")
    middle = list(range(1, len(x.shape) - 1))
    stated = layer.integers("attention_axes") if axes is not None else tuple(middle)
    if sorted(n % len(x.shape) for n in stated) != middle:
        raise layer.unsupported(
            f"it attends along the axes {stated} of the shape {x.shape}",
            "all axes between the first and the last one",
            "transpose and reshape the input of the layer",
        )  # fmt: skip
    return reshaped(layer.node, x, x.shape[0], math.prod(x.shape[1:-1]), x.shape[-1])


def _heads(layer: KerasLayer) -> Tensor | tuple[Tensor, ...]:
    """Read MultiHeadAttention, or with fewer heads of keys GroupedQueryAttention."""
    query, value = layer.tensor(0, "query"), layer.tensor(1, "value")
    if query is None or value is None:
        raise layer.malformed("it is called without a query or a value")
    key = layer.tensor(2, "key")
    key = value if key is None else key
    if layer.flag("use_gate") or layer.setting("sliding_window") is not None:
        raise layer.unsupported("it has a gate or a sliding window", "neither",
                                "build the layer without use_gate and sliding_window")  # fmt: skip
    mask = _mask_of_heads(layer, query, value, key)
    shape = query.shape
    q, k, v = (
        _projected(layer, _flattened(layer, x), f"{name}_dense", name)
        for x, name in ((query, "query"), (key, "key"), (value, "value"))
    )
    k, v = (_repeated(layer, x, q.shape[1]) for x in (k, v))
    scaled = arithmetic.mul(layer.node, q, 1.0 / math.sqrt(q.shape[-1]))
    scores = layer.emit(BatchMatmul(adj_y=True), scaled, k)
    y, weights = _weighted(layer, scores, v, mask)
    kernel, *bias = _inner_arrays(layer, "output_dense", "attention_output")
    node, n, steps = layer.node, q.shape[0], q.shape[2]
    rows = reshaped(node, transposed(node, y, (0, 2, 1, 3)), n, steps, q.shape[1] * v.shape[-1])
    if len(kernel.shape) < 3 or kernel.shape[:2] != (q.shape[1], v.shape[-1]):
        raise layer.malformed(
            f"a kernel of shape {kernel.shape} for an input of shape {rows.shape}"
        )
    width = math.prod(kernel.shape[2:])
    flat = [reshaped(node, b, width) for b in bias]
    result = dense(layer, rows, reshaped(node, kernel, rows.shape[-1], width), *flat)
    result = reshaped(node, result, *shape[:-1], *kernel.shape[2:])
    query_mask = layer.inner.mask(query)
    if query_mask is not None:
        layer.inner.set_mask(result, query_mask)
    return (result, weights) if layer.named.get("return_attention_scores") else result


def _repeated(layer: KerasLayer, x: Tensor, heads: int) -> Tensor:
    """Return heads of keys or values, each for as many heads of queries as share it."""
    n, own, steps, size = x.shape
    if own == heads:
        return x
    if heads % own:
        raise layer.malformed(
            f"{heads} heads of queries and {own} heads of keys", f"a multiple of {own}"
        )
    parts = reshaped(layer.node, x, n, own, 1, steps, size)
    repeated = joined(layer.node, [parts] * (heads // own), 2)
    return reshaped(layer.node, repeated, n, heads, steps, size)


def _mask_of_heads(layer: KerasLayer, query: Tensor, value: Tensor, key: Tensor) -> Tensor | None:
    """Return which queries see which keys, (N, 1 or heads, T, S); None if all do."""
    node = layer.node

    def of(name: str, x: Tensor) -> Tensor | None:
        mask = layer.as_tensor(layer.named.get(name))
        return layer.inner.mask(x) if mask is None else mask

    rows, values, keys = of("query_mask", query), of("value_mask", value), of("key_mask", key)
    stated = layer.tensor(6, "attention_mask")
    masks = [None if rows is None else reshaped(node, rows, *rows.shape, 1)]
    masks += [None if m is None else reshaped(node, m, m.shape[0], 1, m.shape[1])
              for m in (values, keys)]  # fmt: skip
    if _causes(layer):
        queries, seen = (math.prod(x.shape[1:-1]) for x in (query, value))
        masks.append(_causal(layer, queries, seen))
    if stated is not None and len(stated.shape) == 3:
        masks.append(stated)
    mask = _both(layer, masks)
    if mask is not None:
        mask = reshaped(node, mask, mask.shape[0], 1, *mask.shape[1:])
    if stated is not None and len(stated.shape) != 3:
        if len(stated.shape) != 4:
            raise layer.malformed(f"a mask of shape {stated.shape}", "3 or 4 dimensions")
        mask = _both(layer, [mask, stated])
    return mask


_FIELDS = ("use_bias", "use_gate", "sliding_window")

KERAS_READERS = (
    KerasReader("Attention", _attention, ("use_scale", "score_mode")),
    KerasReader("AdditiveAttention", _attention, ("use_scale",)),
    KerasReader(
        "MultiHeadAttention", _heads,
        ("num_heads", "key_dim", "value_dim", "attention_axes", *_FIELDS),
    ),
    KerasReader(
        "GroupedQueryAttention", _heads,
        ("head_dim", "num_query_heads", "num_key_value_heads", *_FIELDS),
    ),
)  # fmt: skip
