"""Describes the pools of a project's models, and the application's memory for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from microtir.artifact import ConstantPoolData, MemoryData, PoolData
from microtir.boards.errors import ProjectError
from microtir.config.pool_options import DEFAULT_WORKSPACE
from microtir.support.encoding import Encoded, c_code
from microtir.support.names import c_name, constants_macro, macro_name, workspace_macro


@dataclass(frozen=True, slots=True)
class PoolValues:
    """A workspace pool that a model is given: texts of C.

    `memory` is the application's memory for it, which models share that run one after another;
    `member` is the model's part of that, and `declaration` declares it there: `offset` bytes from
    the beginning, which are those of models that may run at the same time. Memory that
    `is_watched` has canaries around it.
    """

    name: str
    macro: str
    memory: str
    member: str
    declaration: Encoded
    section: str
    bytes: int
    offset: int
    is_watched: bool = False

    @property
    def argument(self) -> str:
        return c_name(self.name)

    @property
    def place(self) -> str:
        """Return what the run function is given."""
        inside = ".inside" * self.is_watched
        return f"{self.memory}{inside}.{self.member}{'.own' * (self.offset > 0)}"


@dataclass(frozen=True, slots=True)
class SharedPool:
    """Memory of one name for the pools of all models: as large as what runs at the same time."""

    memory: str
    section: str
    pools: tuple[PoolValues, ...]

    @property
    def bytes(self) -> int:
        return max(pool.offset + pool.bytes for pool in self.pools)


def pool_values(
    model: str, memory: MemoryData, offsets: Mapping[str, int], *, are_watched: bool
) -> tuple[PoolValues, ...]:
    """Return the pools that a model is given, in the order of its arguments.

    Args:
        model: its name.
        memory: its plan.
        offsets: where its part begins in the memory of each pool, by the pool's C name.
        are_watched: whether there are canaries around the application's memory for them.
    """
    pools = [pool for pool in memory.pools if not pool.is_internal]
    values = (_pool(model, pool, len(memory.pools), offsets) for pool in pools)
    return tuple(replace(pool, is_watched=are_watched) for pool in values)


def _pool(model: str, pool: PoolData, count: int, offsets: Mapping[str, int]) -> PoolValues:
    name, member = c_name(pool.name), f"of_{model}"
    variable = "own" if offsets[name] else member
    macro = workspace_macro(model, pool.name, is_alone=count == 1)
    declaration = f"{macro}({variable})"
    if pool.section and pool.size:  # a member has none: the variable around it has one
        aligned = f"{macro_name(model)}_ALIGNED({macro}_ALIGNMENT)"
        declaration = f"{aligned} uint8_t {variable}[{macro}_SIZE]"
    memory = name if name == DEFAULT_WORKSPACE else f"pool_{name}"
    facts = (c_code(declaration), pool.section, pool.size, offsets[name])
    return PoolValues(pool.name, macro, memory, member, *facts)


@dataclass(frozen=True, slots=True)
class ConstantValues:
    """A constant pool of a model: texts of C.

    `memory` is the application's array of it, empty where it is part of the generated code.
    """

    name: str
    macro: str
    memory: str
    section: str
    bytes: int

    @property
    def argument(self) -> str:
        """Return what the run function is given."""
        return self.memory if self.bytes else "NULL"


def constant_values(model: str, pools: Sequence[ConstantPoolData]) -> tuple[ConstantValues, ...]:
    """Return the constant pools of a model, those it is given in argument order."""
    return tuple(
        ConstantValues(
            pool.name,
            constants_macro(model, pool.name),
            "" if pool.is_internal else f"{model}_pool_{c_name(pool.name)}",
            pool.section,
            pool.size,
        )
        for pool in pools
    )


def shared_pools(pools: Iterable[PoolValues]) -> tuple[SharedPool, ...]:
    """Return memory for the pools of each name.

    Raises:
        ProjectError: pools of one name are in different sections.
    """
    pools_of: dict[str, list[PoolValues]] = {}
    for pool in pools:
        same = pools_of.setdefault(pool.memory, [])
        same.append(pool)
        if pool.section != same[0].section:
            raise ProjectError(
                f"the pool '{pool.name}' is in the section '{same[0].section}' for one model and "
                f"in '{pool.section}' for another",
                where="project.generate(artifact)",
                fix="use the same section for both models, or give the pools different names",
            )
    return tuple(
        SharedPool(memory, same[0].section, tuple(same)) for memory, same in pools_of.items()
    )
