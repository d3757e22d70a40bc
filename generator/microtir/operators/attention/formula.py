"""Compute attention over a cache and rotary positions by functions in TIR."""

from __future__ import annotations

import math

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.operators.attention import definition as attention
from microtir.operators.common.written_function import written_function
from microtir.tir.ir import PrimFunc

_AT_ONCE = 16
"""Elements of a head that a turn of the loops over keys and values takes.

As many floats fit in the registers of an FPU beside what else a turn needs.  A query of no more is
loaded once for all keys.
"""

_LEAST = -1
"""The place of the last token of an empty cache."""


def rotary_positions(node: Node, name: str) -> PrimFunc:
    """Write the turns of all pairs of a row; behind them elements stay as they are."""
    op = node.attributes(attention.RotaryPositions)
    rows, heads, elements, angles, places = attention.rotary_extents(node)
    first, second = ("i * 2", "i * 2 + 1") if op.interleaved else ("i", f"i + {angles}")
    lines = [
        f"  for row in range(0, {rows}):",
        f"    let place: int32 = min(max(positions[row], 0), {places - 1})",
        f"    for h in range(0, {heads}):",
        f"      for i in range(0, {angles}):",
        f"        let a: float32 = x[row, h, {first}]",
        f"        let b: float32 = x[row, h, {second}]",
        f"        y[row, h, {first}] = a * cosines[place, i] - b * sines[place, i]",
        f"        y[row, h, {second}] = a * sines[place, i] + b * cosines[place, i]",
    ]
    if elements > 2 * angles:
        lines += [
            f"      for i in range({2 * angles}, {elements}):",
            "        y[row, h, i] = x[row, h, i]",
        ]
    shape = (rows, heads, elements)
    tables = [(table, (places, angles)) for table in ("cosines", "sines")]
    operands = [("x", shape), *tables, ("positions", (rows,))]
    return written_function(node, name, operands, [("y", shape)], lines)


def cached_attention(node: Node, name: str) -> PrimFunc:
    """Write a softmax of products with the keys that a token sees, and the sum of their values."""
    tokens, heads, groups, length, depth, width = attention.attention_extents(node)
    # Of several tokens the first is at the beginning of the cache at least.
    place = f"min(max(end - {tokens - 1}, 0) + token, {length - 1})" if tokens > 1 else "end"
    lines = [
        f"  let end: int32 = min(max(last[0], {_LEAST}), {length - 1})",
        f"  for token in range(0, {tokens}):",
        f"    let place: int32 = {place}",
        *_seen(node),
        f"    for h in range(0, {heads}):",
        f"      let group: int32 = floordiv(h, {heads // groups})",
        *_weights(node),
        *_sums(node),
    ]
    operands = [
        ("queries", (tokens, heads, depth)),
        ("keys", (groups, length, depth)),
        ("values", (groups, length, width)),
        ("last", (1,)),
        *((f"{name}_scales", (groups, length)) for name in ("key", "value") if _is_rounded(node)),
    ]
    return written_function(
        node, name, operands, [("y", (tokens, heads, width))], lines,
        scratch=("scores", DType.FLOAT32, (length,)),
    )  # fmt: skip


def _is_rounded(node: Node) -> bool:
    """Return whether keys and values are integers that have scales."""
    return node.inputs[1].dtype is DType.INT8


def _sums(node: Node) -> list[str]:
    """Return the lines that weigh values, a few columns at once: each weight is loaded for all."""
    width = attention.attention_extents(node).width
    at_once = math.gcd(width, _AT_ONCE)
    columns = [(f"sum{n}", f"i * {at_once} + {n}") for n in range(at_once)]
    lines = [f"      for i in range(0, {width // at_once}):"]
    for name, _ in columns:
        lines += [f"        alloc {name}: float32[] local", f"        {name}[] = float32(0.0)"]
    lines.append("        for t in range(first, stop):")
    weight, value = "scores[t]", "values[group, t, {}]"
    if _is_rounded(node):
        lines.append("          let weight: float32 = scores[t] * value_scales[group, t]")
        weight, value = "weight", f"cast(float32, {value})"
    return [
        *lines,
        *(f"          {n}[] = {n}[] + {weight} * {value.format(place)}" for n, place in columns),
        *(f"        y[token, h, {place}] = {name}[] * share" for name, place in columns),
    ]


def _seen(node: Node) -> list[str]:
    """Return the lines that say what a token sees."""
    op = node.attributes(attention.CachedAttention)
    first = f"max(place - {op.window - 1}, 0)" if op.window else "0"
    stop = "place + 1" if op.is_causal else "end + 1"
    return [f"    let first: int32 = {first}", f"    let stop: int32 = {stop}"]


def _weights(node: Node) -> list[str]:
    """Return the lines that compute the weights of a head, which `share` makes a sum of 1."""
    op, depth = node.attributes(attention.CachedAttention), attention.attention_extents(node).depth
    unrolled = math.gcd(depth, _AT_ONCE)
    score, key = f"dot[] * {_number(op.scale)}", "keys[group, t, {}]"
    if _is_rounded(node):
        score, key = f"{score} * key_scales[group, t]", f"cast(float32, {key})"
    if op.softcap:
        score = f"tanh({score} / {_number(op.softcap)}) * {_number(op.softcap)}"
    query = [f"queries[token, h, i * {unrolled} + {n}]" for n in range(unrolled)]
    hoisted = []
    if depth == unrolled:
        hoisted = [f"      let q{n}: float32 = queries[token, h, {n}]" for n in range(depth)]
        query = [f"q{n}" for n in range(depth)]
    return [
        *hoisted,
        "      alloc top: float32[] local",
        "      top[] = -inf",
        "      for t in range(first, stop):",
        "        alloc dot: float32[] local",
        "        dot[] = float32(0.0)",
        f"        for i in range(0, {depth // unrolled}):",
        *(
            f"          dot[] = dot[] + {query[n]} * {key.format(f'i * {unrolled} + {n}')}"
            for n in range(unrolled)
        ),
        f"        scores[t] = {score}",
        "        top[] = max(top[], scores[t])",
        "      alloc total: float32[] local",
        "      total[] = float32(0.0)",
        "      for t in range(first, stop):",
        "        scores[t] = exp(scores[t] - top[])",
        "        total[] = total[] + scores[t]",
        # The largest of them is 1, if there is one: what sees nothing is 0.
        "      let share: float32 = float32(1.0) / max(total[], float32(1.0))",
    ]


def _number(value: float) -> str:
    return f"float32({float(np.float32(value))!r})"


def attention_cost(node: Node) -> int:
    """Return the instructions with a full cache, as measured on a Cortex-M4 with an FPU."""
    tokens, heads, _, length, depth, width = attention.attention_extents(node)
    turns = depth // math.gcd(depth, _AT_ONCE)
    loops = depth + 9 * turns + 8 if turns > 1 else 0
    of_place = (4 if _is_rounded(node) else 2) * (depth + width) + 49 + loops
    return tokens * heads * (length * of_place + 5 * width // 2 + 60)


def scratch_bytes(node: Node) -> int:
    """Return the bytes of workspace that a call takes."""
    return attention.attention_extents(node).length * DType.FLOAT32.bytes
