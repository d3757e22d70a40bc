"""Ensembles of decision trees of ai.onnx.ml against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from microtir import build, host
from microtir.config import microcontroller
from microtir.errors import ModelFileError, UnsupportedModelError
from microtir.frontend import from_onnx
from microtir.rewrite.reference import execute
from tests.support.onnx_models import Array, ml_model_of, ml_node, run_onnxruntime, typed
from tests.support.tree_models import MODES, WIDTH, forest, rows

pytestmark = pytest.mark.tools

SAMPLE = settings(max_examples=40, deadline=None)
seeds = st.integers(0, 100_000)


def check(node: Any, x: Array, *, exact: bool = True) -> None:
    """The graph computes what onnxruntime does, sums to the last bit."""
    types = [TensorProto.INT64] * (len(node.output) - 1) + [TensorProto.FLOAT]
    outputs = [helper.make_tensor_value_info(n, t, None)
               for n, t in zip(node.output, types, strict=True)]  # fmt: skip
    model = ml_model_of([node], [typed("x", x)], outputs)
    graph = from_onnx(model).graph
    assert graph is not None
    expected = run_onnxruntime(model, {"x": x})
    for got, want in zip(
        execute(graph, {"x": x.astype(graph.inputs[0].dtype.value)}).values(), expected, strict=True
    ):
        assert got.shape == want.shape and got.dtype == want.dtype
        if exact or got.dtype == np.int64:
            np.testing.assert_array_equal(got, want)
        else:
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@given(seeds, st.integers(1, 3), st.booleans())
@SAMPLE
def test_sums(seed: int, targets: int, has_base: bool) -> None:
    """All questions, features that are no numbers, leaves with nothing for a target."""
    grown = forest(seed, list(range(targets)), MODES, sparse=not has_base)
    base: dict[str, Any] = {"base_values": [0.25, -1.5, 3.1][:targets]} if has_base else {}
    node = ml_node("TreeEnsembleRegressor", n_targets=targets, **base,
                   **grown.attributes("target"))  # fmt: skip
    check(node, rows(seed))


@given(seeds, st.sampled_from(["AVERAGE", "MIN", "MAX"]))
@SAMPLE
def test_other_aggregates(seed: int, aggregate: str) -> None:
    """Each leaf has a number for the only target."""
    grown = forest(seed, [0], ["BRANCH_LEQ"])
    node = ml_node("TreeEnsembleRegressor", n_targets=1, aggregate_function=aggregate,
                   **grown.attributes("target"))  # fmt: skip
    check(node, rows(seed))


@given(seeds, st.sampled_from(["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"]), st.booleans())
@SAMPLE
def test_classes(seed: int, transform: str, has_base: bool) -> None:
    """Three classes; the first of equal scores is the label."""
    grown = forest(seed, [0, 1, 2], ["BRANCH_LEQ", "BRANCH_GT"], sparse=has_base)
    base: dict[str, Any] = {"base_values": [0.25, -1.5, 0.5]} if has_base else {}
    node = ml_node(
        "TreeEnsembleClassifier", outputs=("label", "scores"), classlabels_int64s=[5, -1, 3],
        post_transform=transform, **base, **grown.attributes("class"),
    )  # fmt: skip
    check(node, rows(seed), exact=transform == "NONE")


@given(seeds, st.sampled_from(["NONE", "LOGISTIC", "SOFTMAX"]), st.booleans(), st.booleans())
@SAMPLE
def test_two_classes(seed: int, transform: str, positive: bool, has_base: bool) -> None:
    """The only score is a probability if no number is below 0, else what is above 0."""
    grown = forest(seed, [0], ["BRANCH_LEQ"], positive=positive)
    node = ml_node(
        "TreeEnsembleClassifier", outputs=("label", "scores"), classlabels_int64s=[0, 1],
        post_transform=transform, **({"base_values": [0.125]} if has_base else {}),
        **grown.attributes("class"),
    )  # fmt: skip
    check(node, rows(seed), exact=transform == "NONE")


@given(seeds, st.integers(1, 3), st.sampled_from(MODES))
@SAMPLE
def test_sums_of_doubles(seed: int, targets: int, mode: str) -> None:
    """Features and thresholds become float32 alike, so that what was equal stays so."""
    grown = forest(seed, list(range(targets)), [mode], sparse=False)
    attributes = grown.attributes("target")
    held = {
        "nodes_values": np.array(attributes.pop("nodes_values")) / 5,
        "target_weights": np.array(attributes.pop("target_weights")),
        "base_values": np.array([0.25, -1.5, 3.1])[:targets],
    }
    tensors = {f"{name}_as_tensor": numpy_helper.from_array(a, name) for name, a in held.items()}
    node = ml_node("TreeEnsembleRegressor", n_targets=targets, **tensors, **attributes)
    x = rows(seed).astype(np.float64) / 5
    model = ml_model_of([node], [typed("x", x)], ["y"])
    graph = from_onnx(model).graph
    assert graph is not None
    (want,) = run_onnxruntime(model, {"x": x})
    got = execute(graph, {"x": x.astype(np.float32)})["y"]
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@given(seeds, st.sampled_from(["one tree", "one number", "exact"]), st.booleans())
@SAMPLE
def test_classes_by_doubles(seed: int, kind: str, is_pair: bool) -> None:
    """Labels are onnxruntime's, which adds up doubles, ties and halves among them."""
    labels = [0] if is_pair else [0, 1, 2]
    grown = forest(seed, labels, ["BRANCH_LEQ"], sparse=False, positive=True)
    attributes = grown.attributes("class")
    rng, weights = np.random.default_rng(seed), np.array(attributes.pop("class_weights"))
    trees = len(set(attributes["nodes_treeids"]))
    if kind == "one number":
        weights = np.where(rng.random(len(weights)) < 0.5, 1 / trees, 0.0)
        if not weights.any():
            weights[0] = 1 / trees
    elif kind == "exact":
        weights = rng.integers(0, 3, len(weights)) / 4
    else:
        kept = attributes["nodes_treeids"].count(0), attributes["class_treeids"].count(0)
        for name, values in attributes.items():
            attributes[name] = values[: kept[name.startswith("class")]]
        weights = weights[: kept[1]] / 3
    node = ml_node(
        "TreeEnsembleClassifier", outputs=("label", "scores"),
        classlabels_int64s=[4, 7] if is_pair else [5, -1, 3],
        nodes_values_as_tensor=numpy_helper.from_array(np.array(attributes.pop("nodes_values"))),
        class_weights_as_tensor=numpy_helper.from_array(weights), **attributes,
    )  # fmt: skip
    check(node, rows(seed).astype(np.float64), exact=False)


