"""AVERAGE_POOL_2D and MAX_POOL_2D by words: four channels of a run of pixels at a time."""

from __future__ import annotations

from microtir.config.features import Feature
from microtir.graph.ir import Node
from microtir.kernels.arm_dsp.copy_kernels import copy, fill
from microtir.kernels.arm_dsp.pooling_kernels import add_run, average, max_run
from microtir.kernels.common.pool_runs import Pool, PoolByRuns, PoolKernels, PoolRowsByRuns
from microtir.plan.ir import Calls

KERNELS = PoolKernels(add_run, max_run, average, fill, copy)


class PoolRowsWords(PoolRowsByRuns):
    """Averages of images whose rows come one by one."""

    name = "accumulate_words"
    needs = Feature.DSP
    cycles = 139
    micro_kernels = KERNELS

    def instructions(self, node: Node, _calls: Calls) -> int:
        """Return the instructions of rows that are added one by one, and of the averages."""
        pool = Pool.of(node)
        words, rest = divmod(pool.image.channels, 4)
        row = 40 + words * 9 + rest * 6 + pool.image.width * 3 * (words + rest)
        return pool.image.height * row + pool.image.channels * 11

    def code_bytes(self, node: Node) -> int:
        return _code_bytes(node)


def _code_bytes(node: Node) -> int:
    """Return the bytes of run, averages and the loops around, beyond those of plain C."""
    return 200 if Pool.of(node).averages else 120


class PoolWords(PoolByRuns):
    """Averages and maxima of windows."""

    name = "pool_words"
    needs = Feature.DSP
    cycles = 139
    micro_kernels = KERNELS

    def instructions(self, node: Node, _calls: Calls) -> int:
        """Return the instructions, from counts of the emulated Cortex-M4."""
        pool = Pool.of(node)
        words, rest = divmod(pool.image.channels, 4)
        taken = pool.runs * (20 + words * 9 + rest * 6) + pool.taps * 3 * (words + rest)
        finish = pool.image.channels * 11 if pool.averages else pool.image.channels
        return pool.output.height * pool.output.width * (taken + finish + pool.image.channels + 60)

    def code_bytes(self, node: Node) -> int:
        return _code_bytes(node)
