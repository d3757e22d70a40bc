"""Support vector machines of ai.onnx.ml against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from microtir import build, host
from microtir.config import microcontroller
from microtir.errors import MicrotirError, ModelFileError, UnsupportedModelError
from microtir.frontend import from_onnx
from microtir.rewrite.reference import execute
from tests.support.onnx_models import Array, ml_model_of, ml_node, run_onnxruntime, typed
from tests.support.seeds import seeds

pytestmark = pytest.mark.tools

KERNELS = ["LINEAR", "POLY", "RBF", "SIGMOID"]
TRANSFORMS = ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"]
Rng = np.random.Generator


def normal(rng: Rng, *shape: int) -> list[float]:
    """Return numbers as a file holds them."""
    return [float(number) for number in rng.normal(size=shape).astype(np.float32).reshape(-1)]


def kernel(rng: Rng, kind: str) -> dict[str, Any]:
    """Return gamma, coef0, which may be 0, and degree, which are 0 to 5."""
    gamma = float(np.float32(abs(rng.normal()) / 2 + 0.05))
    start = normal(rng, 1)[0] * int(rng.integers(2))
    return {"kernel_type": kind, "kernel_params": [gamma, start, float(rng.integers(6))]}


def competing(
    rng: Rng, classes: int, features: int, kind: str, *, times: int | None = None, **more: Any
) -> dict[str, Any]:
    """Return the attributes of classes that compete in pairs; one may have no vector.

    Many vectors are taken class by class, few all at once.
    """
    counts = rng.integers(0, 5, classes) * (times or int(rng.choice([1, 60])))
    counts[rng.integers(classes)] += 1
    total, pairs = int(counts.sum()), classes * (classes - 1) // 2
    return {
        "classlabels_ints": rng.permutation(20)[:classes].tolist(),
        "vectors_per_class": counts.tolist(),
        "coefficients": normal(rng, classes - 1, total),
        "support_vectors": normal(rng, total, features),
        "rho": normal(rng, pairs),
        **kernel(rng, kind),
        **more,
    }


def platt(rng: Rng, classes: int) -> dict[str, Any]:
    """Return slopes and offsets of the probabilities of pairs."""
    pairs = classes * (classes - 1) // 2
    return {"prob_a": [a - 1 for a in normal(rng, pairs)], "prob_b": normal(rng, pairs)}


def classifier(x: Array, attributes: dict[str, Any]) -> bytes:
    """Return a model that gives labels and scores of rows."""
    node = ml_node("SVMClassifier", outputs=("label", "scores"), **attributes)
    types = (TensorProto.INT64, TensorProto.FLOAT)
    outputs = [helper.make_tensor_value_info(name, type_, None)
               for name, type_ in zip(node.output, types, strict=True)]  # fmt: skip
    return ml_model_of([node], [typed("x", x)], outputs)


def regressor(x: Array, attributes: dict[str, Any]) -> bytes:
    """Return a model that gives a number for each row."""
    return ml_model_of([ml_node("SVMRegressor", **attributes)], [typed("x", x)], ["y"])


def decided(x: Array, attributes: dict[str, Any]) -> Array:
    """Return the rows whose scores of pairs are no matter of rounding: it would choose labels."""
    plain = {name: value for name, value in attributes.items() if name not in ("prob_a", "prob_b")}
    _, scores = run_onnxruntime(classifier(x, {**plain, "post_transform": "NONE"}), {"x": x})
    sizes = np.abs(scores)
    return np.asarray(x[sizes.min(axis=1) > 1e-4 * sizes.max()])


def outputs_of(model: bytes, x: Array) -> tuple[list[Array], list[Array]]:
    """Return what the graph computes, and what onnxruntime does."""
    graph = from_onnx(model).graph
    assert graph is not None
    got = list(execute(graph, {"x": x}).values())
    want = run_onnxruntime(model, {"x": x})
    assert [(a.shape, a.dtype) for a in got] == [(a.shape, a.dtype) for a in want]
    return got, want


def check(model: bytes, x: Array) -> None:
    """The graph computes what onnxruntime does, labels exactly."""
    for got, want in zip(*outputs_of(model, x), strict=True):
        if got.dtype == np.int64:
            np.testing.assert_array_equal(got, want)
        else:
            largest = float(np.abs(want[np.isfinite(want)]).max(initial=1e-3))
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5 * largest)


@pytest.mark.parametrize("kind", KERNELS)
def test_classes_in_pairs(kind: str) -> None:
    """The label is that of most pairs; the scores are those of pairs, of two classes both signs."""
    for seed in seeds(0, 24):
        rng = np.random.default_rng(seed)
        classes, features = int(rng.integers(2, 6)), int(rng.integers(1, 5))
        attributes = competing(rng, classes, features, kind, post_transform=TRANSFORMS[seed % 4])
        x = decided(np.array(normal(rng, 6, features), np.float32).reshape(6, -1), attributes)
        if len(x):
            check(classifier(x, attributes), x)


@pytest.mark.parametrize("kind", KERNELS)
def test_probabilities(kind: str) -> None:
    """Labels stay those of the votes, and probabilities are coupled in as many turns.

    Where rounding decides whether there is one turn more, it moves them by less than it stops at.
    """
    near = []
    for seed in seeds(100, 24):
        rng = np.random.default_rng(seed)
        classes, features = int(rng.integers(2, 6)), int(rng.integers(1, 5))
        attributes = competing(rng, classes, features, kind, **platt(rng, classes))
        x = decided(np.array(normal(rng, 6, features), np.float32).reshape(6, -1), attributes)
        if not len(x):
            continue
        (label, got), (wanted, want) = outputs_of(classifier(x, attributes), x)
        np.testing.assert_array_equal(label, wanted)
        np.testing.assert_allclose(got, want, rtol=0, atol=5e-3)
        near.append(np.isclose(got, want, rtol=1e-5, atol=1e-5).all(axis=1))
    assert np.concatenate(near).mean() > 0.97


@pytest.mark.parametrize("transform", [*TRANSFORMS, "PROBIT"])
def test_transformed_probabilities(transform: str) -> None:
    """They are transformed as all scores are."""
    rng = np.random.default_rng(5)
    attributes = competing(rng, 3, 2, "RBF", post_transform=transform, **platt(rng, 3))
    x = np.array(normal(rng, 4, 2), np.float32).reshape(4, 2)
    check(classifier(x, attributes), x)


@pytest.mark.parametrize("classes", [2, 3, 4])
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("with_slopes", [False, True])
def test_a_score_for_each_class(classes: int, *, positive: bool, with_slopes: bool) -> None:
    """Without support vectors the coefficients are weights; of two labels limits decide."""
    for seed in seeds(200, 6):
        rng = np.random.default_rng(seed)
        weights = normal(rng, classes, 3)
        attributes = {
            "classlabels_ints": [7, -1, 3, 0][:classes],
            "coefficients": [abs(w) for w in weights] if positive else weights,
            "rho": normal(rng, 1),
            "kernel_params": [0.5, 0.0, 3.0],
            "post_transform": TRANSFORMS[seed % 4],
            **(platt(rng, classes) if with_slopes else {}),
        }
        x = np.array(normal(rng, 5, 3), np.float32).reshape(5, 3)
        check(classifier(x, attributes), x)


@pytest.mark.parametrize("kind", KERNELS)
@pytest.mark.parametrize("one_class", [0, 1])
def test_regression(kind: str, one_class: int) -> None:
    """A sum over support vectors, or whether it is above 0."""
    for seed in seeds(300, 8):
        rng = np.random.default_rng(seed)
        count, features = int(rng.integers(1, 9)), int(rng.integers(1, 5))
        attributes = {
            "n_supports": count,
            "coefficients": normal(rng, count),
            "support_vectors": normal(rng, count, features),
            "rho": normal(rng, 1),
            "one_class": one_class,
            **kernel(rng, kind),
        }
        x = np.array(normal(rng, 5, features), np.float32).reshape(5, features)
        check(regressor(x, attributes), x)


def test_regression_without_support_vectors() -> None:
    """The coefficients are weights of features, whatever the kernel; a vector is one sample."""
    attributes = {"n_supports": 0, "coefficients": [0.5, -2.0, 1.0], "rho": [0.25],
                  "kernel_type": "RBF", "kernel_params": [1.0, 2.0, 3.0]}  # fmt: skip
    for shape in ((3,), (2, 3)):
        x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
        check(regressor(x, attributes), x)


@pytest.mark.parametrize(
    ("kind", "classes", "times"), [("RBF", 4, 60), ("POLY", 3, 1), ("SIGMOID", 2, 1)]
)
def test_c_equals_the_graph(kind: str, classes: int, times: int) -> None:
    """Distances, votes and coupled probabilities in C, under sanitizers."""
    rng = np.random.default_rng(2)
    attributes = competing(rng, classes, 3, kind, times=times, **platt(rng, classes))
    x = np.array(normal(rng, 3, 3), np.float32).reshape(3, 3)
    module = from_onnx(classifier(x, attributes))
    assert module.graph is not None
    model = host.load(build(module, microcontroller()), sanitize=True)
    expected = execute(module.graph, {"x": x})
    got = model.run({"x": x})
    np.testing.assert_array_equal(got["label"], expected["label"])
    np.testing.assert_allclose(got["scores"], expected["scores"], rtol=1e-5, atol=1e-6)


def test_distances_need_no_room_for_differences() -> None:
    """A number for each support vector is in RAM, not one for each of its features."""
    vectors, features = 64, 32
    attributes = {"n_supports": vectors, "coefficients": [1.0] * vectors, "rho": [0.0],
                  "support_vectors": [0.0] * vectors * features, "kernel_type": "RBF",
                  "kernel_params": [1.0, 0.0, 3.0]}  # fmt: skip
    x = np.zeros((1, features), np.float32)
    artifact = build(from_onnx(regressor(x, attributes)), microcontroller())
    assert artifact.metadata.memory is not None
    assert artifact.metadata.memory.workspace_size <= 2 * 4 * vectors


_CLASSES: dict[str, Any] = {
    "classlabels_ints": [0, 1], "vectors_per_class": [1, 1], "coefficients": [1.0, -1.0],
    "support_vectors": [1.0, 2.0, 3.0, 4.0], "rho": [0.5], "kernel_type": "RBF",
    "kernel_params": [1.0, 0.0, 3.0],
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        ({"classlabels_strings": ["a", "b"]}, ModelFileError,
         "labels in 'classlabels_ints' and in 'classlabels_strings'"),
        ({"classlabels_ints": [1]}, ModelFileError, "1 labels"),
        ({"kernel_type": "CHI2"}, ModelFileError, "'kernel_type' is 'CHI2'"),
        ({"kernel_params": [1.0]}, ModelFileError, "'kernel_params' has 1 numbers"),
        ({"kernel_params": None}, ModelFileError, "'kernel_params' has 0 numbers"),
        ({"vectors_per_class": [1, 1, 1]}, ModelFileError, "support vectors of 3 classes"),
        ({"vectors_per_class": [3, -1]}, ModelFileError, "support vectors of 2 classes"),
        ({"coefficients": [1.0]}, ModelFileError, "'coefficients' has 1 numbers"),
        ({"support_vectors": [1.0]}, ModelFileError, "'support_vectors' has 1 numbers for 2"),
        ({"rho": [0.5, 0.5]}, ModelFileError, "'rho' has 2 numbers"),
        ({"prob_a": [1.0]}, ModelFileError, "'prob_b' has 0 numbers"),
        ({"post_transform": "PROBIT"}, UnsupportedModelError, "two classes by PROBIT"),
        ({"vectors_per_class": None, "coefficients": [1.0] * 4, "rho": [0.5, 1.0]},
         UnsupportedModelError, "'rho' has several numbers"),
        ({"vectors_per_class": None, "coefficients": [1.0] * 4, "rho": None}, ModelFileError,
         "'rho' has 0 numbers"),
    ],
)  # fmt: skip
def test_classifiers_that_are_refused(
    changes: dict[str, Any], error: type[MicrotirError], text: str
) -> None:
    """Each says what does not fit, or what is not done."""
    given = {name: value for name, value in {**_CLASSES, **changes}.items() if value is not None}
    with pytest.raises(error, match=text):
        from_onnx(classifier(np.zeros((1, 2), np.float32), given))


_NUMBERS: dict[str, Any] = {
    "n_supports": 1, "coefficients": [1.0], "support_vectors": [1.0, 2.0], "rho": [0.5],
    "kernel_type": "LINEAR",
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        ({"post_transform": "LOGISTIC"}, UnsupportedModelError, "by LOGISTIC"),
        ({"n_supports": -1}, ModelFileError, "'n_supports' is -1"),
        ({"n_supports": 2}, ModelFileError, "'support_vectors' has 2 numbers for 2 vectors"),
        ({"coefficients": [1.0, 2.0]}, ModelFileError, "'coefficients' has 2 numbers"),
        ({"n_supports": 0}, ModelFileError, "'coefficients' has 1 numbers"),
    ],
)
def test_regressors_that_are_refused(
    changes: dict[str, Any], error: type[MicrotirError], text: str
) -> None:
    """Each says what does not fit, or what is not done."""
    with pytest.raises(error, match=text):
        from_onnx(regressor(np.zeros((1, 2), np.float32), {**_NUMBERS, **changes}))
