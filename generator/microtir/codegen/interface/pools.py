"""Names workspace pools in C: parameters of the run function, or arrays of the generated code."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from microtir.codegen.interface.parts import Draft, Part, Place, parts_at, rendered
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
    arguments = ["inputs", "outputs", *["state"] * bool(program.states)]
    for taken in (*arguments, *(GRAPH_LOCALS if program.is_graph else ())):
        names.reserve(taken)
    return names


def passed_pools(program: CProgram) -> tuple[WorkspacePool, ...]:
    """Return the pools to which the run function takes pointers."""
    return tuple(pool for pool in workspace_pools(program) if not pool.is_internal)


def internal_pools(program: CProgram) -> tuple[WorkspacePool, ...]:
    """Return the pools that are arrays of the generated code."""
    return tuple(pool for pool in workspace_pools(program) if pool.has_array)


def named_pools(program: CProgram) -> tuple[WorkspacePool, ...]:
    """Return pools whose macros have the pool's name: all, unless there is one that is passed."""
    pools = workspace_pools(program)
    return () if len(pools) == 1 == len(passed_pools(program)) else pools


def _pool_macro(program: CProgram, pool: WorkspacePool) -> str:
    is_alone = not named_pools(program)
    what = "workspace" if is_alone else f"memory in the pool '{pool.plan.name}'"
    if not pool.size:
        return (
            f"/* This model needs no {what}; the macro exists so that applications can always use "
            f"it. */\n#define {pool.macro}(variable) uint8_t variable[1]\n"
            + _pool_struct(program, pool, "uint8_t bytes[1];")
        )
    section = f'{program.macro}_SECTION("{pool.section}") ' if pool.section else ""
    declares = "a workspace" if is_alone else what
    variable = "my_workspace" if is_alone else f"my_{pool.name}"
    return (
        f"/* Declares {declares}, for example: static {pool.macro}({variable}); */\n"
        f"#define {pool.macro}(variable) \\\n"
        f"    {program.macro}_ALIGNED({pool.macro}_ALIGNMENT) \\\n"
        f"    {section}uint8_t variable[{pool.macro}_SIZE]\n"
        + _pool_struct(
            program,
            pool,
            f"{program.macro}_ALIGNED({pool.macro}_ALIGNMENT)\n"
            f"    uint8_t bytes[{pool.macro}_SIZE];",
        )
    )


def _pool_struct(program: CProgram, pool: WorkspacePool, member: str) -> str:
    """Return memory as a type.

    Elements of an array of them are aligned, which those of bytes are not.
    """
    tag = f"{program.name}{pool.macro.removeprefix(program.macro).lower()}"
    comment = "/* The same memory as a type, for arrays, struct members and linker sections. */"
    return f"{comment}\nstruct {tag} {{\n    {member}\n}};"


def parts(draft: Draft) -> Iterator[Part]:
    """Yield macros of the pools that are passed, and arrays of the others."""
    program = draft.program
    macros = (_pool_macro(program, pool) for pool in passed_pools(program))
    yield from parts_at(Place.POOL_MACROS, macros)
    for pool in internal_pools(program):
        yield rendered(Place.POOL_ARRAYS, "pool.c.j2", macro=program.macro, pool=pool)
    # The runtime of a graph finds its pools in a table.
    if any(pool.size for pool in workspace_pools(program)) and not program.is_graph:
        yield rendered(Place.POOL_ARRAYS, "pool_address.c.j2", name=program.name)
