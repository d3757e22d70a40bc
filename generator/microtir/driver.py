"""`lower` and `build`: the only functions that walk the road from a program to C.

The command line, the tuner, the reports and the tests call these two and nothing below them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from microtir import codegen, memory
from microtir.artifact import Artifact
from microtir.config import CompilationConfig, Target, host
from microtir.config.enums import Optimize
from microtir.executor import aot
from microtir.external import Library, library_of, partition, refuse_without_layers
from microtir.extra_passes import ExtraPasses, applied
from microtir.function_lowering import FunctionLowering, tir_passes_of
from microtir.graph import verify as graph_verify
from microtir.graph.declared_ranges import with_declared_ranges
from microtir.graph.ir import Graph, Node
from microtir.graph.more_outputs import with_more_outputs
from microtir.graph.passes import GRAPH_PASSES, BoundSums, CutColumns, GraphPass, RowPorts
from microtir.graph.passes.checked import rewritten
from microtir.inputs import configured, module_of
from microtir.ir_module import IRModule, MemoryPlan, ModelInfo
from microtir.kernels import candidates, emit, emit_finish, function_names, refusals, weighed
from microtir.plan import Courses, alternatives, plan
from microtir.plan.budgets import Search, Use
from microtir.plan.ir import ANY_SPEED, Candidate, Kernel, Plan, PlannedOperator, Terms
from microtir.plan.measured import Measured
from microtir.plan.reasons import decisions
from microtir.ports import ports_of
from microtir.schedule import Schedule
from microtir.support.arguments import checked_arguments
from microtir.te import ScalarVar, Tensor
from microtir.tir import passes as tir_passes
from microtir.tir.analysis.access import prove_accesses
from microtir.tir.ir import Buffer, PrimFunc, Var
from microtir.tir.verify import verify, verify_module

Observer = Callable[[str, object], None]
"""Called after each stage with its name and what it made; for timing, dumps and tests."""

Compiler = Callable[[Artifact], int]
"""Gives the bytes of code and of constants beside the weights that a C compiler makes."""

_COMPARED = 20  # operators of a model at most of which two plans are placed


@dataclass(frozen=True, slots=True)
class Stage:
    """A step that `lower` or `build` takes with a model.

    `name` is what observers are told; `passes` are name and summary of each pass it runs.
    """

    name: str
    summary: str
    passes: tuple[tuple[str, str], ...] = ()


def pipeline(config: CompilationConfig | None = None) -> tuple[Stage, ...]:
    """The steps of `lower` and `build` for a model and the executor `aot`, in order."""
    tir = tir_passes_of(config or host(), simple_mode=False)
    return (
        Stage("graph", "Rewrites the graph; every output stays as it is.", _about(GRAPH_PASSES)),
        Stage("plan", "Chooses kernels, layouts of tensors, and what shares memory."),
        Stage("lowering", "Writes one PrimFunc for each operator that needs code."),
        Stage("tir", "Rewrites each PrimFunc, then proves every access in bounds.", _about(tir)),
        Stage("executor", "Writes main, the PrimFunc that calls the others in turn."),
        Stage("memory", "Places every buffer in the workspace; a checker proves it."),
        Stage("codegen", "Prints the PrimFuncs and weights as C."),
    )


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
    nearest: bool = False,
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
        libraries: kernels of others beside those that the configuration names; each gets the layers
            where it says that it is cheaper.
        compiler: asked how much code there is, where a budget of flash depends on it.
        nearest: give the program that exceeds the budgets least, instead of refusing it.

    Returns:
        A lowered module: same attributes and config, functions in printing order, entry last.
        A module that is lowered already comes back as it is.

    Raises:
        UsageError: an option does not apply to this kind of input.
        MicrotirError: any diagnostic of a stage.
    """
    module = module_of(inputs, args, name, binds)
    extra = passes or ExtraPasses()
    extra.refuse_points_off_the_road(has_graph=module.graph is not None, ends=module.is_lowered)
    refuse_without_layers(libraries, module.graph is not None and not module.is_lowered)
    if module.is_lowered:
        return module
    config, see = module.config or host(), observe or (lambda _stage, _made: None)
    if module.graph is None:
        verify_module(module.functions)
        functions = tuple(map(FunctionLowering(config, simple_mode, extra), module.functions))
        see("tir", functions)
        lowered = replace(module, config=config, functions=functions, is_lowered=True)
    else:
        lowering = FunctionLowering(config, simple_mode, extra)
        task = _Task(config, name, lowering, see, libraries, Measured.of(config), compiler, nearest)
        graph = with_more_outputs(module.graph, config.pass_config.more_outputs)
        lowered = _lower_model(replace(module, graph=graph), graph, task)
    lowered = _with_placed_constants(config, lowered)
    if not nearest:
        _check_code(config, lowered, compiler)
    return lowered


