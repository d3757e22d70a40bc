"""Checks decision trees as ONNX files hold them, and makes the tables of `TreeEnsemble` of them.

A file may ask of a feature x with threshold t whether x <= t, x < t, x >= t, x > t, x == t or
x != t.  All become x <= t: x < t asks with the next smaller float; the opposite of a question has
its branches exchanged, and where a feature is no number (which answers every question but x != t
with no) goes the other way round; x == t asks x <= t and then whether x is smaller.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from microtir.graph.ir import Array

LEAF = "LEAF"


class Question(Enum):
    """The comparison that a node makes with its feature; the value is ONNX's name."""

    AT_MOST = "BRANCH_LEQ"
    BELOW = "BRANCH_LT"
    AT_LEAST = "BRANCH_GTE"
    ABOVE = "BRANCH_GT"
    EQUAL = "BRANCH_EQ"
    NOT_EQUAL = "BRANCH_NEQ"


@dataclass(frozen=True, slots=True)
class Branch:
    """A node that asks: `yes` and `no` are what follows; `missing` is yes for what is no number."""

    feature: int
    threshold: float
    question: Question
    yes: int
    no: int
    missing: bool


@dataclass(frozen=True, slots=True)
class Leaf:
    """The end of a way: targets and the numbers for them, in the order of the file."""

    numbers: tuple[tuple[int, float], ...]


Item = Branch | Leaf
Malformed = Callable[[str, str], Exception]


@dataclass(frozen=True, slots=True)
class Tables:
    """The constant inputs of `TreeEnsemble`; `targets` and `tracks` are None where left out."""

    features: Array
    thresholds: Array
    following: Array
    roots: Array
    weights: Array
    targets: Array | None
    tracks: Array | None
    depth: int

    @property
    def inputs(self) -> tuple[Array, ...]:
        """Return them in order, in the narrowest type of index that they fit."""
        tensors = (self.features, self.thresholds, self.following, self.roots, self.weights)
        more = [] if self.targets is None else [self.targets]
        more += [] if self.tracks is None else [self.tracks]
        indices = [table for table in (*tensors, *more) if table.dtype != np.float32]
        largest = max(int(table.max(initial=0)) for table in indices)
        index = np.int16 if largest <= np.iinfo(np.int16).max else np.int32
        return tuple(t if t.dtype == np.float32 else t.astype(index) for t in (*tensors, *more))


class _Writer:
    """Fills the tables, node by node."""

    def __init__(self) -> None:
        self.features: list[int] = []
        self.thresholds: list[float] = []
        self.following: list[tuple[int, int]] = []
        self.tracks: list[bool] = []
        self.leaves: list[Leaf] = []

    def reserve(self) -> int:
        """Return a new node, a leaf until it is told otherwise."""
        self.features.append(-1)
        self.thresholds.append(0.0)
        self.following.append((0, 0))
        self.tracks.append(False)
        return len(self.features) - 1

    def leaf(self, at: int, leaf: Leaf) -> None:
        self.following[at] = (len(self.leaves), 0)
        self.leaves.append(leaf)

    def ask(self, at: int, branch: Branch, yes: int, no: int) -> None:
        """Write a node, and a second one where its question is two."""
        question, missing = branch.question, branch.missing
        if question in (Question.AT_LEAST, Question.ABOVE, Question.NOT_EQUAL):
            yes, no = no, yes
            # What is no number is different from the threshold, and neither above nor below it.
            missing = question is not Question.NOT_EQUAL and not missing
            question = _OPPOSITES[question]
        threshold = np.float32(branch.threshold)
        # Nothing is below minus infinity: nothing is at most what is no number.
        below = np.nextafter(threshold, np.float32(-np.inf))
        below = np.float32(np.nan) if below == threshold else below
        if question is Question.EQUAL:
            second = self.reserve()
            self._write(second, branch.feature, float(below), (no, yes), tracks=False)
            self._write(at, branch.feature, float(threshold), (second, no), tracks=missing)
            return
        limit = below if question is Question.BELOW else threshold
        self._write(at, branch.feature, float(limit), (yes, no), tracks=missing)

    def _write(
        self, at: int, feature: int, threshold: float, following: tuple[int, int], *, tracks: bool
    ) -> None:
        self.features[at], self.thresholds[at] = feature, threshold
        self.following[at], self.tracks[at] = following, tracks


