"""Read what operators of ai.onnx.ml share: labels, features, and transforms of scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum

import numpy as np

from microtir.dtype import DType
from microtir.errors import ExportProblem
from microtir.graph.ir import Array, Tensor
from microtir.operators.activations.definition import Logistic
from microtir.operators.arithmetic.definition import Add, Mul, Sub
from microtir.operators.common import onnx_parts, onnx_types
from microtir.operators.common.onnx_operands import OnnxNode
from microtir.operators.conditions.definition import Greater, Less
from microtir.operators.division.definition import Div
from microtir.operators.indexing.definition import Gather
from microtir.operators.reduction.definition import ArgMax, ReduceMax, Sum
from microtir.operators.selection.definition import Select
from microtir.operators.softmax.definition import Softmax
from microtir.operators.unary.definition import Abs, Exp, Log, Neg, Sqrt, Square

ML = "ai.onnx.ml"
"""The domain of the operators of classic models."""


class PostTransform(Enum):
    """The last step over the scores of all classes."""

    NONE = "NONE"
    LOGISTIC = "LOGISTIC"
    SOFTMAX = "SOFTMAX"
    SOFTMAX_ZERO = "SOFTMAX_ZERO"
    PROBIT = "PROBIT"


def refuse_strings(node: OnnxNode, *names: str) -> None:
    """Refuse a node that computes on strings."""
    for name in names:
        if node.has(name) and node.attributes[name] not in ((), ""):
            raise node.unsupported(
                f"its attribute '{name}' holds strings",
                "numbers",
                "train with classes and categories that are integers"
                " (sklearn.preprocessing.LabelEncoder or OrdinalEncoder), and name them in the"
                " application",
                ExportProblem.STRINGS,
            )


_STRINGS = "classlabels_strings"


def class_labels(node: OnnxNode, name: str) -> tuple[int, ...]:
    """Return the labels of the classes: integers, or places of strings in the list of names."""
    texts = _class_texts(node)
    integers = node.list_of_integers(name, ())
    if texts and integers:
        raise node.malformed(f"labels in '{name}' and in '{_STRINGS}'", "one of both")
    names = distinct(texts)
    return tuple(names.index(text) for text in texts) if texts else integers


def _class_texts(node: OnnxNode) -> tuple[str, ...]:
    is_there = node.has(_STRINGS) and node.attributes[_STRINGS] != ()
    return node.list_of_words(_STRINGS) if is_there else ()


def distinct(texts: Sequence[str]) -> tuple[str, ...]:
    """Return strings as a list of names, each once."""
    return tuple(dict.fromkeys(texts))


def with_named_labels(
    read: Callable[[OnnxNode], tuple[Tensor, Tensor]],
) -> Callable[[OnnxNode], tuple[Tensor, Tensor]]:
    """Return the reader of a classifier whose labels have names where the file has strings."""

    def named(node: OnnxNode) -> tuple[Tensor, Tensor]:
        labels, scores = read(node)
        texts = _class_texts(node)
        if texts:
            node.emitter.name_values(labels, distinct(texts))
        return labels, scores

    return named


def post_transform(node: OnnxNode) -> PostTransform:
    """Return the attribute 'post_transform'."""
    word = node.word("post_transform", "NONE")
    names = [each.value for each in PostTransform]
    if word not in names:
        raise node.malformed(f"the attribute 'post_transform' is {word!r}", ", ".join(names))
    return PostTransform(word)


def floats(node: OnnxNode, name: str) -> Array:
    """Return an attribute that is a list of floats, empty if it is left out."""
    values = node.list_of_numbers(name) if node.has(name) else ()
    return np.array(values, np.float32)


def rows_of(node: OnnxNode) -> Tensor:
    """Return the features as float32, one row for each sample; a vector is one sample."""
    x = node.input(0)
    if len(x.shape) not in (1, 2):
        raise node.malformed(f"features of the shape {x.shape}", "(N, features)")
    return onnx_types.cast(node, onnx_parts.reshaped(node, x, *(1, *x.shape)[-2:]), DType.FLOAT32)


def best_label(node: OnnxNode, scores: Tensor, labels: tuple[int, ...]) -> Tensor:
    """Return the label of each row's highest score, the first of equal ones."""
    index = node.emit(ArgMax(1), scores, dtype=DType.INT64)
    return index if labels == tuple(range(len(labels))) else labelled(node, index, labels)


