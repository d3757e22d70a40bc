"""The package's source as syntax trees: what all structural gates read."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "generator" / "microtir"


@dataclass(frozen=True, slots=True)
class Module:
    """One source file.

    Args:
        name: dotted name below `microtir`: `graph.ir`; a package's `__init__` has the name of the
            package, the root's is empty.
        path: path below the package folder, with forward slashes, as messages print it.
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
    paths = sorted(PACKAGE.rglob("*.py"))
    return tuple(parse(p.relative_to(PACKAGE).as_posix(), p.read_text("utf-8")) for p in paths)


def report(violations: list[str]) -> str:
    """All violations as one message, for an assertion."""
    return "\n" + "\n".join(violations)
