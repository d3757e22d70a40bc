"""Preparation of features and linear models of ai.onnx.ml against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from microtir.errors import MicrotirError, ModelFileError, UnsupportedModelError
from microtir.frontend import from_onnx
from microtir.rewrite.reference import execute
from tests.support.onnx_models import Array, ml_model_of, ml_node, run_onnxruntime, typed

pytestmark = pytest.mark.tools

SAMPLE = settings(max_examples=25, deadline=None)
TRANSFORMS = ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"]


def check(node: Any, types: dict[str, int], **inputs: Array) -> None:
    """The graph computes what onnxruntime does, integers exactly."""
    outputs = [helper.make_tensor_value_info(name, types[name], None) for name in node.output]
    given_inputs = [typed(name, values) for name, values in inputs.items()]
    model = ml_model_of([node], given_inputs, outputs)
    graph = from_onnx(model).graph
    assert graph is not None
    expected = run_onnxruntime(model, inputs)
    for got, want in zip(execute(graph, inputs).values(), expected, strict=True):
        assert got.shape == want.shape
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def numbers(seed: int, *shape: int) -> Array:
    """Return small numbers, many of them halves, zeros among them."""
    rng = np.random.default_rng(seed)
    return (rng.integers(-6, 7, shape) / 2).astype(np.float32)


FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
seeds, extents = st.integers(0, 1000), st.integers(1, 5)


@given(seeds, extents, extents, st.booleans())
@SAMPLE
def test_scaled_features(seed: int, rows: int, features: int, one: bool) -> None:
    """One offset and scale for all features, or one for each."""
    count = 1 if one else features
    offset, scale = (numbers(seed + n, count).tolist() for n in (1, 2))
    check(
        ml_node("Scaler", offset=offset, scale=scale), {"y": FLOAT}, x=numbers(seed, rows, features)
    )


@given(seeds, extents, extents, st.sampled_from(["MAX", "L1", "L2"]))
@SAMPLE
def test_normalised_rows(seed: int, rows: int, features: int, norm: str) -> None:
    """Rows of zeros stay."""
    x = numbers(seed, rows, features)
    x[0] = 0
    check(ml_node("Normalizer", norm=norm), {"y": FLOAT}, x=x)


@given(seeds, extents, extents, st.sampled_from([np.nan, 0.5]), st.booleans())
@SAMPLE
def test_missing_floats(seed: int, rows: int, features: int, missing: float, one: bool) -> None:
    """A NaN stands for a missing value, or a number does."""
    x = numbers(seed, rows, features)
    x[numbers(seed + 1, rows, features) > 1] = missing
    imputed = numbers(seed + 2, 1 if one else features).tolist()
    node = ml_node("Imputer", imputed_value_floats=imputed, replaced_value_float=missing)
    check(node, {"y": FLOAT}, x=x)


def test_missing_integers() -> None:
    """Integers are replaced by integers."""
    node = ml_node("Imputer", imputed_value_int64s=[7, 8], replaced_value_int64=-1)
    check(node, {"y": INT64}, x=np.array([[-1, 2], [3, -1], [5, 6]]))


@given(seeds, st.sampled_from([0.0, 0.5, -1.0]))
@SAMPLE
def test_binary_features(seed: int, threshold: float) -> None:
    """A number equal to the threshold is not above it."""
    check(ml_node("Binarizer", threshold=threshold), {"y": FLOAT}, x=numbers(seed, 3, 4))


@given(seeds, st.sampled_from([np.float32, np.int64]))
@SAMPLE
def test_one_hot(seed: int, dtype: Any) -> None:
    """A category that is not in the list gives zeros."""
    x = numbers(seed, 3, 2).astype(dtype)
    check(ml_node("OneHotEncoder", cats_int64s=[3, 0, -2, 1], zeros=1), {"y": FLOAT}, x=x)


@given(seeds, st.booleans(), st.booleans())
@SAMPLE
def test_labels(seed: int, from_floats: bool, to_floats: bool) -> None:
    """Keys and values of both types; what is no key has the default."""
    x = numbers(seed, 3, 2)
    keys, kind = ([-2.0, 0.5, np.nan, 3.0], "floats") if from_floats else ([-2, 0, 9, 3], "int64s")
    if from_floats:
        x[0, 0] = np.nan
    else:
        x = x.astype(np.int64)
    values = [0.5, 1.5, -2.5, 4.0] if to_floats else [5, -6, 7, 8]
    attributes: dict[str, Any] = {
        f"keys_{kind}": keys,
        f"values_{'floats' if to_floats else 'int64s'}": values,
    }
    default = {"default_float": -7.5} if to_floats else {"default_int64": -7}
    node = ml_node("LabelEncoder", **attributes, **default)
    check(node, {"y": FLOAT if to_floats else INT64}, x=x)


def test_labels_of_tensors() -> None:
    """Newer files hold keys, values and the default as tensors."""
    held = {
        "keys_tensor": np.array([1, 4, -3]),
        "values_tensor": np.array([0.5, 2, 9], np.float32),
        "default_tensor": np.array([-1], np.float32),
    }
    attributes = {name: numpy_helper.from_array(array, name) for name, array in held.items()}
    x = np.array([[1, -3], [0, 4]])
    check(ml_node("LabelEncoder", **attributes), {"y": FLOAT}, x=x)


@pytest.mark.parametrize("shape", [(5,), (3, 5), (2, 3, 5)])
def test_extracted_features(shape: tuple[int, ...]) -> None:
    """Indices that the model is given; a vector becomes one row."""
    node = helper.make_node("ArrayFeatureExtractor", ["x", "i"], ["y"], domain="ai.onnx.ml")
    check(node, {"y": FLOAT}, x=numbers(0, *shape), i=np.array([[4, 0, 2]]))


def test_vectorised_features() -> None:
    """Each part is as wide as the attribute says."""
    node = helper.make_node(
        "FeatureVectorizer", ["a", "b"], ["y"], domain="ai.onnx.ml", inputdimensions=[3, 2]
    )
    check(node, {"y": FLOAT}, a=numbers(0, 2, 3), b=numbers(1, 2, 2))


@given(seeds, extents, extents, st.integers(1, 3), st.sampled_from(TRANSFORMS))
@SAMPLE
def test_linear_regression(
    seed: int, rows: int, features: int, targets: int, transform: str
) -> None:
    """One target or several."""
    node = ml_node(
        "LinearRegressor",
        coefficients=numbers(seed + 1, targets * features).tolist(),
        intercepts=numbers(seed + 2, targets).tolist(),
        targets=targets,
    )
    check(node, {"y": FLOAT}, x=numbers(seed, rows, features))
    classifier = ml_node(
        "LinearClassifier",
        outputs=("label", "scores"),
        coefficients=numbers(seed + 1, targets * features).tolist(),
        intercepts=numbers(seed + 2, targets).tolist(),
        classlabels_ints=[5, -1, 3][: max(targets, 2)],
        post_transform=transform,
    )
    check(classifier, {"label": INT64, "scores": FLOAT}, x=numbers(seed, rows, features))


def test_probit() -> None:
    """The quantile of probabilities."""
    node = ml_node(
        "LinearClassifier",
        outputs=("label", "scores"),
        coefficients=[1.0, 0.5],
        intercepts=[0.1, 0.2],
        classlabels_ints=[0, 1],
        post_transform="PROBIT",
    )
    x = np.array([[0.2], [0.5], [0.8]], np.float32)
    check(node, {"label": INT64, "scores": FLOAT}, x=x)


@pytest.mark.parametrize("transform", ["LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])
def test_transforms_of_one_target_are_refused(transform: str) -> None:
    """Which onnxruntime leaves out; those of several targets it does not."""
    for targets in (1, 2):
        node = ml_node(
            "LinearRegressor",
            targets=targets,
            post_transform=transform,
            coefficients=[0.5, 1.5][:targets],
            intercepts=[0.25, 0.0][:targets],
        )
        if targets == 2:
            check(node, {"y": FLOAT}, x=numbers(0, 3, 1))
            continue
        with pytest.raises(UnsupportedModelError, match=f"its only target by {transform},"):
            from_onnx(ml_model_of([node], [typed("x", (1, 1))], ["y"]))


def test_coefficients_of_other_features_are_malformed() -> None:
    """The error says how many there are and how many there should be."""
    node = ml_node("LinearRegressor", coefficients=[1.0, 2.0], intercepts=[0.0])
    model = ml_model_of([node], [typed("x", (1, 3))], ["y"])
    with pytest.raises(ModelFileError, match="2 coefficients and 1 intercepts") as found:
        from_onnx(model)
    assert "3 and 1" in str(found.value)


def test_maps_are_the_tensor_that_they_are_made_of() -> None:
    """A ZipMap's output is a sequence of maps in the file, and a tensor in the model."""
    node = ml_node("ZipMap", classlabels_int64s=[3, 4])
    map_type = helper.make_map_type_proto(INT64, helper.make_tensor_type_proto(FLOAT, []))
    maps = helper.make_value_info("y", helper.make_sequence_type_proto(map_type))
    model = ml_model_of([node], [typed("x", (1, 2))], [maps])
    graph = from_onnx(model).graph
    assert graph is not None
    x = np.array([[0.25, 0.75]], np.float32)
    np.testing.assert_array_equal(execute(graph, {"x": x})["y"], x)


