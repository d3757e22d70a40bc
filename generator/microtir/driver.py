"""`lower` and `build`: the only functions that walk the road from a program to C.

The command line, the tuner, the reports and the tests call these two and nothing below them.  The
road of a model is `compile_once`, a step a line.  Where there are limits, `fit` searches over the
programs that it makes; it knows no stage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType

from microtir import memory
from microtir.artifact import Artifact
from microtir.config import CompilationConfig, Target, host
from microtir.executor import aot
from microtir.external import Library, refuse_without_layers
from microtir.fit import budgets as fit
from microtir.fit.trades import Trades
from microtir.graph.structure import once_for_equals
from microtir.kernels import candidates, kernel_names, least_cost, refusals
from microtir.lowering.constant_placement import placed_constants
from microtir.lowering.constant_time import refuse_dependent_time
from microtir.lowering.excess import refuse_excess
from microtir.lowering.function_lowering import FunctionLowering, emitted, merged
from microtir.lowering.graph_lowering import graph_pass_names, offloaded_graph, optimised_graph
from microtir.lowering.inputs import configured, module_of
from microtir.lowering.outcome import Compiler, artifact_of, code_of, module_with
from microtir.lowering.ports import state_bytes
from microtir.lowering.shared import Observer, Shared
from microtir.measure import Functions, constants_of, figures_of
from microtir.module.ir_module import IRModule
from microtir.module.program import Program
from microtir.plan.ir import PlanConstraints
from microtir.plan.measured import Measured
from microtir.plan.reasons import decisions
from microtir.rewrite.extra_passes import ExtraPasses, applied, refuse_unknown_passes
from microtir.rewrite.requests.requested import completed, requested_graph
from microtir.schedule import Schedule
from microtir.support.arguments import checked_arguments
from microtir.te import ScalarVar, Tensor
from microtir.tir.analysis.access import prove_accesses
from microtir.tir.ir import Buffer, PrimFunc, Var
from microtir.tir.verify import verify, verify_module

__all__ = ["Compiler", "build", "compile_once", "lower"]


@checked_arguments
def lower(
    inputs: Schedule | PrimFunc | IRModule,
    args: Sequence[Buffer | Tensor | Var | ScalarVar] | None = None,
    name: str = "main",
    binds: Mapping[Tensor, Buffer] | None = None,
    simple_mode: bool = False,
    *,
    observe: Observer | None = None,
    passes: ExtraPasses | None = None,
    libraries: Sequence[Library] = (),
    compiler: Compiler | None = None,
    best_effort: bool = False,
    records: Measured | None = None,
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
        passes: functions of the user, run at the points that they name and verified after each.
        libraries: third-party kernels beside those of the configuration; each gets the layers
            where it says that it is cheaper.
        compiler: asked how much code there is, where a budget of flash depends on it.
        best_effort: give the program that exceeds the budgets least, instead of refusing it.
        records: measured costs of kernels; by default those that the configuration names.

    Returns:
        A lowered module: same attributes and config, functions in printing order, entry last.
        Where the config leaves numerics, measure or name to the model, they are named.
        A module that is lowered already comes back as it is.

    Raises:
        UsageError: an option does not apply to this kind of input.
        MicrotirError: any diagnostic of a stage.
    """
    module = module_of(inputs, args, name, binds)
    extra, see = passes or ExtraPasses(), observe or (lambda _stage, _made: None)
    extra.refuse_points_off_the_road(has_graph=module.graph is not None, ends=module.is_lowered)
    refuse_without_layers(libraries, module.graph is not None and not module.is_lowered)
    if module.is_lowered:
        return module
    config = completed(module.config or host(), module.graph)
    module = module.with_configuration(config)
    lowering = FunctionLowering(config, simple_mode, extra, remembers=True)
    if module.graph is None:
        lowered = _lower_functions(module, lowering, see)
    else:
        refuse_unknown_passes(extra.after, graph_pass_names(config), "passes.after")
        lowered = _lower_model(module, name, lowering, see, libraries, records, compiler)
    refuse_excess(lowered, compiler, best_effort=best_effort)
    refuse_dependent_time(lowered)
    return lowered


def _lower_model(
    module: IRModule,
    name: str,
    lowering: FunctionLowering,
    see: Observer,
    libraries: Sequence[Library],
    records: Measured | None,
    compiler: Compiler | None,
) -> IRModule:
    """Compile a model, once if there are no limits; the arguments are those of `lower`."""
    config, original = lowering.config, module.graph
    assert original is not None, "functions go another way"
    module = replace(module, graph=requested_graph(original, config, lowering.extra.after))
    assert module.graph is not None
    see("request", module.graph)
    records = records or Measured.of(config, kernel_names())
    # The passes know no limit, so that a search runs them once.
    graph = optimised_graph(module.graph, config, lowering.extra)
    see("graph", graph)
    offered = once_for_equals(lambda node: candidates(node, config))
    graph = offloaded_graph(
        graph, config, lowering.extra, libraries,
        lambda node, measure: least_cost(offered(node), measure),
    )  # fmt: skip
    see("offload", graph)
    refused = once_for_equals(lambda node: refusals(node, config))
    shared = Shared.of(graph, name, lowering, see, records, offered, refused)
    compiled = partial(compile_once, config, shared=shared)
    if config.has_limits():
        asked = code_of(module, compiler)
        program = fit.search(compiled, shared.planned, config, asked, state_bytes(graph))
    else:
        program = Trades.of(compiled, shared.planned, config).program()
    return module_with(module, program)


