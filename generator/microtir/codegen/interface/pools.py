"""Names workspace pools in C: parameters of the run function, or arrays of the generated code."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from microtir.codegen.printer.names import ScopedNames
from microtir.codegen.program import CProgram
from microtir.support.names import workspace_macro
from microtir.tir.memory_plan import PlannedPool

GRAPH_LOCALS = (
    "input_pointers", "output_pointers", "pool_pointers", "executor", "observer", "platform",
)  # fmt: skip
"""Names that a function that runs a graph declares besides the parameters of its tensors."""


@dataclass(frozen=True, slots=True)
class WorkspacePool:
    """A workspace pool, by its names in C.

    `name` is the parameter that takes a pointer to it, or the array of an internal one, `member`
    its name among pools; `macro` is what the macros about it begin with, and the one that declares
    memory for it.
    """

    name: str
    member: str
    macro: str
    plan: PlannedPool
    is_internal: bool
    section: str

    @property
    def size(self) -> int:
        """Return the bytes; nothing where no buffer is placed in it."""
        return self.plan.size

    @property
    def has_array(self) -> bool:
        """Return whether the generated code has an array for it."""
        return self.is_internal and self.size > 0


@lru_cache(maxsize=4)  # every file of a program asks
def workspace_pools(program: CProgram) -> tuple[WorkspacePool, ...]:
    """Return the workspace pools of a model, in the order of the configuration."""
    if program.model is None:
        return ()
    names = run_names(program)
    infos, pools = program.config.workspace_pools, []
    for info, plan in zip(infos, program.model.memory.pools, strict=True):
        properties = info.pool_info_properties
        is_alone = len(infos) == 1 and not properties.is_internal
        macro = workspace_macro(program.name, info.pool_name, is_alone=is_alone)
        internal = f"{program.name}_{info.c_name}_memory"
        name = internal if properties.is_internal else names.reserve(info.c_name)
        facts = (plan, properties.is_internal, properties.section)
        pools.append(WorkspacePool(name, info.c_name, macro, *facts))
    return tuple(pools)


def run_names(program: CProgram) -> ScopedNames:
    """Return the names of a run's parameters, for those of pools."""
    names = ScopedNames(program.file_names)
    given = ["inputs", "outputs", *["state"] * bool(program.states)]
    for taken in (*given, *(GRAPH_LOCALS if program.is_graph else ())):
        names.reserve(taken)
    return names


def passed_pools(program: CProgram) -> tuple[WorkspacePool, ...]:
    """Return the pools to which the run function takes pointers."""
    return tuple(pool for pool in workspace_pools(program) if not pool.is_internal)


def internal_pools(program: CProgram) -> tuple[WorkspacePool, ...]:
    """Return the pools that are arrays of the generated code."""
    return tuple(pool for pool in workspace_pools(program) if pool.has_array)
