"""Compiles a model through the driver, and collects the facts of its report."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from microtir import driver
from microtir.artifact import Artifact, footprint
from microtir.config import CompilationConfig
from microtir.config.enums import Optimize
from microtir.errors import MemoryPlanError, UsageError
from microtir.module.ir_module import IRModule, ModelInfo
from microtir.module.program import Program
from microtir.report import data
from microtir.report.buffers import make_pools, make_ports, type_text
from microtir.report.calls import LayerCalls
from microtir.report.excesses import with_excesses
from microtir.report.layers import make_constants, make_layers
from microtir.report.profile import MeasuredProfile, with_profile
from microtir.report.pushes import pushes_of
from microtir.tir.memory_plan import MemoryPlan
from microtir.version import __version__

_RAM, _STACK = "budget.ram", "budget.stack"


@dataclass(frozen=True, slots=True)
class _Compiled:
    """A compiled model, with the bytes of its code."""

    artifact: Artifact
    code_bytes: int  # an estimate, without a compiler

    @property
    def program(self) -> Program:
        return self.artifact.module.require_program("report")

    @property
    def model(self) -> ModelInfo:
        assert self.artifact.module.model is not None  # a frontend gave the graph
        return self.artifact.module.model

    @property
    def weights_bytes(self) -> int:
        return self.artifact.metadata.weights_bytes


LimitsOf = Callable[[Artifact, int], Sequence[data.ReportedLimit]]
"""Function that gives further limits on a program, such as a board's memories, by code bytes."""


def describe(
    module: IRModule,
    profile: MeasuredProfile | None = None,
    *,
    compiler: driver.Compiler | None = None,
    limits_of: LimitsOf | None = None,
    least: int | None = None,
) -> data.Report:
    """Compile a model and describe the result.

    Of a model that exceeds a limit whatever is done, the plan that does so least is described, and
    the report says by how much, and at which layers.

    Args:
        module: a graph with its configuration.
        profile: what a profile of the same model measured.
        compiler: makes the code, which is estimated without.
        limits_of: gives limits beside those of the configuration.
        least: the workspace at `--optimize ram-least`, where a report of the same model for the
            same CPU has found it already.

    Raises:
        UsageError: the module has no graph.
        DataFileError: the profile is of another model, or of other options.
        MicrotirError: any diagnostic of compiling.
    """
    if module.graph is None:
        raise UsageError(
            "the module contains only functions, and no graph",
            where="report",
            legal="a module from `microtir.frontend`",
        )
    config = module.require_config("report")
    try:
        compiled = _compile(module, compiler)
    except MemoryPlanError:  # constants fit into no pool
        unlimited = config.without_limits()
        if unlimited == config:
            raise
        compiled = _compile(module.with_configuration(unlimited), compiler)
    if least is None:
        least = _least(module, config, compiled)
    report = _facts(compiled, config, least)
    report = replace(report, pushes=_pushes(module, config, compiled))
    others = tuple(limits_of(compiled.artifact, compiled.code_bytes)) if limits_of else ()
    report = replace(
        report, limits=(*report.limits, *others), code_is_compiled=compiler is not None
    )
    return with_profile(report, profile) if profile else report


def _compile(module: IRModule, compiler: driver.Compiler | None) -> _Compiled:
    artifact = driver.build(module, compiler=compiler, best_effort=True)
    estimate = artifact.metadata.code_bytes_estimate
    return _Compiled(artifact, compiler(artifact) if compiler else estimate)


def _least(module: IRModule, config: CompilationConfig, compiled: _Compiled) -> int:
    """Return the workspace at `--optimize ram-least` in bytes."""
    if config.optimize is Optimize.RAM_LEAST:
        return compiled.program.placement.workspace_size
    goal = config.without_limits().with_(optimize=Optimize.RAM_LEAST)
    lowered = driver.lower(module.with_configuration(goal))
    return lowered.require_program("report").placement.workspace_size