def labelled(node: OnnxNode, index: Tensor, labels: tuple[int, ...]) -> Tensor:
    """Return the labels of classes by their numbers."""
    return node.emit(Gather(0), node.constant(np.array(labels, np.int64)), index)


def binary_label(
    node: OnnxNode, score: Tensor, threshold: float, labels: tuple[int, int]
) -> Tensor:
    """Return the second label where a score is above a threshold, else the first."""
    is_second = node.emit(Greater(), score, node.scalar_like(threshold, score), dtype=DType.BOOL)
    negative, positive = (node.constant(np.array(label, np.int64)) for label in labels)
    chosen = node.emit(Select(), is_second, positive, negative, dtype=DType.INT64)
    return onnx_parts.reshaped(node, chosen, score.shape[0])


def both_classes(node: OnnxNode, score: Tensor) -> Tensor:
    """Return the probabilities of two classes from that of the second."""
    first = node.emit(Sub(), node.scalar_like(1.0, score), score)
    return onnx_parts.joined(node, (first, score), 1)


def transformed(node: OnnxNode, scores: Tensor, transform: PostTransform) -> Tensor:
    """Return the scores of all classes as the model hands them out."""
    if transform is PostTransform.LOGISTIC:
        return node.emit(Logistic(), scores)
    if transform is PostTransform.SOFTMAX:
        return node.emit(Softmax(), scores)
    if transform is PostTransform.SOFTMAX_ZERO:
        return _softmax_zero(node, scores)
    if transform is PostTransform.PROBIT:
        return _probit(node, scores)
    return scores


def transformed_targets(node: OnnxNode, scores: Tensor, transform: PostTransform) -> Tensor:
    """Return the numbers for all targets of a regression as the model hands them out."""
    if scores.shape[1] == 1 and transform not in (PostTransform.NONE, PostTransform.PROBIT):
        raise node.unsupported(
            f"it transforms its only target by {transform.value}, which onnxruntime leaves out",
            "NONE or PROBIT, or several targets",
            "export with post_transform NONE, and add a layer for the transform",
        )
    return transformed(node, scores, transform)


_NEARLY_ZERO = 1e-7


def _softmax_zero(node: OnnxNode, scores: Tensor) -> Tensor:
    """Emit a softmax that zeros take no part in."""
    largest = node.emit(ReduceMax((1,), keep_dims=True), scores)
    size = node.emit(Abs(), scores)
    counts = node.emit(Greater(), size, node.scalar_like(_NEARLY_ZERO, size), dtype=DType.BOOL)
    powers = node.emit(Exp(), node.emit(Sub(), scores, largest))
    zero = onnx_parts.filled(node, scores.shape, 0)
    taking = node.emit(Select(), counts, powers, zero, dtype=DType.FLOAT32)
    left_out = node.emit(Mul(), scores, node.emit(Exp(), node.emit(Neg(), largest)))
    each = node.emit(Select(), counts, powers, left_out, dtype=DType.FLOAT32)
    return node.emit(Div(), each, node.emit(Sum((1,), keep_dims=True), taking))


_A = 0.147  # of Winitzki's approximation of the inverse error function
_B = 2 / (3.14159 * _A)


def _probit(node: OnnxNode, scores: Tensor) -> Tensor:
    """Emit the quantile of the normal distribution, as onnxruntime approximates it."""

    def number(value: float) -> Tensor:
        return node.scalar_like(value, scores)

    x = node.emit(Sub(), node.emit(Mul(), scores, number(2.0)), number(1.0))
    below = node.emit(Sub(), number(1.0), x)
    above = node.emit(Add(), number(1.0), x)
    log = node.emit(Log(), node.emit(Mul(), below, above))
    half = node.emit(Add(), node.emit(Mul(), log, number(0.5)), number(_B))
    inner = node.emit(Sub(), node.emit(Square(), half), node.emit(Mul(), log, number(1 / _A)))
    root = node.emit(Sqrt(), node.emit(Sub(), node.emit(Sqrt(), inner), half))
    size = node.emit(Mul(), root, number(float(np.sqrt(2.0))))
    is_negative = node.emit(Less(), x, number(0.0), dtype=DType.BOOL)
    return node.emit(Select(), is_negative, node.emit(Neg(), size), size, dtype=DType.FLOAT32)
