"""CompilationConfig: every option of a compilation in one frozen object, checked at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import PurePath
from typing import Any

from microtir.config import enums, serial
from microtir.config.budget import Budget
from microtir.config.executor import Executor
from microtir.config.explain import explain
from microtir.config.external import External, externals
from microtir.config.fault_checks import check_fault_checks
from microtir.config.fields import ConfigFields
from microtir.config.option import Section
from microtir.config.optionmap import store
from microtir.config.options import find
from microtir.config.passes import PassConfig
from microtir.config.pool_options import DEFAULT_WORKSPACE
from microtir.config.pool_rules import check_pool_use, port_pools
from microtir.config.pools import (
    ConstantPoolInfo,
    PoolInfo,
    WorkspacePoolInfo,
    check_pools,
    pool_from,
)
from microtir.config.row_ports import check_row_ports
from microtir.config.run_parameters import check_run_parameters
from microtir.config.runtime import Runtime
from microtir.config.target import Target, TargetLike, TargetsLike, targets_from
from microtir.errors import ConfigError, Fix
from microtir.instruction_sets.features import Feature
from microtir.support.arguments import checked_arguments
from microtir.support.shown import shown


@dataclass(frozen=True, slots=True, init=False, repr=False)
class CompilationConfig(ConfigFields):
    """Everything that a compilation is asked for: targets, memories, goal, limits, options.

    Everything is checked here: after construction no stage meets an unset, illegal or
    inconsistent option, nor one that is not built yet. Fields are given by name; what each
    means and may be is in docs/configuration.md and `microtir options`.

    Args:
        targets: one or more targets, in any form that `Target` takes; kinds are unique. A host
            that a target names becomes `target_host`.
        target_host: the target that runs the entry function. Left out: the host that a target
            names, else the first target that can host, else `c`.
        executor: an Executor, or its name.
        runtime: a Runtime, or its name.
        workspace_pools: the memories for activations, which the application passes to the run
            function unless they are internal; left out: one pool `workspace`, unlimited.
        constant_pools: memories for weights, which are const arrays in a section of each.
        module_name: a C identifier; names files and public identifiers. Left out: the name of the
            model's file.
        numerics: the reference that results are equal to.
        optimize: the goal that candidates are ranked by.
        measure: what the price of a candidate is counted in.
        compatibility: whose C interface is generated beside microtir's own.
        annotations: the language of comments that state what was proven of each function.
        constant_time: refuse a model whose number of instructions may depend on data.
        fault_checks: whether and when checksums of weights and states are compared.
        canaries: whether words around each workspace are compared after each layer.
        external: third-party kernel libraries.
        tuning_records: a file with measured costs of kernels, from `microtir tune`.
        stateful: whether a run is given one step of a sequence, and recurrent layers keep states.
        states: inputs that keep what outputs were, as INPUT=OUTPUT.
        stream_axis: of the input, along which a run is given the newest frames of a window.
        stream_hop: how many frames that are.
        rename_input: names that inputs get, as NAME=NEW.
        rename_output: names that outputs get.
        prepend: steps from what a sensor gives to what an input takes.
        append: steps from what an output gives to what the application wants.
        budget: limits in bytes.
        pass_config: options of single passes.

    Raises:
        ConfigError: says which field, what was given, what is legal, and the nearest name.
    """

    def __init__(
        self,
        *,
        targets: TargetsLike,
        target_host: TargetLike | None = None,
        executor: Executor | enums.ExecutorKind | str = "aot",
        runtime: Runtime | enums.RuntimeKind | str = "crt",
        workspace_pools: Iterable[WorkspacePoolInfo | str | Mapping[str, object]] | None = None,
        constant_pools: Iterable[ConstantPoolInfo | str | Mapping[str, object]] | None = None,
        module_name: str = "",
        numerics: enums.Numerics | str = enums.Numerics.MODEL,
        optimize: enums.Optimize | str = enums.Optimize.BALANCED,
        measure: enums.Measure | str = enums.Measure.MODEL,
        compatibility: enums.Compatibility | str = enums.Compatibility.NONE,
        annotations: enums.Annotations | str = enums.Annotations.NONE,
        constant_time: bool = False,
        fault_checks: enums.FaultChecks | str = enums.FaultChecks.NONE,
        canaries: bool = False,
        external: External | str | Iterable[External | str] | None = None,
        tuning_records: str = "",
        stateful: bool = False,
        states: str = "",
        stream_axis: str = "",
        stream_hop: int = 1,
        rename_input: str = "",
        rename_output: str = "",
        prepend: str = "",
        append: str = "",
        budget: Budget | Mapping[str, int | None] | None = None,
        pass_config: PassConfig | Mapping[str, object] | None = None,
    ) -> None:
        checked = _checked_targets(targets)
        alone = tuple(target.without_host() for target in checked)
        store(self, targets=alone, target_host=resolve_host(checked, target_host))
        store(
            self,
            executor=executor if isinstance(executor, Executor) else Executor(executor),
            runtime=runtime if isinstance(runtime, Runtime) else Runtime(runtime),
            workspace_pools=_workspace_pools(workspace_pools, alone),
            constant_pools=_constant_pools(constant_pools, alone),
            module_name=_option("module_name", module_name),
            numerics=enums.Numerics(_option("numerics", numerics)),
            optimize=enums.Optimize(_option("optimize", optimize)),
            measure=enums.Measure(_option("measure", measure)),
            compatibility=enums.Compatibility(_option("compatibility", compatibility)),
            annotations=enums.Annotations(_option("annotations", annotations)),
            constant_time=_flag("constant_time", constant_time),
            fault_checks=enums.FaultChecks(_option("fault_checks", fault_checks)),
            canaries=_flag("canaries", canaries),
            external=externals(external),
            tuning_records=_option("tuning_records", tuning_records),
            stateful=_flag("stateful", stateful),
            states=_option("states", states),
            stream_axis=_option("stream_axis", stream_axis),
            stream_hop=find(Section.CONFIG, "stream_hop").check(stream_hop),
            **_options(rename_input=rename_input, rename_output=rename_output),
            **_options(prepend=prepend, append=append),
        )
        store(self, budget=_budget(budget), pass_config=_pass_config(pass_config))
        self._check()

    def _check(self) -> None:
        """Check that what is asked for is built, and that no option contradicts another."""
        find(Section.CONFIG, "executor").check_built(self.executor.name)
        self.executor.check_built()
        self.runtime.check_built()
        self.budget.check_built()
        self.pass_config.check_built()
        self._check_workspace_io()
        self._check_compatibility()
        self._check_measure()
        self._check_stream()
        self._check_steps()
        check_row_ports(self)
        check_run_parameters(self)
        check_fault_checks(self)
        check_pool_use(self)

    def _check_workspace_io(self) -> None:
        packed = self.entry_calling_convention() is enums.CallingConvention.PACKED
        if not self.pass_config.use_workspace_io or not (packed or self.needs_packed_wrapper()):
            return
        interface = "interface-api 'packed'" if packed else "'system-lib' = True"
        raise ConfigError(
            "pass_config option 'memory.use_workspace_io' is True, which cannot be combined "
            f"with {interface}, because the caller of a packed function chooses the addresses of "
            "tensors",
            where="pass_config.memory.use_workspace_io",
            legal="True only with interface-api 'c' and without system-lib",
            fix="leave out one of the two options",
        )

    def _check_compatibility(self) -> None:
        if self.compatibility is enums.Compatibility.NONE:
            return
        conflict, fix = "", ""
        if self.is_graph() and self.declares_workspace():
            conflict = f"a declared workspace pool with executor '{self.executor.name}'"
            fix = "leave out the pool: TVMGraphExecutor_Create() asks the application for memory"
        elif not self.is_graph() and not self.should_link_params():
            conflict = "'link-params' = False with executor 'aot'"
            fix = Fix("use link-params True", "use --executor-aot-link-params 1")
        elif self.entry_calling_convention() is enums.CallingConvention.PACKED and (
            self.declares_workspace()
        ):
            conflict = "a declared workspace pool with interface-api 'packed'"
            fix = "leave out the pool, because a packed function has no argument for a pool"
        elif self.pass_config.use_workspace_io and not self.declares_workspace():
            conflict = "memory.use_workspace_io without a declared workspace pool"
            declare = "declare a pool for microTVM's functions:"
            fix = Fix(f"{declare} workspace_pools='sram'", f"{declare} --workspace-pools sram")
            if self.is_graph():
                fix = "leave it out: the graph executor has separate memory for tensors"
        if conflict:
            raise ConfigError(
                f"option 'compatibility' is '{self.compatibility}', which excludes {conflict}",
                where="compatibility",
                legal="'microtvm' with executor 'graph', or with executor 'aot' and linked weights",
                fix=fix,
            )

    def _check_measure(self) -> None:
        target = self.primary_target()
        if self.measure is not enums.Measure.CYCLES or not target.has(Feature.BIT64):
            return
        raise ConfigError(
            f"option 'measure' is 'cycles', but cycles of '{target}' cannot be estimated, because "
            "64-bit CPUs start several instructions at the same time",
            where="measure",
            legal="cycles only for microcontrollers; instructions for every target",
            fix="leave out measure, or name a microcontroller, such as 'c -mcpu=cortex-m4'",
        )

    def _check_steps(self) -> None:
        if not self.executor.steps:
            return
        if self.entry_calling_convention() is not enums.CallingConvention.PACKED:
            return
        raise ConfigError(
            "aot executor option 'steps' is True, which cannot be combined with interface-api "
            "'packed', because a packed call runs the whole model",
            where="executor.steps",
            legal="True only with interface-api 'c'",
            fix="leave out one of the two options",
        )

    def _check_stream(self) -> None:
        if self.stream_hop > 1 and not self.stream_axis:
            raise ConfigError(
                f"option 'stream_hop' is {self.stream_hop}, but 'stream_axis' is missing, so that "
                "a run takes whole inputs instead of frames",
                where="stream_hop",
                legal="1, or a larger number of frames together with stream_axis",
                fix="set stream_axis to the time axis, or leave out stream_hop",
            )
        if not (self.stateful and self.stream_axis):
            return
        raise ConfigError(
            f"option 'stream_axis' is '{self.stream_axis}', which cannot be combined with "
            "'stateful' = True. A run takes either one step of a sequence, or the newest frames of "
            "a window",
            where="stream_axis",
            legal="an axis, if stateful is False",
            fix="leave out one of the two options",
        )

    @staticmethod
    def from_target(
        target: TargetsLike, target_host: TargetLike | None = None
    ) -> CompilationConfig:
        """Return the configuration that ``build(mod, target)`` stands for: all else at default."""
        return CompilationConfig(targets=target, target_host=target_host)

    def with_(self, **changes: Any) -> CompilationConfig:
        """Return a copy with some fields changed; a host that followed from the targets does again.

        Raises:
            ConfigError: an unknown field, or the result is not legal.
        """
        for name in changes:
            find(Section.CONFIG, name)
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        if "targets" in changes and self.target_host == resolve_host(self.targets, None):
            del values["target_host"]
        return CompilationConfig(**{**values, **changes})

    def without_limits(self) -> CompilationConfig:
        return self.with_(
            budget=Budget(),
            workspace_pools=[pool.without_limit() for pool in self.workspace_pools],
            constant_pools=[pool.without_limit() for pool in self.constant_pools],
        )

    def without_stream(self) -> CompilationConfig:
        """Return the configuration for runs of whole windows, without limits."""
        return self.without_limits().with_(stream_axis="", stream_hop=1)

    def input_pools(self) -> tuple[int, ...]:
        """Return positions of the workspace pools that inputs may be placed in."""
        return port_pools(self, self.pass_config.input_pool)

    def output_pools(self) -> tuple[int, ...]:
        """Return positions of the workspace pools that outputs may be placed in."""
        return port_pools(self, self.pass_config.output_pool)

    def to_dict(self) -> dict[str, object]:
        """Return all fields as JSON values.

        Options are written out even where they are defaults, so that a file keeps its meaning
        when a default changes.
        """
        return serial.to_dict(self)

    def recorded(self) -> dict[str, object]:
        """Return `to_dict` for generated files, without what only this machine knows (folders)."""
        return serial.to_dict(self._without_folders())

    def recorded_changes(self) -> dict[str, object]:
        """Return the targets and the options that are not at their defaults, as `recorded` does."""
        return serial.changes(self._without_folders(), CompilationConfig(targets=self.targets))

    def _without_folders(self) -> CompilationConfig:
        known = tuple(library.without_path() for library in self.external)
        records = PurePath(self.tuning_records).name
        return self.with_(external=known or None, tuning_records=records)

    @staticmethod
    @checked_arguments
    def from_dict(data: Mapping[str, Any]) -> CompilationConfig:
        """Return the configuration that `to_dict` wrote; missing fields take their defaults.

        Raises:
            ConfigError: an unknown field or an illegal value.
        """
        return CompilationConfig(**serial.arguments(data))

    def to_json(self) -> str:
        """Return `to_dict` as text, the same on every machine."""
        return serial.to_text(self.to_dict())

    @staticmethod
    @checked_arguments
    def from_json(text: str) -> CompilationConfig:
        """Return the configuration that `to_json` wrote.

        Raises:
            ConfigError: the text is no JSON object, or has an unknown field or illegal value.
        """
        return CompilationConfig.from_dict(serial.from_text(text))

    def explain(self) -> str:
        """Return a table of every option with its value and where the value comes from."""
        return explain(self, CompilationConfig(targets=self.targets))

    def __repr__(self) -> str:
        """Return a call that makes an equal one, with the names that `microtir` itself exports."""
        plain = CompilationConfig(targets=self.targets)
        return f"CompilationConfig({serial.call_arguments(self, plain)})"


def resolve_host(targets: tuple[Target, ...], asked: TargetLike | None) -> Target:
    """Return the host: as given, else named by a target, else the first target, else plain `c`.

    Every target kind that exists runs on a CPU, so that the first target can always host.

    Raises:
        ConfigError: the host has a host of its own, or a target names another one.
    """
    named = [target.host for target in targets if target.host is not None]
    if asked is None:
        return next(iter([*named, *targets]), Target("c")).without_host()
    try:
        host = Target(asked)
    except ConfigError as error:
        raise ConfigError(
            f"option 'target_host' is not a target: {error.what}",
            where="target_host",
            legal=error.legal,
            fix=error.fix,
        ) from None
    if host.host is not None:
        raise ConfigError(
            f"option 'target_host' is '{host}', which names another host",
            where="target_host",
            fix=f"use '{host.without_host()}'",
        )
    for other in named:
        if other != host:
            raise ConfigError(
                f"option 'target_host' is '{host}', but a target names the host '{other}'",
                where="target_host",
                fix="name the host only once",
            )
    return host


def _checked_targets(value: object) -> tuple[Target, ...]:
    targets = targets_from(value, "targets")
    if not targets:
        raise ConfigError("option 'targets' is empty", where="targets", legal="one or more targets")
    kinds = [target.kind for target in targets]
    for kind in kinds:
        if kinds.count(kind) > 1:
            raise ConfigError(
                f"option 'targets' has several targets of kind '{kind}'",
                where="targets",
                legal="one target of each kind",
                fix="build the model separately for each target",
            )
    return targets


def _workspace_pools(value: object, targets: tuple[Target, ...]) -> tuple[PoolInfo, ...]:
    pools = _pools([DEFAULT_WORKSPACE] if value is None else value, WorkspacePoolInfo)
    check_pools(pools, targets, WorkspacePoolInfo.field)
    if not pools:
        raise ConfigError(
            "option 'workspace_pools' has 0 pools, so that there is no memory to use",
            where="workspace_pools",
            legal="one or more pools",
            fix="declare a pool, or leave out the field",
        )
    return pools


def _constant_pools(value: object, targets: tuple[Target, ...]) -> tuple[PoolInfo, ...]:
    pools = _pools([] if value is None else value, ConstantPoolInfo)
    check_pools(pools, targets, ConstantPoolInfo.field)
    return pools


def _pools(value: object, kind: type[PoolInfo]) -> tuple[PoolInfo, ...]:
    if isinstance(value, (str, Mapping, PoolInfo)):
        value = (value,)
    if not isinstance(value, Iterable):
        raise ConfigError(
            f"option '{kind.field}' is {shown(value)}",
            where=kind.field,
            legal=find(Section.CONFIG, kind.field).legal(),
        )
    return tuple(pool_from(pool, kind) for pool in value)


def _pass_config(options: PassConfig | Mapping[str, object] | None) -> PassConfig:
    return options if isinstance(options, PassConfig) else PassConfig(options)


def _budget(value: object) -> Budget:
    if isinstance(value, Budget):
        return value
    if value is None:
        return Budget()
    if isinstance(value, Mapping):
        for name in value:
            find(Section.BUDGET, name)
        return Budget(**value)
    raise ConfigError(
        f"option 'budget' is {shown(value)}",
        where="budget",
        legal=find(Section.CONFIG, "budget").legal(),
    )


def _flag(name: str, value: object) -> bool:
    return bool(find(Section.CONFIG, name).check(value))


def _options(**values: object) -> dict[str, str]:
    return {name: _option(name, value) for name, value in values.items()}


def _option(name: str, value: object) -> str:
    option = find(Section.CONFIG, name)
    stored = option.check(value)
    option.check_built(stored)
    return str(stored)
