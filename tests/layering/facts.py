"""What the source of a module says beside its imports."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cached_property

from tests.layering.source import Module

_ASKED = re.compile(r"(?:usefixtures|getfixturevalue)\(([^)]*)\)")
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Facts:
    """What the source of a module says beside its imports.

    Args:
        module: the module.
    """

    module: Module

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """Return all nodes of the syntax tree."""
        return list(ast.walk(self.module.tree))

    @cached_property
    def texts(self) -> frozenset[str]:
        """Return the strings of the code, without docstrings."""
        documented = [n.body[0] for n in self.nodes if isinstance(n, _DOCUMENTED) and n.body]
        docstrings = {id(n.value) for n in documented if isinstance(n, ast.Expr)}
        constants = [
            n for n in self.nodes if isinstance(n, ast.Constant) and id(n) not in docstrings
        ]
        return frozenset(n.value for n in constants if isinstance(n.value, str))

    @cached_property
    def parts(self) -> frozenset[str]:
        """Return names of files and folders in strings."""
        return frozenset(part for text in self.texts for part in text.split("/"))

    @cached_property
    def arguments(self) -> frozenset[str]:
        """Return the names by which fixtures are asked for: parameters, and those in `_ASKED`."""
        asked = " ".join(_ASKED.findall(self.module.text))
        names = {n.arg for n in self.nodes if isinstance(n, ast.arg)}
        return frozenset(names.union(re.findall(r"\w+", asked)))

    @cached_property
    def loads(self) -> frozenset[str]:
        """Return the functions of the module `resources` that are used."""
        used = set[str]()
        for node in self.nodes if "resources" in self.module.text else ():
            if isinstance(node, ast.Attribute):
                owner = node.value
                name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
                used |= {node.attr} if name == "resources" else set()
            elif isinstance(node, ast.ImportFrom) and (node.module or "").endswith("resources"):
                used |= {alias.name for alias in node.names}
        return frozenset(used)

    @cached_property
    def fixtures(self) -> frozenset[str]:
        """Return the names of functions that pytest calls: fixtures, and hooks as `pytest_...`."""
        functions = [n for n in self.module.tree.body if isinstance(n, ast.FunctionDef)]
        marked = (
            f for f in functions if any("fixture" in ast.unparse(d) for d in f.decorator_list)
        )
        hooks = (f for f in functions if f.name.startswith("pytest_"))
        return frozenset(f.name for f in (*marked, *hooks))

    @property
    def serves_all(self) -> bool:
        """Return whether a test need not ask: there are hooks, or fixtures that are always used."""
        hooks = any(name.startswith("pytest_") for name in self.fixtures)
        return hooks or "autouse=True" in self.module.text
