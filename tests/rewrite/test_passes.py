from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from microtir.dtype import DType
from microtir.graph.ir import Array, Graph, Node, Quantization, Tensor
from microtir.graph.operator import Operator
from microtir.operators.activations.definition import Relu
from microtir.operators.arithmetic.definition import Add, Mul
from microtir.operators.common.attributes import Activation, Padding2D
from microtir.operators.conversion.definition import CastTo, Dequantize, Quantize
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.matmul.definition import BatchMatmul
from microtir.operators.movement.definition import (
    Concatenation,
    Pad,
    Reshape,
    Split,
    StridedSlice,
    Transpose,
)
from microtir.operators.pooling.definition import AveragePool2D
from microtir.operators.shapes.definition import ShapeOf
from microtir.operators.transposed_convolution.definition import TransposeConv
from microtir.rewrite.imports.fold_affine import FoldAffine
from microtir.rewrite.optimise import (
    GRAPH_PASSES,
    FoldConstants,
    FoldPad,
    FuseActivation,
    GraphPass,
    GroupsToDepthwise,
    MatmulToDense,
    RemoveDeadNodes,
    RemoveIdentities,
    TransposedToConvolution,
)
from microtir.rewrite.reference import execute
from microtir.rewrite.verify import verify
from tests.support.graphs import constant, graph, node, per_channel, quant, tensor
from tests.support.operator_cases import generate, operator_dtypes

F32, I8 = DType.FLOAT32, DType.INT8
RNG_SEED = 20


def _random(t: Tensor, rng: np.random.Generator) -> Array:
    if t.dtype.is_float:
        return (rng.standard_normal(t.shape) * 4).astype(np.float32)
    return rng.integers(-128, 128, t.shape).astype(t.dtype.value)


def _apply(graph_pass: GraphPass, before: Graph) -> Graph:
    """Run a pass: both graphs are well formed and give the same bits on random inputs."""
    verify(before)
    after = graph_pass(before)
    verify(after)
    rng = np.random.default_rng(RNG_SEED)
    for _ in range(3):
        inputs = {t.name: _random(t, rng) for t in before.inputs}
        expected, actual = execute(before, inputs), execute(after, inputs)
        assert list(actual) == list(expected)
        for name, value in expected.items():
            assert np.array_equal(actual[name], value), name
    assert graph_pass(after) is after
    return after


def _names(result: Graph) -> list[str]:
    return [n.op.name for n in result.nodes]


def _int8(name: str, *shape: int, q: Quantization) -> Tensor:
    return tensor(name, shape, I8, q)


def _conv_weights(*shape: int, dtype: type = np.int8) -> tuple[Tensor, Tensor]:
    """Weights and bias of a convolution of either type."""
    rng = np.random.default_rng(3)
    data: Array = rng.integers(-127, 128, shape).astype(dtype)
    scales = per_channel(rng.uniform(0.01, 0.02, shape[0]).tolist(), 0)
    bias: Array = rng.integers(-99, 99, shape[0]).astype(np.int32 if dtype is np.int8 else dtype)
    quantized = dtype is np.int8
    return constant("w", data, scales if quantized else None), constant("b", bias)


@pytest.mark.parametrize(("operator", "dtype"), operator_dtypes())
def test_all_passes_keep_the_results_of_every_operator(operator: str, dtype: str) -> None:
    """The whole sequence of passes leaves every output of every operator as it is."""
    for seed in range(6):
        case = generate(operator, seed, dtype)
        before = after = case.graph()
        for graph_pass in GRAPH_PASSES:
            after = graph_pass(after)
        verify(after)
        expected, actual = (execute(g, case.named_inputs()) for g in (before, after))
        for name, value in expected.items():
            assert np.array_equal(actual[name], value, equal_nan=value.dtype.kind == "f")


# --- FoldConstants -------------------------------------------------------------------------------


