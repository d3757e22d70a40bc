"""Compute ensembles of trees by functions in TIR."""

from __future__ import annotations

from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.operators.common.written_operands import operands_text
from microtir.operators.trees.definition import Aggregate, TreeEnsemble
from microtir.tir.ir import PrimFunc
from microtir.tir.text import parse_function

_TABLES = ("x", "features", "thresholds", "following", "roots", "weights", "targets", "tracks")
_START = {Aggregate.SUM: "float32(0.0)", Aggregate.MIN: "inf", Aggregate.MAX: "-inf"}
_JOINED = {
    Aggregate.SUM: "{0} + {1}",
    Aggregate.MIN: "min({0}, {1})",
    Aggregate.MAX: "max({0}, {1})",
}


def _gives_in_order(node: Node) -> bool:
    """Return whether every leaf has a number for each target, in order."""
    return len(node.inputs) <= _TABLES.index("targets")


def scratch_bytes(node: Node) -> int:
    """Return the bytes of the sums of a row, where it is data that says which is next."""
    return (
        0 if _gives_in_order(node) else node.attributes(TreeEnsemble).targets * DType.FLOAT32.bytes
    )


def _give(node: Node, leaf_numbers: int) -> str:
    """Return the lines that join the numbers of a leaf to those of the leaves before."""
    op = node.attributes(TreeEnsemble)
    joined, weight = _JOINED[op.aggregate], "weights[leaf, k]"
    if _gives_in_order(node):
        return f"""
      for k in range(0, {leaf_numbers}):
        y[row, k] = {joined.format("y[row, k]", weight)}"""
    return f"""
      for k in range(0, {leaf_numbers}):
        let target: int32 = cast(int32, targets[leaf, k])
        if target >= 0:
          let c: int32 = min(target, {op.targets - 1})
          sums[c] = {joined.format("sums[c]", weight)}"""


def _missing(node: Node) -> str:
    """Return the condition of a feature that is no number."""
    dtype = node.inputs[0].dtype
    return "value != value" if dtype.is_float else f"value == {dtype.value}({dtype.max})"


def tree_ensemble(node: Node, name: str) -> PrimFunc:
    """Write an ensemble: a step a level, which stays where it is at a leaf."""
    op = node.attributes(TreeEnsemble)
    count = len(node.inputs)
    constants, parameters, names = operands_text(node, _TABLES[:count])
    (rows, width), nodes = node.inputs[0].shape, node.inputs[1].shape[0]
    (trees,), (leaves, numbers) = node.inputs[4].shape, node.inputs[5].shape
    parameters.append(f"y: float32[{rows}, {op.targets}]")
    scratch, sums, end = "", "y[row, c]", ""
    if not _gives_in_order(node):
        parameters.append(f"sums: float32[{op.targets}]")
        scratch, sums = "scratch sums", "sums[c]"
        end = f"for c in range(0, {op.targets}):\n      y[row, c] = sums[c]"
    goes = "value <= thresholds[i]"
    if count == len(_TABLES):
        goes = f"{goes} or (cast(int32, tracks[i]) == 1 and {_missing(node)})"
    return parse_function(f"""
{constants}
func {name}({", ".join(parameters)}):
  {scratch}
  for row in range(0, {rows}):
    for c in range(0, {op.targets}):
      {sums} = {_START[op.aggregate]}
    for tree in range(0, {trees}):
      alloc place: int32[] local
      place[] = cast(int32, roots[tree])
      for level in range(0, {op.depth}):
        let i: int32 = min(max(place[], 0), {nodes - 1})
        let feature: int32 = cast(int32, features[i])
        if feature >= 0:
          let value: {node.inputs[0].dtype.value} = {names[0]}[row, min(feature, {width - 1})]
          place[] = cast(int32, following[i, select({goes}, 0, 1)])
      let end: int32 = min(max(place[], 0), {nodes - 1})
      let leaf: int32 = min(max(cast(int32, following[end, 0]), 0), {leaves - 1})
{_give(node, numbers)}
    {end}
""")


def cost(node: Node) -> int:
    """Return the instructions of all rows, from counts of emulated boards."""
    op = node.attributes(TreeEnsemble)
    rows, (trees,), numbers = node.inputs[0].shape[0], node.inputs[4].shape, node.inputs[5].shape[1]
    give = _GIVEN if _gives_in_order(node) else _GIVEN_OF_SOME
    return rows * trees * (op.depth * _LEVEL + _TREE + numbers * give)


_LEVEL, _TREE, _GIVEN, _GIVEN_OF_SOME = 18, 20, 8, 14
"""Instructions of a level, of a tree, and for each number of a leaf."""
