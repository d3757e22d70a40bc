"""Read linear models of ai.onnx.ml: fully connected layers, and the label of the best class."""

from __future__ import annotations

from microtir.graph.ir import Tensor
from microtir.operators.activations.definition import Logistic
from microtir.operators.common import onnx_ml, onnx_parts
from microtir.operators.common.onnx_operands import OnnxNode, OnnxReader
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.unary.definition import Neg


def _scores(node: OnnxNode, targets: int) -> Tensor:
    """Emit the layer; a bias that is left out is zero."""
    x, weights, bias = (
        onnx_ml.rows_of(node),
        onnx_ml.floats(node, "coefficients"),
        onnx_ml.floats(node, "intercepts"),
    )
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
    return onnx_ml.transformed_targets(node, scores, onnx_ml.post_transform(node))


def linear_classifier(node: OnnxNode) -> tuple[Tensor, Tensor]:
    """Read LinearClassifier; one score speaks of two classes."""
    labels, transform = onnx_ml.class_labels(node, "classlabels_ints"), onnx_ml.post_transform(node)
    targets = onnx_ml.floats(node, "intercepts").size
    if not targets:
        raise node.malformed("the attribute 'intercepts' is empty", "one number a class")
    scores = _scores(node, targets)
    if targets == 1 and len(labels) == 2:
        label = onnx_ml.binary_label(node, scores, 0.0, (labels[0], labels[1]))
        return label, _of_one_score(node, scores, transform)
    if len(labels) != targets:
        raise node.malformed(f"{len(labels)} labels for {targets} scores", "one for each")
    return onnx_ml.best_label(node, scores, labels), onnx_ml.transformed(node, scores, transform)


def _of_one_score(node: OnnxNode, score: Tensor, transform: onnx_ml.PostTransform) -> Tensor:
    """Return the scores of both classes as onnxruntime has them; a softmax of one is none."""
    if transform is onnx_ml.PostTransform.PROBIT:
        raise node.unsupported(
            "it transforms the only score of two classes by PROBIT",
            "NONE or LOGISTIC, or a score for each class",
            "export with one row of coefficients for each class",
        )
    if transform is not onnx_ml.PostTransform.LOGISTIC:
        return onnx_ml.both_classes(node, score)
    return node.emit(Logistic(), onnx_parts.joined(node, (node.emit(Neg(), score), score), 1))


_ATTRIBUTES = ("coefficients", "intercepts", "post_transform")

ONNX_READERS = (
    OnnxReader("LinearRegressor", linear_regressor, attributes=(*_ATTRIBUTES, "targets"),
               domain=onnx_ml.ML),
    OnnxReader(
        "LinearClassifier",
        onnx_ml.with_named_labels(linear_classifier),
        attributes=(*_ATTRIBUTES, "classlabels_ints", "classlabels_strings", "multi_class"),
        outputs=2,
        domain=onnx_ml.ML,
    ),
)  # fmt: skip
