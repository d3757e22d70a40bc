"""Compute operators that make features of spectra, by functions in TIR."""

from __future__ import annotations

import numpy as np

from microtir.graph.ir import Array, Node
from microtir.operators.common.written_function import written_function
from microtir.operators.filter_bank.definition import (
    LN_2,
    LOG_SEGMENTS,
    FilterBankLog,
    Pcan,
    SpectralSubtraction,
    bands,
    log_table,
)
from microtir.tir.ir import PrimFunc

_LOW = "cast(uint32, {} & uint64(4294967295))"
"""The lower half of 64 bits."""


def _data(node: Node, index: int) -> Array:
    data = node.inputs[index].data
    assert data is not None, "the rules ask for constants"
    return data


def filter_bank(node: Node, name: str) -> PrimFunc:
    """Write SignalFilterBank."""
    first, stop, weights = bands(node)
    shapes = [tensor.shape for tensor in node.inputs]
    last, channels = len(_data(node, 1)) - 1, len(first) - 1
    offsets = [w - f for f, w in zip(first, weights, strict=True)]
    tables: dict[str, Array] = {
        "first": np.array(first, np.uint16),
        "stop": np.array(stop, np.uint16),
        "offset": np.array(offsets, np.int32),
        "own": _data(node, 1).astype(np.uint16),
        "rest": _data(node, 2).astype(np.uint16),
    }
    lines = (
        "  alloc sum: uint64[] local",
        "  sum[] = uint64(0)",
        f"  for i in range(0, {channels + 1}):",
        "    alloc carried: uint64[] local",
        "    carried[] = uint64(0)",
        "    for f in range(cast(int32, first[i]), cast(int32, stop[i])):",
        "      let energy: uint64 = cast(uint64, x[f])",
        f"      let w: int32 = min(max(f + offset[i], 0), {last})",
        "      sum[] = sum[] + cast(uint64, own[w]) * energy",
        "      carried[] = carried[] + cast(uint64, rest[w]) * energy",
        "    if i >= 1:",
        "      y[i - 1] = sum[]",
        "    sum[] = carried[]",
    )
    names = ("x", "weights", "unweights", "starts", "weight_starts", "widths")
    operands = tuple(zip(names, shapes, strict=True))
    return written_function(node, name, operands, (("y", (channels,)),), lines, tables)


def _root(dtype: str, value: str, last: str, limit: int) -> list[str]:
    """Return lines that put the rounded root of a value in `root`.

    It is found pair by pair of bits, from the pair of number `last` down.
    """
    lines = (
        f"let last: int32 = {last}",
        f"alloc rest: {dtype}[] local",
        f"alloc found: {dtype}[] local",
        f"alloc bit: {dtype}[] local",
        f"rest[] = {value}",
        f"found[] = {dtype}(0)",
        f"bit[] = {dtype}(1) << cast({dtype}, last * 2)",
        "for step in range(0, last + 1):",
        f"  let trial: {dtype} = found[] + bit[]",
        "  if rest[] >= trial:",
        "    rest[] = rest[] - trial",
        f"    found[] = (found[] >> {dtype}(1)) + bit[]",
        "  else:",
        f"    found[] = found[] >> {dtype}(1)",
        f"  bit[] = bit[] >> {dtype}(2)",
        f"root[] = {'found[]' if dtype == 'uint32' else 'cast(uint32, found[])'}",
        f"if rest[] > found[] and found[] != {dtype}({limit}):",
        "  root[] = root[] + uint32(1)",
    )
    return ["      " + line for line in lines]


def square_root(node: Node, name: str) -> PrimFunc:
    """Write SignalFilterBankSquareRoot: in 32 bits where they are enough."""
    (size,) = node.inputs[0].shape
    pairs = (
        "max(31 - count_leading_zeros({}), 0) >> 1"  # of bits, below the highest one that is set
    )
    lines = (
        "  let shift: uint32 = cast(uint32, min(max(bits[], 0), 31))",
        f"  for i in range(0, {size}):",
        "    let high: uint32 = cast(uint32, x[i] >> uint64(32))",
        "    alloc root: uint32[] local",
        "    if high == uint32(0):",
        "      let low: uint32 = cast(uint32, x[i])",
        *_root("uint32", "low", pairs.format("low"), (1 << 16) - 1),
        "    else:",
        *_root("uint64", "x[i]", f"({pairs.format('high')}) + 16", (1 << 32) - 1),
        "    y[i] = root[] >> shift",
    )
    operands = (("x", (size,)), ("bits", ()))
    return written_function(node, name, operands, (("y", (size,)),), lines)