def test_c_equals_the_graph() -> None:
    """The tables and the walk in C, with all that they may have."""
    grown = forest(7, [0, 1], MODES)
    node = ml_node("TreeEnsembleRegressor", n_targets=2, **grown.attributes("target"))
    x = rows(3)
    module = from_onnx(ml_model_of([node], [typed("x", x)], ["y"]))
    assert module.graph is not None
    model = host.load(build(module, microcontroller()), sanitize=True)
    [expected] = execute(module.graph, {"x": x}).values()
    assert np.array_equal(np.asarray(model(x)), expected)


def _changed(**changes: Any) -> Any:
    grown = forest(9, [0], ["BRANCH_LEQ"])
    attributes = {**grown.attributes("target"), **changes}
    node = ml_node("TreeEnsembleRegressor", **{"n_targets": 1, **attributes})
    return ml_model_of([node], [typed("x", (1, WIDTH))], ["y"])


_COUNT = len(forest(9, [0], ["BRANCH_LEQ"]).nodes)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"nodes_treeids": [0]}, "'nodes_treeids' has 1 values"),
        ({"nodes_nodeids": [0] * _COUNT}, "two nodes of a tree have the same number"),
        ({"nodes_featureids": [WIDTH] * _COUNT}, f"feature {WIDTH} of a tree"),
        ({"nodes_modes": ["BRANCH_MAYBE"] * _COUNT}, "the mode 'BRANCH_MAYBE'"),
        ({"nodes_truenodeids": [0] * _COUNT}, "a node of a tree comes after itself"),
        ({"nodes_falsenodeids": [999] * _COUNT}, "has no node 999"),
        ({"target_nodeids": [999], "target_treeids": [0], "target_ids": [0],
          "target_weights": [1.0]}, "has no node 999"),
        ({"target_nodeids": [0], "target_treeids": [0], "target_ids": [1],
          "target_weights": [1.0]}, "target 1 of a leaf"),
        ({"target_nodeids": [0], "target_treeids": [0], "target_ids": [0],
          "target_weights": [1.0]}, "node 0 of tree 0 has numbers"),
        ({"base_values": [1.0, 2.0]}, "2 base values for 1 targets"),
        ({"n_targets": 0}, "'n_targets' is 0"),
    ],
)  # fmt: skip
def test_trees_that_contradict_themselves(changes: dict[str, Any], text: str) -> None:
    """Each is named, and none is walked for ever."""
    with pytest.raises(ModelFileError, match=text):
        from_onnx(_changed(**changes))


def test_trees_that_are_not_done() -> None:
    """Numbers for the second of two classes, of which ONNX and onnxruntime make other labels."""
    grown = forest(1, [0, 1], ["BRANCH_LEQ"])
    node = ml_node("TreeEnsembleClassifier", outputs=("label", "scores"),
                   classlabels_int64s=[0, 1], **grown.attributes("class"))  # fmt: skip
    outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in node.output]
    with pytest.raises(UnsupportedModelError, match="numbers for the second of two classes"):
        from_onnx(ml_model_of([node], [typed("x", (1, WIDTH))], outputs))
    attributes = forest(1, [0, 1, 2], ["BRANCH_LEQ"]).attributes("class")
    weights = numpy_helper.from_array(np.array(attributes.pop("class_weights")) / 3)
    node = ml_node("TreeEnsembleClassifier", outputs=("label", "scores"), **attributes,
                   classlabels_int64s=[0, 1, 2], class_weights_as_tensor=weights)  # fmt: skip
    with pytest.raises(UnsupportedModelError, match="'class_weights_as_tensor' holds doubles"):
        from_onnx(ml_model_of([node], [typed("x", (1, WIDTH))], outputs))
    with pytest.raises(UnsupportedModelError, match="its only target by LOGISTIC"):
        from_onnx(_changed(post_transform="LOGISTIC"))
    with pytest.raises(UnsupportedModelError, match="may have no number for a target"):
        from_onnx(_changed(aggregate_function="MIN", n_targets=2))
