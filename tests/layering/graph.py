"""The package as a graph: who imports whom, and what follows from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tests.layering.imports import imports, known_names, unit
from tests.layering.source import Module


def module_graph(modules: Iterable[Module]) -> dict[str, list[str]]:
    """Each module with the modules of the package that it imports, wherever in the file.

    Imports inside functions and under TYPE_CHECKING count as any other. That the import of a module
    runs the `__init__` of the folders around it does not: Python sees to that.
    """
    modules = list(modules)
    known = known_names(modules)
    graph: dict[str, list[str]] = {}
    for module in modules:
        targets = (entry.inside for entry in imports(module, known))
        inside = (_module(target, known) for target in targets if target is not None)
        graph[module.name] = [t for t in dict.fromkeys(inside) if t in known and t != module.name]
    return graph


def _module(target: str, known: frozenset[str]) -> str:
    """The module that a name of it stands for."""
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
