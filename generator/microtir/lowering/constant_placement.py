"""Arrays of constants, as they are measured, in the pools that a configuration has for them."""

from __future__ import annotations

from microtir import memory
from microtir.config import CompilationConfig
from microtir.measure import Functions, constants_of
from microtir.tir.memory_plan import ConstantPlan


def placed_constants(functions: Functions, config: CompilationConfig) -> ConstantPlan:
    """Return the place of each array in the constant pools."""
    if not config.constant_pools:
        return ConstantPlan()
    arrays = constants_of(functions.distinct, config.constant_alignment())
    layers = {layer.name: layer for layer in functions.layers}
    of_buffer = {buffer: array for array in arrays for buffer in array.buffers}
    reads = memory.constant_reads(functions.main, layers, of_buffer)
    placed = [
        memory.Constant(a.buffers[0], a.name, a.bytes, a.alignment, a.users, reads[a])
        for a in arrays
    ]
    return memory.place_constants(config, placed, layers)
