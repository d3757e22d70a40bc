"""The fields of a configuration, and what follows from them alone."""

from __future__ import annotations

from dataclasses import dataclass

from microtir.config import enums
from microtir.config.budget import Budget
from microtir.config.executor import Executor
from microtir.config.external import External
from microtir.config.passes import PassConfig
from microtir.config.pool_options import DEFAULT_WORKSPACE
from microtir.config.pools import ConstantPoolInfo, WorkspacePoolInfo
from microtir.config.runtime import Runtime
from microtir.config.target import Target


@dataclass(frozen=True, slots=True, init=False, repr=False)
class ConfigFields:
    """The fields of `CompilationConfig` and their checks, all that rules and texts need of it."""

    target_host: Target
    targets: tuple[Target, ...]
    executor: Executor
    runtime: Runtime
    workspace_pools: tuple[WorkspacePoolInfo, ...]
    constant_pools: tuple[ConstantPoolInfo, ...]
    module_name: str
    numerics: enums.Numerics
    optimize: enums.Optimize
    measure: enums.Measure
    compatibility: enums.Compatibility
    annotations: enums.Annotations
    constant_time: bool
    fault_checks: enums.FaultChecks
    canaries: bool
    external: tuple[External, ...]
    tuning_records: str
    stateful: bool
    states: str
    stream_axis: str
    stream_hop: int
    rename_input: str
    rename_output: str
    prepend: str
    append: str
    budget: Budget
    pass_config: PassConfig

    def primary_target(self) -> Target:
        """Return the target of an operator that is not assigned to another."""
        return self.targets[0]

    def should_link_params(self) -> bool:
        """Return whether weights are part of the generated code."""
        return self.executor.link_params

    def entry_calling_convention(self) -> enums.CallingConvention:
        """Return how the entry function takes its arguments."""
        c_api = self.executor.interface_api is enums.InterfaceApi.C
        return enums.CallingConvention.UNPACKED if c_api else enums.CallingConvention.PACKED

    def needs_packed_wrapper(self) -> bool:
        """Return whether a packed function that calls the entry function must be generated.

        A system library registers packed functions only. Where the entry function is not
        packed, registering it under a packed prototype is what microTVM did: the C did not
        compile.
        """
        unpacked = self.entry_calling_convention() is enums.CallingConvention.UNPACKED
        return self.runtime.system_lib and unpacked

    def is_graph(self) -> bool:
        """Return whether a model is printed as a table of calls; others have no executor."""
        return self.executor.kind is not enums.ExecutorKind.AOT

    def runs_observed(self) -> bool:
        """Return whether a run can tell of each node: names, times and checksums are generated."""
        return self.executor.kind is enums.ExecutorKind.DEBUG

    def keeps_layouts(self) -> bool:
        """Return whether all tensors lie in memory as in the model.

        Those of the graph executors are seen by whoever asks for them.
        """
        return self.is_graph()

    def splits_images(self) -> bool:
        """Return whether the entry function may run for each image of a batch.

        It needs pointers to all tensors, whole, and outside of the workspace.
        """
        by_rows = self.executor.row_fed_inputs or self.executor.row_drained_outputs
        return not (self.is_graph() or by_rows or self.pass_config.use_workspace_io)

    def has_packed_operators(self) -> bool:
        """Return whether operators take packed arguments."""
        return not self.executor.unpacked_api

    def passed_pools(self) -> tuple[WorkspacePoolInfo, ...]:
        """Return the memories for activations that the application passes to the run function."""
        return tuple(p for p in self.workspace_pools if not p.pool_info_properties.is_internal)

    def passed_constant_pools(self) -> tuple[ConstantPoolInfo, ...]:
        """Return the memories with constants that the application passes to the run function."""
        return tuple(p for p in self.constant_pools if not p.pool_info_properties.is_internal)

    def workspace_room(self) -> int | None:
        """Return bytes that all workspace pools have together, or None if one has no limit."""
        limits = [pool.size_limit for pool in self.workspace_pools]
        known = [limit for limit in limits if limit is not None]
        return sum(known) if len(known) == len(limits) else None

    def workspace_limit(self, state: int = 0) -> int | None:
        """Return the bytes that a workspace may take, by budget and pools; None if any number.

        Args:
            state: bytes that the model keeps between runs, which a budget counts, too.
        """
        budget = None if self.budget.ram is None else self.budget.ram - state
        limits = (budget, self.workspace_room())
        return min((limit for limit in limits if limit is not None), default=None)

    def has_limits(self) -> bool:
        """Return whether a program has to keep to a limit of any kind."""
        return self.budget != Budget() or self.workspace_limit() is not None

    def declares_workspace(self) -> bool:
        """Return whether the user named the memory for activations."""
        return self.workspace_pools != (WorkspacePoolInfo(DEFAULT_WORKSPACE),)

    def workspace_alignment(self) -> int:
        """Return least alignment, in bytes, of the workspace and of every buffer in it."""
        return self.executor.workspace_byte_alignment or self._natural_alignment()

    def constant_alignment(self) -> int:
        """Return least alignment, in bytes, of every constant array."""
        return self.executor.constant_byte_alignment or self._natural_alignment()

    def _natural_alignment(self) -> int:
        # Buffers are touched on every processor of the configuration: the strictest decides.
        return max(t.natural_alignment() for t in (*self.targets, self.target_host))
