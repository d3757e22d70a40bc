"""Read support vector machines of ai.onnx.ml, as onnxruntime computes them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Array, Tensor
from microtir.operators.activations.definition import Logistic, Tanh
from microtir.operators.arithmetic.definition import Mul, Pow
from microtir.operators.common import onnx_arithmetic, onnx_ml, onnx_types
from microtir.operators.common.onnx_operands import OnnxNode, OnnxReader
from microtir.operators.common.onnx_parts import along, filled, int32s, joined
from microtir.operators.conditions.definition import GreaterEqual
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.indexing.definition import Gather
from microtir.operators.reduction.definition import ArgMax, ReduceMax
from microtir.operators.support_vectors.definition import PairwiseCoupling, SquaredDistances
from microtir.operators.unary.definition import Exp, Neg, Square


class Similarity(Enum):
    """The function of a row and a support vector; the value is ONNX's name."""

    LINEAR = "LINEAR"
    POLY = "POLY"
    RBF = "RBF"
    SIGMOID = "SIGMOID"


@dataclass(frozen=True, slots=True)
class Machine:
    """Rows, support vectors (V, F), and how alike two are by which numbers."""

    node: OnnxNode
    x: Tensor
    vectors: Array
    kind: Similarity
    gamma: float
    start: float
    degree: float

    def similarities(self) -> Tensor:
        """Emit how alike each row is to each vector: (N, V)."""
        node, kind = self.node, self.kind
        if kind is Similarity.RBF:
            far = node.emit(SquaredDistances(), self.x, node.constant(self.vectors))
            return node.emit(Exp(), onnx_arithmetic.mul(node, far, -self.gamma))
        if kind is Similarity.LINEAR:
            return _layer(node, self.x, self.vectors)
        products = _layer(node, self.x, np.float32(self.gamma) * self.vectors)
        products = onnx_arithmetic.add(node, products, self.start) if self.start else products
        return node.emit(Tanh(), products) if kind is Similarity.SIGMOID else self._power(products)

    def _power(self, base: Tensor) -> Tensor:
        node = self.node
        if self.degree == 1:
            return base
        if self.degree == 2:
            return node.emit(Square(), base)
        if self.degree == 3:
            return node.emit(Mul(), node.emit(Square(), base), base)
        return node.emit(Pow(), base, node.scalar_like(self.degree, base))

    def sums(self, weights: Array, bias: Array) -> Tensor:
        """Emit sums of similarities with weights (targets, V); of linear ones in one product."""
        if self.kind is not Similarity.LINEAR:
            return _layer(self.node, self.similarities(), weights, bias)
        folded = weights.astype(np.float64) @ self.vectors.astype(np.float64)
        return _layer(self.node, self.x, folded.astype(np.float32), bias)


def _layer(node: OnnxNode, x: Tensor, weights: Array, bias: Array | None = None) -> Tensor:
    operands = [x, node.constant(weights)]
    if bias is not None:
        operands.append(node.constant(bias))
    return node.emit(FullyConnected(), *operands, shape=(x.shape[0], len(weights)))


def _machine(node: OnnxNode, count: int) -> Machine:
    """Return what the attributes say of `count` support vectors and of their kernel."""
    word, names = node.word("kernel_type", "LINEAR"), [each.value for each in Similarity]
    if word not in names:
        raise node.malformed(f"the attribute 'kernel_type' is {word!r}", ", ".join(names))
    kind, parameters = Similarity(word), onnx_ml.floats(node, "kernel_params")
    if parameters.size != 3 and (parameters.size or kind is not Similarity.LINEAR):
        raise node.malformed(
            f"the attribute 'kernel_params' has {parameters.size} numbers",
            "gamma, coef0 and degree",
        )
    gamma, start, degree = parameters.tolist() or (0.0, 0.0, 0.0)
    x, vectors = onnx_ml.rows_of(node), onnx_ml.floats(node, "support_vectors")
    features = x.shape[1]
    if vectors.size != count * features:
        raise node.malformed(
            f"'support_vectors' has {vectors.size} numbers for {count} vectors of {features}"
            " features",
            f"{count * features}",
        )
    return Machine(node, x, vectors.reshape(count, features), kind, gamma, start, degree)


def _of_size(node: OnnxNode, name: str, count: int) -> Array:
    """Return an attribute of `count` floats."""
    values = onnx_ml.floats(node, name)
    if values.size != count:
        raise node.malformed(f"the attribute '{name}' has {values.size} numbers", f"{count}")
    return values


