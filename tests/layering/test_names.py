"""Names say what they hold: words that fit every variable are none."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.layering.source import Module, package_modules, parse, report

VAGUE = frozenset(("alike", "apart", "found", "given", "kept", "made", "together"))
FIX = "name what it holds: `edges`, `arguments`, `output_scale`"

# Options that users write: `--together`, `options.together`, the field of archives.
PUBLIC = frozenset((
    "artifact/mlf/export.py", "artifact/mlf/reader.py", "cli/micro.py", "cli/package.py",
    "cli/projects.py", "packages/options.py", "projects/options.py",
))  # fmt: skip


def _names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the names that a module binds, each with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.MatchAs) and node.name:
            yield node.lineno, node.name


def _vague_names(module: Module) -> list[str]:
    """Return a message for each name that says nothing."""
    legal = {"together"} if module.path in PUBLIC else set[str]()
    return [
        f"{module.path}:{line}: '{name}' could be anything: {FIX}"
        for line, name in _names(module.tree)
        if name in VAGUE - legal
    ]


def test_names_say_what_they_hold() -> None:
    """No variable, parameter, function, class or field of the package has a vague name."""
    messages = [line for module in package_modules() for line in _vague_names(module)]
    assert not messages, report(messages)


@pytest.mark.parametrize(
    "text",
    ["found = 1", "def f(given): ...", "class C:\n    kept: int", "for made in x: ...",
     "def together(): ...", "f(lambda apart: 1)", "match x:\n    case alike: ..."],
)  # fmt: skip
def test_vague_names_are_reported(text: str) -> None:
    """Wherever a name is bound."""
    assert _vague_names(parse("a.py", text))


def test_other_names_and_uses_are_not() -> None:
    """A name that says something, and one that is only read."""
    assert not _vague_names(parse("a.py", "edges = found(kept_rows)"))
