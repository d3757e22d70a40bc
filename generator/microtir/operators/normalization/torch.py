"""Read PyTorch's normalisations."""

from __future__ import annotations

import math

import numpy as np

from microtir.errors import ExportProblem
from microtir.graph.ir import Tensor
from microtir.operators.common.torch_operands import TorchNode, TorchReader
from microtir.operators.common.torch_rows import readers

_FLOAT_EPSILON = float(np.finfo(np.float32).eps)


def _filled(node: TorchNode, shape: tuple[int, ...], value: float) -> Tensor:
    return node.constant(np.full(shape, value, np.float32))


def _affine(node: TorchNode, shape: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Return the factors and terms of a layer: ones and zeros where it has none."""
    scale, bias = node.optional_tensor("weight"), node.optional_tensor("bias")
    ones = _filled(node, shape, 1.0) if scale is None else scale
    return ones, _filled(node, shape, 0.0) if bias is None else bias


def _stated(node: TorchNode, mean: Tensor, variance: Tensor) -> Tensor:
    scale, bias = _affine(node, mean.shape)
    return node.onnx(
        "BatchNormalization", node.tensor("input"), scale, bias, mean, variance,
        epsilon=float(node.number("eps")),
    )  # fmt: skip


def batch_norm(node: TorchNode) -> Tensor:
    """Read batch_norm with the statistics of the training, or of each batch where it has none."""
    mean, variance = node.optional_tensor("running_mean"), node.optional_tensor("running_var")
    if mean is None or variance is None:
        return _of_batch(node)
    if node.flag("training", False):
        raise node.unsupported(
            "it computes the statistics of each batch",
            "the statistics that training recorded",
            "call model.eval() before the export",
            ExportProblem.TRAINING_MODE,
        )
    return _stated(node, mean, variance)


def _of_batch(node: TorchNode) -> Tensor:
    """Normalise each channel by what the batch has of it."""
    x = node.tensor("input", 2)
    scale, bias = _affine(node, x.shape[1:2])
    rows = node.onnx("Transpose", x, perm=(1, 0, *range(2, len(x.shape))))
    single = node.reshaped(rows, (1, x.shape[1], x.type.elements // x.shape[1]))
    normal = node.onnx(
        "InstanceNormalization", single, scale, bias, epsilon=float(node.number("eps"))
    )
    back = node.reshaped(normal, rows.shape)
    return node.onnx("Transpose", back, perm=(1, 0, *range(2, len(x.shape))))


def native_batch_norm(node: TorchNode) -> tuple[Tensor | None, ...]:
    """Read _native_batch_norm_legit, whose other results are for training."""
    return batch_norm(node), None, None


def instance_norm(node: TorchNode) -> Tensor:
    """Read instance_norm: by each image's own statistics, or those of the training."""
    mean, variance = node.optional_tensor("running_mean"), node.optional_tensor("running_var")
    if not node.flag("use_input_stats", True) and mean is not None and variance is not None:
        return _stated(node, mean, variance)
    x = node.tensor("input")
    scale, bias = _affine(node, x.shape[1:2])
    epsilon = float(node.number("eps"))
    return node.onnx("InstanceNormalization", x, scale, bias, epsilon=epsilon)


def _grouped(node: TorchNode, groups: int) -> Tensor:
    x = node.tensor("input")
    scale, bias = _affine(node, x.shape[1:2])
    epsilon = float(node.number("eps", 1e-5))
    return node.onnx("GroupNormalization", x, scale, bias, num_groups=groups, epsilon=epsilon)


def group_norm(node: TorchNode) -> Tensor:
    """Read group_norm."""
    return _grouped(node, node.integer("num_groups"))


def native_group_norm(node: TorchNode) -> tuple[Tensor | None, ...]:
    """Read native_group_norm, whose other results are for training."""
    return _grouped(node, node.integer("group")), None, None


def native_layer_norm(node: TorchNode) -> tuple[Tensor, ...]:
    """Read native_layer_norm: the result, means, and 1 / deviations, over the last axes."""
    shape = node.integers("normalized_shape")
    scale, bias = _affine(node, shape)
    return node.onnx_tensors(
        "LayerNormalization", node.tensor("input"), scale, bias, axis=-len(shape),
        epsilon=float(node.number("eps", 1e-5)), outputs=3,
    )  # fmt: skip


def layer_norm(node: TorchNode) -> Tensor:
    """Read layer_norm."""
    return native_layer_norm(node)[0]


def rms_norm(node: TorchNode) -> Tensor:
    """Read rms_norm: over the root of the mean square of the last axes."""
    x, shape = node.tensor("input"), node.integers("normalized_shape")
    scale, epsilon = node.optional_tensor("weight"), node.number("eps", _FLOAT_EPSILON)
    ones = _filled(node, shape, 1.0) if scale is None else scale
    return node.onnx("RMSNormalization", x, ones, axis=-len(shape), epsilon=float(epsilon))


def fused_rms_norm(node: TorchNode) -> tuple[Tensor | None, ...]:
    """Read _fused_rms_norm, whose other result is for training."""
    return rms_norm(node), None


def weight_norm(node: TorchNode) -> tuple[Tensor, Tensor]:
    """Read _weight_norm: directions v, each of the length g; along all axes but one."""
    v, g, own = node.tensor("v"), node.tensor("g"), node.integer("dim", 0)
    rank = len(v.shape)
    axes = tuple(n for n in range(rank) if own == -1 or n != node.axis(own, rank))
    length = node.onnx("ReduceL2", v, node.ints(*axes), keepdims=1)
    return node.onnx("Mul", v, node.onnx("Div", g, length)), length


def _product_sum(node: TorchNode, a: Tensor, b: Tensor, axis: int) -> Tensor:
    return node.onnx("ReduceSum", node.onnx("Mul", a, b), node.ints(axis), keepdims=0)


def cosine_similarity(node: TorchNode) -> Tensor:
    """Read cosine_similarity: the product of vectors over that of their lengths."""
    a, b = node.tensor("x1"), node.tensor("x2")
    axis = node.axis(node.integer("dim", 1), max(len(a.shape), len(b.shape)))
    axis -= max(len(a.shape), len(b.shape))
    least = node.scalar(float(node.number("eps", 1e-8)) ** 2)
    squares = (node.onnx("Max", _product_sum(node, x, x, axis), least) for x in (a, b))
    lengths = node.onnx("Mul", *(node.onnx("Sqrt", square) for square in squares))
    return node.onnx("Div", _product_sum(node, a, b, axis), lengths)


def length(node: TorchNode, x: Tensor, power: float, axes: tuple[int, ...], keep: bool) -> Tensor:
    """Return the norm of a power over some axes."""
    at, flag = node.ints(*axes), int(keep)
    if not x.shape:
        return node.onnx("Abs", x)
    if power in (1.0, 2.0):
        return node.onnx(f"ReduceL{int(power)}", x, at, keepdims=flag)
    sizes = node.onnx("Abs", x)
    if math.isinf(power):
        return node.onnx("ReduceMax" if power > 0 else "ReduceMin", sizes, at, keepdims=flag)
    if power == 0.0:
        is_zero = node.onnx("Equal", sizes, node.scalar(0.0))
        counted = node.onnx("Where", is_zero, node.scalar(0.0), node.scalar(1.0))
        return node.onnx("ReduceSum", counted, at, keepdims=flag)
    total = node.onnx("ReduceSum", node.onnx("Pow", sizes, node.scalar(power)), at, keepdims=flag)
    return node.onnx("Pow", total, node.scalar(1.0 / power))


def pairwise_distance(node: TorchNode) -> Tensor:
    """Read pairwise_distance: the norm of a difference, to which eps is added."""
    way = node.onnx("Sub", node.tensor("x1"), node.tensor("x2"))
    way = node.onnx("Add", way, node.scalar(float(node.number("eps", 1e-6))))
    power = float(node.number("p", 2.0))
    return length(node, way, power, (len(way.shape) - 1,), node.flag("keepdim", False))


def distances(node: TorchNode) -> Tensor:
    """Read cdist: the norms of the differences of all rows of two matrices."""
    a, b = node.tensor("x1", 2), node.tensor("x2", 2)
    rows = node.reshaped(a, (*a.shape[:-1], 1, a.shape[-1]))
    others = node.reshaped(b, (*b.shape[:-2], 1, *b.shape[-2:]))
    way = node.onnx("Sub", rows, others)
    return length(node, way, float(node.number("p", 2.0)), (len(way.shape) - 1,), False)


def pair_distances(node: TorchNode) -> Tensor:
    """Read pdist: the norms of the differences of each two rows of a matrix."""
    x = node.tensor("self", 2)
    count = x.shape[0]
    node.first.check_room(count, count, x.shape[-1])
    pairs = (node.constant(rows) for rows in np.triu_indices(count, 1))
    way = node.onnx("Sub", *(node.onnx("Gather", x, rows, axis=0) for rows in pairs))
    return length(node, way, float(node.number("p", 2.0)), (1,), False)


_BATCH = "input weight bias running_mean running_var training momentum eps"

TORCH_READERS: tuple[TorchReader, ...] = (
    *readers(batch_norm, f"{_BATCH} cudnn_enabled", "batch_norm"),
    *readers(
        native_batch_norm, _BATCH,
        "_native_batch_norm_legit_no_training", "_native_batch_norm_legit.no_stats",
        "_native_batch_norm_legit", "native_batch_norm",
    ),
    *readers(
        instance_norm,
        "input weight bias running_mean running_var use_input_stats momentum eps cudnn_enabled",
        "instance_norm",
    ),
    *readers(group_norm, "input num_groups weight bias eps cudnn_enabled", "group_norm"),
    *readers(native_group_norm, "input weight bias N C HxW group eps", "native_group_norm"),
    *readers(layer_norm, "input normalized_shape weight bias eps cudnn_enable", "layer_norm"),
    *readers(native_layer_norm, "input normalized_shape weight bias eps", "native_layer_norm"),
    *readers(rms_norm, "input normalized_shape weight eps", "rms_norm"),
    *readers(fused_rms_norm, "input normalized_shape weight eps", "_fused_rms_norm"),
    *readers(weight_norm, "v g dim", "_weight_norm", "_weight_norm_interface"),
    *readers(cosine_similarity, "x1 x2 dim eps", "cosine_similarity"),
    *readers(pairwise_distance, "x1 x2 p eps keepdim", "pairwise_distance"),
    *readers(distances, "x1 x2 p compute_mode", "cdist", "_cdist_forward"),
    *readers(pair_distances, "self p", "pdist", "_pdist_forward"),
)  # fmt: skip
