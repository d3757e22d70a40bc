"""Everything that a program takes of flash and stack, in one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from microtir.config import CompilationConfig
from microtir.measure.constants import ConstantData
from microtir.measure.flash import FlashUse, flash_of
from microtir.measure.functions import Functions
from microtir.measure.stack import Stacks, layer_stacks, stacks_of
from microtir.tir.memory_plan import ConstantPlan


@dataclass(frozen=True, slots=True)
class Figures:
    """The bytes that a program takes; those of its code are an estimate.

    `layer_stacks` holds for each layer of a model the deepest chain of calls through it.
    """

    flash: FlashUse
    stacks: Stacks
    layer_stacks: Mapping[str, int]


def figures_of(
    functions: Functions,
    arrays: tuple[ConstantData, ...],
    config: CompilationConfig,
    constants: ConstantPlan,
) -> Figures:
    """Measure a program.

    Args:
        functions: of the program.
        arrays: its constants.
        config: what it is compiled for, and how it is called.
        constants: where its constants lie.
    """
    passed = _passed_pools(config, constants)
    return Figures(
        flash_of(functions, arrays, config),
        stacks_of(functions, config, passed),
        MappingProxyType(layer_stacks(functions, config, passed)),
    )


def _passed_pools(config: CompilationConfig, constants: ConstantPlan) -> int:
    """Return the constant pools that the application passes and that hold anything."""
    if not config.should_link_params():
        return 0
    used = {place.pool for place in constants.places.values()}
    return sum(not config.constant_pools[n].pool_info_properties.is_internal for n in used)
