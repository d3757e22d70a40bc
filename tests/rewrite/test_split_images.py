"""Graphs on a batch become graphs on one image where no operator mixes images."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from microtir.dtype import DType
from microtir.errors import GraphError
from microtir.graph.ir import Graph, State, Tensor
from microtir.graph.operator import Operator
from microtir.graph.text import to_text
from microtir.operators.activations.definition import Relu
from microtir.operators.arithmetic.definition import Add
from microtir.operators.convolution.definition import Conv2D
from microtir.operators.cumulation.definition import Cumsum
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.indexing.definition import Gather
from microtir.operators.movement.definition import (
    Concatenation,
    Pack,
    Pad,
    Reshape,
    Split,
    StridedSlice,
    Transpose,
    Unpack,
)
from microtir.operators.normalization.definition import L2Normalize
from microtir.operators.pooling.definition import MaxPool2D
from microtir.operators.rearrangement.definition import SpaceToDepth
from microtir.operators.reduction.definition import ArgMax, Mean, ReduceMax
from microtir.operators.repetition.definition import MirrorPad, Tile
from microtir.operators.softmax.definition import Softmax
from microtir.rewrite.checked import check_meaning
from microtir.rewrite.optimise import SplitImages
from microtir.rewrite.optimise.split_images import node_that_mixes
from microtir.rewrite.reference import execute, execute_exactly
from microtir.rewrite.verify import verify
from tests.support.graphs import constant, graph, node, tensor
from tests.support.operator_cases import OPERATORS, generate
from tests.support.seeds import seeds

N, H, W, C = X = (4, 6, 5, 3)


def chain(op: Operator, *shapes: tuple[int, ...], more: tuple[Tensor, ...] = ()) -> Graph:
    """A pool of a batch, and an operator that reads it, with outputs of these shapes."""
    x, y = tensor("x", X), tensor("y", X)
    dtype = DType.INT32 if isinstance(op, ArgMax) else DType.FLOAT32
    results = [tensor(f"z{n}", shape, dtype) for n, shape in enumerate(shapes)]
    return graph([node(MaxPool2D(), [x], y), node(op, [y, *more], results)], [x], results)


def ones(*shape: int) -> Tensor:
    """A constant of ones."""
    return constant("ones", np.ones(shape, np.float32))


def indices(*numbers: int) -> Tensor:
    """A constant of indices."""
    return constant("indices", np.array(numbers, np.int32))


APART = {
    "relu": chain(Relu(), X),
    "bias": chain(Add(), X, more=(ones(C),)),
    "one image for all": chain(Add(), X, more=(ones(1, H, W, C),)),
    "mean": chain(Mean((1, 2)), (N, C)),
    "maximum, kept": chain(ReduceMax((3,), keep_dims=True), (N, H, W, 1)),
    "place": chain(ArgMax(3), (N, H, W)),
    "softmax": chain(Softmax(), X),
    "dense": chain(FullyConnected(), (N * H * W, 2), more=(ones(2, C),)),
    "rows": chain(Reshape(), (N * H, W * C)),
    "elements": chain(Reshape(), (N * H * W * C,)),
    "pad": chain(Pad((0, 1, 0, 0), (0, 0, 2, 0)), (N, H + 1, W + 2, C)),
    "transpose": chain(Transpose((0, 3, 1, 2)), (N, C, H, W)),
    "slice": chain(StridedSlice((0, 1, 0, 2), (1, 2, 1, -1), (N, 2, 5, 3)), (N, 2, 5, 3)),
    "split": chain(Split(2, (1, 4)), (N, H, 1, C), (N, H, 4, C)),
    "unpack": chain(Unpack(3), *[(N, H, W)] * C),
    "running sum": chain(Cumsum(1), X),
    "tile": chain(Tile((1, 2, 1, 1)), (N, 2 * H, W, C)),
    "mirror": chain(MirrorPad((0, 1, 0, 0), (0, 0, 1, 0)), (N, H + 1, W + 1, C)),
    "blocks": chain(SpaceToDepth(1), X),
    "lengths": chain(L2Normalize(), X),
    "gather": chain(Gather(2), (N, H, 2, C), more=(indices(0, 2),)),
}

MIXED = {
    "bias of each image": chain(Add(), X, more=(ones(N, 1, 1, C),)),
    "mean of the batch": chain(Mean((0, 1)), (W, C)),
    "place along the batch": chain(ArgMax(0), (H, W, C)),
    "images in parts": chain(Reshape(), (N // 2, 2 * H * W * C)),
    "one scalar": chain(Mean((0, 1, 2, 3)), ()),
    "more images": chain(Pad((0, 0, 0, 0), (4, 0, 0, 0)), (2 * N, H, W, C)),
    "transpose": chain(Transpose((3, 1, 2, 0)), (C, H, W, N)),
    "images turned round": chain(StridedSlice((N - 1, 0, 0, 0), (-1, 1, 1, 1), X), X),
    "split": chain(Split(0), *[(2, H, W, C)] * 2),
    "unpack": chain(Unpack(0), *[(H, W, C)] * N),
    "running sum": chain(Cumsum(0), X),
    "tile": chain(Tile((2, 1, 1, 1)), (2 * N, H, W, C)),
    "mirror": chain(MirrorPad((1, 0, 0, 0), (1, 0, 0, 0)), (N + 2, H, W, C)),
    "gather": chain(Gather(0), X, more=(indices(3, 0, 1, 2),)),
}


@pytest.mark.parametrize("name", APART)
def test_what_keeps_images_apart_computes_one(name: str) -> None:
    """The graph is that of one image, legal, and gives the same bits for all of them."""
    batch = APART[name]
    one = SplitImages()(batch)
    verify(batch)
    verify(one)
    assert one.images == N and f"images {N}\n" in to_text(one)
    assert one.inputs[0].shape == (1, H, W, C)
    assert [one.type_of_all(t) for t in one.outputs] == [t.type for t in batch.outputs]
    assert [n.source.images for n in one.nodes] == [N] * len(one.nodes)
    check_meaning(batch, one, SplitImages.name)


@pytest.mark.parametrize("name", MIXED)
def test_what_mixes_images_is_left_alone(name: str) -> None:
    """One operator is enough."""
    verify(MIXED[name])
    assert SplitImages()(MIXED[name]) is MIXED[name]


T, R = 4, (1, 4, 5, 3)
ROWS = {
    "relu": (Relu(), R, ()),
    "bias": (Add(), R, (ones(C),)),
    "one row for all": (Add(), R, (ones(1, 1, 5, C),)),
    "mean": (Mean((0, 2)), (T, C), ()),
    "softmax": (Softmax(), R, ()),
    "dense": (FullyConnected(), (1, T, 5, 2), (ones(2, C),)),
    "pixels": (Conv2D(), (1, T, 5, 2), (ones(2, 1, 1, C),)),
    "one line": (Reshape(), (1, T * 5 * C), ()),
    "pad": (Pad((0, 0, 1, 0), (0, 0, 0, 2)), (1, T, 6, 5), ()),
    "transpose": (Transpose((1, 0, 3, 2)), (T, 1, C, 5), ()),
    "slice": (StridedSlice((0, 0, 0, 2), (1, 1, 2, -1), (1, T, 3, 3)), (1, T, 3, 3), ()),
    "tile": (Tile((1, 1, 2, 1)), (1, T, 10, C), ()),
    "gather": (Gather(3), (1, T, 5, 2), (indices(0, 2),)),
}
MIXED_ROWS = {
    "bias of each row": (Add(), R, (ones(1, T, 1, 1),)),
    "bias of each image": (Add(), (T, T, 5, C), (ones(T, 1, 1, 1),)),
    "mean": (Mean((1,)), (1, 5, C), ()),
    "pool": (MaxPool2D(), R, ()),
    "windows": (Conv2D(strides=(2, 1)), (1, 2, 5, 2), (ones(2, 1, 1, C),)),
    "more images": (Pad((3, 0, 0, 0), (0, 0, 0, 0)), (4, T, 5, C), ()),
    "transpose": (Transpose((0, 2, 1, 3)), (1, 5, T, C), ()),
    "rows turned round": (StridedSlice((0, T - 1, 0, 0), (1, -1, 1, 1), R), R, ()),
    "tile": (Tile((4, 1, 1, 1)), (4, T, 5, C), ()),
    "gather": (Gather(1), R, (indices(3, 0, 1, 2),)),
}


def of_rows(op: Operator, shape: tuple[int, ...], more: tuple[Tensor, ...]) -> Graph:
    """A graph whose images lie behind an axis of one element."""
    x, y, z = tensor("x", R), tensor("y", R), tensor("z", shape)
    return graph([node(Relu(), [x], y), node(op, [y, *more], z)], [x], [z])


@pytest.mark.parametrize("name", ROWS)
def test_counted_images_may_lie_behind_axes_of_one_element(name: str) -> None:
    """Callers have the shapes that the file has; one of them alone is left without a count."""
    batch = of_rows(*ROWS[name])
    one = SplitImages(counted=True)(batch)
    verify(one)
    assert one.images == T and one.inputs[0].shape == (1, 1, 5, C)
    assert [one.type_of_all(t) for t in (*one.inputs, *one.outputs)] == [
        t.type for t in (*batch.inputs, *batch.outputs)
    ]
    check_meaning(batch, one, SplitImages.name)
    assert SplitImages()(batch) is batch
    assert "images of x along axis 1\n" in to_text(one)
    with pytest.raises(GraphError, match="'u': axis 1 of the images does not exist"):
        verify(replace(one, image_axes=(("u", 1),)))


@pytest.mark.parametrize("name", MIXED_ROWS)
def test_what_mixes_counted_images_is_found(name: str) -> None:
    """It works along their axis, or along one in front of it."""
    batch = of_rows(*MIXED_ROWS[name])
    verify(batch)
    assert SplitImages(counted=True)(batch) is batch
    assert node_that_mixes(batch) is batch.nodes[1]


def test_indices_of_a_table_are_images() -> None:
    """Each takes its row."""
    ids, y = tensor("ids", (1, T), DType.INT32), tensor("y", (1, T, C))
    batch = graph([node(Gather(), [ones(7, C), ids], y)], [ids], [y])
    one = SplitImages(counted=True)(batch)
    assert one.images == T and one.outputs[0].shape == (1, 1, C)
    check_meaning(batch, one, SplitImages.name)


def joined(op: Operator, shape: tuple[int, ...], *, again: bool = True) -> Graph:
    """A pool of a batch, and an operator on what it reads and gives, or on a constant."""
    x, y, z = tensor("x", X), tensor("y", X), tensor("z", shape)
    other = x if again else ones(*X)
    return graph([node(MaxPool2D(), [x], y), node(op, [y, other], z)], [x], [z])


def test_operators_of_several_tensors() -> None:
    """All that varies is cut alike; a constant with all images is not cut."""
    for op, shape in ((Add(), X), (Concatenation(3), (N, H, W, 2 * C)), (Pack(1), (N, 2, H, W, C))):
        batch = joined(op, shape)
        check_meaning(batch, SplitImages()(batch), SplitImages.name)
        assert SplitImages()(batch).images == N
        constant_one = joined(op, shape, again=False)
        assert SplitImages()(constant_one) is constant_one
    along = joined(Concatenation(0), (2 * N, H, W, C))
    assert SplitImages()(along) is along


def test_weights_that_vary_are_no_images() -> None:
    """Of a product of two activations each row needs all of the other one."""
    a, b, w, z = (tensor(n, s) for n, s in (("a", (4, 6)), ("b", (4, 6)), ("w", (4, 6)),
                                            ("z", (4, 4))))  # fmt: skip
    batch = graph([node(Relu(), [b], w), node(FullyConnected(), [a, w], z)], [a, b], [z])
    assert SplitImages(counted=True)(batch) is batch


def test_rows_of_a_graph_without_windows_stay_together() -> None:
    """They are no images: one call for all of them is faster."""
    x, y = tensor("x", (4, 6)), tensor("y", (4, 2))
    batch = graph([node(FullyConnected(), [x, ones(2, 6)], y)], [x], [y])
    assert SplitImages()(batch) is batch
    assert SplitImages(counted=True)(batch).images == 4


def test_inputs_of_different_batches_stay_together() -> None:
    """Nobody says which is the one of images."""
    x, y, z = tensor("x", X), tensor("y", (2, H, W, C)), tensor("z", X)
    u = tensor("u", (2, H, W, C))
    batch = graph([node(MaxPool2D(), [x], z), node(MaxPool2D(), [y], u)], [x, y], [z, u])
    assert SplitImages()(batch) is batch


def test_images_and_states_exclude_each_other() -> None:
    """An image would find what the one before it has left."""
    x, y, z = (tensor(name, X) for name in "xyz")
    nodes = [node(MaxPool2D(), [x], y), node(Add(), [y, y], z)]
    state = State(x, z, np.zeros(X, np.float32))
    stateful = replace(graph(nodes, [x], [z]), states=(state,))
    assert SplitImages()(stateful) is stateful
    with pytest.raises(GraphError, match="share a state"):
        verify(replace(stateful, images=2))


@pytest.mark.soak
@pytest.mark.parametrize("operator", OPERATORS)
def test_rules_of_all_operators(operator: str) -> None:
    """Whatever is said to keep images apart does: random cases, also without windows."""
    split = SplitImages(counted=True)
    for dtype in OPERATORS[operator].dtypes:
        for seed in seeds(50, 4):
            case = generate(operator, seed, dtype)
            batch = case.graph()
            one = split(batch)
            if one.images > 1:
                verify(one)
                whole, parts = (execute(g, case.named_inputs()) for g in (batch, one))
                for name, array in whole.items():
                    np.testing.assert_array_equal(parts[name], array, err_msg=case.name)


def test_real_numbers_of_all_images() -> None:
    """What a graph means in real numbers has all images as well."""
    batch = APART["mean"]
    x = np.random.default_rng(1).normal(size=X).astype(np.float32)
    whole, parts = (execute_exactly(g, {"x": x}) for g in (batch, SplitImages()(batch)))
    np.testing.assert_array_equal(parts["z0"], whole["z0"])
