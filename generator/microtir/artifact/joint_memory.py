"""Shares memory among the models of a firmware, by which of them run at the same time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations

from microtir.artifact.contents import Contents
from microtir.codegen.interface.joint import JointPool
from microtir.errors import UsageError, nearest
from microtir.support.names import c_name

# With more models than this not every order of placing is tried.
_MOST_TRIED = 7


@dataclass(frozen=True, slots=True)
class ConcurrentModules:
    """Names of modules that may run at the same time: one interrupts another, say.

    What each of them has in shared memory then stays; all models of no common set take turns.
    """

    sets: tuple[frozenset[str], ...] = ()

    @staticmethod
    def of(
        concurrent: Sequence[Sequence[str]],
        artifacts: Sequence[Contents],
        where: str = "export_model_library_format(together)",
    ) -> ConcurrentModules:
        """Return the sets that a user has named, and those of the archives of artifacts.

        Args:
            concurrent: sets of names of modules.
            artifacts: the modules; who is in a set of an archive and not here does not count.
            where: the argument that the sets were given as.

        Raises:
            UsageError: a set of less than two, a name that no module has, or one twice.
        """
        modules = [artifact.metadata.module_name for artifact in artifacts]
        known = [names for artifact in artifacts for names in artifact.concurrent]
        here = [names.intersection(modules) for names in dict.fromkeys(known)]
        _check_sets(concurrent, modules, where)
        sets = [*(names for names in here if len(names) > 1), *map(frozenset, concurrent)]
        return ConcurrentModules(tuple(dict.fromkeys(sets)))

    def are(self, one: str, other: str) -> bool:
        """Return whether two modules may run at the same time."""
        return any(one in names and other in names for names in self.sets)

    def sorted(self) -> list[list[str]]:
        return [sorted(names) for names in self.sets]


def _check_sets(concurrent: Sequence[Sequence[str]], modules: Sequence[str], where: str) -> None:
    for names in concurrent:
        if isinstance(names, str) or len(names) < 2 or len(set(names)) < len(names):
            raise UsageError(
                f"the set {names!r} names fewer than two different modules",
                where=where,
                legal="sets of two or more different module names",
                fix="name the modules that may run at the same time, or leave out the set",
            )
        for name in names:
            if name not in modules:
                hint = nearest(name, modules)
                raise UsageError(
                    f"there is no module '{name}'{f': {hint}' if hint else ''}",
                    where=where,
                    legal=", ".join(modules),
                )


def joint_workspace(
    artifacts: Sequence[Contents], concurrent: ConcurrentModules
) -> list[JointPool]:
    """Return memories that serve all models, by name of the pool.

    Pools of one name are one memory, in which models that never run at the same time lie over each
    other; internal ones are each model's own.
    """
    shares: dict[str, dict[str, PoolShare]] = {}
    for artifact in artifacts:
        memory = artifact.metadata.memory
        for pool in memory.pools if memory else ():
            if not pool.is_internal:
                share = PoolShare(pool.size, pool.alignment)
                shares.setdefault(pool.name, {})[artifact.metadata.module_name] = share
    return [joint_pool(c_name(name), of_modules, concurrent) for name, of_modules in shares.items()]


@dataclass(frozen=True, slots=True)
class PoolShare:
    """The bytes that a model needs of a shared pool, and their alignment."""

    size: int
    alignment: int


def joint_pool(
    name: str, shares: Mapping[str, PoolShare], concurrent: ConcurrentModules
) -> JointPool:
    """Return the smallest pool found: of all orders of placing, where models are few.

    Each model takes the lowest place at which it meets no model placed before it that may run at
    the same time.  Some order of placing gives the smallest pool.
    """
    best = min(
        (_placed(order, shares, concurrent) for order in _orders(shares, concurrent)),
        key=lambda offsets: _end(offsets, shares),
    )
    return JointPool(
        name,
        _end(best, shares),
        max(share.alignment for share in shares.values()),
        {module: best[module] for module in shares},
    )


def _orders(
    shares: Mapping[str, PoolShare], concurrent: ConcurrentModules
) -> Iterator[tuple[str, ...]]:
    """Yield orders of placing, that of descending sizes first."""
    largest = tuple(sorted(shares, key=lambda module: -shares[module].size))
    yield largest
    meet = any(concurrent.are(*pair) for pair in combinations(shares, 2))
    if meet and len(largest) <= _MOST_TRIED:
        yield from permutations(largest)


def _placed(
    order: Sequence[str], shares: Mapping[str, PoolShare], concurrent: ConcurrentModules
) -> dict[str, int]:
    """Return the offset of each module's share, placed one after another."""
    offsets: dict[str, int] = {}
    for module in order:
        size, alignment = shares[module].size, shares[module].alignment
        taken = sorted(
            (offsets[other], offsets[other] + shares[other].size)
            for other in offsets
            if concurrent.are(module, other)
        )
        offset = 0
        for first, stop in taken:
            if offset + size > first:
                offset = max(offset, -(-stop // alignment) * alignment)
        offsets[module] = offset
    return offsets


def _end(offsets: Mapping[str, int], shares: Mapping[str, PoolShare]) -> int:
    return max(offset + shares[module].size for module, offset in offsets.items())
