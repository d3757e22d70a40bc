"""Read TreeEnsemble of ai.onnx.ml 5, whose nodes and leaves are named by their positions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from microtir.graph.ir import Tensor
from microtir.operators.common.onnx_ml import PostTransform, rows_of, transformed_targets
from microtir.operators.common.onnx_operands import OnnxNode
from microtir.operators.trees.forest import Branch, Item, Leaf, Question
from microtir.operators.trees.onnx_scores import AGGREGATES, Forest, ensemble, of_count

ATTRIBUTES = (
    "aggregate_function", "leaf_targetids", "leaf_weights", "membership_values", "n_targets",
    "nodes_falseleafs", "nodes_falsenodeids", "nodes_featureids", "nodes_hitrates",
    "nodes_missing_value_tracks_true", "nodes_modes", "nodes_splits", "nodes_trueleafs",
    "nodes_truenodeids", "post_transform", "tree_roots",
)  # fmt: skip

_QUESTIONS = tuple(Question)  # by the numbers of the file
_IS_MEMBER = len(_QUESTIONS)
_TRANSFORMS = (
    PostTransform.NONE,
    PostTransform.SOFTMAX,
    PostTransform.LOGISTIC,
    PostTransform.SOFTMAX_ZERO,
    PostTransform.PROBIT,
)


def tree_ensemble(node: OnnxNode) -> Tensor:
    """Read TreeEnsemble."""
    transform = _TRANSFORMS[_below(node, "post_transform", 0, len(_TRANSFORMS))]
    names = tuple(AGGREGATES)
    aggregate = names[_below(node, "aggregate_function", 1, len(names))]
    targets, x = node.integer("n_targets", 1), rows_of(node)
    if targets < 1:
        raise node.malformed(f"the attribute 'n_targets' is {targets}", "1 or more")
    roots = node.list_of_integers("tree_roots")
    items = _items(node, targets, x.shape[1])
    absent = next((root for root in roots if not 0 <= root < len(_modes(node))), None)
    if absent is not None or not roots:
        raise node.malformed(f"the roots of trees are {roots}", f"0 to {len(_modes(node)) - 1}")
    scores = ensemble(node, x, Forest(items, roots, targets), aggregate)
    if targets > 1 and transform in (PostTransform.SOFTMAX, PostTransform.LOGISTIC):
        raise node.unsupported(
            f"it transforms several targets by {transform.value}, and ONNX and onnxruntime number "
            f"transforms differently",
            "NONE, SOFTMAX_ZERO or PROBIT",
            "export with post_transform 0, and add a layer for the transform",
        )
    return transformed_targets(node, scores, transform)


def _below(node: OnnxNode, name: str, default: int, count: int) -> int:
    """Return an attribute that is one of the first numbers."""
    value = node.integer(name, default)
    if not 0 <= value < count:
        raise node.malformed(f"the attribute '{name}' is {value}", f"0 to {count - 1}")
    return value


def _modes(node: OnnxNode) -> tuple[int, ...]:
    """Return what each node asks, as a number."""
    modes = tuple(int(mode) for mode in node.tensor("nodes_modes").reshape(-1))
    unknown = next((mode for mode in modes if not 0 <= mode <= _IS_MEMBER), None)
    if unknown is not None or not modes:
        raise node.malformed(f"a node of a tree has the mode {unknown}", f"0 to {_IS_MEMBER}")
    return modes


def _sets(node: OnnxNode, count: int) -> list[list[float]]:
    """Return the members that nodes ask for, in the order of these; each list ends in a NaN."""
    values = node.tensor("membership_values").reshape(-1).tolist() if count else []
    sets: list[list[float]] = [[]]
    for value in values:
        if np.isnan(value):
            sets.append([])
        else:
            sets[-1].append(value)
    if len(sets) != count + 1 or sets[-1]:
        raise node.malformed(
            f"'membership_values' has {len(sets) - 1} sets for {count} nodes",
            "one for each node of mode 6, followed by a NaN",
        )
    return sets


def _leaves(node: OnnxNode, targets: int) -> list[Item]:
    """Return the leaves, each of which has a number for one target."""
    ids = node.list_of_integers("leaf_targetids")
    weights = node.tensor("leaf_weights").reshape(-1).tolist()
    if len(weights) != len(ids):
        raise node.malformed(f"{len(weights)} numbers for {len(ids)} targets of leaves", "as many")
    absent = next((target for target in ids if not 0 <= target < targets), None)
    if absent is not None:
        raise node.malformed(f"target {absent} of a leaf", f"0 to {targets - 1}")
    return [Leaf(((target, w),)) for target, w in zip(ids, weights, strict=True)]


def _items(node: OnnxNode, targets: int, width: int) -> list[Item]:
    """Return the nodes in their order, then the leaves, then what asks for further members."""
    modes, leaves = _modes(node), _leaves(node, targets)
    count = len(modes)

    def integers(name: str, default: tuple[int, ...] | None = None) -> Sequence[int]:
        return of_count(node, name, node.list_of_integers(name, default), count)

    features = integers("nodes_featureids")
    outside = next((feature for feature in features if not 0 <= feature < width), None)
    if outside is not None:
        raise node.malformed(f"feature {outside} of a tree", f"0 to {width - 1}")
    ends = [
        [
            _place(node, number, count, len(leaves), is_leaf=bool(flag))
            for number, flag in zip(
                integers(f"nodes_{way}nodeids"), integers(f"nodes_{way}leafs"), strict=True
            )
        ]
        for way in ("true", "false")
    ]
    missing = integers("nodes_missing_value_tracks_true", (0,) * count)
    splits = of_count(node, "nodes_splits", node.tensor("nodes_splits").reshape(-1).tolist(),
                       count)  # fmt: skip
    sets = iter(_sets(node, modes.count(_IS_MEMBER)))
    nodes: list[Item] = []
    more: list[Item] = []
    for i, (mode, yes, no) in enumerate(zip(modes, *ends, strict=True)):
        tracks = bool(missing[i])
        if mode != _IS_MEMBER:
            nodes.append(Branch(features[i], splits[i], _QUESTIONS[mode], yes, no, tracks))
            continue
        # Nothing is equal to what is no number, the only member of an empty set.
        first, *others = next(sets) or [float("nan")]
        for member in others:
            more.append(Branch(features[i], member, Question.EQUAL, yes, no, tracks))
            no = count + len(leaves) + len(more) - 1
        nodes.append(Branch(features[i], first, Question.EQUAL, yes, no, tracks))
    return [*nodes, *leaves, *more]


def _place(node: OnnxNode, number: int, nodes: int, leaves: int, *, is_leaf: bool) -> int:
    """Return the position of what follows a node among nodes and leaves."""
    what, count = ("leaf", leaves) if is_leaf else ("node", nodes)
    if not 0 <= number < count:
        raise node.malformed(f"there is no {what} {number}, which follows another", f"{count}")
    return nodes + number if is_leaf else number
