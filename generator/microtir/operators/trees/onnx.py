"""Read ensembles of trees of ai.onnx.ml."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from microtir.errors import ExportProblem, UnsupportedModelError
from microtir.graph.ir import Tensor
from microtir.operators.activations.definition import Logistic
from microtir.operators.common import onnx_arithmetic, onnx_ml, onnx_parts
from microtir.operators.common.onnx_operands import OnnxNode, OnnxReader
from microtir.operators.trees import onnx_doubles, onnx_positions
from microtir.operators.trees.forest import LEAF, Branch, Item, Leaf, Question
from microtir.operators.trees.onnx_scores import AGGREGATES, Forest, ensemble, of_count
from microtir.operators.unary.definition import Neg


def _numbers(
    node: OnnxNode, name: str, default: tuple[float, ...] | None = None
) -> tuple[float, ...]:
    """Return a list of numbers; doubles stand under a longer name."""
    if node.has(f"{name}_as_tensor"):
        return tuple(node.wide_tensor(f"{name}_as_tensor").reshape(-1).tolist())
    if default is not None and not node.has(name):
        return default
    return node.list_of_numbers(name)


def _modes(node: OnnxNode) -> tuple[str, ...]:
    value = node.attributes.get("nodes_modes", ())
    legal = ", ".join((LEAF, *(question.value for question in Question)))
    if not isinstance(value, tuple) or not value:
        raise node.malformed("the attribute 'nodes_modes' is not a list of texts", legal)
    modes = tuple(str(mode) for mode in value)
    known = {question.value for question in Question} | {LEAF}
    unknown = next((mode for mode in modes if mode not in known), None)
    if unknown is not None:
        raise node.malformed(f"a node of a tree has the mode {unknown!r}", legal)
    return modes


def _leaf_numbers(
    node: OnnxNode, prefix: str, targets: int, places: dict[tuple[int, int], int]
) -> dict[int, list[tuple[int, float]]]:
    """Return what leaves give, by the position of the leaf."""
    ids = node.list_of_integers(f"{prefix}_ids")
    trees = of_count(node, f"{prefix}_treeids",
                      node.list_of_integers(f"{prefix}_treeids"), len(ids))  # fmt: skip
    nodes = of_count(node, f"{prefix}_nodeids",
                      node.list_of_integers(f"{prefix}_nodeids"), len(ids))  # fmt: skip
    weights = of_count(node, f"{prefix}_weights", _numbers(node, f"{prefix}_weights"), len(ids))
    numbers: dict[int, list[tuple[int, float]]] = {}
    for target, tree, number, weight in zip(ids, trees, nodes, weights, strict=True):
        if (tree, number) not in places:
            raise node.malformed(f"tree {tree} has no node {number}, which '{prefix}_nodeids' has")
        if not 0 <= target < targets:
            raise node.malformed(f"target {target} of a leaf", f"0 to {targets - 1}")
        numbers.setdefault(places[tree, number], []).append((target, weight))
    return numbers


def _items(node: OnnxNode, prefix: str, targets: int, width: int) -> tuple[list[Item], list[int]]:
    """Return the nodes of all trees, and the roots: what comes first of each tree."""
    modes = _modes(node)
    count = len(modes)

    def integers(name: str, default: tuple[int, ...] | None = None) -> Sequence[int]:
        return of_count(node, name, node.list_of_integers(name, default), count)

    trees, numbers = integers("nodes_treeids"), integers("nodes_nodeids")
    features = integers("nodes_featureids")
    yes, no = integers("nodes_truenodeids"), integers("nodes_falsenodeids")
    missing = integers("nodes_missing_value_tracks_true", (0,) * count)
    values = np.array(_numbers(node, "nodes_values"), np.float32).tolist()
    thresholds = of_count(node, "nodes_values", values, count)
    places = {key: place for place, key in enumerate(zip(trees, numbers, strict=True))}
    if len(places) < count:
        raise node.malformed("two nodes of a tree have the same number", "each its own")
    leaves = _leaf_numbers(node, prefix, targets, places)
    inner = next((i for i in leaves if modes[i] != LEAF), None)
    if inner is not None:
        raise node.malformed(f"node {numbers[inner]} of tree {trees[inner]} has numbers", "leaves")
    items: list[Item] = []
    for i, mode in enumerate(modes):
        if mode == LEAF:
            items.append(Leaf(tuple(leaves.get(i, ()))))
            continue
        ends = [(trees[i], number) for number in (yes[i], no[i])]
        absent = next((number for tree, number in ends if (tree, number) not in places), None)
        if absent is not None:
            raise node.malformed(f"tree {trees[i]} has no node {absent}, which follows another")
        if not 0 <= features[i] < width:
            raise node.malformed(f"feature {features[i]} of a tree", f"0 to {width - 1}")
        items.append(
            Branch(features[i], thresholds[i], Question(mode), places[ends[0]], places[ends[1]],
                   bool(missing[i]))
        )  # fmt: skip
    roots = [i for i in range(count) if i == 0 or trees[i] != trees[i - 1]]
    if len({trees[i] for i in roots}) < len(roots):
        raise node.malformed("nodes of one tree are not consecutive", "tree by tree")
    return items, roots


def _scores(
    node: OnnxNode, prefix: str, targets: int, aggregate: str = "SUM", threshold: float = 0.0
) -> Tensor:
    """Emit the ensemble and what is added to it.

    Args:
        node: of the file.
        prefix: of the attributes that say what leaves give.
        targets: or classes.
        aggregate: what is made of the numbers of trees.
        threshold: above it the only score is that of the second class.
    """
    if aggregate not in AGGREGATES:
        legal = ", ".join(AGGREGATES)
        raise node.malformed(f"the attribute 'aggregate_function' is {aggregate!r}", legal)
    x = onnx_ml.rows_of(node)
    items, roots = _items(node, prefix, targets, x.shape[1])
    added = _numbers(node, "base_values", ())
    doubles = next((name for name in _SUMMED if prefix == "class" and node.has(name)), None)
    if doubles and not onnx_doubles.keeps_labels(items, len(roots), added, targets, threshold):
        raise _unlike_doubles(node, doubles)
    base = np.array(added, np.float32)
    needs_all = prefix == "class" and not base.size
    scores = ensemble(node, x, Forest(items, roots, targets), aggregate, needs_all=needs_all)
    if base.size not in (0, targets):
        raise node.malformed(f"{base.size} base values for {targets} targets", f"{targets}")
    return onnx_arithmetic.add(node, scores, node.constant(base)) if base.size else scores


def tree_ensemble_regressor(node: OnnxNode) -> Tensor:
    """Read TreeEnsembleRegressor."""
    targets = node.integer("n_targets", 1)
    if targets < 1:
        raise node.malformed(f"the attribute 'n_targets' is {targets}", "1 or more")
    scores = _scores(node, "target", targets, node.word("aggregate_function", "SUM"))
    return onnx_ml.transformed_targets(node, scores, onnx_ml.post_transform(node))


def tree_ensemble_classifier(node: OnnxNode) -> tuple[Tensor, Tensor]:
    """Read TreeEnsembleClassifier; numbers for the first class only speak of two."""
    labels, transform = (
        onnx_ml.class_labels(node, "classlabels_int64s"),
        onnx_ml.post_transform(node),
    )
    if len(labels) < 2:
        raise node.malformed(f"{len(labels)} labels", "2 or more")
    if len(labels) > 2:
        scores = _scores(node, "class", len(labels))
        return onnx_ml.best_label(node, scores, labels), onnx_ml.transformed(
            node, scores, transform
        )
    if set(node.list_of_integers("class_ids")) != {0}:
        raise node.unsupported(
            "its leaves have numbers for the second of two classes, for which ONNX and "
            "onnxruntime give different labels",
            "numbers only for the first class, which mean the second, as skl2onnx writes them",
            "export with skl2onnx, or with a third class without samples",
        )
    return _of_one_score(node, (labels[0], labels[1]), transform)


def _of_one_score(
    node: OnnxNode, labels: tuple[int, int], transform: onnx_ml.PostTransform
) -> tuple[Tensor, Tensor]:
    """Return the label and the scores of two classes, as onnxruntime has them.

    If no leaf has a number below 0 the only score is the probability of the second class, else it
    is above 0 for the second.
    """
    if transform is onnx_ml.PostTransform.PROBIT:
        raise node.unsupported(
            "it transforms the only score of two classes by PROBIT",
            "another transform, or a score for each class", "export with post_transform NONE",
        )  # fmt: skip
    is_share = min(_numbers(node, "class_weights"), default=0.0) >= 0
    threshold = 0.5 if is_share else 0.0
    score = _scores(node, "class", 1, threshold=threshold)
    label = onnx_ml.binary_label(node, score, threshold, labels)
    opposite = onnx_parts.joined(node, (node.emit(Neg(), score), score), 1)
    if transform is onnx_ml.PostTransform.LOGISTIC:
        return label, node.emit(Logistic(), opposite)
    return label, onnx_ml.both_classes(node, score) if is_share else opposite


_SUMMED = ("base_values_as_tensor", "class_weights_as_tensor")  # which labels follow from
_OF_DOUBLES = (
    *_SUMMED, "nodes_hitrates_as_tensor", "nodes_values_as_tensor", "target_weights_as_tensor",
)  # fmt: skip


def _unlike_doubles(node: OnnxNode, name: str) -> UnsupportedModelError:
    """Return the error for classes by sums of doubles of which float32 may take another one."""
    return node.unsupported(
        f"its attribute '{name}' holds doubles. Two of their sums may be equal, and differ in"
        " float32",
        "trees of float32; trees of doubles if there is one, if all leaves have the same number, "
        "or if float32 holds the sums",
        "convert with inputs of FloatTensorType",
        ExportProblem.TREES_OF_DOUBLES,
    )


_NODES = (
    "nodes_falsenodeids", "nodes_featureids", "nodes_hitrates", "nodes_missing_value_tracks_true",
    "nodes_modes", "nodes_nodeids", "nodes_treeids", "nodes_truenodeids", "nodes_values",
)  # fmt: skip


def _attributes(prefix: str) -> tuple[str, ...]:
    ends = tuple(f"{prefix}_{part}" for part in ("ids", "nodeids", "treeids", "weights"))
    return (*_NODES, *ends, *_OF_DOUBLES, "base_values", "post_transform")


ONNX_READERS = (
    OnnxReader(
        "TreeEnsembleRegressor",
        tree_ensemble_regressor,
        attributes=(*_attributes("target"), "aggregate_function", "n_targets"),
        domain=onnx_ml.ML,
    ),
    OnnxReader(
        "TreeEnsemble",
        onnx_positions.tree_ensemble,
        attributes=onnx_positions.ATTRIBUTES,
        domain=onnx_ml.ML,
        since=5,
    ),
    OnnxReader(
        "TreeEnsembleClassifier",
        onnx_ml.with_named_labels(tree_ensemble_classifier),
        attributes=(*_attributes("class"), "classlabels_int64s", "classlabels_strings"),
        outputs=2,
        domain=onnx_ml.ML,
    ),
)
