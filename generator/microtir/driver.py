"""`lower` and `build`: the only functions that walk the road from a program to C.

The command line, the tuner, the reports and the tests call these two and nothing below them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from microtir import codegen, memory
from microtir.artifact import Artifact
from microtir.config import CompilationConfig, Target, host
from microtir.config.names import c_names
from microtir.errors import MemoryPlanError, UsageError
from microtir.executor import aot
from microtir.graph import verify as graph_verify
from microtir.graph.ir import Graph
from microtir.graph.passes import GRAPH_PASSES
from microtir.ir_module import IRModule, MemoryPlan, ModelInfo, Port, PortKind
from microtir.lowering import candidates, emit
from microtir.plan import plan
from microtir.plan.ir import Kernel, Plan, PlannedOperator
from microtir.schedule import Schedule
from microtir.te import Tensor
from microtir.tir import passes as tir_passes
from microtir.tir.analysis.access import prove_accesses
from microtir.tir.ir import Buffer, PrimFunc, Var
from microtir.tir.replay import check_pass
from microtir.tir.verify import verify

Observer = Callable[[str, object], None]
"""Called after each stage with its name and what it made; for timing, dumps and tests."""


def lower(
    inputs: Schedule | PrimFunc | IRModule,
    args: Sequence[Buffer | Tensor | Var] | None = None,
    name: str = "main",
    binds: Mapping[Tensor, Buffer] | None = None,
    simple_mode: bool = False,
    *,
    observe: Observer | None = None,
) -> IRModule:
    """Lower a program to PrimFuncs that codegen prints as they are.

    Args:
        inputs: a Schedule (all options apply), a PrimFunc (`name` renames it; `args` and `binds`
            are refused) or an IRModule (`args`, `binds` and, with several functions, `name` are
            refused). The config is the module's, else `config.host()`.
        args: parameters of the function in order; by default placeholders, Vars, outputs.
        name: of the function; of the entry function for a model.
        binds: storage to use for tensors instead of their own.
        simple_mode: skip loop partition and unrolling, nothing else.
        observe: called after each stage.

    Returns:
        A lowered module: same attributes and config, functions in printing order, entry last.
        A module that is lowered already comes back as it is.

    Raises:
        UsageError: an option does not apply to this kind of input.
        MicrotirError: any diagnostic of a stage.
    """
    module = _as_module(inputs, args, name, binds)
    if module.is_lowered:
        return module
    see = observe or (lambda stage, result: None)
    config = module.config or host()
    if module.graph is None:
        functions = tuple(_lower_function(f, config, simple_mode) for f in module.functions)
        see("tir", functions)
        return replace(module, config=config, functions=functions, is_lowered=True)

    graph = _optimise_graph(module.graph)
    see("graph", graph)
    planned = plan(graph, lambda node: candidates(node, config), config.optimize)
    see("plan", planned)
    naive = _emit_layers(planned)
    see("lowering", tuple(naive.values()))
    layers = {op: _lower_function(f, config, simple_mode) for op, f in naive.items()}
    see("tir", tuple(layers.values()))
    main = aot.main(planned, layers, name)
    see("executor", main)
    callees = {f.name: f for f in layers.values()}
    main, memory_plan = memory.place(
        main, callees, config.workspace_alignment(), config.pass_config.placement
    )
    _check_ram_budget(config, memory_plan)
    see("memory", memory_plan)
    return replace(
        module,
        config=config,
        functions=(*layers.values(), main),
        model=_describe(module.graph, graph, memory_plan),
        is_lowered=True,
    )


def build(
    inputs: Schedule | PrimFunc | IRModule,
    config: CompilationConfig | Target | None = None,
    *,
    args: Sequence[Buffer | Tensor | Var] | None = None,
    name: str = "main",
    binds: Mapping[Tensor, Buffer] | None = None,
    simple_mode: bool = False,
    observe: Observer | None = None,
) -> Artifact:
    """Compile a program to C: exactly the emission of what `lower` gives.

    Args:
        inputs, args, name, binds, simple_mode, observe: as for `lower`.
        config: replaces the module's own; a Target stands for
            `CompilationConfig.from_target(target)`.

    Returns:
        The generated sources with their metadata, in memory.
    """
    module = _as_module(inputs, args, name, binds)
    if isinstance(config, Target):
        config = CompilationConfig.from_target(config)
    if config is not None and not module.is_lowered:
        module = module.with_configuration(config)
    elif config is not None and config != module.config:
        raise UsageError(
            "the module was lowered for another configuration",
            where="build(config)",
            fix="give the config to the module before lower(), or build from the original module",
        )
    lowered = lower(module, name=name if not module.is_lowered else "main",
                    simple_mode=simple_mode, observe=observe)  # fmt: skip
    artifact = Artifact(lowered, codegen.emit(lowered))
    if observe:
        observe("codegen", artifact)
    return artifact


def _as_module(
    inputs: Schedule | PrimFunc | IRModule,
    args: Sequence[Buffer | Tensor | Var] | None,
    name: str,
    binds: Mapping[Tensor, Buffer] | None,
) -> IRModule:
    if isinstance(inputs, Schedule):
        function = inputs.primfunc(args=args, name=name, binds=binds)
        return IRModule(functions=(replace(function, exported=True),))
    given = [option for option, value in (("args", args), ("binds", binds)) if value is not None]
    if given:
        raise UsageError(
            f"lower() of a {type(inputs).__name__} takes no {' and no '.join(given)}",
            where=f"lower({given[0]})",
            legal="args and binds belong to a Schedule: a PrimFunc has its parameters already",
        )
    if isinstance(inputs, PrimFunc):
        return IRModule(functions=(replace(inputs, name=name, exported=True),))
    if name != "main" and inputs.graph is None and not inputs.is_lowered:
        if len(inputs.functions) != 1:
            raise UsageError(
                f"lower(name='{name}') of a module with {len(inputs.functions)} functions",
                where="lower(name)",
                legal="a name for a module with one function; several keep their own",
            )
        return inputs.with_functions((replace(inputs.functions[0], name=name),))
    return inputs


def _optimise_graph(graph: Graph) -> Graph:
    graph_verify.verify(graph)
    for graph_pass in GRAPH_PASSES:
        graph = graph_pass(graph)
    graph_verify.verify(graph)
    return graph


def _emit_layers(planned: Plan) -> dict[PlannedOperator, PrimFunc]:
    """One PrimFunc per operator that needs code, named by position and operator."""
    computed = [op for op in planned.operators if op.candidate.kernel is not Kernel.VIEW]
    width = len(str(len(computed)))
    return {
        op: emit(op, planned.layouts, f"layer{number:0{width}}_{op.node.op.name}")
        for number, op in enumerate(computed)
    }


def _lower_function(function: PrimFunc, config: CompilationConfig, simple_mode: bool) -> PrimFunc:
    """Run the TIR passes over one function and prove its memory accesses."""
    options = config.pass_config
    verify(function)
    for tir_pass in tir_passes.pipeline(options.unroll_max_extent, simple_mode):
        after = tir_pass(function)
        if options.verify_each_pass:
            verify(after)
        if options.replay_each_pass:
            check_pass(function, after, tir_pass.name)
        function = after
    verify(function)
    prove_accesses(function)
    return function


def _check_ram_budget(config: CompilationConfig, memory_plan: MemoryPlan) -> None:
    limit = config.budget.ram
    if limit is not None and memory_plan.workspace_size > limit:
        excess = memory_plan.workspace_size - limit
        largest = max(memory_plan.placements, key=lambda p: p.size)
        raise MemoryPlanError(
            f"the workspace takes {memory_plan.workspace_size} bytes, {excess} more than the budget",
            where="budget.ram",
            legal=f"at most {limit} bytes",
            fix=f"the largest buffer is {largest.name} with {largest.size} bytes",
        )


def _describe(original: Graph, graph: Graph, memory_plan: MemoryPlan) -> ModelInfo:
    inputs, outputs = graph.inputs, graph.outputs
    tensors = (*inputs, *outputs)
    kinds = [PortKind.INPUT] * len(inputs) + [PortKind.OUTPUT] * len(outputs)
    # One struct holds the inputs and another the outputs, yet the macros of both share a prefix.
    names = c_names([t.name for t in tensors])
    return ModelInfo(
        name=graph.name,
        ports=tuple(
            Port(kind, tensor.name, c_name, tensor.type)
            for kind, tensor, c_name in zip(kinds, tensors, names, strict=True)
        ),
        source_file=original.nodes[0].source.file if original.nodes else "",
        source_sha256=original.source_sha256,
        source_bytes=original.source_bytes,
        memory=memory_plan,
    )
