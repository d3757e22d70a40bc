"""AVERAGE_POOL_2D and MAX_POOL_2D by vectors: all channels of a run of pixels at a time."""

from __future__ import annotations

from microtir.config.features import Feature
from microtir.graph.ir import Node
from microtir.kernels.arm_mve.copy_kernels import copy, fill
from microtir.kernels.arm_mve.pooling_kernels import add_run, average, max_run
from microtir.kernels.common.pool_runs import Pool, PoolByRuns, PoolKernels, PoolRowsByRuns
from microtir.plan.ir import Calls

KERNELS = PoolKernels(add_run, max_run, average, fill, copy)


class PoolRowsVectors(PoolRowsByRuns):
    """Averages of images whose rows come one by one."""

    name = "accumulate_vectors"
    needs = Feature.MVE
    cycles = 123
    micro_kernels = KERNELS

    def instructions(self, node: Node, _calls: Calls) -> int:
        """Return the instructions of rows that are added one by one, and of the averages."""
        pool = Pool.of(node)
        vectors = -(-pool.image.channels // 8)
        row = 40 + vectors * (5 + 2 * pool.image.width)
        return pool.image.height * row + pool.image.channels * 9 // 4

    def code_bytes(self, node: Node) -> int:
        return _code_bytes(node)


def _code_bytes(node: Node) -> int:
    """Return the bytes of a run, and of the averages, beyond the loops of the direct kernel."""
    return 120 if Pool.of(node).averages else 80


class PoolVectors(PoolByRuns):
    """Averages and maxima of windows."""

    name = "pool_vectors"
    needs = Feature.MVE
    cycles = 123
    micro_kernels = KERNELS

    def instructions(self, node: Node, _calls: Calls) -> int:
        """Return the instructions, from counts of the emulated Cortex-M55."""
        pool = Pool.of(node)
        channels, lanes = pool.image.channels, 16 // pool.dtype.bytes
        vectors = -(-channels // lanes)
        taken = pool.runs * (20 + vectors * 5) + pool.taps * vectors * 2
        finish = channels * 9 // 4 if pool.averages else channels // 8
        return pool.output.height * pool.output.width * (taken + finish + 40)

    def code_bytes(self, node: Node) -> int:
        return _code_bytes(node)