def vectorizer(mode: str, shortest: int, gaps: int, **attributes: Any) -> Any:
    """Return a node that counts numbers and pairs of them."""
    given: dict[str, Any] = {
        "ngram_counts": [0, 3],
        "ngram_indexes": list(range(6)),
        "pool_int64s": [1, 2, 3, 1, 2, 2, 2, 3, 1],
    } | attributes
    return helper.make_node(
        "TfIdfVectorizer", ["x"], ["y"], mode=mode, min_gram_length=shortest, max_gram_length=2,
        max_skip_count=gaps, **given,
    )  # fmt: skip


@given(seeds, st.sampled_from(["TF", "IDF", "TFIDF"]), st.integers(1, 2), st.integers(0, 9),
       st.sampled_from([np.int32, np.int64]))  # fmt: skip
@SAMPLE
def test_counted_ngrams(seed: int, mode: str, shortest: int, gaps: int, dtype: Any) -> None:
    """Numbers and pairs with gaps that may be longer than the rows; with and without weights."""
    rng = np.random.default_rng(seed)
    weights = {"weights": [0.5, 2.0, 3.0, 4.0, 5.0, 6.0]} if seed % 2 else {}
    x = rng.integers(1, 4, (2, 5)).astype(dtype)
    check(vectorizer(mode, shortest, gaps, **weights), {"y": FLOAT}, x=x if seed % 3 else x[0])


def test_ngrams_in_columns_of_their_own() -> None:
    """Columns need not be in the order of the pool."""
    node = vectorizer("TF", 1, 0, ngram_indexes=[5, 0, 3, 1, 2, 4])
    check(node, {"y": FLOAT}, x=np.array([[1, 2, 2, 3, 1]]))


@pytest.mark.parametrize(
    ("attributes", "text"),
    [
        ({"ngram_counts": [0, 4]}, "lie at 4 to 9"),
        ({"ngram_indexes": [0, 1]}, "2 columns for 6 n-grams"),
        ({"pool_strings": ["a"]}, "'pool_strings' holds strings"),
    ],
)
def test_ngrams_that_contradict_themselves(attributes: dict[str, Any], text: str) -> None:
    """The error says what does not fit."""
    model = ml_model_of(
        [vectorizer("TF", 1, 0, **attributes)], [typed("x", (1, 4), np.int64)], ["y"]
    )
    with pytest.raises(MicrotirError, match=text):
        from_onnx(model)
