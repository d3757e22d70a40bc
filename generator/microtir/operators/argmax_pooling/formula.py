"""Compute pooling that keeps where the maxima are, by functions in TIR."""

from __future__ import annotations

import math

import numpy as np

from microtir.graph.ir import Node
from microtir.operators.argmax_pooling import definition as argmax_pooling
from microtir.operators.common import attributes, written_operands
from microtir.tir.ir import PrimFunc
from microtir.tir.text import parse_function

_CLAMPED = {
    attributes.Activation.NONE: "{}",
    attributes.Activation.RELU: "max({}, float32(0.0))",
    attributes.Activation.RELU6: "min(max({}, float32(0.0)), float32(6.0))",
    attributes.Activation.RELU_N1_TO_1: "min(max({}, float32(-1.0)), float32(1.0))",
}


def _shape(shape: tuple[int, ...]) -> str:
    return f"float32[{', '.join(map(str, shape))}]"


def max_pool_with_places(node: Node, name: str) -> PrimFunc:
    """Write MaxPoolingWithArgmax2D; parts of a window outside of the image are passed over."""
    op = node.attributes(argmax_pooling.MaxPoolWithPlaces)
    image, result = node.inputs[0].shape, node.outputs[0].shape
    has_places = len(node.outputs) == 2
    places = f", places: {_shape(result)}" if has_places else ""
    added = f"float32({float(np.float32(argmax_pooling.PLACE_ROUNDING))!r})"
    store = f"places[n, y, x, c] = cast(float32, place[]) + {added}"
    return parse_function(f"""
func {name}(image: {_shape(image)}, largest: {_shape(result)}{places}):
  for n in range(0, {result[0]}):
    for y in range(0, {result[1]}):
      for x in range(0, {result[2]}):
        for c in range(0, {result[3]}):
          alloc top: float32[] local
          alloc place: int32[] local
          top[] = -inf
          place[] = 0
          for ky in range(0, {op.window[0]}):
            for kx in range(0, {op.window[1]}):
              let row: int32 = y * {op.strides[0]} + ky - {op.padding.top}
              let column: int32 = x * {op.strides[1]} + kx - {op.padding.left}
              if row >= 0 and row < {image[1]} and column >= 0 and column < {image[2]}:
                if image[n, row, column, c] > top[]:
                  top[] = image[n, row, column, c]
                  place[] = ky * {op.window[1]} + kx
          largest[n, y, x, c] = {_CLAMPED[op.activation].format("top[]")}
          {store if has_places else "pass"}
""")


def max_unpool(node: Node, name: str) -> PrimFunc:
    """Write MaxUnpooling2D."""
    op = node.attributes(argmax_pooling.MaxUnpool)
    values, result, window = node.inputs[0].shape, node.output.shape, op.window
    above, left = argmax_pooling.unpool_before(node)
    taps = math.prod(window)
    n, h, w, c = values
    constants, given_names, (value, place) = written_operands.operands_text(
        node, ("values", "places")
    )
    return parse_function(f"""
{constants}
func {name}({", ".join(given_names)}, result: {_shape(result)}):
  for i in range(0, {n}):
    for y in range(0, {result[1]}):
      for x in range(0, {result[2]}):
        for k in range(0, {c}):
          result[i, y, x, k] = float32(0.0)
    for y in range(0, {h}):
      for x in range(0, {w}):
        for k in range(0, {c}):
          if {place}[i, y, x, k] >= float32(0.0) and {place}[i, y, x, k] < float32({taps}.0):
            let tap: int32 = cast(int32, {place}[i, y, x, k])
            let row: int32 = y * {op.strides[0]} - {above} + truncdiv(tap, {window[1]})
            let right: int32 = tap - truncdiv(tap, {window[1]}) * {window[1]}
            let column: int32 = x * {op.strides[1]} - {left} + right
            if row >= 0 and row < {result[1]} and column >= 0 and column < {result[2]}:
              result[i, row, column, k] = {value}[i, y, x, k]
""")