def compile_once(config: CompilationConfig, limits: PlanConstraints, *, shared: Shared) -> Program:
    """Compile a model with constraints: the straight road, each step once.

    Args:
        config: what it is compiled for.
        limits: what planning is asked for.
        shared: the graph, and what else does not depend on the limits: a search makes it once.
    """
    see, extra = shared.see, shared.lowering.extra
    # Kernels, layouts and groups are decided together: each is worth what the others make of it.
    planned = shared.planned(limits)
    graph = planned.graph
    see("plan", planned)
    # One function for each operator with code, exactly as its kernel is written.
    naive = emitted(planned)
    see("lowering", tuple(f for functions in naive.values() for f in functions))
    # Rewritten for speed; every access is proven, so that no later stage has to ask.
    lowered = {op: tuple(map(shared.lowering, functions)) for op, functions in naive.items()}
    layers = tuple(f for functions in lowered.values() for f in functions)
    callees = {f.name: f for f in layers}
    see("tir", layers)
    # The order of calls, and what lives when, as a function like any other.
    named = aot.main(planned, lowered, shared.name)
    _verify_main(named, callees)
    named = applied(extra.main, "passes.main", named, lambda _, f, __: _verify_main(f, callees))
    see("executor", named)
    # Addresses for its buffers; a checker that shares nothing with placement proves them.
    turns = [state.turns for state in graph.states]
    ports = memory.ports_of(named, len(graph.arguments), turns, config)
    pools, how = memory.pools_of(config), config.pass_config.placement
    main, placement = memory.place(named, callees, pools, how, ports)
    see("memory", placement)
    # Merged only now: placement reads off each layer which of its rows it touches when.
    functions = merged(layers, config, limits=planned.constraints)
    # What is verified here is what is printed: nothing changes a function after this line.
    verify_module((*functions, main))
    see("merge", functions)
    # Facts for budgets, reports and metadata.
    everything = Functions.of((*functions, main), is_model=True)
    constants = placed_constants(everything, config)
    arrays = constants_of(everything.distinct, config.constant_alignment())
    figures = figures_of(everything, arrays, config, constants)
    see("measure", figures)
    percent = config.primary_target().work_percent
    reasons = decisions(planned, limits.goal, shared.refused, percent)
    # A layer of two functions is named by the first: whoever adds up counts it once.
    named_reasons = {fs[0].name: reasons[op.node] for op, fs in lowered.items()}
    return Program(
        graph, planned, functions, main, named, placement, constants, figures,
        MappingProxyType(named_reasons),
    )  # fmt: skip


@checked_arguments
def build(
    inputs: Schedule | PrimFunc | IRModule,
    config: CompilationConfig | Target | None = None,
    *,
    target_host: Target | None = None,
    args: Sequence[Buffer | Tensor | Var | ScalarVar] | None = None,
    name: str = "main",
    binds: Mapping[Tensor, Buffer] | None = None,
    simple_mode: bool = False,
    observe: Observer | None = None,
    passes: ExtraPasses | None = None,
    libraries: Sequence[Library] = (),
    compiler: Compiler | None = None,
    best_effort: bool = False,
    records: Measured | None = None,
) -> Artifact:
    """Compile a program to C: exactly the emission of what `lower` gives.

    Args:
        inputs: as for `lower`.
        config: replaces the module's own; a Target stands for
            `CompilationConfig.from_target(target)`.
        target_host: with a Target, the one that runs the entry function.
        args: as for `lower`.
        name: as for `lower`.
        binds: as for `lower`.
        simple_mode: as for `lower`.
        observe: called after each stage of `lower` and after codegen.
        passes: as for `lower`.
        libraries: as for `lower`.
        compiler: as for `lower`.
        best_effort: as for `lower`.
        records: as for `lower`.

    Returns:
        The generated sources with their metadata, in memory.
    """
    module = configured(module_of(inputs, args, name, binds), config, target_host)
    lowered = lower(module, name=name if not module.is_lowered else "main",
                    simple_mode=simple_mode, observe=observe, passes=passes,
                    libraries=libraries, compiler=compiler, best_effort=best_effort,
                    records=records)  # fmt: skip
    artifact = artifact_of(lowered)
    if observe:
        observe("codegen", artifact)
    return artifact


def _lower_functions(module: IRModule, lowering: FunctionLowering, see: Observer) -> IRModule:
    """Lower the functions of a user, each for itself."""
    verify_module(module.functions)
    functions = tuple(map(lowering, module.functions))
    see("tir", functions)
    lowered = replace(module, functions=functions, is_lowered=True)
    everything = Functions.of(functions, is_model=False)
    return replace(lowered, constants=placed_constants(everything, lowering.config))


def _verify_main(main: PrimFunc, callees: Mapping[str, PrimFunc]) -> None:
    verify(main, callees)
    prove_accesses(main, callees)