def _only_start(node: OnnxNode) -> Array:
    """Return the only number that scores without support vectors begin with."""
    values = onnx_ml.floats(node, "rho")
    if not values.size:
        raise node.malformed("the attribute 'rho' has 0 numbers", "1")
    if len(set(values.tolist())) > 1:
        raise node.unsupported(
            "it has no support vectors, and 'rho' has several numbers, of which onnxruntime takes"
            " the first for all classes",
            "one number for all", "export as LinearClassifier, with an intercept for each class",
        )  # fmt: skip
    return values[:1]


def svm_regressor(node: OnnxNode) -> Tensor:
    """Read SVMRegressor; of one class it says whether a row belongs to it, 1 or -1."""
    count, transform = node.integer("n_supports", 0), onnx_ml.post_transform(node)
    if transform is not onnx_ml.PostTransform.NONE:
        raise node.unsupported(
            f"it transforms its result by {transform.value}, which onnxruntime leaves out", "NONE",
            "export with post_transform NONE, and add a layer for the transform",
        )  # fmt: skip
    if count < 0:
        raise node.malformed(f"the attribute 'n_supports' is {count}", "0 or more")
    start = _only_start(node)
    if count:
        machine = _machine(node, count)
        sums = machine.sums(_of_size(node, "coefficients", count).reshape(1, count), start)
    else:
        x = onnx_ml.rows_of(node)
        weights = _of_size(node, "coefficients", x.shape[1]).reshape(1, -1)
        sums = _layer(node, x, weights, start)
    if not node.integer("one_class", 0):
        return sums
    inside, outside = (filled(node, sums.shape, end) for end in (1, -1))
    return onnx_arithmetic.choose(node, onnx_arithmetic.greater(node, sums, 0.0), inside, outside)


def svm_classifier(node: OnnxNode) -> tuple[Tensor, Tensor]:
    """Read SVMClassifier: classes compete in pairs, or have a score each."""
    labels, transform = onnx_ml.class_labels(node, "classlabels_ints"), onnx_ml.post_transform(node)
    if len(labels) < 2:
        raise node.malformed(f"{len(labels)} labels", "2 or more")
    counts = node.list_of_integers("vectors_per_class", ())
    if not any(counts):
        return _linear(node, labels, transform)
    if len(counts) != len(labels) or min(counts) < 0:
        raise node.malformed(
            f"support vectors of {len(counts)} classes, {counts}, for {len(labels)} labels",
            "a number for each label, 0 or more",
        )
    scores = _pair_scores(node, counts)
    label = _voted(node, scores, labels)
    if node.has("prob_a") or node.has("prob_b"):
        return label, onnx_ml.transformed(
            node, _probabilities(node, scores, len(labels)), transform
        )
    if len(labels) > 2:
        return label, onnx_ml.transformed(node, scores, transform)
    return label, _of_one_pair(node, scores, transform)


def _linear(
    node: OnnxNode, labels: tuple[int, ...], transform: onnx_ml.PostTransform
) -> tuple[Tensor, Tensor]:
    """Emit a score for each class; onnxruntime prefers the second of two that is above a limit."""
    x, start = onnx_ml.rows_of(node), _only_start(node)
    weights = _of_size(node, "coefficients", len(labels) * x.shape[1]).reshape(len(labels), -1)
    scores = _layer(node, x, weights, np.repeat(start, len(labels)))
    results = onnx_ml.transformed(node, scores, transform)
    if len(labels) > 2 or node.has("prob_a"):
        return onnx_ml.best_label(node, scores, labels), results
    largest = node.emit(ReduceMax((1,)), scores)
    if weights.min() >= 0:
        limit = node.scalar_like(0.5, largest)
        is_second = node.emit(GreaterEqual(), largest, limit, dtype=DType.BOOL)
    else:
        is_second = onnx_arithmetic.greater(node, largest, 0.0)
    first = node.emit(ArgMax(1), scores, dtype=DType.INT64)
    one = filled(node, first.shape, 1, DType.INT64)
    return onnx_ml.labelled(
        node, onnx_arithmetic.choose(node, is_second, one, first), labels
    ), results


def _pairs(classes: int) -> list[tuple[int, int]]:
    return [(i, j) for i in range(classes) for j in range(i + 1, classes)]


_ZEROS_FOR_CODE = 150
"""Number of floats in flash that take as many bytes as code for the vectors of one class."""


