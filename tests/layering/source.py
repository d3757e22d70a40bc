"""The package's source as syntax trees: what all structural gates read."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "generator" / "microtir"
BESIDE = ("tests", "scripts", "benchmarks", "examples")
"""Folders with Python that is no part of the package."""


@dataclass(frozen=True, slots=True)
class Module:
    """One source file.

    Args:
        name: dotted name below `microtir`: `graph.ir`; a package's `__init__` has the name of the
            package, the root's is empty. That of a module beside the package is its full name.
        path: path below the package folder, with forward slashes, as messages print it; that of a
            module beside the package is below the root of the repository.
        text: the source.
        tree: its syntax tree.
    """

    name: str
    path: str
    text: str
    tree: ast.Module

    @property
    def is_package(self) -> bool:
        return self.path.endswith("__init__.py")


def module_name(path: str) -> str:
    """Return the dotted name of a file at a path below the package folder."""
    return path.removesuffix(".py").removesuffix("__init__").strip("/").replace("/", ".")


def module_names() -> list[str]:
    """Return the names of all source files of the package, sorted by path."""
    paths = sorted(PACKAGE.rglob("*.py"))
    return [module_name(path.relative_to(PACKAGE).as_posix()) for path in paths]


def parse(path: str, text: str) -> Module:
    """Parse one file that lies at `path` below the package folder."""
    return Module(module_name(path), path, text, ast.parse(text, path))


@cache
def package_modules() -> tuple[Module, ...]:
    """Every source file of the package, sorted by path."""
    return tuple(modules_below(PACKAGE, PACKAGE))


def repository_modules(root: Path = ROOT) -> list[Module]:
    """Return every source file of the package, then those of what lies beside it."""
    package = root / PACKAGE.relative_to(ROOT)
    beside = [module for folder in BESIDE for module in modules_below(root / folder, root)]
    return [*modules_below(package, package), *beside]


def modules_below(folder: Path, base: Path) -> Iterator[Module]:
    """Yield the source files of a folder, sorted by path; `base` is where their paths begin."""
    for path in sorted(folder.rglob("*.py")):
        yield parse(path.relative_to(base).as_posix(), path.read_text("utf-8"))


def report(violations: list[str]) -> str:
    """All violations as one message, for an assertion."""
    return "\n" + "\n".join(violations)
