"""Read ai.onnx.ml's operators that prepare features."""

from __future__ import annotations

import math

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Array, Tensor
from microtir.operators.arithmetic.definition import Mul, Sub
from microtir.operators.common.onnx_ml import ML, floats
from microtir.operators.common.onnx_operands import MANY, OnnxNode, OnnxReader
from microtir.operators.common.onnx_parts import along, filled, joined, reshaped
from microtir.operators.common.onnx_types import cast
from microtir.operators.conditions.definition import Equal, Greater, NotEqual
from microtir.operators.division.definition import Div
from microtir.operators.features.onnx_categories import label_encoder, one_hot_encoder
from microtir.operators.features.onnx_ngrams import NGRAM_READERS
from microtir.operators.indexing.definition import Gather
from microtir.operators.reduction.definition import ReduceMax, Sum
from microtir.operators.selection.definition import Select
from microtir.operators.unary.definition import Abs, Sqrt, Square


def _one_or_each(node: OnnxNode, name: str, values: Array) -> Tensor:
    """Return numbers of an attribute: one for all features, or one for each."""
    shape = node.input(0).shape
    features = shape[-1] if shape else 1
    if values.size not in (1, features) or (values.size > 1 and len(shape) > 2):
        raise node.malformed(
            f"the attribute '{name}' has {values.size} numbers for features of the shape {shape}",
            f"1 or {features}",
        )
    return node.constant(values if values.size > 1 else values.reshape(()))


def scaler(node: OnnxNode) -> Tensor:
    """Read Scaler: what is left of an offset, times a scale."""
    x = cast(node, node.input(0), DType.FLOAT32)
    offset, scale = (_one_or_each(node, name, floats(node, name)) for name in ("offset", "scale"))
    return node.emit(Mul(), node.emit(Sub(), x, offset), scale)


def normalizer(node: OnnxNode) -> Tensor:
    """Read Normalizer: each row by its norm; a row of zeros stays."""
    x = cast(node, node.input(0), DType.FLOAT32)
    norm, axis = node.word("norm", "MAX"), min(len(x.shape) - 1, 1)
    if axis < 0 or norm not in ("MAX", "L1", "L2"):
        raise node.malformed(f"the norm {norm!r} of the shape {x.shape}", "MAX, L1 or L2 of rows")
    if norm == "MAX":
        size = node.emit(ReduceMax((axis,), keep_dims=True, infinite=True), x)
    elif norm == "L1":
        size = node.emit(Sum((axis,), keep_dims=True), node.emit(Abs(), x))
    else:
        total = node.emit(Sum((axis,), keep_dims=True), node.emit(Square(), x))
        size = node.emit(Sqrt(), total)
    is_nothing = node.emit(Equal(), size, node.scalar_like(0.0, size), dtype=DType.BOOL)
    ones = filled(node, size.shape, 1)
    return node.emit(Div(), x, node.emit(Select(), is_nothing, ones, size, dtype=DType.FLOAT32))


def imputer(node: OnnxNode) -> Tensor:
    """Read Imputer: values that stand for missing ones are replaced."""
    x = node.input(0)
    if x.dtype is DType.FLOAT32:
        values, missing = floats(node, "imputed_value_floats"), "replaced_value_float"
        replaced = np.array(node.number(missing, 0.0), np.float32)
    else:
        integers = node.list_of_integers("imputed_value_int64s", ())
        values = np.array(integers, x.dtype.value)
        replaced = np.array(node.integer("replaced_value_int64", 0), x.dtype.value)
    name = "imputed_value_floats" if x.dtype is DType.FLOAT32 else "imputed_value_int64s"
    imputed = _one_or_each(node, name, values)
    if x.dtype is DType.FLOAT32 and math.isnan(replaced):
        is_missing = node.emit(NotEqual(), x, x, dtype=DType.BOOL)
    else:
        is_missing = node.emit(Equal(), x, node.constant(replaced), dtype=DType.BOOL)
    filled = node.constant(np.broadcast_to(values.reshape(imputed.shape), x.shape))
    return node.emit(Select(), is_missing, filled, x, dtype=x.dtype)


