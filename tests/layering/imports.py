"""Reads imports out of syntax trees and compares them with the list of layers."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tests.layering.import_table import LAYERS, PRIVATE
from tests.layering.source import Module

PACKAGE_NAME = "microtir"
_HEIGHTS = {unit: height for height, layer in enumerate(LAYERS) for unit in layer}


@dataclass(frozen=True, slots=True)
class Import:
    """One imported module: `target` is its full dotted name."""

    module: Module
    line: int
    target: str

    @property
    def inside(self) -> str | None:
        """The name below `microtir`, or None for another package's module."""
        if self.target == PACKAGE_NAME:
            return ""
        prefix = f"{PACKAGE_NAME}."
        return self.target.removeprefix(prefix) if self.target.startswith(prefix) else None

    @property
    def place(self) -> str:
        return f"{self.module.path}:{self.line}"


def imports(module: Module, known: frozenset[str]) -> Iterator[Import]:
    """Every import of a file, those inside functions and `if TYPE_CHECKING` included.

    `from a import b` means module `a.b` where `known` has it, and the name b of module a elsewhere.
    """
    for node in _statements(module.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(module, node.lineno, alias.name)
        elif isinstance(node, ast.ImportFrom):
            base = _base(module, node)
            for alias in node.names:
                below = f"{base}.{alias.name}"
                is_module = below.removeprefix(f"{PACKAGE_NAME}.") in known
                is_public = base == PACKAGE_NAME
                yield Import(module, node.lineno, below if is_module or is_public else base)


def _statements(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield all statements, outer ones first; `ast.walk` also visits every expression."""
    level: list[ast.AST] = [tree]
    while level:
        yield from level
        children = (child for node in level for child in ast.iter_child_nodes(node))
        level = [
            c for c in children if isinstance(c, ast.stmt | ast.excepthandler | ast.match_case)
        ]


def _base(module: Module, node: ast.ImportFrom) -> str:
    """The absolute name that a possibly relative `from` names."""
    if node.level == 0:
        return node.module or ""
    parts = [PACKAGE_NAME, *filter(None, module.name.split("."))]
    dropped = node.level - 1 if module.is_package else node.level
    parts = parts[: len(parts) - dropped]
    return ".".join([*parts, node.module] if node.module else parts)


def known_names(modules: Iterable[Module]) -> frozenset[str]:
    """Names of all modules and packages."""
    return frozenset(module.name for module in modules)


def unit(name: str) -> str:
    """The top package or root module that a module belongs to."""
    return name.partition(".")[0]


def is_within(name: str, allowed: Iterable[str]) -> bool:
    """Whether `name` is one of the allowed modules or lies below one."""
    return any(name == entry or name.startswith(f"{entry}.") for entry in allowed)


def layering_violations(modules: Iterable[Module]) -> list[str]:
    """One message per import of a module that does not lie below, or is private."""
    modules = list(modules)
    known = known_names(modules)
    found = []
    for module in modules:
        owner = unit(module.name)
        if not owner:  # microtir/__init__.py lists the public API
            continue
        if owner not in _HEIGHTS:
            found.append(f"{module.path}: '{owner}' has no layer in tests/layering/import_table.py")
            continue
        found += [
            f"{entry.place}: {PACKAGE_NAME}.{module.name} imports {entry.target}, but {reason}"
            for entry in imports(module, known)
            if (reason := _objection(owner, entry.inside)) is not None
        ]
    return list(dict.fromkeys(found))  # `from a import b, c` breaks a rule once


def _objection(owner: str, target: str | None) -> str | None:
    """Why a module of `owner` may not import `target`; None if it may."""
    if not target or unit(target) == owner:  # None: third party; "": `import microtir` itself
        return None
    for private, owners in PRIVATE.items():
        if is_within(target, [private]) and owner not in owners:
            return f"only {_listed(owners)} may import '{private}'"
    if _HEIGHTS.get(unit(target), len(LAYERS)) < _HEIGHTS[owner]:
        return None
    return f"'{unit(target)}' lies not below '{owner}' (tests/layering/import_table.py)"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "itself"


def reachable(start: str, modules: Iterable[Module]) -> dict[str, str]:
    """Every module that importing `start` imports, mapped to the module that imports it."""
    by_name = {module.name: module for module in modules}
    known = frozenset(by_name)
    found = {name: start for name in sorted(by_name) if is_within(name, [start])}
    queue = list(found)
    while queue:
        name = queue.pop()
        for entry in imports(by_name[name], known):
            target = entry.inside
            if target and target in known and target not in found:
                found[target] = name
                queue.append(target)
    return found


def third_party(modules: Iterable[Module]) -> Iterator[Import]:
    """Imports of other packages, those of the standard library included."""
    modules = list(modules)
    known = known_names(modules)
    for module in modules:
        yield from (entry for entry in imports(module, known) if entry.inside is None)