def spectral_subtraction(node: Node, name: str) -> PrimFunc:
    """Write SignalFilterBankSpectralSubtraction."""
    op, (size,) = node.attributes(SpectralSubtraction), node.inputs[0].shape

    def factor(even: int, odd: int) -> str:
        pair = f"uint64({even})", f"uint64({odd})"
        return pair[0] if even == odd else f"select(floormod(i, 2) == 0, {pair[0]}, {pair[1]})"

    own = factor(op.even.signal, op.odd.signal)
    past = factor(op.even.noise, op.odd.noise)
    bits = f"uint64({op.bits})"
    scaled = _LOW.format(f"(cast(uint64, signal) << uint64({op.more_bits}))")
    mixed = f"(cast(uint64, scaled) * {own} + cast(uint64, noise[i]) * {past} >> {bits})"
    least = _LOW.format(f"(cast(uint64, signal) * uint64({op.least}) >> {bits})")
    lines = (
        f"  for i in range(0, {size}):",
        "    let signal: uint32 = x[i]",
        f"    let scaled: uint32 = {scaled}",
        f"    let estimate: uint32 = {_LOW.format(mixed)}",
        "    let subtracted: uint32 = min(estimate, scaled)",
        f"    let least: uint32 = {least}",
        f"    y[i] = max(scaled - subtracted >> uint32({op.more_bits}), least)",
        f"    estimated[i] = {'subtracted' if op.clamps else 'estimate'}",
        f"    noise_next[i] = {'subtracted' if op.clamps else 'estimate'}",
    )
    shape = (size,)
    operands = (("x", shape), ("noise", shape))
    results = (("y", shape), ("estimated", shape), ("noise_next", shape))
    return written_function(node, name, operands, results, lines)


def pcan(node: Node, name: str) -> PrimFunc:
    """Write SignalPCAN."""
    op, (size,), (entries,) = node.attributes(Pcan), node.inputs[0].shape, node.inputs[2].shape
    moved = [
        f"level {way} cast(uint32, max({a} - {b}, 0))"
        for way, a, b in (("<<", "11", "interval"), (">>", "interval", "11"))
    ]
    product = f"(cast(uint64, x[i]) * cast(uint64, factor) >> uint64({op.shift}))"
    lines = (
        f"  for i in range(0, {size}):",
        "    let level: uint32 = noise[i]",
        "    alloc gain: int32[] local",
        "    if level <= uint32(2):",
        "      gain[] = cast(int32, table[cast(int32, min(level, uint32(2)))])",
        "    else:",
        "      let interval: int32 = 32 - count_leading_zeros(level)",
        "      let place: int32 = max(interval, 2) * 4 - 6",
        f"      let moved: uint32 = select(interval < 11, {', '.join(moved)})",
        "      let part: int32 = cast(int32, moved & uint32(1023))",
        "      let second: int32 = cast(int32, table[place + 2]) * part >> 5",
        "      let slope: int32 = second + cast(int32, table[place + 1]) * 32",
        "      gain[] = (slope * part + 16384 >> 15) + cast(int32, table[place])",
        "      gain[] = (gain[] + 32768 & 65535) - 32768",
        # A gain below 0 is one of 32 bits without a sign.
        "    let factor: uint32 = cast(uint32, cast(int64, gain[]) & int64(4294967295))",
        f"    let ratio: uint32 = {_LOW.format(product)}",
        "    if ratio < uint32(8192):",
        "      y[i] = ratio * ratio >> uint32(20)",
        "    else:",
        "      y[i] = (ratio >> uint32(6)) - uint32(64)",
    )
    operands = (("x", (size,)), ("noise", (size,)), ("table", (entries,)))
    return written_function(node, name, operands, (("y", (size,)),), lines)


def filter_bank_log(node: Node, name: str) -> PrimFunc:
    """Write SignalFilterBankLog."""
    op, (size,) = node.attributes(FilterBankLog), node.inputs[0].shape
    scaled = _LOW.format(f"(cast(uint64, x[i]) << uint64({op.shift}))")
    part = "cast(uint64, rest) << uint64(16) >> cast(uint64, max(top, 0))"
    half = "uint64(32768)"
    lines = (
        f"  for i in range(0, {size}):",
        f"    let scaled: uint32 = {scaled}",
        "    if scaled <= uint32(1):",
        "      y[i] = int16(0)",
        "    else:",
        "      let top: int32 = 31 - count_leading_zeros(scaled)",
        "      let rest: uint32 = scaled - (uint32(1) << cast(uint32, max(top, 0)))",
        f"      let part: int32 = cast(int32, {part})",
        f"      let segment: int32 = min(max(part >> 9, 0), {LOG_SEGMENTS - 1})",
        "      let low: int32 = cast(int32, logs[segment])",
        "      let high: int32 = cast(int32, logs[segment + 1])",
        "      let inside: int32 = (high - low) * (part - segment * 512) >> 16",
        "      let log_2: int32 = top * 65536 + part + low + inside",
        f"      let natural: uint64 = cast(uint64, log_2) * uint64({LN_2}) + {half} >> uint64(16)",
        f"      let result: uint32 = {_LOW.format(f'(natural * uint64({op.scale}) + {half})')}",
        "      y[i] = cast(int16, min(result >> uint32(16), uint32(32767)))",
    )
    operands, results = (("x", (size,)),), (("y", (size,)),)
    return written_function(node, name, operands, results, lines, {"logs": log_table()})
