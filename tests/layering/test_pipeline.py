"""One road through the compiler: one `lower`, one `build`, both in the driver."""

from __future__ import annotations

import ast
from collections.abc import Iterable

import pytest

from tests.layering.source import Module, package_modules, parse

ENTRIES = ("lower", "build")


def _definitions(modules: Iterable[Module], name: str) -> list[str]:
    """Paths of the files that define a function `name` at module level."""
    return [
        module.path
        for module in modules
        for node in module.tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name
    ]


@pytest.mark.parametrize("name", ENTRIES)
def test_driver_is_the_only_one(name: str) -> None:
    """`lower` and `build` are each defined once, in driver.py."""
    assert _definitions(package_modules(), name) == ["driver.py"]


def test_second_definition_is_found() -> None:
    """A second `build` in another file is found; a method of that name is not one."""
    modules = [
        parse("cli/main.py", "def build(): ..."),
        parse("driver.py", "def build(): ..."),
        parse("projects/project.py", "class Project:\n    def build(self): ..."),
    ]
    assert _definitions(modules, "build") == ["cli/main.py", "driver.py"]