def least_workspace(module: IRModule) -> int:
    """The bytes of the smallest workspace that planning knows for a model; nothing is made of it.

    The gaps of alignment and placement come on top, and placement may find more overlaps.

    Args:
        module: a graph with its configuration, whose goal and limits do not matter here.

    Raises:
        MicrotirError: any diagnostic of the graph passes and of planning.
    """
    config, graph = module.require_config("least_workspace"), module.graph
    assert graph is not None, "there is nothing to plan without a graph"
    free = config.without_limits().with_(optimize=Optimize.RAM)
    lowering = FunctionLowering(free, False, ExtraPasses())
    task = _Task(free, "main", lowering, lambda *_: None, (), Measured.of(free), None, False)
    graph = with_more_outputs(graph, free.pass_config.more_outputs)
    return _planned(*_prepared(graph, task), None, Terms()).least


@dataclass(frozen=True, slots=True)
class _Task:
    """How a model is to be lowered."""

    config: CompilationConfig
    name: str
    lowering: FunctionLowering
    see: Observer
    libraries: Sequence[Library]
    measured: Measured | None
    compiler: Compiler | None
    nearest: bool
    known: dict[Node, tuple[Candidate, ...]] = field(default_factory=dict)
    courses: Courses = field(default_factory=Courses)
    others: tuple[Graph, ...] = ()  # graphs that do the same in less memory

    def candidates(self, node: Node) -> tuple[Candidate, ...]:
        """The kernels of a node, with what they were measured to cost where that is known.

        Where flash is limited, they are weighed.
        """
        if node not in self.known:
            offered = candidates(node, self.config)
            if self.config.budget.flash is not None:
                offered = tuple(weighed(node, c) for c in offered)
            if self.measured is not None:
                offered = self.measured.applied(node, offered)
            self.known[node] = offered
        return self.known[node]


def _lower_model(module: IRModule, original: Graph, task: _Task) -> IRModule:
    config, see = task.config, task.see
    graph, task = _prepared(original, task)

    def finished(made: _Made) -> IRModule:
        return replace(
            module, config=config, functions=(*made.layers, made.main), is_lowered=True,
            model=_describe(original, made.plan.graph, config, made),
        )  # fmt: skip

    made = Search(
        maker=_Maker(graph, task, finished), flash=config.budget.flash, stack=config.budget.stack,
        rivals=tuple(Optimize) if memory.is_limited(config) else (),
        seeks_speed=config.optimize is Optimize.SPEED,
    ).best()  # fmt: skip
    if not task.nearest:
        memory.check_workspaces(config, made.memory, made.main, {f.name: f for f in made.layers})
    verify_module((*made.layers, made.main))
    if memory.is_limited(config):  # the last program that was tried may be another one
        made.show(see)
    see("memory", made.memory)
    return finished(made)