def test_constants_are_folded() -> None:
    """A chain of nodes over constants becomes one constant; the rest stays."""
    one, two = (constant(n, np.full((2, 2), v, np.float32)) for n, v in (("a", 1), ("b", 2)))
    total, turned = tensor("total", (2, 2)), tensor("turned", (2, 2))
    x, y = tensor("x", (2, 2)), tensor("y", (2, 2))
    nodes = [
        node(Add(), [one, two], total),
        node(Transpose((1, 0)), [total], turned),
        node(Mul(), [x, turned], y),
    ]
    after = _apply(FoldConstants(), graph(nodes, [x], [y]))
    assert _names(after) == ["mul"]
    folded = after.nodes[0].inputs[1]
    assert folded.name == "turned" and folded.data is not None and (folded.data == 3).all()


def test_constant_outputs_are_copied() -> None:
    """A graph output is the result of a node even if it never changes: of a copy."""
    one, y = constant("one", np.ones(2, np.float32)), tensor("y", (2,))
    after = _apply(FoldConstants(), graph([node(Add(), [one, one], y)], [], [y]))
    assert _names(after) == ["reshape"]
    assert np.array_equal(execute(after, {})["y"], [2, 2])
    assert _apply(FoldConstants(), after) is after


def test_shapes_are_folded() -> None:
    """What follows from the type of a tensor is known, although the tensor is not."""
    x, shape, y = (
        tensor("x", (2, 3)),
        tensor("shape", (2,), DType.INT32),
        tensor("y", (2,), DType.INT32),
    )
    nodes = [node(ShapeOf(), [x], shape), node(Add(), [shape, shape], y)]
    after = _apply(FoldConstants(), graph(nodes, [x], [y]))
    assert _names(after) == ["reshape"]
    assert np.array_equal(execute(after, {"x": np.zeros((2, 3), np.float32)})["y"], [4, 6])


def test_dequantised_weights_stay_int8() -> None:
    """A float layer reads the int8 weights behind a DEQUANTIZE; the bias is folded to float."""
    weights = constant("w", np.array([[3, -5], [100, 7]], np.int8), per_channel([0.5, 0.1], 0))
    bias = constant("b", np.array([4, -9], np.int16), quant(0.25))
    real_w, real_b = tensor("real_w", (2, 2)), tensor("real_b", (2,))
    x, y = tensor("x", (1, 2)), tensor("y", (1, 2))
    nodes = [
        node(Dequantize(), [weights], real_w),
        node(Dequantize(), [bias], real_b),
        node(FullyConnected(), [x, real_w, real_b], y),
    ]
    after = _apply(FoldConstants(), graph(nodes, [x], [y]))
    assert [t.dtype for t in after.nodes[0].inputs] == [F32, I8, F32]
    assert after.nodes[0].inputs[1] is weights


@pytest.mark.parametrize(
    "quantization", [quant(0.5, 3), per_channel([0.5, 0.1], 1)], ids=["zero point", "axis"]
)
def test_dequantised_weights_of_another_form_become_float(quantization: Quantization) -> None:
    """Weights with a zero point, or scaled along the inputs, have no int8 form."""
    weights = constant("w", np.array([[3, -5], [100, 7]], np.int8), quantization)
    real, x, y = tensor("real", (2, 2)), tensor("x", (1, 2)), tensor("y", (1, 2))
    nodes = [node(Dequantize(), [weights], real), node(FullyConnected(), [x, real], y)]
    after = _apply(FoldConstants(), graph(nodes, [x], [y]))
    assert after.nodes[0].inputs[1].dtype is F32


# --- RemoveDeadNodes -----------------------------------------------------------------------------


def test_dead_nodes_are_removed() -> None:
    """Nodes that no output needs go, inputs of the graph stay."""
    x, unused = tensor("x", (2,)), tensor("unused", (2,))
    dead, alive, y = (tensor(n, (2,)) for n in ("dead", "alive", "y"))
    nodes = [
        node(Relu(), [x], alive),
        node(Add(), [x, unused], dead),
        node(Relu(), [alive], y),
    ]
    after = _apply(RemoveDeadNodes(), graph(nodes, [x, unused], [y]))
    assert [n.output.name for n in after.nodes] == ["alive", "y"]
    assert [t.name for t in after.inputs] == ["x", "unused"]


# --- RemoveIdentities ----------------------------------------------------------------------------

