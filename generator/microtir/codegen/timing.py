"""Says of each C function of a model whether its number of instructions depends on data."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from microtir.codegen.program import make_program
from microtir.module.ir_module import IRModule
from microtir.tir.analysis.timing import Cause, causes_of


def causes_by_function(module: IRModule) -> Mapping[str, tuple[Cause, ...]]:
    """Return why each C function may take another number of instructions for other data.

    Functions are analysed with what they call; the run function is without the layers, which have
    rows of their own, and has the name that applications call.

    Raises:
        ConfigMissing: the module has no configuration.
    """
    program = make_program(module)
    config = module.require_config("timing")
    target, constant_time = config.primary_target(), config.constant_time
    names: dict[str, tuple[Cause, ...]] = {}
    for function in program.functions:
        is_main = function is program.entry
        name = f"{program.config.module_name}_run" if is_main else program.names[function]
        names[name] = causes_of(
            function, target, None if is_main else program.callee, constant_time=constant_time
        )
    return MappingProxyType(names)
