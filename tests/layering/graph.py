"""The package as a graph: who imports whom, and what follows from it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping

from tests.layering.imports import PACKAGE_NAME, Import, imports, known_names, unit
from tests.layering.source import BESIDE, Module


def module_graph(modules: Iterable[Module]) -> dict[str, list[str]]:
    """Each module with those of the modules that it imports, wherever in the file.

    Imports inside functions and under TYPE_CHECKING count as any other. That the import of a module
    runs the `__init__` of the folders around it does not: Python sees to that. A public name counts
    as the module that it comes from, since the root of the package loads it when it is asked for.
    """
    modules = list(modules)
    known = known_names(modules)
    homes = _homes(modules, known)
    graph: dict[str, list[str]] = {}
    for module in modules:
        targets = dict.fromkeys(_module(entry, known, homes) for entry in imports(module, known))
        graph[module.name] = [t for t in targets if t in known and t != module.name]
    return graph


def _homes(modules: Iterable[Module], known: frozenset[str]) -> dict[str, str]:
    """Return the public names of the package that are no modules, with the modules they are of."""
    return {
        alias.name: node.module.removeprefix(f"{PACKAGE_NAME}.")
        for module in modules
        if not module.name
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
        if node.module.removeprefix(f"{PACKAGE_NAME}.") in known and alias.name not in known
    }


def _module(entry: Import, known: frozenset[str], homes: Mapping[str, str]) -> str | None:
    """Return the module that an import names, None for one of another project."""
    target = entry.inside
    if target is None:
        if entry.target.partition(".")[0] not in BESIDE:
            return None
        target = entry.target
    target = homes.get(target, target)
    while target not in known and target:
        target = target.rpartition(".")[0]
    return target


def unit_graph(graph: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """Each top package and root module with the others that its modules import."""
    found: dict[str, dict[str, None]] = {}
    for name, targets in graph.items():
        # microtir/__init__.py lists the public API, which it loads when somebody asks for it
        if name:
            others = (unit(target) for target in targets)
            found.setdefault(unit(name), {}).update(
                dict.fromkeys(other for other in others if other and other != unit(name))
            )
    return {name: list(targets) for name, targets in found.items()}


def cycles(graph: Mapping[str, Iterable[str]]) -> Iterator[list[str]]:
    """The modules of each strongly connected component of more than one, by Tarjan's algorithm."""
    numbers: dict[str, int] = {}
    lowest: dict[str, int] = {}
    path: list[str] = []

    def visit(name: str) -> Iterator[list[str]]:
        numbers[name] = lowest[name] = len(numbers)
        path.append(name)
        for target in graph[name]:
            if target not in numbers:
                yield from visit(target)
            if target in path:
                lowest[name] = min(lowest[name], lowest[target])
        if lowest[name] == numbers[name]:
            start = path.index(name)
            component = path[start:]
            del path[start:]
            if len(component) > 1:
                yield sorted(component)

    for name in graph:
        if name not in numbers:
            yield from visit(name)


def reached(graph: Mapping[str, Iterable[str]], starts: Iterable[str]) -> set[str]:
    """The modules that importing some of them imports, with the folders around each."""
    found: set[str] = set()
    waiting = list(starts)
    while waiting:
        name = waiting.pop()
        if name in found or name not in graph:
            continue
        found.add(name)
        waiting += graph[name]
        waiting.append(name.rpartition(".")[0])
    return found
