"""Gives things names in C: unique where C needs it, and otherwise those of the TIR."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain, count
from types import MappingProxyType

from microtir.codegen.printer.helpers import HELPER_NAMES, MATH_FUNCTIONS
from microtir.support.names import RESERVED_WORDS, c_name
from microtir.tir.ir import Buffer, Var

# Functions that every program has, or that compilers call.
_FUNCTIONS = ("main", "memcpy", "memmove", "memset", "offsetof")
_TAKEN = frozenset({*RESERVED_WORDS, *_FUNCTIONS, *HELPER_NAMES, *MATH_FUNCTIONS.values()})


class UniqueNames:
    """Hands out names of one scope that nests in nothing: a file, a list of parameters."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._used = set(_TAKEN)
        self._used.update(taken)

    def fresh(self, wanted: str) -> str:
        """Return `wanted` as a C identifier, with the lowest free number if it is taken."""
        name = _first_free(wanted, self._used.__contains__)
        self._used.add(name)
        return name


class ScopedNames:
    """Names of the variables and buffers of one function, block by block.

    A name may come back in a sibling block, as loop variables do, but never hides one that is
    visible: -Wshadow is right that this confuses readers.
    """

    def __init__(self, file_names: Iterable[str]) -> None:
        self._file_names = frozenset(file_names)
        self._blocks: list[set[str]] = [set()]
        self._names: dict[Var | Buffer, str] = {}
        self._outside: Mapping[Buffer, str] = MappingProxyType({})
        self._used: set[Var | Buffer] = set()

    def define(self, item: Var | Buffer, wanted: str | None = None) -> str:
        name = self.reserve(wanted or item.name)
        self._names[item] = name
        return name

    def reserve(self, wanted: str) -> str:
        """Take a name in the current block without binding it to anything."""
        name = _first_free(wanted, self._is_taken)
        self._blocks[-1].add(name)
        return name

    def see(self, outside: Mapping[Buffer, str]) -> None:
        """Use names that are defined elsewhere: those of the constants of the file."""
        self._outside = outside

    def of(self, item: Var | Buffer) -> str:
        """Return the name of a variable or buffer that is visible here; KeyError otherwise."""
        self._used.add(item)
        return self.without_use(item)

    def without_use(self, item: Var | Buffer) -> str:
        """Return the same for a comment: the compiler sees no use of it there."""
        name = self._outside.get(item) if isinstance(item, Buffer) else None
        return self._names[item] if name is None else name

    def is_used(self, item: Var | Buffer) -> bool:
        """Return whether the name has been asked for."""
        return item in self._used

    @contextmanager
    def block(self) -> Iterator[None]:
        """Yield a nested block: what it defines is forgotten at its end."""
        self._blocks.append(set())
        try:
            yield
        finally:
            self._blocks.pop()

    def _is_taken(self, name: str) -> bool:
        return name in _TAKEN or name in self._file_names or any(name in b for b in self._blocks)


def _first_free(wanted: str, is_taken: Callable[[str], bool]) -> str:
    """Return `wanted` as a C identifier, with the lowest number from 2 that makes it free."""
    stem = c_name(wanted)
    numbered = (f"{stem}_{number}" for number in count(2))
    return next(name for name in chain((stem,), numbered) if not is_taken(name))
