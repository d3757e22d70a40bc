"""Read linear models of ai.onnx.ml: fully connected layers, and the label of the best class."""

from __future__ import annotations

from microtir.graph.ir import Tensor
from microtir.operators.activations.definition import Logistic
from microtir.operators.common.onnx_ml import (
    ML,
    PostTransform,
    best_label,
    binary_label,
    both_classes,
    class_labels,
    floats,
    post_transform,
    rows_of,
    transformed,
    transformed_targets,
    with_named_labels,
)
from microtir.operators.common.onnx_operands import OnnxNode, OnnxReader
from microtir.operators.common.onnx_parts import joined
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.unary.definition import Neg


def _scores(node: OnnxNode, targets: int) -> Tensor:
    """Emit the layer; a bias that is left out is zero."""
    x, weights, bias = rows_of(node), floats(node, "coefficients"), floats(node, "intercepts")
    features = x.shape[1]
    if weights.size != targets * features or bias.size not in (0, targets):
        raise node.malformed(
            f"{weights.size} coefficients and {bias.size} intercepts for {targets} targets and"
            f" {features} features",
            f"{targets * features} and {targets}",
        )
    operands = [x, node.constant(weights.reshape(targets, features))]
    if bias.size:
        operands.append(node.constant(bias))
    return node.emit(FullyConnected(), *operands, shape=(x.shape[0], targets))


def linear_regressor(node: OnnxNode) -> Tensor:
    """Read LinearRegressor."""
    scores = _scores(node, node.integer("targets", 1))
    return transformed_targets(node, scores, post_transform(node))


def linear_classifier(node: OnnxNode) -> tuple[Tensor, Tensor]:
    """Read LinearClassifier; one score speaks of two classes."""
    labels, transform = class_labels(node, "classlabels_ints"), post_transform(node)
    targets = floats(node, "intercepts").size
    if not targets:
        raise node.malformed("the attribute 'intercepts' is empty", "one number a class")
    scores = _scores(node, targets)
    if targets == 1 and len(labels) == 2:
        label = binary_label(node, scores, 0.0, (labels[0], labels[1]))
        return label, _of_one_score(node, scores, transform)
    if len(labels) != targets:
        raise node.malformed(f"{len(labels)} labels for {targets} scores", "one for each")
    return best_label(node, scores, labels), transformed(node, scores, transform)


def _of_one_score(node: OnnxNode, score: Tensor, transform: PostTransform) -> Tensor:
    """Return the scores of both classes as onnxruntime has them; a softmax of one is none."""
    if transform is PostTransform.PROBIT:
        raise node.unsupported(
            "it transforms the only score of two classes by PROBIT",
            "NONE or LOGISTIC, or a score for each class",
            "export with one row of coefficients for each class",
        )
    if transform is not PostTransform.LOGISTIC:
        return both_classes(node, score)
    return node.emit(Logistic(), joined(node, (node.emit(Neg(), score), score), 1))


_ATTRIBUTES = ("coefficients", "intercepts", "post_transform")

ONNX_READERS = (
    OnnxReader("LinearRegressor", linear_regressor, attributes=(*_ATTRIBUTES, "targets"),
               domain=ML),
    OnnxReader(
        "LinearClassifier",
        with_named_labels(linear_classifier),
        attributes=(*_ATTRIBUTES, "classlabels_ints", "classlabels_strings", "multi_class"),
        outputs=2,
        domain=ML,
    ),
)  # fmt: skip