def binarizer(node: OnnxNode) -> Tensor:
    """Read Binarizer: 1 above a threshold, else 0."""
    x = node.input(0)
    threshold = node.scalar_like(node.number("threshold", 0.0), x)
    return cast(node, node.emit(Greater(), x, threshold, dtype=DType.BOOL), x.dtype)


def array_feature_extractor(node: OnnxNode) -> Tensor:
    """Read ArrayFeatureExtractor: some of the last axis, which indices name."""
    x, indices = node.input(0), node.input(1)
    if not x.shape:
        raise node.malformed("features that are one number", "rows of features")
    last, count = len(x.shape) - 1, indices.type.elements
    if indices.data is not None:
        named = indices.data.reshape(-1)
        if named.size and not 0 <= named.min() <= named.max() < x.shape[last]:
            raise node.malformed(f"it names the features {named.min()} to {named.max()}",
                                 f"0 to {x.shape[last] - 1}")  # fmt: skip
    features = node.emit(Gather(last), x, reshaped(node, indices, count))
    return reshaped(node, features, 1, count) if last == 0 else features


def feature_vectorizer(node: OnnxNode) -> Tensor:
    """Read FeatureVectorizer: rows one behind the other, each cut or filled up with zeros."""
    widths = node.list_of_integers("inputdimensions", ())
    if len(widths) != len(node.inputs):
        raise node.malformed(f"{len(widths)} widths for {len(node.inputs)} inputs")
    parts: list[Tensor] = []
    for x, width in zip(node.present, widths, strict=True):
        rows = x.shape[0] if x.shape else 1
        flat = cast(node, reshaped(node, x, rows, x.type.elements // rows), DType.FLOAT32)
        parts.append(along(node, flat, 1, 0, min(width, flat.shape[1])))
        if width > flat.shape[1]:
            node.check_room(rows, width)
            zeros = np.zeros((rows, width - flat.shape[1]), np.float32)
            parts.append(node.constant(zeros))
    return joined(node, parts, 1)


def zip_map(node: OnnxNode) -> Tensor:
    """Read ZipMap as the tensor that it makes maps of: column i has what key i would name."""
    return node.input(0)


_IMPUTED = (
    "imputed_value_floats", "imputed_value_int64s", "replaced_value_float", "replaced_value_int64",
)  # fmt: skip
_CATEGORIES = ("cats_int64s", "cats_strings", "zeros")
_KINDS = ("int64s", "floats", "strings", "tensor")
_MAPS = tuple(f"{side}_{kind}" for side in ("keys", "values") for kind in _KINDS)
_DEFAULTS = tuple(f"default_{kind}" for kind in ("int64", "float", "string", "tensor"))

ONNX_READERS = (
    *NGRAM_READERS,
    OnnxReader("Scaler", scaler, attributes=("offset", "scale"), domain=ML),
    OnnxReader("Normalizer", normalizer, attributes=("norm",), domain=ML),
    OnnxReader("Imputer", imputer, attributes=_IMPUTED, domain=ML),
    OnnxReader("Binarizer", binarizer, attributes=("threshold",), domain=ML),
    OnnxReader("OneHotEncoder", one_hot_encoder, attributes=_CATEGORIES, domain=ML),
    OnnxReader(
        "LabelEncoder", label_encoder, attributes=(*_MAPS, *_DEFAULTS, "classes_strings"), domain=ML
    ),
    OnnxReader("ArrayFeatureExtractor", array_feature_extractor, (2, 2), domain=ML),
    OnnxReader("FeatureVectorizer", feature_vectorizer, (1, MANY), ("inputdimensions",), domain=ML),
    OnnxReader(
        "ZipMap", zip_map, attributes=("classlabels_int64s", "classlabels_strings"), domain=ML
    ),
)
