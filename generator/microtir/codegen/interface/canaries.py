"""Prints canaries: words at both ends of a workspace pool, by which a run notices foreign writes.

No layer writes them, so that a word that has changed is a write beyond an end of a neighbour, such
as a stack that overflows.  They are compared after each layer, before another layer goes on.
"""

from __future__ import annotations

from collections.abc import Iterator

from microtir.codegen.interface.parts import Draft, Part, Place, rendered
from microtir.codegen.interface.pools import WorkspacePool, workspace_pools
from microtir.codegen.program import CANARY_STATUS, CProgram


def setting_of_canaries(program: CProgram) -> list[str]:
    """Return the statements with which a run sets its canaries."""
    return [f"{_call(program, 'set_canaries', pool)};" for pool in _pools(program)]


def check_of_canaries(program: CProgram) -> list[str]:
    """Return the statement that ends a run whose canaries have changed."""
    changed = [f"{_call(program, 'canaries_changed', pool)} != 0" for pool in _pools(program)]
    if not changed:
        return []
    return [f"if ({' || '.join(changed)}) {{", f"    return {program.macro}_{CANARY_STATUS};", "}"]


def parts(draft: Draft) -> Iterator[Part]:
    """Yield the functions that set and compare words, where a pool holds anything."""
    if _pools(draft.program):
        yield rendered(Place.HELPERS, "canaries.c.j2", name=draft.program.name)


def _pools(program: CProgram) -> list[WorkspacePool]:
    return [pool for pool in workspace_pools(program) if pool.plan.canary]


def _call(program: CProgram, function: str, pool: WorkspacePool) -> str:
    words = pool.plan.canary // 4
    return f"{program.name}_{function}({pool.name}, {pool.macro}_SIZE / 4u, {words}u)"
