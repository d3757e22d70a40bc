"""Limits on the size of files and functions."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from tests.layering.source import Module, package_modules, parse, report

FILE_LINES = 800
FUNCTION_LINES = 60

# "path" or "path::function" -> (lines allowed, why one thing needs that many).
EXCEPTIONS: dict[str, tuple[int, str]] = {}


def _sizes(modules: Iterable[Module]) -> Iterator[tuple[str, int, int]]:
    """Place, lines and limit of every file and function."""
    for module in modules:
        yield module.path, len(module.text.splitlines()), FILE_LINES
        for node in ast.walk(module.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                yield f"{module.path}::{node.name}", lines, FUNCTION_LINES


def _violations(modules: Iterable[Module], exceptions: dict[str, tuple[int, str]]) -> list[str]:
    return [
        f"{place} has {lines} lines, {allowed} are allowed: is there one thing in it?"
        for place, lines, limit in _sizes(modules)
        if lines > (allowed := exceptions.get(place, (limit, ""))[0])
    ]


def test_files_and_functions_are_short() -> None:
    """No file of the package has over 800 lines and no function over 60."""
    found = _violations(package_modules(), EXCEPTIONS)
    assert not found, report(found)


def test_exceptions_are_needed() -> None:
    """An exception that nothing needs any more is removed from the table."""
    needed = {place for place, lines, limit in _sizes(package_modules()) if lines > limit}
    assert EXCEPTIONS.keys() <= needed


def test_long_file_and_function_are_found() -> None:
    """One line over a limit is found; a table entry raises the limit."""
    function = "def f():\n" + "    x = 1\n" * FUNCTION_LINES
    module = parse("a.py", function + "y = 1\n" * (FILE_LINES - FUNCTION_LINES))
    places = [text.split()[0] for text in _violations([module], {})]
    assert places == ["a.py", "a.py::f"]
    allowed = {"a.py": (FILE_LINES + 1, "test"), "a.py::f": (61, "test")}
    assert _violations([module], allowed) == []
    assert _violations([parse("a.py", "x = 1\n" * FILE_LINES)], {}) == []
