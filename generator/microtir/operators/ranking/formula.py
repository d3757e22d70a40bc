"""Compute operators that put values in order, by functions in TIR."""

from __future__ import annotations

from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.operators.ranking.definition import TopK
from microtir.tir.ir import PrimFunc
from microtir.tir.text import parse_function


def top_k(node: Node, name: str) -> PrimFunc:
    """Write TOPK_V2: each value moves up among the best of those before it, until one is above."""
    type_, count = node.inputs[0].type, node.attributes(TopK).count
    size, dtype = type_.shape[-1], type_.dtype.value
    rows = type_.elements // size
    values, best = f"values: {dtype}[{rows}, {count}]", f"best: int32[{count}]"
    return parse_function(f"""
func {name}(x: {dtype}[{rows}, {size}], {values}, places: int32[{rows}, {count}], {best}):
  scratch best
  for row in range(0, {rows}):
    for i in range(0, {size}):
      alloc place: int32[] local
      place[] = min(i, {count})
      for above in range(0, min(i, {count})):
        let j: int32 = min(i, {count}) - 1 - above
        if x[row, min(max(best[j], 0), {size - 1})] < x[row, i]:
          if j < {count - 1}:
            best[j + 1] = best[j]
          place[] = j
      let first: int32 = max(place[], 0)
      if first < {count}:
        best[first] = i
    for j in range(0, {count}):
      let source: int32 = min(max(best[j], 0), {size - 1})
      values[row, j] = x[row, source]
      places[row, j] = source
""")


def top_k_bytes(node: Node) -> int:
    """Return the bytes of workspace that a call takes."""
    return node.attributes(TopK).count * DType.INT32.bytes
