"""Turns what `lower` and `build` take into a module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from microtir.config import CompilationConfig, Measure, Numerics, Target
from microtir.errors import UsageError
from microtir.module.ir_module import IRModule
from microtir.schedule import Schedule
from microtir.te import ScalarVar, Tensor
from microtir.tir.ir import Buffer, Invoke, PrimFunc, Var
from microtir.tir.visitor import walk


def module_of(
    inputs: Schedule | PrimFunc | IRModule,
    args: Sequence[Buffer | Tensor | Var | ScalarVar] | None,
    name: str,
    binds: Mapping[Tensor, Buffer] | None,
) -> IRModule:
    """Return the module that `lower` and `build` go on with; the arguments are those of `lower`.

    Raises:
        UsageError: an option does not apply to this kind of input.
    """
    if isinstance(inputs, Schedule):
        function = inputs.primfunc(args=args, name=name, binds=binds)
        return IRModule(functions=(replace(function, exported=True),))
    stated = [option for option, value in (("args", args), ("binds", binds)) if value is not None]
    if stated:
        raise UsageError(
            f"lower() takes no {' and no '.join(stated)} with a {type(inputs).__name__}",
            where=f"lower({stated[0]})",
            legal="args and binds only with a Schedule, because a PrimFunc has parameters",
        )
    if isinstance(inputs, PrimFunc):
        return IRModule(functions=(replace(inputs, name=name, exported=True),))
    if name != "main" and inputs.graph is None and not inputs.is_lowered:
        if len(inputs.functions) != 1:
            raise UsageError(
                f"got name='{name}' for a module with {len(inputs.functions)} functions",
                where="lower(name)",
                legal="a name only for a module with one function",
            )
        inputs = inputs.with_functions((replace(inputs.functions[0], name=name),))
    return inputs if inputs.graph or inputs.is_lowered else _with_entries(inputs)


def configured(
    module: IRModule, config: CompilationConfig | Target | None, target_host: Target | None = None
) -> IRModule:
    """Return the module with the configuration that `build` was given, if it was.

    Raises:
        UsageError: it was lowered for another one, or there is a host and no target.
    """
    if isinstance(config, Target):
        config = CompilationConfig.from_target(config, target_host)
    elif target_host is not None:
        raise UsageError(
            f"'target_host' is {target_host!r}, but 'config' is not a Target",
            where="build(target_host)",
            legal="a Target with its host: build(mod, target, target_host=host)",
            fix="set it in the configuration: config.with_(target_host=...)",
        )
    if config is None or (module.is_lowered and _asks_for(config, module.config)):
        return module
    if module.is_lowered:
        raise UsageError(
            "the module is already lowered for another configuration",
            where="build(config)",
            fix="pass the configuration to lower(), or build the module that is not lowered",
        )
    return module.with_configuration(config)


def _asks_for(config: CompilationConfig, lowered: CompilationConfig | None) -> bool:
    """Return whether a module was lowered for this, which may leave the model's facts to it."""
    if lowered is None:
        return False
    if config.numerics is Numerics.MODEL:
        config = config.with_(numerics=lowered.numerics)
    if config.measure is Measure.MODEL:
        config = config.with_(measure=lowered.measure)
    return config.with_(module_name=config.module_name or lowered.module_name) == lowered


def _with_entries(module: IRModule) -> IRModule:
    """Return the module; if it exports nothing, with its uninvoked functions exported."""
    if any(function.exported for function in module.functions):
        return module
    nodes = (node for function in module.functions for node in walk(function))
    invoked = frozenset(node.function for node in nodes if isinstance(node, Invoke))
    return module.with_functions(
        tuple(replace(f, exported=f.name not in invoked) for f in module.functions)
    )