_Q = quant(0.5, 3)
IDENTITIES: list[Operator] = [
    Reshape(),
    Transpose((0, 1, 2)),
    Transpose((2, 1, 0)),
    Pad((0, 0, 0), (0, 0, 0), 3.0),
    StridedSlice((0, 0, 0), (1, 1, 1), (1, 4, 1)),
    Quantize(),
    CastTo(),
    Concatenation(1),
    Split(1),
]


@pytest.mark.parametrize("op", IDENTITIES, ids=lambda op: f"{op.name}")
def test_identities_are_removed(op: Operator) -> None:
    """Between two layers, operators that change nothing vanish."""
    x, a, b, y = (_int8(n, 1, 4, 1, q=_Q) for n in ("x", "a", "b", "y"))
    nodes = [node(Relu(), [x], a), node(op, [a], b), node(Relu(), [b], y)]
    assert _names(_apply(RemoveIdentities(), graph(nodes, [x], [y]))) == ["relu", "relu"]


def _chain(ops: Sequence[Operator]) -> Graph:
    tensors = [_int8(f"t{i}", 1, 4, 1, q=_Q) for i in range(len(ops) + 1)]
    nodes = [node(op, [tensors[i]], tensors[i + 1]) for i, op in enumerate(ops)]
    return graph(nodes, [tensors[0]], [tensors[-1]])


def test_identity_before_an_output_gives_its_name_away() -> None:
    """The output keeps its name: the node before computes it."""
    after = _apply(RemoveIdentities(), _chain([Relu(), Reshape(), Reshape()]))
    assert _names(after) == ["relu"] and after.nodes[0].output.name == "t3"


def test_identity_between_input_and_output_stays() -> None:
    """An output is computed by a node, also if it equals an input."""
    after = _apply(RemoveIdentities(), _chain([Reshape(), Reshape()]))
    assert _names(after) == ["reshape"]


def test_identity_between_two_outputs_stays() -> None:
    """Two outputs of equal value stay two outputs."""
    x, a, y = (_int8(n, 1, 4, 1, q=_Q) for n in ("x", "a", "y"))
    before = graph([node(Relu(), [x], a), node(Reshape(), [a], y)], [x], [a, y])
    assert _apply(RemoveIdentities(), before) is before


def test_value_read_before_and_after_an_identity() -> None:
    """Readers of the input of a removed identity read the output instead."""
    x, a, b, y, z = (_int8(n, 1, 4, 1, q=_Q) for n in ("x", "a", "b", "y", "z"))
    nodes = [
        node(Relu(), [x], a),
        node(Relu(), [a], z),
        node(Reshape(), [a], b),
        node(Add(), [a, b], y),
    ]
    after = _apply(RemoveIdentities(), graph(nodes, [x], [b, y, z]))
    assert _names(after) == ["relu", "relu", "add"]
    assert after.nodes[2].inputs[0] is after.nodes[2].inputs[1]


def test_moves_that_keep_the_order_become_reshapes() -> None:
    """Moving axes of one element is a view; moving others is not."""
    x, y = tensor("x", (1, 4, 1, 3)), tensor("y", (4, 3, 1, 1))
    after = _apply(RemoveIdentities(), graph([node(Transpose((1, 3, 0, 2)), [x], y)], [x], [y]))
    assert _names(after) == ["reshape"]
    swapped = tensor("y", (1, 3, 1, 4))
    before = graph([node(Transpose((0, 3, 2, 1)), [x], swapped)], [x], [swapped])
    assert _apply(RemoveIdentities(), before) is before


def test_reversal_is_not_a_reshape() -> None:
    """A slice that takes everything backwards stays."""
    x, y = tensor("x", (4,)), tensor("y", (4,))
    before = graph([node(StridedSlice((3,), (-1,), (4,)), [x], y)], [x], [y])
    assert _apply(RemoveIdentities(), before) is before


# --- MatmulToDense -------------------------------------------------------------------------------


