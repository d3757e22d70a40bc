"""Micro-kernels of pooling by vectors: as many channels as lanes, of a run of pixels."""

from __future__ import annotations

from collections.abc import Mapping

from microtir.config.features import Feature
from microtir.kernels.common import pool_kernels
from microtir.kernels.common.made_once import made_once
from microtir.kernels.common.pool_kernels import Assembly
from microtir.schedule import KernelDescription

_PRINTED = 16  # pixels of a turn at most
_IMMEDIATE = 127  # largest step of a load of bytes
_SUMS = {
    "width": "16", "lanes": "8", "load": "vldrb.s16", "load_sum": "vldrh.u16",
    "store_sum": "vstrh.16", "operation": "vadd.i16",
}  # fmt: skip
_MAXIMA = {
    "width": "8", "lanes": "16", "load": "vldrb.u8", "load_sum": "vldrb.u8",
    "store_sum": "vstrb.8", "operation": "vmax.s8",
}  # fmt: skip


@made_once
def add_run(pixels: int, channels: int) -> KernelDescription:
    """Describe `pool_kernels.add_run` for this CPU."""
    return pool_kernels.add_run(pixels, channels, _run(pixels, channels, _SUMS))


@made_once
def max_run(pixels: int, channels: int) -> KernelDescription:
    """Describe `pool_kernels.max_run` for this CPU."""
    return pool_kernels.max_run(pixels, channels, _run(pixels, channels, _MAXIMA))


@made_once
def average(count: int, channels: int, low: int, high: int) -> KernelDescription:
    """Describe `pool_kernels.average` for this CPU."""
    values = pool_kernels.average_values(count, channels, low, high)
    assembly = Assembly("kernels/mve/pool_average.j2", values, 16, Feature.MVE)
    return pool_kernels.average(count, channels, low, high, assembly)


def _run(pixels: int, channels: int, operation: Mapping[str, str]) -> Assembly:
    values = pool_kernels.run_values(pixels, channels, _PRINTED, _IMMEDIATE)
    return Assembly("kernels/mve/pool_run.j2", {**values, **operation}, 8, Feature.MVE)
