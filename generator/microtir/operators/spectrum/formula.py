"""Compute operators between samples and spectra, by functions in TIR.

A transform copies numbers to where its first stage wants them, and goes on where they lie: in the
output.
"""

from __future__ import annotations

import math

from microtir.graph.ir import Array, Node
from microtir.operators.common.written_function import written_function
from microtir.operators.spectrum import definition as spectrum
from microtir.operators.spectrum.stage_text import Lines, Pair, StageText
from microtir.tir.ir import PrimFunc


def _in_order(out: Lines, count: int, source: str, target: str) -> None:
    """Copy numbers so that those which a stage combines lie side by side.

    `source` and `target` have `{at}` for a number and `{part}` for its part.
    """
    digits = spectrum.stages(count)
    depth = out.depth
    for number, (radix, _, _) in enumerate(digits):
        out.add(f"for d{number} in range(0, {radix}):")
        out.depth += 1
    at = " + ".join(f"d{n} * {stage.blocks}" for n, stage in enumerate(digits))
    to = " + ".join(f"d{n} * {stage.size}" for n, stage in enumerate(digits))
    for part in (0, 1):
        value = source.format(at=at, part=part)
        out.add(f"{target.format(at=to, part=part)} = {value}")
    out.depth = depth


def _all_stages(out: Lines, count: int, *, inverse: bool) -> None:
    """Write the loops of all stages, over the numbers y[row, 0] to y[row, count - 1]."""
    for number, stage in reversed(list(enumerate(spectrum.stages(count)))):
        block, turn = f"b{number}", f"k{number}"
        out.add(f"for {block} in range(0, {stage.blocks}):")
        out.depth += 1
        out.add(f"for {turn} in range(0, {stage.size}):")
        out.depth += 1
        first = f"{block} * {stage.radix * stage.size} + {turn}"
        place = f"y[row, {first} + {{group}} * {stage.size}, {{part}}]"
        StageText(out, stage, place, inverse, "factors", turn).write()
        out.depth -= 2


def _tables(node: Node, count: int, *, inverse: bool) -> dict[str, Array]:
    """Return the factors of a transform, and those of the step before or behind it."""
    dtype = node.inputs[0].dtype
    return {
        "factors": spectrum.twiddles(count, dtype, inverse=inverse),
        "halves": spectrum.half_twiddles(count, dtype, inverse=inverse),
    }


def _element(out: Lines, text: str, index: str) -> Pair:
    """Return the parts of a number, as values of the wide type."""
    return Pair(*(out.load(text.format(at=index, part=part)) for part in (0, 1)))


def _halves(out: Lines, source: str, count: int) -> tuple[Pair, Pair, Pair]:
    """Name a number and the conjugate of its mirror image: their sum, difference, and factor."""
    near = out.divided("near", _element(out, source, "k"), 2)
    far = _element(out, source, f"{count} - k")
    conjugate = Pair(far.re, out.load(out.wrapped(f"-{far.im}")))
    far = out.divided("far", conjugate, 2)
    total = out.sum("sum", near, "+", far)
    difference = out.sum("difference", near, "-", far)
    factor = out.pair("w", *(out.load(f"halves[k - 1, {part}]") for part in (0, 1)))
    return total, difference, factor


def rfft(node: Node, name: str) -> PrimFunc:
    """Write SignalRfft."""
    op, x = node.attributes(spectrum.Rfft), node.inputs[0]
    count, length = op.length // 2, x.shape[-1]
    rows = math.prod(x.shape[:-1])
    out = Lines(spectrum.numbers_of(x.dtype), 2)
    sample = "x[row, ({at}) * 2 + {part}]"
    if length < op.length:
        zero = "float32(0.0)" if x.dtype.is_float else f"{x.dtype.value}(0)"
        sample = f"select(({{at}}) * 2 + {{part}} < {length}, {sample}, {zero})"
    _in_order(out, count, sample, "y[row, {at}, {part}]")
    _all_stages(out, count, inverse=False)
    _separated(out, count)
    operands = (("x", (rows, length)),)
    results = (("y", (rows, count + 1, 2)),)
    lines = [f"  for row in range(0, {rows}):", *out.lines]
    return written_function(
        node, name, operands, results, lines, _tables(node, count, inverse=False)
    )


