"""Compute operators that cut samples into frames and join frames, by functions in TIR.

What is remembered may be changed where it lies: each function reads an old value before it writes
the new one of its place or of one before it.
"""

from __future__ import annotations

from collections.abc import Sequence

from microtir.graph.ir import Node
from microtir.operators.common.written_function import written_function
from microtir.operators.framing import definition as framing
from microtir.tir.ir import PrimFunc

_CLAMPED = "cast(int16, min(max({}, -32768), 32767))"


def window(node: Node, name: str) -> PrimFunc:
    """Write SignalWindow."""
    (width,) = node.inputs[1].shape
    shape = (node.inputs[0].type.elements // width, width)
    shift = node.attributes(framing.Window).shift
    product = f"cast(int32, x[row, i]) * cast(int32, weights[i]) >> {shift}"
    lines = (
        f"  for row in range(0, {shape[0]}):",
        f"    for i in range(0, {width}):",
        f"      y[row, i] = {_CLAMPED.format(product)}",
    )
    return written_function(
        node, name, (("x", shape), ("weights", (width,))), (("y", shape),), lines
    )


def _moved(held: int, by: int, depth: int) -> list[str]:
    """Return lines that move `history` by some places, and put what is new of `x` behind it."""
    pad, remaining = "  " * depth, max(held - by, 0)
    lines = []
    if remaining:
        lines += [f"{pad}for i in range(0, {remaining}):"]
        lines += [f"{pad}  history_next[row, i] = history[row, i + {by}]"]
    lines += [f"{pad}for i in range({remaining}, {held}):"]
    return [*lines, f"{pad}  history_next[row, i] = x[row, i + {by - held}]"]


def framer(node: Node, name: str) -> PrimFunc:
    """Write SignalFramer: a frame has what is left of the history, and then of the samples."""
    op = node.attributes(framing.Framer)
    rows, frames, size, step, held, warm_up = framing.framer_extents(op, node.inputs[0].shape)
    operands: list[tuple[str, Sequence[int]]] = [("x", (rows, frames * step))]
    results: list[tuple[str, Sequence[int]]] = [("frames", (rows, frames, size)), ("valid", ())]
    copied = [f"{'history' if part else 'x'}[row, {{}}]" for part in (True, False)]
    pad = "        " if warm_up else "      "
    copy = [
        f"{pad}for i in range(0, {size}):",
        f"{pad}  frames[row, f, i] = x[row, f * {step} + i]",
    ]
    if held:
        operands.append(("history", (rows, held)))
        results.append(("history_next", (rows, held)))
        copy = [
            f"{pad}let kept: int32 = min(max({held} - f * {step}, 0), {size})",
            f"{pad}for i in range(0, kept):",
            f"{pad}  frames[row, f, i] = {copied[0].format(f'f * {step} + i')}",
            f"{pad}for i in range(kept, {size}):",
            f"{pad}  frames[row, f, i] = {copied[1].format(f'f * {step} + i - {held}')}",
        ]
    lines = ["  valid[] = true"]
    loops = [f"  for row in range(0, {rows}):", f"    for f in range(0, {frames}):"]
    if warm_up:
        operands.append(("seen", ()))
        results.append(("seen_next", ()))
        lines = [f"  valid[] = seen[] >= {warm_up}"]
        loops += [
            f"      if min(max(seen[], 0), {warm_up}) + f >= {warm_up}:",
            *copy,
            "      else:",
            f"        for i in range(0, {size}):",
            "          frames[row, f, i] = int16(0)",
        ]
    else:
        loops += copy
    lines += loops
    if held:
        lines += _moved(held, frames * step, 2)
    if warm_up:
        lines += [f"  seen_next[] = min(min(max(seen[], 0), {warm_up}) + {frames}, {warm_up})"]
    return written_function(node, name, operands, results, lines)


def stacker(node: Node, name: str) -> PrimFunc:
    """Write SignalStacker."""
    op = node.attributes(framing.Stacker)
    channels, held = framing.stacker_extents(op, node.inputs[0].shape)
    x, stack = ("x", (1, channels)), ("stack", (channels + held,))
    if not held:
        lines = ["  valid[] = true", f"  for i in range(0, {channels}):", "    stack[i] = x[0, i]"]
        return written_function(node, name, (x,), (stack, ("valid", ())), lines)
    earlier = f"select(due[] < 0, x[0, i], history[0, {{}} * {channels} + i])"
    frames = op.left + op.right
    lines = [
        # Below zero: no frame has come yet, and this one stands for those before it.
        "  let wait: int32 = select(due[] < 0, -1 - due[], due[])",
        "  valid[] = wait == 0",
        "  if wait == 0:",
        f"    for frame in range(0, {frames}):",
        f"      for i in range(0, {channels}):",
        f"        stack[frame * {channels} + i] = {earlier.format('frame')}",
        f"    for i in range(0, {channels}):",
        f"      stack[{held} + i] = x[0, i]",
        "  else:",
        f"    for i in range(0, {channels + held}):",
        "      stack[i] = int16(0)",
        f"  for frame in range(0, {frames - 1}):",
        f"    for i in range(0, {channels}):",
        f"      history_next[0, frame * {channels} + i] = {earlier.format('(frame + 1)')}",
        f"  for i in range(0, {channels}):",
        f"    history_next[0, {held - channels} + i] = x[0, i]",
        f"  due_next[] = select(wait == 0, {op.step - 1}, max(wait, 1) - 1)",
    ]
    operands = (x, ("history", (1, held)), ("due", ()))
    results = (stack, ("valid", ()), ("history_next", (1, held)), ("due_next", ()))
    return written_function(node, name, operands, results, lines)


def _added(is_float: bool, frame: str, place: str, source: str | None) -> str:
    """Return a value of a frame, added to the sum so far if there is one."""
    value = f"x[row, {frame}, {place}]"
    if is_float:
        return f"{f'{source}[row, {place}]' if source else 'float32(0.0)'} + {value}"
    if source is None:
        return value
    return _CLAMPED.format(f"cast(int32, {source}[row, {place}]) + cast(int32, {value})")


def _frame_added(node: Node, frame: str, source: str, depth: int) -> list[str]:
    """Return lines that add a frame to the sums in `source`, and put out complete ones."""
    op = node.attributes(framing.OverlapAdd)
    _, _, size, step, held = framing.overlap_extents(op, node.inputs[0].shape)
    is_float, pad = node.inputs[0].dtype.is_float, "  " * depth
    lines = []
    for low, high, sums in ((0, min(step, held), source), (min(step, held), step, None)):
        if low < high:
            lines += [f"{pad}for i in range({low}, {high}):"]
            lines += [f"{pad}  y[row, {frame}, i] = {_added(is_float, frame, 'i', sums)}"]
    for low, high, sums in ((step, max(held, step), source), (max(held, step), size, None)):
        if low < high:
            lines += [f"{pad}for i in range({low}, {high}):"]
            value = _added(is_float, frame, "i", sums)
            lines += [f"{pad}  sums_next[row, i - {step}] = {value}"]
    return lines


def overlap_add(node: Node, name: str) -> PrimFunc:
    """Write SignalOverlapAdd: the first frame is added to the old sums, others to the new ones."""
    op = node.attributes(framing.OverlapAdd)
    rows, frames, size, step, held = framing.overlap_extents(op, node.inputs[0].shape)
    operands: list[tuple[str, Sequence[int]]] = [("x", (rows, frames, size))]
    results: list[tuple[str, Sequence[int]]] = [("y", (rows, frames, step))]
    if held:
        operands.append(("sums", (rows, held)))
        results.append(("sums_next", (rows, held)))
    lines = [f"  for row in range(0, {rows}):", *_frame_added(node, "0", "sums", 2)]
    if frames > 1:
        lines += [f"    for f in range(1, {frames}):", *_frame_added(node, "f", "sums_next", 3)]
    return written_function(node, name, operands, results, lines)


def delay(node: Node, name: str) -> PrimFunc:
    """Write SignalDelay."""
    op = node.attributes(framing.Delay)
    rows, samples, held = framing.delay_extents(op, node.inputs[0].shape)
    shape, late = (rows, samples), min(held, samples)
    lines = [f"  for row in range(0, {rows}):"]
    if late:
        lines += [f"    for i in range(0, {late}):", "      y[row, i] = history[row, i]"]
    if late < samples:
        lines += [f"    for i in range({late}, {samples}):"]
        lines += [f"      y[row, i] = x[row, i - {held}]"]
    if not held:
        return written_function(node, name, (("x", shape),), (("y", shape),), lines)
    lines += _moved(held, samples, 2)
    operands = (("x", shape), ("history", (rows, held)))
    return written_function(
        node, name, operands, (("y", shape), ("history_next", (rows, held))), lines
    )
