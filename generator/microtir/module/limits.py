"""Limits that a configuration sets on a program's workspace, and by how much it exceeds one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from microtir.config import CompilationConfig
from microtir.tir.memory_plan import MemoryPlan

RAM_BUDGET = "budget.ram"


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit of `bytes` that the option `field` sets; `holder` names what is limited.

    `pool` is the number of the pool that is, if it is one of several.  A budget counts what the
    model keeps between runs, too, which no plan changes.
    """

    field: str
    holder: str
    bytes: int
    pool: int | None = None

    @property
    def counts_state(self) -> bool:
        return self.field == RAM_BUDGET

    def taken(self, plan: MemoryPlan) -> int:
        if self.counts_state:
            return plan.budgeted
        return plan.workspace_size if self.pool is None else plan.pools[self.pool].size


def workspace_limits(config: CompilationConfig) -> Iterator[Limit]:
    """Yield what limits the workspace: the budget, and the size of each pool."""
    if config.budget.ram is not None:
        yield Limit(RAM_BUDGET, "the budget", config.budget.ram)
    pools = config.workspace_pools
    for number, pool in enumerate(pools):
        if pool.size_limit is not None:
            holder = f"the pool '{pool.pool_name}'"
            among = None if len(pools) == 1 else number
            yield Limit("workspace_pools.size_hint_bytes", holder, pool.size_limit, among)


def workspace_excess(config: CompilationConfig, plan: MemoryPlan) -> int:
    """Return the bytes by which a plan exceeds the limit that it exceeds most."""
    limits = workspace_limits(config)
    return max((limit.taken(plan) - limit.bytes for limit in limits), default=0)
