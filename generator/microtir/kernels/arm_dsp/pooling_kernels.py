"""Micro-kernels of pooling by words: four channels at a time, of a run of pixels."""

from __future__ import annotations

from microtir.config.features import Feature
from microtir.kernels.common import pool_kernels
from microtir.kernels.common.made_once import made_once
from microtir.kernels.common.pool_kernels import Assembly
from microtir.schedule import KernelDescription
from microtir.tir.dtype import DType

_PRINTED = 8  # pixels of a turn at most
_IMMEDIATE = 255  # largest step of a load
_WORD = 4  # channels


@made_once
def add_run(pixels: int, channels: int) -> KernelDescription:
    """Describe `pool_kernels.add_run` for this CPU."""
    assembly = _run("kernels/pool_add.j2", pixels, channels, DType.INT16, 28)
    return pool_kernels.add_run(pixels, channels, assembly)


@made_once
def max_run(pixels: int, channels: int) -> KernelDescription:
    """Describe `pool_kernels.max_run` for this CPU."""
    assembly = _run("kernels/pool_max.j2", pixels, channels, DType.INT8, 20)
    return pool_kernels.max_run(pixels, channels, assembly)


@made_once
def average(count: int, channels: int, low: int, high: int) -> KernelDescription:
    """Describe `pool_kernels.average` for this CPU."""
    values = pool_kernels.average_values(count, channels, low, high)
    assembly = Assembly("kernels/pool_average.j2", values, 20, Feature.DSP)
    return pool_kernels.average(count, channels, low, high, assembly)


def _run(template: str, pixels: int, channels: int, dtype: DType, stack_bytes: int) -> Assembly:
    words, rest = divmod(channels, _WORD)
    values = {
        **pool_kernels.run_values(pixels, channels, _PRINTED, _IMMEDIATE),
        "collected_bytes": str(words * _WORD * dtype.bytes) if words else "",
        "rest": str(rest) if rest else "",
    }
    return Assembly(template, values, stack_bytes, Feature.DSP)
