"""AVERAGE_POOL_2D and MAX_POOL_2D by words: four channels of a run of pixels at a time."""

from __future__ import annotations

from microtir.graph.ir import Node
from microtir.lowering import pool_runs
from microtir.lowering.dsp.depthwise_kernels import copy
from microtir.lowering.dsp.pooling_kernels import add_run, average, fill, max_run
from microtir.lowering.layer import Layer
from microtir.lowering.pool_runs import Pool, PoolKernels
from microtir.tir import ir

_KERNELS = PoolKernels(add_run, max_run, average, fill, copy)


def cost(node: Node) -> int:
    """Instructions, from counts of the emulated Cortex-M4."""
    pool = Pool.of(node)
    words, rest = divmod(pool.image.channels, 4)
    taken = pool.runs * (20 + words * 9 + rest * 6) + pool.taps * 3 * (words + rest)
    finish = pool.image.channels * 11 if pool.averages else pool.image.channels
    return pool.output.height * pool.output.width * (taken + finish + pool.image.channels + 60)


def rows_cost(node: Node) -> int:
    """Instructions of rows that are added one by one, and of the averages."""
    pool = Pool.of(node)
    words, rest = divmod(pool.image.channels, 4)
    row = 40 + words * 9 + rest * 6 + pool.image.width * 3 * (words + rest)
    return pool.image.height * row + pool.image.channels * 11


def code_bytes(node: Node) -> int:
    """Of a run, of the averages, and of the loops around them, beyond those of plain C."""
    return 200 if Pool.of(node).averages else 120


def emit(layer: Layer, name: str) -> ir.PrimFunc:
    """The layer function."""
    return pool_runs.emit(layer, name, _KERNELS)


def emit_rows(layer: Layer, name: str) -> ir.PrimFunc:
    """The function that adds rows."""
    return pool_runs.emit_rows(layer, name, _KERNELS)


def emit_finish(layer: Layer, name: str) -> ir.PrimFunc:
    """The function that turns sums into averages."""
    return pool_runs.emit_finish(layer, name, _KERNELS)