def _pair_scores(node: OnnxNode, counts: tuple[int, ...]) -> Tensor:
    """Emit the score of each pair of classes, above 0 for the first: (N, pairs).

    Coefficients are a table (classes - 1, vectors). Of a pair i < j, vectors of class i have those
    of row j - 1, vectors of class j those of row i.
    """
    classes, total = len(counts), sum(counts)
    pairs = _pairs(classes)
    table = _of_size(node, "coefficients", (classes - 1) * total).reshape(classes - 1, total)
    start = _of_size(node, "rho", len(pairs))
    machine = _machine(node, total)
    ends = np.cumsum(counts)
    places = [slice(end - count, end) for end, count in zip(ends, counts, strict=True)]
    zeros = (classes - 1) * (classes - 2) // 2 * total
    if machine.kind is Similarity.LINEAR or zeros < _ZEROS_FOR_CODE * classes:
        weights = np.zeros((len(pairs), total), np.float32)
        for row, (i, j) in zip(weights, pairs, strict=True):
            row[places[i]], row[places[j]] = table[j - 1, places[i]], table[i, places[j]]
        return machine.sums(weights, start)
    # Half of such a matrix or more would be zeros: each class by itself, then parts in pairs.
    similarities = machine.similarities()
    parts = [
        _layer(node, along(node, similarities, 1, place.start, count), table[:, place])
        if count
        else filled(node, (similarities.shape[0], classes - 1), 0)
        for place, count in zip(places, counts, strict=True)
    ]
    of_classes = joined(node, parts, 1)
    first = [i * (classes - 1) + j - 1 for i, j in pairs]
    second = [j * (classes - 1) + i for i, j in pairs]
    halves = [
        node.emit(Gather(1), of_classes, int32s(node, np.array(at))) for at in (first, second)
    ]
    return onnx_arithmetic.add(node, onnx_arithmetic.add(node, *halves), node.constant(start))


def _voted(node: OnnxNode, scores: Tensor, labels: tuple[int, ...]) -> Tensor:
    """Return the label of the class that wins most pairs, of equal ones the first."""
    if len(labels) == 2:
        return onnx_ml.binary_label(node, scores, 0.0, (labels[1], labels[0]))
    pairs = _pairs(len(labels))
    # What a pair's first class wins counts for it, and is what the second one does not win.
    weights = np.zeros((len(labels), len(pairs)), np.float32)
    for number, (i, j) in enumerate(pairs):
        weights[i, number], weights[j, number] = 1.0, -1.0
    wins = onnx_types.cast(node, onnx_arithmetic.greater(node, scores, 0.0), DType.FLOAT32)
    start = np.arange(len(labels), dtype=np.float32)
    return onnx_ml.best_label(node, _layer(node, wins, weights, start), labels)


_NEAREST = 1e-7  # to 0 and 1, of the probability of a class among two


def _probabilities(node: OnnxNode, scores: Tensor, classes: int) -> Tensor:
    """Emit Platt's probabilities of pairs, and of all classes from them."""
    slope, offset = (_of_size(node, name, scores.shape[1]) for name in ("prob_a", "prob_b"))
    odds = onnx_arithmetic.add(
        node, onnx_arithmetic.mul(node, scores, node.constant(-slope)), node.constant(-offset)
    )
    shares = node.emit(Logistic(), odds)
    inside = onnx_arithmetic.least(
        node,
        onnx_arithmetic.most(node, shares, _NEAREST),
        float(np.float32(1) - np.float32(_NEAREST)),
    )
    return node.emit(PairwiseCoupling(classes), inside, shape=(scores.shape[0], classes))


def _of_one_pair(node: OnnxNode, score: Tensor, transform: onnx_ml.PostTransform) -> Tensor:
    """Return the scores of two classes as onnxruntime has them; a softmax of one is none."""
    if transform is onnx_ml.PostTransform.PROBIT:
        raise node.unsupported(
            "it transforms the only score of two classes by PROBIT, which onnxruntime applies to "
            "one of the two",
            "another transform, or probabilities", "export with post_transform NONE",
        )  # fmt: skip
    if transform in (onnx_ml.PostTransform.NONE, onnx_ml.PostTransform.LOGISTIC):
        opposite = joined(node, (node.emit(Neg(), score), score), 1)
        return onnx_ml.transformed(node, opposite, transform)
    return onnx_ml.both_classes(node, score)


_ATTRIBUTES = (
    "coefficients", "kernel_params", "kernel_type", "post_transform", "rho", "support_vectors",
)  # fmt: skip

ONNX_READERS = (
    OnnxReader(
        "SVMRegressor",
        svm_regressor,
        attributes=(*_ATTRIBUTES, "n_supports", "one_class"),
        domain=onnx_ml.ML,
    ),
    OnnxReader(
        "SVMClassifier",
        onnx_ml.with_named_labels(svm_classifier),
        attributes=(
            *_ATTRIBUTES, "classlabels_ints", "classlabels_strings", "prob_a", "prob_b",
            "vectors_per_class",
        ),
        outputs=2,
        domain=onnx_ml.ML,
    ),
)  # fmt: skip
"""Support vector machines in ONNX."""
