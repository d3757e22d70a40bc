"""From a model to the facts of its report: calls the driver and reads what it shows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from microtir import __version__, driver
from microtir.config import CompilationConfig
from microtir.config.budget import Budget
from microtir.config.enums import Optimize
from microtir.config.pools import (
    ConstantPoolInfo,
    PoolInfo,
    PoolInfoProperties,
    WorkspacePoolInfo,
)
from microtir.errors import MemoryPlanError, UsageError
from microtir.ir_module import IRModule, MemoryPlan, ModelInfo
from microtir.plan.ir import Plan
from microtir.report import data
from microtir.report.buffers import make_pools, make_ports
from microtir.report.calls import Calls
from microtir.report.layers import make_constants, make_layers
from microtir.report.profile import Measured, with_profile
from microtir.tir.ir import PrimFunc


@dataclass(frozen=True, slots=True)
class _Compiled:
    """A compiled model with what the driver showed on the way."""

    module: IRModule
    plan: Plan
    layers: tuple[PrimFunc, ...]
    main: PrimFunc  # before placement: its buffers still have names
    weights_bytes: int
    code_bytes: int  # an estimate
    stack_bytes: int

    @property
    def model(self) -> ModelInfo:
        assert self.module.model is not None  # a frontend gave the graph
        return self.module.model


def describe(module: IRModule, profile: Measured | None = None) -> data.Report:
    """Compile a model and describe the result.

    A model that exceeds a limit of its configuration is described without that limit, and the
    report says by how much.

    Args:
        module: a graph with its configuration.
        profile: what a profile of the same model measured.

    Raises:
        UsageError: the module has no graph.
        DataFileError: the profile is of another model, or of other options.
        MicrotirError: any diagnostic of compiling.
    """
    if module.graph is None:
        raise UsageError(
            "the module holds functions and no graph",
            where="report",
            legal="a module from `microtir.frontend`",
        )
    config = module.require_config("report")
    try:
        compiled = _compile(module)
    except MemoryPlanError:
        unlimited = without_limits(config)
        if unlimited == config:
            raise
        compiled = _compile(module.with_configuration(unlimited))
    report = _facts(compiled, config, _least(module, config, compiled))
    return with_profile(report, profile) if profile else report


def without_limits(config: CompilationConfig) -> CompilationConfig:
    """The configuration without the limits that placement and weights are checked against."""

    def unlimited(pool: PoolInfo) -> PoolInfoProperties:
        return replace(pool.pool_info_properties, size_hint_bytes=-1)

    return config.with_(
        budget=Budget(),
        workspace_pools=[
            WorkspacePoolInfo(p.pool_name, p.targets, unlimited(p)) for p in config.workspace_pools
        ],
        constant_pools=[
            ConstantPoolInfo(p.pool_name, p.targets, unlimited(p)) for p in config.constant_pools
        ],
    )


def _compile(module: IRModule) -> _Compiled:
    plans: list[Plan] = []
    functions: dict[str, Sequence[PrimFunc]] = {}

    def observe(stage: str, result: object) -> None:
        match result:
            case Plan():
                plans.append(result)
            case PrimFunc():
                functions[stage] = (result,)
            case tuple():
                functions[stage] = result
            case _:
                return

    artifact = driver.build(module, observe=observe)
    (main,) = functions["executor"]
    facts = artifact.metadata
    return _Compiled(
        artifact.module, plans[-1], tuple(functions["tir"]), main, facts["weights_bytes"],
        facts["code_bytes_estimate"], facts["stack"]["bytes"],
    )  # fmt: skip


def _least(module: IRModule, config: CompilationConfig, compiled: _Compiled) -> int:
    """Bytes of workspace at `--optimize ram`."""
    if config.optimize is Optimize.RAM:
        return compiled.model.memory.workspace_size
    goal = without_limits(config).with_(optimize=Optimize.RAM)
    lowered = driver.lower(module.with_configuration(goal))
    assert lowered.model is not None
    return lowered.model.memory.workspace_size


def _facts(compiled: _Compiled, config: CompilationConfig, least: int) -> data.Report:
    model, plan = compiled.model, compiled.plan
    calls = Calls.of(plan, compiled.layers, compiled.main)
    pools = make_pools(model, calls)
    placed = frozenset(buffer.name for pool in pools for buffer in pool.buffers)
    return data.Report(
        generator=f"microtir {__version__}",
        model=model.name,
        file=model.source_file,
        sha256=model.source_sha256,
        model_bytes=model.source_bytes,
        optimize=config.optimize.value,
        targets=tuple(str(target) for target in config.targets),
        options=tuple((key, json.dumps(value)) for key, value in config.to_dict().items()),
        pools=pools,
        ports=make_ports(model, calls, placed),
        steps=calls.steps,
        streams=calls.streams,
        layers=make_layers(calls, model.decisions),
        constants=make_constants(calls),
        weights_bytes=compiled.weights_bytes,
        code_bytes=compiled.code_bytes,
        limits=tuple(_limits(config, model.memory, compiled)),
        least=least,
        profile=None,
        constant_pools=tuple(_constant_pools(config, compiled.module)),
    )


def _constant_pools(config: CompilationConfig, module: IRModule) -> Iterator[data.ConstantPool]:
    for info, pool in zip(config.constant_pools, module.constants.pools, strict=True):
        known = info.pool_info_properties
        yield data.ConstantPool(pool.name, pool.size, known.section, known.is_internal)


def _limits(config: CompilationConfig, memory: MemoryPlan, compiled: _Compiled) -> list[data.Limit]:
    flash = compiled.weights_bytes + compiled.code_bytes
    possible = [
        ("budget.ram", "workspace", config.budget.ram, memory.workspace_size),
        *(
            (f"pool {info.pool_name}", "workspace", info.size_limit, pool.size)
            for info, pool in zip(config.workspace_pools, memory.pools, strict=True)
        ),
        *(
            (f"constants {info.pool_name}", "weights in the pool", info.size_limit, pool.size)
            for info, pool in zip(
                config.constant_pools, compiled.module.constants.pools, strict=True
            )
        ),
        ("budget.flash", "weights and the estimated code", config.budget.flash, flash),
        ("budget.stack", "stack of one run", config.budget.stack, compiled.stack_bytes),
    ]
    return [
        data.Limit(option, what, allowed, used)
        for option, what, allowed, used in possible
        if allowed is not None
    ]