def _separated(out: Lines, count: int) -> None:
    """Write the step that makes the spectrum of the samples of that of pairs of them."""
    first = out.divided("first", _element(out, "y[row, {at}, {part}]", "0"), 2)
    zero = out.narrow("float32(0.0)" if out.is_float else out.literal(0))
    for place, sign in (("0", "+"), (str(count), "-")):
        out.add(f"y[row, {place}, 0] = {out.wrapped(f'{first.re} {sign} {first.im}')}")
        out.add(f"y[row, {place}, 1] = {zero}")
    out.add(f"for k in range(1, {count // 2 + 1}):")
    out.depth += 1
    total, difference, factor = _halves(out, "y[row, {at}, {part}]", count)
    turned = out.product("turned", difference, factor, wraps=True)
    for place, part, text in (
        ("k", 0, f"{total.re} + {turned.re}"),
        ("k", 1, f"{total.im} + {turned.im}"),
        (f"{count} - k", 0, f"{total.re} - {turned.re}"),
        (f"{count} - k", 1, f"{turned.im} - {total.im}"),
    ):
        # C adds numbers of 16 bits in `int`; a sum of int32 has wrapped when it is halved.
        is_short = out.numbers.dtype.bits == 16
        value = out.halved(text if is_short or out.is_float else out.load(out.wrapped(text)))
        out.add(f"y[row, {place}, {part}] = {out.narrow(value)}")
    out.depth -= 1


def irfft(node: Node, name: str) -> PrimFunc:
    """Write SignalIrfft."""
    op, x = node.attributes(spectrum.Irfft), node.inputs[0]
    count = op.length // 2
    rows = math.prod(x.shape[:-1])
    out = Lines(spectrum.numbers_of(x.dtype), 2)
    _joined(out, count)
    _in_order(out, count, "work[{at}, {part}]", "y[row, {at}, {part}]")
    _all_stages(out, count, inverse=True)
    if out.is_float:
        out.add(f"for i in range(0, {count}):")
        out.add("  for part in range(0, 2):")
        out.add(f"    y[row, i, part] = y[row, i, part] / float32({op.length}.0)")
    operands = (("x", (rows, count + 1, 2)),)
    results = (("y", (rows, count, 2)),)
    lines = [f"  for row in range(0, {rows}):", *out.lines]
    tables, scratch = _tables(node, count, inverse=True), ("work", x.dtype, (count, 2))
    return written_function(node, name, operands, results, lines, tables, scratch)


def _joined(out: Lines, count: int) -> None:
    """Write the step that makes the spectrum of pairs of samples of that of the samples."""
    first, last = (_element(out, "x[row, {at}, {part}]", at) for at in ("0", str(count)))
    sums = (f"{first.re} {sign} {last.re}" for sign in "+-")
    ends = out.pair("ends", *(out.load(out.wrapped(text)) for text in sums))
    for part, value in enumerate(out.divided("first", ends, 2)):
        out.add(f"work[0, {part}] = {out.narrow(value)}")
    out.add(f"for k in range(1, {count // 2 + 1}):")
    out.depth += 1
    even, difference, factor = _halves(out, "x[row, {at}, {part}]", count)
    odd = out.product("odd", difference, factor, wraps=True)
    out.store("work[k, {part}]", f"{even.re} + {odd.re}", f"{even.im} + {odd.im}")
    mirrored = f"work[{count} - k, {{part}}]"
    out.store(mirrored, f"{even.re} - {odd.re}", f"{odd.im} - {even.im}")
    out.depth -= 1


def irfft_bytes(node: Node) -> int:
    """Return the bytes of workspace that a call takes."""
    return node.attributes(spectrum.Irfft).length * node.inputs[0].dtype.bytes


def auto_scale(node: Node, name: str) -> PrimFunc:
    """Write SignalFftAutoScale: -32768 is its own absolute value, as in int16."""
    size = node.inputs[0].shape[0]
    lines = (
        "  alloc loudest: int32[] local",
        "  loudest[] = 0",
        f"  for i in range(0, {size}):",
        "    let value: int32 = cast(int32, x[i])",
        "    if value > loudest[]:",
        "      loudest[] = value",
        "    else:",
        "      if -value > loudest[]:",
        "        loudest[] = select(value == -32768, value, -value)",
        "  let zeros: int32 = count_leading_zeros(cast(uint32, max(loudest[], 0)))",
        "  let scale: int32 = select(loudest[] > 0, max(zeros, 17) - 17, 0)",
        "  bits[] = scale",
        "  let factor: int32 = 1 << scale",
        f"  for i in range(0, {size}):",
        "    y[i] = cast(int16, (cast(int32, x[i]) * factor + 32768 & 65535) - 32768)",
    )
    results = (("y", (size,)), ("bits", ()))
    return written_function(node, name, (("x", (size,)),), results, lines)


def energy(node: Node, name: str) -> PrimFunc:
    """Write SignalEnergy."""
    op, (size,) = node.attributes(spectrum.Energy), node.outputs[0].shape
    end = max(op.start, op.end)
    lines = []
    for low, high in ((0, op.start), (end, size)):
        if low < high:
            lines += [f"  for i in range({low}, {high}):", "    y[i] = uint32(0)"]
    if op.start < end:
        square = "cast(uint32, cast(int32, x[i, {0}]) * cast(int32, x[i, {0}]))"
        lines += [f"  for i in range({op.start}, {end}):"]
        lines += [f"    y[i] = {square.format(0)} + {square.format(1)}"]
    return written_function(node, name, (("x", (size, 2)),), (("y", (size,)),), lines)
