"""Decision trees as code: a branch for each node, and nothing to load but features.

The tables of an ensemble become conditions with constants in them.  What a tree gives is the place
of its leaf's numbers in a table; sums are made of all of them in the end.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from microtir import te
from microtir.dtype import DType
from microtir.graph.ir import Array, Node
from microtir.kernels.common.kernel import Kernel
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.micro_kernel import all_of, call
from microtir.kernels.common.statements import at, each, load, seq, store, when
from microtir.operators.trees.definition import Aggregate, TreeEnsemble, questions, usual_depth
from microtir.plan.ir import Calls, Refusal
from microtir.schedule import KernelDescription
from microtir.tir import function, ir

_MOST_NODES = 4096
_MOST_SUMS = 16  # on the stack
_MOST_DEPTH = 30  # conditions within each other, all on the stack of a compiler


@dataclass(frozen=True, slots=True)
class _Trees:
    """The tables of an ensemble; see `TreeEnsemble`."""

    op: TreeEnsemble
    rows: int
    features: Array
    thresholds: Array
    following: Array
    roots: Array
    weights: Array
    targets: Array | None
    tracks: Array | None

    @staticmethod
    def of(node: Node) -> _Trees:
        arrays = [tensor.data for tensor in node.inputs[1:]]
        features, thresholds, following, roots, weights = (a for a in arrays[:5] if a is not None)
        targets, tracks = (*arrays[5:], None, None)[:2]
        return _Trees(
            node.attributes(TreeEnsemble), node.inputs[0].shape[0],
            features, thresholds, following, roots, weights, targets, tracks,
        )  # fmt: skip


_QUESTION, _QUESTION_OF_FLOATS, _TREE, _NUMBER = 4, 6, 17, 7
"""Instructions of a condition, of a tree besides, and for each number of a leaf."""


_QUESTION_CODE, _QUESTION_OF_FLOATS_CODE, _LEAF_CODE, _TREE_CODE, _LESS_CODE = 11, 20, 4, 10, 80
"""Bytes of code of a condition, a leaf and a tree, and of the loop less what adds numbers up."""


class Branches(Kernel):
    """Decision trees as conditions: fewer instructions than tables, and a size of its own."""

    name = "branches"
    operators = (TreeEnsemble,)

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it: a constant without a literal in C, or too much of it."""
        trees = _Trees.of(node)
        has_sums = trees.targets is not None
        is_large = len(trees.features) > _MOST_NODES or trees.op.depth > _MOST_DEPTH
        if is_large or (has_sums and trees.op.targets > _MOST_SUMS):
            return Refusal.SIZES
        return None if np.isfinite(trees.thresholds).all() else Refusal.FORM

    def instructions(self, node: Node, _calls: Calls) -> int:
        """Return the instructions of all rows, from counts of emulated boards."""
        trees = _Trees.of(node)
        is_float = node.inputs[0].dtype.is_float
        way = max(1, int(usual_depth(trees.op))) * (_QUESTION_OF_FLOATS if is_float else _QUESTION)
        numbers: int = trees.weights.shape[1]
        return trees.rows * len(trees.roots) * (way + _TREE + numbers * _NUMBER)

    def scratch_bytes(self, node: Node, _calls: Calls) -> int:
        """Return the bytes of the places of the leaves of a row."""
        return node.inputs[4].type.elements * DType.INT16.bytes

    def code_bytes(self, node: Node) -> int:
        """Return the bytes of code beyond those of the loop that walks tables."""
        trees = _Trees.of(node)
        question = _QUESTION_OF_FLOATS_CODE if node.inputs[0].dtype.is_float else _QUESTION_CODE
        count = questions(node)
        conditions = count * question + (len(trees.features) - count) * _LEAF_CODE
        return max(0, conditions + len(trees.roots) * _TREE_CODE - _LESS_CODE)

    def weight_bytes(self, node: Node) -> int:
        """Return the bytes of the tables that are left."""
        return sum(tensor.type.bytes for tensor in node.inputs[5:7])

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Emit an ensemble: for each row the leaves of all trees, then what these give."""
        trees = _Trees.of(layer.node)
        x = layer.whole(0).buffer
        y = layer.output_buffer()
        leaves = ir.Buffer("leaves", (len(trees.roots),), DType.INT16)
        sums = ir.Buffer("sums", (trees.op.targets,), DType.FLOAT32, ir.Scope.LOCAL)
        give = _Giving(trees, leaves, y, None if trees.targets is None else sums)

        kernels = [_walk(trees, x, f"{name}_{tree}", tree) for tree in range(len(trees.roots))]

        def one(row: te.Expr) -> ir.Stmt:
            walked = [call(k, at(x, row, 0), at(leaves, tree)) for tree, k in enumerate(kernels)]
            return seq(*walked, give.all(row))

        body = each("row", trees.rows, one)
        return layer.function(name, leaves, body if give.is_direct else ir.Allocate(sums, body))


def _walk(trees: _Trees, x: ir.Buffer, name: str, tree: int) -> KernelDescription:
    """Return the conditions of a tree as a micro-kernel, which is given features and a place.

    It is no part of the layer in C: compilers follow what one tree has asked into the next, and
    print that for each answer.
    """
    features = ir.Buffer("x", x.shape[1:], x.dtype)
    leaf = ir.Buffer("leaf", (1,), DType.INT16)

    def below(node: int) -> ir.Stmt:
        number, first = int(trees.features[node]), int(trees.following[node, 0])
        if number < 0:
            return store(leaf, (0,), first)
        value = load(features, number)
        goes = value <= te.as_expr(trees.thresholds[node].item(), value.dtype)
        if trees.tracks is not None and trees.tracks[node]:
            goes = goes | (value != value if value.dtype.is_float else value == value.dtype.max)
        return when(goes, below(first), below(int(trees.following[node, 1])))

    kernel = function.MicroKernel((f"Tree {tree}: the place of the leaf",), noinline=True)
    body = below(int(trees.roots[tree]))
    meaning = ir.PrimFunc(name, (features, leaf), body, kernel=kernel)
    reads, writes = (all_of(features),), (all_of(leaf),)
    return KernelDescription(meaning, ir.KernelContract(reads, writes))


class _Giving:
    """Writes what trees give for a row, into the output or, where `sums` are given, beside it."""

    def __init__(
        self, trees: _Trees, leaves: ir.Buffer, y: ir.Buffer, sums: ir.Buffer | None
    ) -> None:
        self._trees, self._leaves, self._y, self._sums = trees, leaves, y, sums
        self._weights = te.constant(trees.weights, "weights")
        self._targets = None if trees.targets is None else te.constant(trees.targets, "targets")

    @property
    def is_direct(self) -> bool:
        return self._sums is None

    def all(self, row: te.Expr) -> ir.Stmt:
        """Return what joins the numbers of the leaves, in the order of the trees."""
        op, sums = self._trees.op, self._sums

        def begun(target: te.Expr) -> ir.Stmt:
            start = te.as_expr(_START[op.aggregate], DType.FLOAT32)
            return store(*self._sum(row, target), start)

        def ended(target: te.Expr) -> ir.Stmt:
            return seq() if sums is None else store(self._y, (row, target), load(sums, target))

        return seq(
            each("target", op.targets, begun),
            each("tree", len(self._trees.roots), lambda tree: self._add_leaf(row, tree)),
            seq() if sums is None else each("target", op.targets, ended),
        )

    def _sum(self, row: te.Expr, target: te.Expr) -> tuple[ir.Buffer, tuple[te.Expr, ...]]:
        return (self._y, (row, target)) if self._sums is None else (self._sums, (target,))

    def _add_leaf(self, row: te.Expr, tree: te.Expr) -> ir.Stmt:
        count, numbers = self._trees.weights.shape
        leaf = te.cast(DType.INT32, load(self._leaves, tree))
        place = te.minimum(te.maximum(leaf, 0), count - 1)

        def one(k: te.Expr) -> ir.Stmt:
            weight = self._weights[place, k]
            if self._targets is None:
                return self._joined(row, k, weight)
            target = te.cast(DType.INT32, self._targets[place, k])
            known = te.minimum(te.maximum(target, 0), self._trees.op.targets - 1)
            return when(target >= 0, self._joined(row, known, weight))

        return each("k", numbers, one)

    def _joined(self, row: te.Expr, target: te.Expr, number: te.Expr) -> ir.Stmt:
        buffer, place = self._sum(row, target)
        before = load(buffer, *place)
        return store(buffer, place, _JOINED[self._trees.op.aggregate](before, number))


_START = {Aggregate.SUM: 0.0, Aggregate.MIN: float("inf"), Aggregate.MAX: float("-inf")}
_JOINED: Mapping[Aggregate, Callable[[te.Expr, te.Expr], te.Expr]] = {
    Aggregate.SUM: operator.add,
    Aggregate.MIN: te.minimum,
    Aggregate.MAX: te.maximum,
}