def _product(op: BatchMatmul, shape: tuple[int, ...], zero_point: int, dtype: type) -> Graph:
    kind, is_int8 = DType(np.dtype(dtype).name), dtype is np.int8
    x = tensor("x", (2, 4, 6), kind, quant(0.05, 7) if is_int8 else None)
    data: Array = np.random.default_rng(3).integers(-99, 99, shape).astype(dtype)
    right = constant("right", data, quant(0.02, zero_point) if is_int8 else None)
    y = tensor("y", (2, 4, 3), kind, quant(0.3, -5) if is_int8 else None)
    return graph([node(op, [x, right], y)], [x], [y])


@pytest.mark.parametrize("dtype", [np.int8, np.float32])
@pytest.mark.parametrize("adj_y", [False, True])
def test_constant_matrix_is_weights(adj_y: bool, dtype: type) -> None:
    """Either way round, with outer axes of one matrix, too."""
    shape = (1, 3, 6) if adj_y else (6, 3)
    (after,) = _apply(MatmulToDense(), _product(BatchMatmul(adj_y=adj_y), shape, 0, dtype)).nodes
    assert after.op == FullyConnected() and after.inputs[1].shape == (3, 6)


@pytest.mark.parametrize(("shape", "zero_point"), [((6, 3), 1), ((2, 6, 3), 0)])
def test_products_that_stay(shape: tuple[int, ...], zero_point: int) -> None:
    """A zero point, and a matrix for each batch, are no weights."""
    before = _product(BatchMatmul(), shape, zero_point, np.int8)
    assert _apply(MatmulToDense(), before) is before


# --- TransposedToConvolution ---------------------------------------------------------------------


def _transposed(
    before: tuple[int, int], size: tuple[int, int], strides: tuple[int, int], dtype: type
) -> Graph:
    kind, q = DType(np.dtype(dtype).name), quant(0.05, 7) if dtype is np.int8 else None
    x = tensor("x", (1, 5, 4, 2), kind, q)
    y = tensor("y", (1, *size, 3), kind, quant(0.3, -5) if dtype is np.int8 else None)
    inputs = [x, *_conv_weights(3, 3, 2, 2, dtype=dtype)]
    return graph([node(TransposeConv(strides, before), inputs, y)], [x], [y])


@pytest.mark.parametrize("dtype", [np.int8, np.float32])
@pytest.mark.parametrize(
    ("before", "size", "padding"),
    [
        ((1, 0), (5, 4), Padding2D(1, 1, 1, 0)),
        ((0, 0), (7, 5), Padding2D(2, 2, 1, 1)),
        ((2, 1), (9, 8), Padding2D(0, 6, 0, 5)),
    ],
)
def test_stride_1_becomes_a_convolution(
    before: tuple[int, int], size: tuple[int, int], padding: Padding2D, dtype: type
) -> None:
    """SAME, VALID, and an output with more rows and columns than windows reach."""
    (after,) = _apply(TransposedToConvolution(), _transposed(before, size, (1, 1), dtype)).nodes
    assert after.op == Conv2D(padding=padding)


@pytest.mark.parametrize(
    ("before", "size", "strides"),
    [((0, 0), (11, 5), (2, 1)), ((3, 0), (4, 4), (1, 1)), ((0, 0), (2, 4), (1, 1))],
)
def test_transposed_convolutions_that_stay(
    before: tuple[int, int], size: tuple[int, int], strides: tuple[int, int]
) -> None:
    """Strides, and outputs that leave out pixels of the input."""
    graph_ = _transposed(before, size, strides, np.int8)
    assert _apply(TransposedToConvolution(), graph_) is graph_


# --- GroupsToDepthwise ---------------------------------------------------------------------------


def _grouped_conv(depth: int, dtype: type = np.int8) -> Graph:
    kind, q = DType(np.dtype(dtype).name), quant(0.05, 7) if dtype is np.int8 else None
    x = tensor("x", (1, 5, 4, 4), kind, q)
    y = tensor("y", (1, 4, 3, 8), kind, quant(0.3, -5) if dtype is np.int8 else None)
    inputs = [x, *_conv_weights(8, 2, 2, depth, dtype=dtype)]
    return graph([node(Conv2D(), inputs, y)], [x], [y])


