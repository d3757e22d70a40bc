"""Labels that are strings: the model gives places in a list of those that onnxruntime gives."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from microtir.errors import UnsupportedModelError
from microtir.frontend import check, from_onnx
from microtir.rewrite.reference import execute, execute_exactly
from tests.support.onnx_models import Array, ml_model_of, ml_node, model_of, run_onnxruntime, typed

pytestmark = pytest.mark.tools

HOSTILE = ['the "cat"', "do\\g", "über??/'", "line\nbreak", "*/ %s", "", "cat1", "\x07", "日本"]
ML = {"ai.onnx.ml": 4}
X = np.random.default_rng(5).normal(size=(9, 3)).astype(np.float32)


def text_output(name: str = "label") -> Any:
    """An output of strings."""
    return helper.make_tensor_value_info(name, TensorProto.STRING, None)


def agreed(model: bytes, x: Array = X, name: str = "label") -> tuple[str, ...]:
    """Return the names; what the places stand for is what onnxruntime gives."""
    expected = run_onnxruntime(model, {"x": x})
    graph = from_onnx(model).graph
    assert graph is not None
    (named,) = graph.named
    assert named.name == name
    found = execute(graph, {"x": x})
    assert found[name].dtype == np.int64
    texts = np.array(named.names, np.object_)[found[name]]
    assert texts.tolist() == expected[0].tolist()
    for result, wanted in zip(list(found.values())[1:], expected[1:], strict=True):
        np.testing.assert_allclose(result, wanted, rtol=2e-5, atol=1e-6)
    exact = execute_exactly(graph, {"x": x})
    for title, result in found.items():
        np.testing.assert_allclose(exact[title], result, rtol=2e-5, atol=1e-6)
    return named.names


def trees(labels: Sequence[str]) -> Any:
    """A tree of one question for each class; of two classes the numbers are for the first."""
    ids = [0] if len(labels) == 2 else list(range(len(labels)))
    trees = len(ids)
    return ml_node(
        "TreeEnsembleClassifier", ("label", "scores"),
        nodes_treeids=[t for t in range(trees) for _ in range(3)],
        nodes_nodeids=[0, 1, 2] * trees,
        nodes_featureids=[f for t in range(trees) for f in (t % 3, 0, 0)],
        nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"] * trees,
        nodes_values=[v for t in range(trees) for v in (0.1 * t, 0.0, 0.0)],
        nodes_truenodeids=[1, 0, 0] * trees, nodes_falsenodeids=[2, 0, 0] * trees,
        class_treeids=[t for t in range(trees) for _ in range(2)],
        class_nodeids=[1, 2] * trees, class_ids=[c for c in ids for _ in range(2)],
        class_weights=[w for t in range(trees) for w in (0.25 + 0.05 * t, 0.75 - 0.06 * t)],
        classlabels_strings=list(labels),
    )  # fmt: skip


def linear(labels: Sequence[str], targets: int) -> Any:
    """A row of weights for each class, or one for two."""
    weights = np.random.default_rng(targets).normal(size=(targets, 3))
    return ml_node(
        "LinearClassifier", ("label", "scores"), coefficients=weights.reshape(-1).tolist(),
        intercepts=[0.1 * n for n in range(targets)], classlabels_strings=list(labels),
        post_transform="SOFTMAX" if targets > 1 else "LOGISTIC",
    )  # fmt: skip


def vectors(labels: Sequence[str], **more: Any) -> Any:
    """Two support vectors for each class."""
    classes, rng = len(labels), np.random.default_rng(len(labels))
    pairs = classes * (classes - 1) // 2
    given: dict[str, Any] = {
        "vectors_per_class": [2] * classes, "rho": rng.normal(size=pairs).tolist(),
        "coefficients": rng.normal(size=2 * classes * (classes - 1)).tolist(),
        "support_vectors": rng.normal(size=6 * classes).tolist(),
        "kernel_type": "RBF", "kernel_params": [0.5, 0.0, 3.0],
    } | more  # fmt: skip
    given = {name: value for name, value in given.items() if value != []}
    return ml_node("SVMClassifier", ("label", "scores"), classlabels_strings=list(labels), **given)


THREE, TWO = ["red", "green", "blue"], ["no", "yes"]
CLASSIFIERS: Mapping[str, Any] = {
    "trees of three": trees(THREE),
    "trees of two": trees(TWO),
    "trees of hostile names": trees(HOSTILE),
    "equal names": trees(["a", "b", "a", "c"]),
    "linear of three": linear(THREE, 3),
    "linear of two scores": linear(TWO, 2),
    "linear of one score": linear(TWO, 1),
    "vectors of three": vectors(THREE),
    "vectors of two": vectors(TWO),
    "vectors with probabilities": vectors(THREE, prob_a=[-1.0, -2.0, -1.5], prob_b=[0.1, 0.2, 0.3]),
    "vectors of none": vectors(
        THREE, vectors_per_class=[], coefficients=[0.1 * n - 0.4 for n in range(9)],
        support_vectors=[], rho=[0.5], kernel_type="LINEAR",
    ),
    "vectors of none, of two": vectors(
        TWO, vectors_per_class=[], coefficients=[0.5, -1.0, 0.25, -0.5, 1.0, 0.75],
        support_vectors=[], rho=[0.5], kernel_type="LINEAR",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_classifiers(kind: str) -> None:
    """Labels are places of the names, and scores are the same."""
    model = ml_model_of([CLASSIFIERS[kind]], [typed("x", X)], [text_output(), "scores"])
    names = agreed(model)
    assert len(set(names)) == len(names)


def test_maps_behind_it() -> None:
    """As skl2onnx writes it: the labels, and a map of names to probabilities."""
    zipped = helper.make_node(
        "ZipMap", ["scores"], ["maps"], domain="ai.onnx.ml", classlabels_strings=THREE
    )
    held = helper.make_map_type_proto(
        TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, [])
    )
    maps = helper.make_value_info("maps", helper.make_sequence_type_proto(held))
    model = ml_model_of([trees(THREE), zipped], [typed("x", X)], [text_output(), maps])
    labels, dictionaries = run_onnxruntime(model, {"x": X})
    graph = from_onnx(model).graph
    assert graph is not None
    found = execute(graph, {"x": X})
    (named,) = graph.named
    assert [named.names[place] for place in found["label"]] == labels.tolist()
    for row, given in zip(found["maps"], dictionaries, strict=True):
        np.testing.assert_allclose(row, [given[name] for name in named.names], rtol=1e-6)


def node(operator: str, *inputs: str, out: str = "label", domain: str = "", **more: Any) -> Any:
    """A node with one output."""
    return helper.make_node(operator, list(inputs), [out], domain=domain, **more)


def of_steps(nodes: Sequence[Any], held: Mapping[str, Array]) -> bytes:
    """A model that ends in strings."""
    model = onnx.load_model_from_string(
        model_of(nodes, [typed("x", X)], [text_output()], held, domains=ML)
    )
    return bytes(model.SerializeToString())


PLACES = node("ArgMax", "x", out="places", axis=1, keepdims=0)
NAMES = np.array(THREE, np.object_)


def test_names_picked_by_place() -> None:
    """Of most of its classifiers skl2onnx picks names by the place of the highest score."""
    nodes = [
        PLACES,
        node("ArrayFeatureExtractor", "names", "places", out="row", domain="ai.onnx.ml"),
        node("Reshape", "row", "shape"),
    ]
    agreed(of_steps(nodes, {"names": NAMES, "shape": np.array([-1], np.int64)}))


def test_names_in_a_node() -> None:
    """They may stand in a Constant, be cast to what they are, and be moved."""
    nodes = [
        PLACES,
        node("Constant", out="names", value_strings=[name.encode() for name in THREE]),
        node("Gather", "names", "places", out="a"),
        node("Cast", "a", out="b", to=TensorProto.STRING),
        node("Identity", "b"),
    ]
    agreed(of_steps(nodes, {}))
    tensor = numpy_helper.from_array(NAMES, "v")
    nodes = [PLACES, node("Constant", out="names", value=tensor), node("Gather", "names", "places")]
    agreed(of_steps(nodes, {}))


def test_names_of_integers() -> None:
    """LabelEncoder makes strings of integers, and integers of those strings."""
    encoder: dict[str, Any] = {
        "keys_int64s": [0, 2],
        "values_strings": ["low", "high"],
        "default_string": "?",
    }
    nodes = [PLACES, node("LabelEncoder", "places", domain="ai.onnx.ml", **encoder)]
    assert agreed(of_steps(nodes, {})) == ("low", "high", "?")
    decoder: dict[str, Any] = {"keys_strings": ["high", "low", "never"], "values_int64s": [5, 6, 7]}
    nodes = [
        PLACES,
        node("LabelEncoder", "places", out="text", domain="ai.onnx.ml", **encoder),
        node("LabelEncoder", "text", out="y", domain="ai.onnx.ml", **decoder),
    ]
    model = model_of(nodes, [typed("x", X)], [typed("y", (9,), np.int64)], domains=ML)
    graph = from_onnx(model).graph
    assert graph is not None and not graph.named
    np.testing.assert_array_equal(
        execute(graph, {"x": X})["y"], run_onnxruntime(model, {"x": X})[0]
    )


def test_names_of_several_lists() -> None:
    """A choice between names of two lists is one of names of both, and can be compared."""
    nodes = [
        node("ReduceSum", "x", "axes", out="sum", keepdims=0),
        node("Greater", "sum", "zero", out="high"),
        node("Where", "high", "yes", "other"),
    ]
    held: dict[str, Array] = {
        "axes": np.array([1], np.int64), "zero": np.array(0, np.float32),
        "yes": np.array(["yes"], np.object_), "other": np.array(["no", "yes", "x"] * 3, np.object_),
    }  # fmt: skip
    assert agreed(of_steps(nodes, held)) == ("yes", "no", "x")
    nodes = [*nodes, node("Equal", "label", "yes", out="same")]
    output = helper.make_tensor_value_info("same", TensorProto.BOOL, None)
    model = model_of(nodes, [typed("x", X)], [output], held, domains=ML)
    graph = from_onnx(model).graph
    assert graph is not None
    same = execute(graph, {"x": X})["same"]
    np.testing.assert_array_equal(same, run_onnxruntime(model, {"x": X})[0])


@pytest.mark.parametrize(
    ("operator", "more"),
    [("StringNormalizer", {}), ("Cast", {"to": TensorProto.FLOAT}), ("LabelEncoder", {})],
)
def test_letters_are_refused(operator: str, more: dict[str, Any]) -> None:
    """Whatever needs more than which of the names it is has an error that says what is done."""
    domain = "ai.onnx.ml" if operator == "LabelEncoder" else ""
    nodes = [
        PLACES, node("Gather", "names", "places", out="text"),
        node(operator, "text", domain=domain, **more),
    ]  # fmt: skip
    model = model_of(nodes, [typed("x", X)], [text_output()], {"names": NAMES}, domains=ML)
    (problem,) = check(model)
    assert "Traceback" not in str(problem)
    with pytest.raises(Exception, match=operator):
        from_onnx(model)


def test_strings_that_nobody_knows_are_refused() -> None:
    """A branch of an If gives strings: they are not taken for numbers."""
    branches = {
        f"{word}_branch": helper.make_graph(
            [helper.make_node("Gather", ["names", "places"], [word])], word, [], [text_output(word)]
        )
        for word in ("then", "else")
    }
    nodes = [
        PLACES, node("ReduceSum", "x", out="sum", keepdims=0),
        node("Greater", "sum", "zero", out="c"), node("If", "c", **branches),
    ]  # fmt: skip
    held: dict[str, Array] = {"names": NAMES, "zero": np.array(0, np.float32)}
    model = model_of(nodes, [typed("x", X)], [text_output()], held, domains=ML)
    with pytest.raises(UnsupportedModelError, match="it computes on strings"):
        from_onnx(model)


def test_a_name_with_a_zero_byte_is_refused() -> None:
    """No string of C holds it."""
    model = ml_model_of([trees(["a\0b", "a", "b"])], [typed("x", X)], [text_output(), "scores"])
    with pytest.raises(UnsupportedModelError, match="which contains a zero byte") as found:
        from_onnx(model)
    assert "output 'label'" in str(found.value)
    assert json.dumps(str(found.value)).isascii()