def _prepared(original: Graph, task: _Task) -> tuple[Graph, _Task]:
    """The graph that is planned, and the task with what may be planned instead."""
    config = task.config
    graph = _with_libraries(
        _optimise_graph(original, config, task.lowering.extra), config, task.libraries
    )
    executor = config.executor
    graph = RowPorts(executor.row_fed_inputs, executor.row_drained_outputs)(graph)
    task.see("graph", graph)
    return graph, replace(task, others=_other_graphs(graph, task))


def _planned(
    graph: Graph, task: _Task, limit: int | None, terms: Terms, goal: Optimize | None = None
) -> Plan:
    """The plan within a limit in bytes, for the goal of the configuration or another one."""
    config = task.config
    return plan(
        graph, task.candidates, goal or config.optimize,
        workspace_io=config.pass_config.use_workspace_io, limit=limit,
        terms=replace(terms, measure=config.measure), others=task.others,
        courses=task.courses,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Made:
    """What became of a plan: layer functions, main on its workspace, and where all lies there."""

    plan: Plan
    functions: Mapping[PlannedOperator, tuple[PrimFunc, ...]]
    layers: tuple[PrimFunc, ...]
    main: PrimFunc
    memory: MemoryPlan
    shown: tuple[tuple[str, object], ...]  # to observers, by stage

    def show(self, see: Observer) -> None:
        for stage, shown in self.shown:
            see(stage, shown)


@dataclass(frozen=True, slots=True)
class _Maker:
    """The road for the search of `plan.budgets`, which says what its methods are."""

    graph: Graph
    task: _Task
    finished: Callable[[_Made], IRModule]

    def planned(self, terms: Terms) -> Plan:
        return self._plan(memory.room(self.task.config), terms)

    def made(self, terms: Terms) -> _Made:
        made = self._within_room(terms)
        is_least = self.task.config.optimize is Optimize.RAM and not terms.byte_price
        if is_least and len(made.plan.operators) <= _COMPARED:
            # Placement finds overlaps that planning does not count: of two plans of one size the
            # one that spares code may turn out the larger.
            fast = self._plan(made.plan.size, replace(terms, ignores_code=True))
            if fast.groups != made.plan.groups:
                other = self.built(fast)
                if other.memory.workspace_size < made.memory.workspace_size:
                    return other
                made.show(self.task.see)
        return made

    def _within_room(self, terms: Terms) -> _Made:
        # Planning counts bytes without the gaps that alignment and placement leave: where these do
        # not fit any more, it is asked for a plan with as much less.
        target = memory.room(self.task.config)
        made = self.built(self._plan(target, terms))
        while target is not None and target > made.plan.least:
            excess = memory.excess(self.task.config, made.memory)
            if excess <= 0:
                break
            target -= excess
            made = self.built(self._plan(target, terms))
        return made

    def unlimited(self, goal: Optimize) -> Plan:
        # Only the least flash of all has layers share bodies, whatever else is the goal.
        is_least = goal is Optimize.FLASH
        return self._plan(None, Terms(byte_price=ANY_SPEED) if is_least else Terms(), goal)

    def _plan(self, limit: int | None, terms: Terms, goal: Optimize | None = None) -> Plan:
        return _planned(self.graph, self.task, limit, terms, goal)

    def built(self, plan: Plan) -> _Made:
        return _layers_and_main(self.task, plan)

    def kernels(self, node: Node) -> frozenset[Kernel]:
        legal = (c for c in self.task.candidates(node) if c.is_plain and not c.accumulates)
        return frozenset(c.kernel for c in legal) - {Kernel.VIEW}

    def use(self, made: _Made) -> Use:
        config, module = self.task.config, self.finished(made)
        arrays, code, stack = 0, 0, dict[Node, int]()
        if config.budget.flash is not None:
            flash = codegen.flash_of(module)
            arrays, code = flash.bytes - flash.code, flash.code
        if config.budget.stack is not None:
            depth = codegen.layer_stacks(module)
            stack = {op.node: max(depth[f.name] for f in fs) for op, fs in made.functions.items()}
        return Use(made.plan, memory.excess(config, made.memory), arrays, code, stack)

    def compiled(self, made: _Made) -> int | None:
        if self.task.compiler is None:
            return None
        module = _with_placed_constants(self.task.config, self.finished(made))
        return self.task.compiler(_artifact(module))


def _other_graphs(graph: Graph, task: _Task) -> tuple[Graph, ...]:
    """The graph in other orders and cut into bands, as far as the configuration allows."""
    options, goal = task.config.pass_config, task.config.optimize
    found = alternatives(
        graph, task.candidates, goal, reorder=options.reorder,
        percent=options.recompute, workspace_io=options.use_workspace_io, courses=task.courses,
    )  # fmt: skip
    made = tuple(CutColumns(ways)(ordered) for ordered, ways in found)
    for other in made:
        graph_verify.verify(other)
    return made


def _layers_and_main(task: _Task, planned: Plan) -> _Made:
    config, see, extra = task.config, task.see, task.lowering.extra
    see("plan", planned)
    naive = _emit_layers(planned)
    see("lowering", tuple(f for functions in naive.values() for f in functions))
    lowered = {op: tuple(map(task.lowering, functions)) for op, functions in naive.items()}
    layers = tuple(f for functions in lowered.values() for f in functions)
    see("tir", layers)
    callees = {f.name: f for f in layers}
    main = aot.main(planned, lowered, task.name)
    _verify_main(main, callees)
    main = applied(extra.main, "main", main, lambda _, f, __: _verify_main(f, callees))
    see("executor", main)
    shown = (("plan", planned), ("tir", layers), ("executor", main))
    main, memory_plan = memory.place(
        main, callees, memory.pools_of(config), config.pass_config.placement,
        memory.ports_of(main, len(planned.graph.inputs), config),
    )  # fmt: skip
    return _Made(planned, lowered, layers, main, memory_plan, shown)


@checked_arguments
def build(
    inputs: Schedule | PrimFunc | IRModule,
    config: CompilationConfig | Target | None = None,
    *,
    args: Sequence[Buffer | Tensor | Var | ScalarVar] | None = None,
    name: str = "main",
    binds: Mapping[Tensor, Buffer] | None = None,
    simple_mode: bool = False,
    observe: Observer | None = None,
    passes: ExtraPasses | None = None,
    libraries: Sequence[Library] = (),
    compiler: Compiler | None = None,
    nearest: bool = False,
) -> Artifact:
    """Compile a program to C: exactly the emission of what `lower` gives.

    Args:
        inputs: as for `lower`.
        config: replaces the module's own; a Target stands for
            `CompilationConfig.from_target(target)`.
        args: as for `lower`.
        name: as for `lower`.
        binds: as for `lower`.
        simple_mode: as for `lower`.
        observe: called after each stage of `lower` and after codegen.
        passes: as for `lower`.
        libraries: as for `lower`.
        compiler: as for `lower`.
        nearest: as for `lower`.

    Returns:
        The generated sources with their metadata, in memory.
    """
    module = configured(module_of(inputs, args, name, binds), config)
    lowered = lower(module, name=name if not module.is_lowered else "main",
                    simple_mode=simple_mode, observe=observe, passes=passes,
                    libraries=libraries, compiler=compiler, nearest=nearest)  # fmt: skip
    artifact = _artifact(lowered)
    if observe:
        observe("codegen", artifact)
    return artifact


def _artifact(lowered: IRModule) -> Artifact:
    printed = codegen.emit(lowered)
    return Artifact(lowered, printed.sources, printed.metadata, printed.data)


def _optimise_graph(graph: Graph, config: CompilationConfig, extra: ExtraPasses) -> Graph:
    def check(_before: Graph, after: Graph, _pass_name: str) -> None:
        graph_verify.verify(after)

    graph_verify.verify(graph)
    graph = with_declared_ranges(graph, config.pass_config.input_ranges)
    graph = applied(extra.graph_first, "graph_first", graph, check)
    graph = rewritten(graph, GRAPH_PASSES, config.pass_config)
    last = applied(extra.graph_last, "graph_last", graph, check)
    # What the user changed may have made the bounds of sums wrong.
    return graph if last is graph else BoundSums()(last)


def _with_libraries(graph: Graph, config: CompilationConfig, libraries: Sequence[Library]) -> Graph:
    """The graph with the layers that libraries compute given to them."""
    named = [(library_of(external), external) for external in config.external]
    graph = partition(
        graph, [*named, *((library, None) for library in libraries)], config.primary_target(),
        lambda node: min((c.cost for c in candidates(node, config) if c.is_plain), default=0),
        config.module_name,
    )  # fmt: skip
    graph_verify.verify(graph)
    return graph


def _emit_layers(planned: Plan) -> dict[PlannedOperator, tuple[PrimFunc, ...]]:
    """The functions of each operator that needs code."""
    computed = [op for op in planned.operators if op.candidate.kernel is not Kernel.VIEW]
    layers: dict[PlannedOperator, tuple[PrimFunc, ...]] = {}
    for op, name in zip(computed, function_names([op.node for op in computed]), strict=True):
        layers[op] = (emit(op, planned.layouts, name),)
        if op.candidate.accumulates:
            layers[op] += (emit_finish(op, planned.layouts, name.with_work("finish")),)
    return layers


def _verify_main(main: PrimFunc, callees: Mapping[str, PrimFunc]) -> None:
    verify(main, callees)
    prove_accesses(main, callees)


def _about(passes: Sequence[GraphPass | tir_passes.Pass]) -> tuple[tuple[str, str], ...]:
    """Name and first line of the docstring of each pass."""
    return tuple((p.name, (type(p).__doc__ or "").partition("\n")[0]) for p in passes)


def _with_placed_constants(config: CompilationConfig, lowered: IRModule) -> IRModule:
    """The module with the place of each array in the constant pools."""
    if not config.constant_pools:
        return lowered
    use = codegen.constant_use(lowered)
    reads = memory.constant_reads(use.main, use.callees, use.names)
    placed = [
        memory.Constant(a.name, a.bytes, a.alignment, a.users, reads[a.name]) for a in use.arrays
    ]
    return replace(lowered, constants=memory.place_constants(config, placed, use.callees))


def _check_code(config: CompilationConfig, lowered: IRModule, compiler: Compiler | None) -> None:
    """Weights are known; code is what the compiler makes, or an estimate; the stack is bounded."""
    if config.budget.flash is not None:
        flash = codegen.flash_of(lowered, compiler(_artifact(lowered)) if compiler else None)
        weights = [(a.name, a.bytes, a.users) for a in flash.arrays]
        code = memory.Code(flash.code, flash.least, flash.most)
        memory.check_flash(config.budget.flash, weights, code)
    if config.budget.stack is not None:
        frames = codegen.stack_of(lowered).frames
        memory.check_stack(config.budget.stack, [(f.function, f.bytes) for f in frames])


def _describe(original: Graph, graph: Graph, config: CompilationConfig, made: _Made) -> ModelInfo:
    decided = decisions(made.plan, config.optimize, lambda node: refusals(node, config))
    named = {f.name: decided[op.node] for op, fs in made.functions.items() for f in fs}
    return ModelInfo(
        name=graph.name,
        ports=ports_of(graph, config, made.memory),
        source_file=original.nodes[0].source.file if original.nodes else "",
        source_sha256=original.source_sha256,
        source_bytes=original.source_bytes,
        memory=made.memory,
        shares_bodies=made.plan.terms.goal(config.optimize) is Optimize.FLASH,
        decisions=MappingProxyType(named),
    )