@pytest.mark.parametrize("dtype", [np.int8, np.float32])
def test_groups_of_one_channel_become_depthwise(dtype: type) -> None:
    """Two output channels for each of four of the input are a depthwise convolution."""
    (after,) = _apply(GroupsToDepthwise(), _grouped_conv(1, dtype)).nodes
    assert after.op == DepthwiseConv2D(depth_multiplier=2)
    assert after.inputs[1].shape == (1, 2, 2, 8)


@pytest.mark.parametrize("depth", [2, 4])
def test_other_groups_stay(depth: int) -> None:
    """Groups of two channels, and one group of all."""
    before = _grouped_conv(depth)
    assert _apply(GroupsToDepthwise(), before) is before


# --- FoldPad -------------------------------------------------------------------------------------


def _padded_conv(value: float, before: tuple[int, ...], dtype: type = np.int8) -> Graph:
    after, q = (0, 2, 1, 0), quant(0.05, 7) if dtype is np.int8 else None
    kind = DType(np.dtype(dtype).name)
    shape = tuple(b + n + a for b, n, a in zip(before, (1, 5, 4, 2), after, strict=True))
    x, wide = tensor("x", (1, 5, 4, 2), kind, q), tensor("wide", shape, kind, q)
    padding = Padding2D(top=1)
    rows, columns = shape[1] + 1 - 2, (shape[2] - 3) // 2 + 1
    y = tensor(
        "y", (shape[0], rows, columns, 3), kind, quant(0.3, -5) if dtype is np.int8 else None
    )
    nodes = [
        node(Pad(before, after, value), [x], wide),
        node(Conv2D((1, 2), padding=padding), [wide, *_conv_weights(3, 3, 3, 2, dtype=dtype)], y),
    ]
    return graph(nodes, [x], [y])


@pytest.mark.parametrize(("dtype", "zero"), [(np.int8, 7.0), (np.float32, 0.0)])
def test_pad_with_zero_folds_into_a_convolution(dtype: type, zero: float) -> None:
    """PAD with the real value 0 adds to the convolution's own padding."""
    after = _apply(FoldPad(), _padded_conv(zero, (0, 1, 1, 0), dtype))
    assert after.nodes[1].inputs[0] is after.inputs[0]
    assert isinstance(after.nodes[1].op, Conv2D)
    assert after.nodes[1].op.padding == Padding2D(2, 2, 1, 1)
    assert _names(_apply(RemoveDeadNodes(), after)) == ["conv_2d"]


@pytest.mark.parametrize(
    ("value", "before"), [(0.0, (0, 1, 1, 0)), (7.0, (1, 1, 1, 0))], ids=["value", "batch"]
)
def test_other_pads_stay(value: float, before: tuple[int, ...]) -> None:
    """Another value than the zero point, or padding of other axes, is not a border of zeros."""
    graph_ = _padded_conv(value, before)
    assert _apply(FoldPad(), graph_) is graph_


def test_pad_before_pooling_stays() -> None:
    """Padding of a pool does not count, that of a PAD does."""
    x, wide, y = (tensor(n, s) for n, s in (("x", (1, 4, 4, 1)), ("wide", (1, 6, 6, 1)),
                                            ("y", (1, 3, 3, 1))))  # fmt: skip
    nodes = [
        node(Pad((0, 1, 1, 0), (0, 1, 1, 0)), [x], wide),
        node(AveragePool2D((2, 2), (2, 2)), [wide], y),
    ]
    before = graph(nodes, [x], [y])
    assert _apply(FoldPad(), before) is before


# --- FuseActivation ------------------------------------------------------------------------------


def _with_relu(first: Node, kind: Activation, q: Quantization | None = None) -> Graph:
    middle = first.output
    y = tensor("relu", middle.shape, middle.dtype, q or middle.type.quantization)
    free = [t for t in dict.fromkeys(first.inputs) if not t.is_constant]
    return graph([first, node(Relu(kind), [middle], y)], free, [y])


