"""Compute what support vector machines need besides products and sums."""

from __future__ import annotations

import numpy as np

from microtir import te
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.operators.common import formula as common_formula
from microtir.operators.common.written_function import written_function
from microtir.operators.support_vectors import definition as support_vectors
from microtir.tir.ir import PrimFunc


def squared_distances(layer: common_formula.FormulaContext) -> None:
    """Emit the sum of squared differences of each two rows."""
    x, vectors = layer.whole(0), layer.whole(1)
    features = layer.node.inputs[0].shape[1]

    def element(row: te.Expr, vector: te.Expr) -> te.Expr:
        k = te.reduce_axis(0, features, "k")
        difference = te.bind("difference", x[row, k] - vectors[vector, k])
        return te.sum(difference * difference, k, 0.0)

    layer.tensor(element)


def pairwise_coupling(node: Node, name: str) -> PrimFunc:
    """Write the turns over one row after another; a turn that comes after the last does nothing.

    Behind the matrix `q` lie its product with the probabilities, and these.
    """
    op, rows = node.attributes(support_vectors.PairwiseCoupling), node.output.shape[0]
    classes, pairs = op.classes, node.inputs[0].shape[1]
    numbers = {
        "k": classes,
        "p": classes + 1,
        "pairs": pairs,
        "share": repr(float(np.float32(1 / classes))),
        "enough": repr(float(np.float32(support_vectors.TOLERANCE / classes))),
    }
    body = (_PREPARED + _TURNS).format(turns=support_vectors.MOST_TURNS, **numbers)
    lines = [f"  for row in range(0, {rows}):"]
    lines += [f"    {line}" for line in body.splitlines() if line]
    shape = (classes + 2, classes)
    return written_function(
        node, name, [("pairs", (rows, pairs))], [("y", (rows, classes))], lines,
        scratch=("q", DType.FLOAT32, shape),
    )  # fmt: skip


_PREPARED = """
for t in range(0, {k}):
  q[{p}, t] = float32({share})
  q[t, t] = float32(0.0)
alloc pair: int32[] local
pair[] = 0
for i in range(0, {k} - 1):
  for j in range(i + 1, {k}):
    let first: float32 = pairs[row, min(max(pair[], 0), {pairs} - 1)]
    let second: float32 = float32(1.0) - first
    q[i, i] = q[i, i] + second * second
    q[j, j] = q[j, j] + first * first
    q[i, j] = float32(0.0) - first * second
    q[j, i] = q[i, j]
    pair[] = pair[] + 1
"""

_TURNS = """
alloc going: int32[] local
alloc value: float32[] local
alloc error: float32[] local
going[] = 1
value[] = float32(0.0)
for turn in range(0, {turns}):
  if going[] == 1:
    value[] = float32(0.0)
    for t in range(0, {k}):
      q[{k}, t] = float32(0.0)
      for j in range(0, {k}):
        q[{k}, t] = q[{k}, t] + q[t, j] * q[{p}, j]
      value[] = value[] + q[{p}, t] * q[{k}, t]
    error[] = float32(0.0)
    for t in range(0, {k}):
      error[] = max(error[], abs(q[{k}, t] - value[]))
    if error[] < float32({enough}):
      going[] = 0
  if going[] == 1:
    for t in range(0, {k}):
      let step: float32 = (value[] - q[{k}, t]) / q[t, t]
      let scale: float32 = step + float32(1.0)
      let gain: float32 = step * q[t, t] + float32(2.0) * q[{k}, t]
      value[] = (value[] + step * gain) / scale / scale
      q[{p}, t] = q[{p}, t] + step
      for j in range(0, {k}):
        q[{k}, j] = (q[{k}, j] + step * q[t, j]) / scale
        q[{p}, j] = q[{p}, j] / scale
for t in range(0, {k}):
  y[row, t] = q[{p}, t]
"""


def scratch_bytes(node: Node) -> int:
    """Return the bytes of workspace that a call takes."""
    classes = node.output.shape[1]
    return (classes + 2) * classes * DType.FLOAT32.bytes