def _pushes(
    module: IRModule, config: CompilationConfig, compiled: _Compiled
) -> data.ReportedPushes | None:
    """Return what pushes are beside runs of the whole window; None if nothing is streamed."""
    graph = compiled.artifact.module.graph
    assert graph is not None, "a frontend read the graph"
    if graph.stream is None:
        return None
    whole = _compile(module.with_configuration(config.without_stream()), None)
    layers = make_layers(LayerCalls.of(whole.program), whole.model.decisions)
    expected = sum(layer.choice.instructions or 0 for layer in layers if layer.choice)
    ram = footprint(whole.artifact.metadata).of_model
    return pushes_of(graph.stream, data.WholeRun(expected, ram))


def _facts(compiled: _Compiled, config: CompilationConfig, least: int) -> data.Report:
    model = compiled.model
    calls = LayerCalls.of(compiled.program)
    pools = make_pools(model, calls)
    placed = frozenset(buffer.name for pool in pools for buffer in pool.buffers)
    limits = _limits(config, model.memory, compiled)
    layers = with_excesses(
        make_layers(calls, model.decisions), calls.steps, _of_ram(limits, pools),
        next((limit for limit in limits if limit.option == _STACK), None),
        {f.function.name for f in compiled.program.figures.stacks.best.frames if f.function},
    )  # fmt: skip
    return data.Report(
        generator=f"microtir {__version__}",
        model=model.name,
        file=model.source_file,
        sha256=model.source_sha256,
        quantised_sha256=model.quantised_sha256,
        model_bytes=model.source_bytes,
        optimize=config.optimize.value,
        targets=tuple(str(target) for target in config.targets),
        options=tuple((key, json.dumps(value)) for key, value in config.to_dict().items()),
        pools=pools,
        ports=make_ports(model, calls, placed),
        ram=footprint(compiled.artifact.metadata),
        steps=calls.steps,
        streams=calls.streams,
        layers=layers,
        constants=make_constants(calls),
        weights_bytes=compiled.weights_bytes,
        code_bytes=compiled.code_bytes,
        limits=tuple(limits),
        least=least,
        profile=None,
        constant_pools=tuple(_constant_pools(config, compiled.artifact.module)),
        states=tuple(
            data.ReportedState(state.name, type_text(state.type), state.type.bytes)
            for state in model.states
        ),
        images=compiled.program.graph.images,
        declined=compiled.program.declined.text if compiled.program.declined else "",
    )


def _of_ram(
    limits: Sequence[data.ReportedLimit], pools: Sequence[data.ReportedPool]
) -> list[tuple[data.ReportedLimit, Sequence[data.ReportedPool]]]:
    by_option = {f"pool {pool.name}": [pool] for pool in pools} | {_RAM: list(pools)}
    return [(limit, by_option[limit.option]) for limit in limits if limit.option in by_option]


def _constant_pools(
    config: CompilationConfig, module: IRModule
) -> Iterator[data.ReportedConstantPool]:
    for info, pool in zip(config.constant_pools, module.constants.pools, strict=True):
        known = info.pool_info_properties
        yield data.ReportedConstantPool(pool.name, pool.size, known.section, known.is_internal)


def _limits(
    config: CompilationConfig, memory: MemoryPlan, compiled: _Compiled
) -> list[data.ReportedLimit]:
    flash = compiled.weights_bytes + compiled.code_bytes
    facts = compiled.artifact.metadata
    stack = facts.stack.bytes
    code = "estimated" if compiled.code_bytes == facts.code_bytes_estimate else "compiled"
    what = "workspace and the state" if facts.state is not None else "workspace"
    possible = [
        (_RAM, what, config.budget.ram, footprint(facts).budgeted),
        *(
            (f"pool {info.pool_name}", "workspace", info.size_limit, pool.size)
            for info, pool in zip(config.workspace_pools, memory.pools, strict=True)
        ),
        *(
            (f"constants {info.pool_name}", "weights in the pool", info.size_limit, pool.size)
            for info, pool in zip(
                config.constant_pools, compiled.artifact.module.constants.pools, strict=True
            )
        ),
        ("budget.flash", f"weights and the {code} code", config.budget.flash, flash),
        (_STACK, "stack of one run", config.budget.stack, stack),
    ]
    return [
        data.ReportedLimit(option, what, allowed, used)
        for option, what, allowed, used in possible
        if allowed is not None
    ]