def _float_layers() -> list[Node]:
    image, y = tensor("x", (1, 4, 4, 2)), tensor("y", (1, 3, 3, 2))
    rng = np.random.default_rng(1)
    kernel = constant("w", rng.standard_normal((2, 2, 2, 2)).astype(np.float32))
    depthwise = constant("w", rng.standard_normal((1, 2, 2, 2)).astype(np.float32))
    dense = constant("w", rng.standard_normal((3, 4)).astype(np.float32))
    flat = tensor("x", (2, 4))
    return [
        node(Conv2D(), [image, kernel], y),
        node(DepthwiseConv2D(), [image, depthwise], y),
        node(FullyConnected(), [flat, dense], tensor("y", (2, 3))),
        node(AveragePool2D((2, 2)), [image], y),
        node(Mul(), [flat, flat], tensor("y", (2, 4))),
    ]


@pytest.mark.parametrize("layer", range(5))
@pytest.mark.parametrize("kind", list(Activation)[1:])
def test_float_activations_are_fused(layer: int, kind: Activation) -> None:
    """Every float operator with an activation takes over a RELU behind it."""
    before = _with_relu(_float_layers()[layer], kind)
    after = _apply(FuseActivation(), before)
    assert len(after.nodes) == 1
    assert after.nodes[0].op.activation is kind  # type: ignore[attr-defined]
    assert after.nodes[0].output.name == "relu"


def _int8_conv(q: Quantization, activation: Activation = Activation.NONE) -> Node:
    x, y = _int8("x", 1, 4, 4, 2, q=quant(0.05, 7)), _int8("y", 1, 2, 2, 3, q=q)
    return node(Conv2D(activation=activation), [x, *_conv_weights(3, 3, 3, 2)], y)


@pytest.mark.parametrize("kind", list(Activation)[1:])
def test_int8_activations_are_fused(kind: Activation) -> None:
    """A quantised RELU that only clamps becomes the clamp of the layer before."""
    after = _apply(FuseActivation(), _with_relu(_int8_conv(quant(0.1, -20)), kind))
    assert _names(after) == ["conv_2d"]


def test_rescaling_relu_stays() -> None:
    """A RELU between different scales rounds once more, so it stays."""
    before = _with_relu(_int8_conv(quant(0.1, -20)), Activation.RELU, quant(0.05, -128))
    assert _apply(FuseActivation(), before) is before


def test_second_activation_stays() -> None:
    """A layer that has an activation takes no other."""
    before = _with_relu(_int8_conv(quant(0.1, -20), Activation.RELU), Activation.RELU6)
    assert _apply(FuseActivation(), before) is before


def test_relu_with_another_reader_of_its_input_stays() -> None:
    """The value before the RELU is needed: by a node, or as an output."""
    conv = _with_relu(_int8_conv(quant(0.1, -20)), Activation.RELU)
    middle, y = conv.nodes[0].output, conv.nodes[1].output
    as_output = graph(conv.nodes, conv.inputs, [middle, y])
    assert _apply(FuseActivation(), as_output) is as_output
    total = _int8("sum", *y.shape, q=quant(0.2))
    read_twice = graph([*conv.nodes, node(Add(), [middle, y], total)], conv.inputs, [total])
    assert _apply(FuseActivation(), read_twice) is read_twice


@pytest.mark.parametrize("activation", Activation)
@pytest.mark.parametrize("op", [Add, Mul])
def test_a_folded_factor_or_term_keeps_its_activation(
    op: type[Add | Mul], activation: Activation
) -> None:
    """What TFLite clamps behind the operator is clamped behind the layer."""
    rng = np.random.default_rng(RNG_SEED)
    x, y, z = tensor("x", (4, 8), F32), tensor("y", (4, 6), F32), tensor("z", (4, 6), F32)
    weights, term = (rng.normal(size=s).astype(np.float32) for s in ((6, 8), (6,)))
    layer = node(FullyConnected(), [x, constant("w", weights)], y)
    before = graph([layer, node(op(activation), [y, constant("c", term)], z)], [x], [z])
    after = FoldAffine()(before)
    assert [type(n.op) for n in after.nodes] == [FullyConnected]
    inputs = {"x": _random(x, rng)}
    got, expected = (execute(g, inputs)["z"] for g in (after, before))
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
