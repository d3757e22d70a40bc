"""Refuses a program whose number of instructions may depend on data, where that is asked for."""

from __future__ import annotations

from microtir.errors import MicrotirError, UnsupportedModelError
from microtir.memory.limits import layer_text
from microtir.module.ir_module import IRModule
from microtir.tir.analysis.timing import causes_of


def refuse_dependent_time(lowered: IRModule) -> None:
    """Refuse a program with `constant_time` if its control flow may depend on data.

    Raises:
        UnsupportedModelError: names the operators that the model's file has, each with causes.
    """
    config = lowered.require_config("lower")
    if not config.constant_time:
        return
    target, callees = config.primary_target(), {f.name: f for f in lowered.functions}
    problems: list[MicrotirError] = []
    for function in lowered.functions:
        is_main = lowered.model is not None and function is lowered.functions[-1]
        # The layers that a run function calls are problems of their own.
        causes = causes_of(
            function, target, None if is_main else callees.__getitem__, constant_time=True
        )
        if causes:
            what = "; ".join(f"{cause.time}: {cause.what}" for cause in causes)
            problems.append(UnsupportedModelError(what, where=layer_text(function)))
    if problems:
        raise UnsupportedModelError(
            f"on {target}, the instruction counts of {len(problems)} functions may depend on data",
            where="constant_time",
            legal="functions without branches, loops or library functions that depend on data",
            fix="leave constant_time out, quantise floats, or use a CPU that can select values "
            "without branches, such as a Cortex-M4",
            problems=problems,
        )
