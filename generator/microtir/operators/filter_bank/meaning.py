"""Define in numpy what operators compute that make features of spectra."""

from __future__ import annotations

import math

import numpy as np

from microtir.graph.ir import Array, Node
from microtir.operators.filter_bank import definition

_MASK = (1 << 32) - 1


def filter_bank(_op: definition.FilterBank, node: Node, x: Array, *tables: Array) -> Array:
    """Compute SignalFilterBank: the first band gives nothing but its rest."""
    energies = x.astype(np.uint64)
    weights, rests = (table.astype(np.uint64) for table in tables[:2])
    channels, carried = [], np.uint64(0)
    for first, stop, at in zip(*definition.bands(node), strict=True):
        chosen, own = energies[first:stop], slice(at, at + stop - first)
        channels.append(carried + (chosen * weights[own]).sum(dtype=np.uint64))
        carried = (chosen * rests[own]).sum(dtype=np.uint64)
    return np.array(channels[1:], np.uint64)


def _root(value: int) -> int:
    """Return a rounded root; the largest one of its width stays."""
    root, limit = math.isqrt(value), (1 << 16) - 1 if value <= _MASK else _MASK
    return root + (value - root * root > root and root != limit)


def square_root(_op: definition.SquareRoot, _node: Node, x: Array, bits: Array) -> Array:
    """Compute SignalFilterBankSquareRoot."""
    shift = min(max(int(bits), 0), 31)
    return np.array([_root(int(value)) >> shift for value in x], np.uint32)


def spectral_subtraction(
    op: definition.SpectralSubtraction, _node: Node, x: Array, noise: Array
) -> tuple[Array, ...]:
    """Compute SignalFilterBankSpectralSubtraction, in integers that do not end."""
    results, estimates = [], []
    for number, (signal, before) in enumerate(zip(map(int, x), map(int, noise), strict=True)):
        own = op.odd if number % 2 else op.even
        scaled = signal << op.more_bits & _MASK
        estimate = (scaled * own.signal + before * own.noise >> op.bits) & _MASK
        subtracted = min(estimate, scaled)
        least = (signal * op.least >> op.bits) & _MASK
        results.append(max(scaled - subtracted >> op.more_bits, least))
        estimates.append(subtracted if op.clamps else estimate)
    after = np.array(estimates, np.uint32)
    return np.array(results, np.uint32), after, after


def _gain(noise: int, table: list[int]) -> int:
    """Return the gain for a noise, in int16 as tflite-micro computes it."""
    if noise <= 2:
        return table[noise]
    interval = noise.bit_length()
    base, first, second = table[4 * interval - 6 : 4 * interval - 3]
    shifted = noise << 11 - interval if interval < 11 else noise >> interval - 11
    part = shifted & 0x3FF
    slope = (second * part >> 5) + first * 32
    gain = (slope * part + (1 << 14) >> 15) + base
    return (gain + (1 << 15) & 0xFFFF) - (1 << 15)


def pcan(op: definition.Pcan, _node: Node, x: Array, noise: Array, table: Array) -> Array:
    """Compute SignalPCAN; a gain below 0 becomes a large one."""
    entries, results = [int(entry) for entry in table], []
    for signal, level in zip(map(int, x), map(int, noise), strict=True):
        ratio = (signal * (_gain(level, entries) & _MASK) >> op.shift) & _MASK
        results.append(ratio * ratio >> 20 if ratio < 8192 else (ratio >> 6) - 64)
    return np.array(results, np.uint32)


def filter_bank_log(op: definition.FilterBankLog, _node: Node, x: Array) -> Array:
    """Compute SignalFilterBankLog: between ends of segments the logarithm is linear."""
    table, results = [int(entry) for entry in definition.log_table()], []
    for value in map(int, x):
        scaled = value << op.shift & _MASK
        if scaled <= 1:
            results.append(0)
            continue
        top = scaled.bit_length() - 1
        part = ((scaled - (1 << top)) << 16) >> top
        segment, inside = divmod(part, 65536 // definition.LOG_SEGMENTS)
        low, high = table[segment : segment + 2]
        log_2 = (top << 16) + part + low + ((high - low) * inside >> 16)
        natural = definition.LN_2 * log_2 + (1 << 15) >> 16
        results.append(min((op.scale * natural + (1 << 15) & _MASK) >> 16, (1 << 15) - 1))
    return np.array(results, np.int16)
