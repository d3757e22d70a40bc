"""Refuses a program that exceeds a limit of its configuration.

It is asked last: the search for a program that keeps to all limits (`fit`) may have ended with the
one that exceeds them least.
"""

from __future__ import annotations

from microtir import codegen, memory
from microtir.lowering.outcome import Compiler, artifact_of
from microtir.module.ir_module import IRModule


def refuse_excess(lowered: IRModule, compiler: Compiler | None, *, best_effort: bool) -> None:
    """Refuse a program that exceeds a limit of its configuration.

    Weights are known; code is what the compiler makes, or an estimate; the stack is bounded.  With
    `best_effort` only what has no place at all is refused.

    Raises:
        LimitError: a limit is exceeded.
        MemoryPlanError: an array of constants has room in no pool.
    """
    config, program = lowered.require_config("lower"), lowered.program
    if program is not None and not best_effort:
        callees = {f.name: f for f in program.functions}
        memory.check_workspaces(config, program.placement, program.main, callees)
    if lowered.constants.refusal is not None:
        raise lowered.constants.refusal
    if best_effort or (config.budget.flash is None and config.budget.stack is None):
        return
    figures = codegen.measured(lowered)
    if config.budget.flash is not None:
        flash = figures.flash.with_code(compiler(artifact_of(lowered)) if compiler else None)
        weights = [(a.name, a.bytes, a.users) for a in flash.arrays]
        code = memory.Code(flash.code, flash.least, flash.most)
        memory.check_flash(config.budget.flash, weights, code)
    if config.budget.stack is not None:
        frames = figures.stacks.best.frames
        memory.check_stack(config.budget.stack, [(f.name, f.bytes) for f in frames])
