"""Measures what a lowered module takes, on its TIR and the assembly that is printed for it."""

from __future__ import annotations

from microtir.measure import Figures, Functions, constants_of, figures_of
from microtir.module.ir_module import IRModule


def measured(module: IRModule) -> Figures:
    """Return the bytes of flash and stack that a lowered module takes.

    Raises:
        ConfigMissing: the module has no configuration.
        TemplateError: a template of assembly is broken.
    """
    program = module.program
    if program is not None and module.functions == (*program.functions, program.main):
        return program.figures
    config = module.require_config("measure")
    functions = Functions.of(module.functions, is_model=module.model is not None)
    arrays = constants_of(functions.distinct, config.constant_alignment())
    return figures_of(functions, arrays, config, module.constants)
