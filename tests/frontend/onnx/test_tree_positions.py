"""The operator TreeEnsemble of ai.onnx.ml 5 against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import numpy_helper

from microtir import build, host
from microtir.config import microcontroller
from microtir.errors import MicrotirError, ModelFileError, UnsupportedModelError
from microtir.frontend import from_onnx
from microtir.rewrite.reference import execute
from tests.support.onnx_models import Array, ml_model_of, ml_node, run_onnxruntime, typed
from tests.support.seeds import seeds
from tests.support.tree_models import MODES, WIDTH, forest, rows

pytestmark = pytest.mark.tools

NAN = float("nan")


def model_of_trees(x: Array, attributes: dict[str, Any], dtype: Any = np.float32) -> bytes:
    """Return a model of one node, whose input and output have a type."""
    node = ml_node("TreeEnsemble", **attributes)
    outputs = [typed("y", (len(x), attributes["n_targets"]), dtype)]
    return ml_model_of([node], [typed("x", x.astype(dtype))], outputs, version=5)


def run(model: bytes, x: Array) -> Array:
    """Return what the graph computes."""
    graph = from_onnx(model).graph
    assert graph is not None
    return execute(graph, {"x": x})["y"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("transform", [0, 3])
def test_sums(dtype: Any, transform: int) -> None:
    """All questions, features that are no numbers, trees that are a leaf; floats to the bit."""
    for seed in seeds(0, 20):
        targets = 1 + seed % 3
        attributes = forest(seed, [0], MODES, sparse=False).positions(targets, dtype)
        attributes["post_transform"] = transform if targets > 1 else 0
        x = rows(seed)
        model = model_of_trees(x, attributes, dtype)
        got, (want,) = run(model, x), run_onnxruntime(model, {"x": x.astype(dtype)})
        if dtype is np.float32 and not attributes["post_transform"]:
            np.testing.assert_array_equal(got, want)
        else:
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("aggregate", [0, 2, 3])
def test_other_aggregates(aggregate: int) -> None:
    """The mean, the least and the largest number of all trees."""
    for seed in seeds(50, 10):
        attributes = forest(seed, [0], MODES, sparse=False).positions(1, np.float32)
        x = rows(seed)
        model = model_of_trees(x, {**attributes, "aggregate_function": aggregate})
        np.testing.assert_array_equal(run(model, x), run_onnxruntime(model, {"x": x})[0])


def members(values: list[float], missing: int) -> dict[str, Any]:
    """Return two nodes that ask whether feature 0, then 1, is a member of a set."""
    return {
        "leaf_targetids": [0, 0, 0], "n_targets": 1, "tree_roots": [0],
        "leaf_weights": numpy_helper.from_array(np.array([1, 2, 3], np.float32)),
        "nodes_modes": numpy_helper.from_array(np.array([6, 6], np.uint8)),
        "nodes_splits": numpy_helper.from_array(np.array([0, 0], np.float32)),
        "membership_values": numpy_helper.from_array(np.array(values, np.float32)),
        "nodes_featureids": [0, 1], "nodes_missing_value_tracks_true": [missing, 0],
        "nodes_trueleafs": [1, 1], "nodes_truenodeids": [0, 1],
        "nodes_falseleafs": [0, 1], "nodes_falsenodeids": [1, 2],
    }  # fmt: skip


@pytest.mark.parametrize("missing", [0, 1])
def test_members_of_sets(missing: int) -> None:
    """Each set ends in a NaN; what is no number is in none, and goes where the node says."""
    attributes = members([1, 4, 3, NAN, 2, NAN], missing)
    x = np.array([[1, 2], [2, 2], [3, 1], [0, 0], [4, 4], [NAN, 2], [0, NAN]], np.float32)
    model = model_of_trees(x, attributes)
    np.testing.assert_array_equal(run(model, x), run_onnxruntime(model, {"x": x})[0])
    expected = [1, 2, 1, 3, 1, 1 if missing else 2, 3]
    assert run(model, x).reshape(-1).tolist() == expected


def test_members_that_are_no_integers() -> None:
    """They are compared as the definition says, which onnxruntime refuses; an empty set is none."""
    x = np.array([[1.5, 1], [1, 1], [-2, 0]], np.float32)
    model = model_of_trees(x, members([1.5, -2, NAN, NAN], 0))
    assert run(model, x).reshape(-1).tolist() == [1, 3, 1]


def test_c_equals_the_graph() -> None:
    """The tables in C, with all questions and a set."""
    x = rows(3)
    for attributes in (
        forest(7, [0], MODES, sparse=False).positions(2, np.float32),
        members([1, 4, 3, NAN, 2, NAN], 1),
    ):
        module = from_onnx(model_of_trees(x, attributes))
        assert module.graph is not None
        model = host.load(build(module, microcontroller()), sanitize=True)
        [expected] = execute(module.graph, {"x": x}).values()
        assert np.array_equal(np.asarray(model(x)), expected)


@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        ({"aggregate_function": 4}, ModelFileError, "'aggregate_function' is 4"),
        ({"post_transform": -1}, ModelFileError, "'post_transform' is -1"),
        ({"post_transform": 2}, UnsupportedModelError, "its only target by LOGISTIC"),
        ({"n_targets": 2, "post_transform": 1}, UnsupportedModelError,
         "several targets by SOFTMAX"),
        ({"n_targets": 2, "aggregate_function": 2}, UnsupportedModelError,
         "may have no number for a target"),
        ({"tree_roots": [2]}, ModelFileError, "the roots of trees are"),
        ({"nodes_modes": [7, 6]}, ModelFileError, "the mode 7"),
        ({"nodes_featureids": [0, WIDTH]}, ModelFileError, f"feature {WIDTH} of a tree"),
        ({"nodes_featureids": [0]}, ModelFileError, "'nodes_featureids' has 1 values"),
        ({"nodes_truenodeids": [0, 3]}, ModelFileError, "there is no leaf 3"),
        ({"nodes_falsenodeids": [2, 2]}, ModelFileError, "there is no node 2"),
        ({"nodes_falsenodeids": [0, 2]}, ModelFileError, "a node of a tree comes after itself"),
        ({"leaf_targetids": [0, 0]}, ModelFileError, "3 numbers for 2 targets"),
        ({"leaf_targetids": [0, 0, 1]}, ModelFileError, "target 1 of a leaf"),
        ({"n_targets": 0}, ModelFileError, "'n_targets' is 0"),
    ],
)  # fmt: skip
def test_trees_that_are_refused(
    changes: dict[str, Any], error: type[MicrotirError], text: str
) -> None:
    """Each says what does not fit, or what is not done."""
    if "nodes_modes" in changes:
        modes = np.array(changes["nodes_modes"], np.uint8)
        changes = {"nodes_modes": numpy_helper.from_array(modes)}
    attributes = {**members([1, NAN, 2, NAN], 0), **changes}
    with pytest.raises(error, match=text):
        from_onnx(model_of_trees(np.zeros((1, WIDTH), np.float32), attributes))


def test_sets_that_do_not_end_are_malformed() -> None:
    """There is a NaN behind each."""
    for values in ([1.0, NAN, 2.0], [1.0, NAN]):
        with pytest.raises(ModelFileError, match="1 sets for 2 nodes"):
            from_onnx(model_of_trees(np.zeros((1, WIDTH), np.float32), members(values, 0)))