_OPPOSITES = {
    Question.AT_LEAST: Question.BELOW,
    Question.ABOVE: Question.AT_MOST,
    Question.NOT_EQUAL: Question.EQUAL,
}


def tables_of(
    items: Sequence[Item], roots: Sequence[int], targets: int, malformed: Malformed
) -> Tables:
    """Return the tables of trees.

    Args:
        items: nodes of all trees; what follows one is a position in this list.
        roots: of the trees, in order.
        targets: how many there are.
        malformed: makes the error for a file that contradicts itself, of what is wrong and what
            would be legal.
    """
    writer = _Writer()
    depths: dict[int, int] = {}
    places: dict[int, int] = {}
    for root in roots:
        _check_tree(items, root, depths, malformed)
    for number in depths:
        places[number] = writer.reserve()
    for number, at in places.items():
        item = items[number]
        if isinstance(item, Leaf):
            writer.leaf(at, item)
        else:
            writer.ask(at, item, places[item.yes], places[item.no])
    weights, of = _leaf_tables(writer.leaves, targets)
    tracks = np.array(writer.tracks, np.int32)
    if tracks.any() and of is None:
        of = np.tile(np.arange(targets, dtype=np.int32), (len(weights), 1))
    return Tables(
        np.array(writer.features, np.int32),
        np.array(writer.thresholds, np.float32),
        np.array(writer.following, np.int32).reshape(-1, 2),
        np.array([places[root] for root in roots], np.int32),
        weights,
        of,
        tracks if tracks.any() else None,
        max([1, *(depths[root] for root in roots)]),
    )


def always_given(items: Sequence[Item], roots: Sequence[int]) -> set[int]:
    """Return the targets that have a number whatever the features: from each leaf of some tree.

    The trees are those that `tables_of` took.
    """
    outcomes: dict[int, set[int]] = {}
    for root in roots:
        stack = [root]
        while stack:
            item = items[stack[-1]]
            if isinstance(item, Leaf):
                outcomes[stack.pop()] = {target for target, _ in item.numbers}
            elif item.yes in outcomes and item.no in outcomes:
                outcomes[stack.pop()] = outcomes[item.yes] & outcomes[item.no]
            else:
                stack += [child for child in (item.yes, item.no) if child not in outcomes]
    return set().union(*(outcomes[root] for root in roots))


def _check_tree(
    items: Sequence[Item], root: int, depths: dict[int, int], malformed: Malformed
) -> None:
    """Find the depth of every node below a root: no node may come before itself."""
    open_: set[int] = set()
    stack = [root]
    while stack:
        number = stack[-1]
        item = items[number]
        if number in depths:
            stack.pop()
        elif isinstance(item, Leaf):
            depths[number] = 0
        elif number in open_:
            open_.discard(number)
            own = 2 if item.question in (Question.EQUAL, Question.NOT_EQUAL) else 1
            depths[number] = own + max(depths[item.yes], depths[item.no])
        else:
            open_.add(number)
            children = [child for child in (item.yes, item.no) if child not in depths]
            if any(child in open_ for child in children):
                raise malformed("a node of a tree comes after itself", "trees that end in leaves")
            stack += children


def _leaf_tables(leaves: Sequence[Leaf], targets: int) -> tuple[Array, Array | None]:
    """Return numbers, and the targets that they are for; None where all are for all in order."""
    widest = max((len(leaf.numbers) for leaf in leaves), default=0)
    weights = np.zeros((len(leaves), max(widest, 1)), np.float32)
    of = np.full(weights.shape, -1, np.int32)
    for number, leaf in enumerate(leaves):
        for place, (target, weight) in enumerate(leaf.numbers):
            weights[number, place], of[number, place] = weight, target
    is_dense = of.shape[1] == targets and bool((of == np.arange(targets)).all())
    return weights, None if is_dense else of
