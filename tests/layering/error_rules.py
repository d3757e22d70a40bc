"""What the package may raise, and how: read out of the syntax trees."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator

from tests.layering.source import Module

BASE = "MicrotirError"

# Exceptions outside the family, and the one place where the language asks for each.
PROTOCOL: dict[str, str] = {
    "AttributeError": "__getattr__",
    "KeyError": "__getitem__",
    "IndexError": "__getitem__",
}
# Signals between files of the package, and who turns each into an answer or a diagnostic.
SIGNALS: dict[str, str] = {
    "LinkClosedError": "session and console say which program or port is gone",
    "FileNotFoundError": "whoever runs a program says that it is not there",
    "TimeoutError": "whoever runs a program says which one took too long",
    "EndRequested": "the command line puts away what it began, and gives the status of a signal",
    "UndefinedError": "folding keeps the expression as it is; the interpreter adds the place",
}
# How the command line ends the process; the exit status is the message.
EXITS = frozenset({"typer.Exit", "SystemExit"})
# An invariant that typing cannot express (the end of a match over all node types): needs a text.
INVARIANT = "AssertionError"


def family(modules: Iterable[Module]) -> frozenset[str]:
    """Names of MicrotirError and of all classes derived from it, in any file."""
    bases: dict[str, list[str]] = {}
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef):
                bases[node.name] = [_last(ast.unparse(base)) for base in node.bases]
    found = {BASE}
    while more := {n for n, b in bases.items() if n not in found and found.intersection(b)}:
        found |= more
    return frozenset(found)


def _last(name: str) -> str:
    return name.rsplit(".", 1)[-1]


def error_makers(modules: Iterable[Module], errors: frozenset[str]) -> frozenset[str]:
    """Names of functions whose declared result is an error of the family."""
    return frozenset(
        node.name
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef)
        and node.returns is not None
        and _last(ast.unparse(node.returns).strip("'\"")) in errors
    )


def raise_violations(modules: Iterable[Module]) -> list[str]:
    """One message per `raise` that is not a diagnostic with a text."""
    modules = list(modules)
    errors = family(modules)
    makers = error_makers(modules, errors)
    return [
        f"{module.path}:{node.lineno}: {reason}"
        for module in modules
        for function, node in _raises(module.tree, "")
        if (reason := _objection(node.exc, function, errors, makers, module)) is not None
    ]


def _raises(node: ast.AST, function: str) -> Iterator[tuple[str, ast.Raise]]:
    """Every raise with the name of the function around it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Raise):
            yield function, child
        inner = child.name if isinstance(child, ast.FunctionDef) else function
        yield from _raises(child, inner)


def _objection(
    raised: ast.expr | None,
    function: str,
    errors: frozenset[str],
    makers: frozenset[str],
    module: Module,
) -> str | None:
    """Why this exception may not be raised here; None if it may."""
    if raised is None:  # re-raise of what was caught
        return None
    call = raised if isinstance(raised, ast.Call) else None
    full = ast.unparse(call.func if call else raised)
    name = _last(full)
    if full in EXITS:
        return None if module.name.startswith("cli") else f"only the command line raises {full}"
    if name in PROTOCOL and function == PROTOCOL[name]:
        return None
    if name in errors or name in SIGNALS or name == INVARIANT:
        return None if call and _has_text(call) else f"{name} is raised without a message"
    is_exception = isinstance(getattr(builtins, name, None), type) or name[:1].isupper()
    if is_exception:
        return f"{name} is not of the {BASE} family: a user would see a traceback"
    if call and name not in makers:
        return f"{name}() is raised, but is not declared to return a {BASE}"
    return None


def _has_text(call: ast.Call) -> bool:
    """Whether the call's message is there and is not an empty literal."""
    texts = [*call.args[:1], *(k.value for k in call.keywords if k.arg in ("what", None))]
    return bool(texts) and not any(isinstance(t, ast.Constant) and not t.value for t in texts)


def handler_violations(modules: Iterable[Module]) -> list[str]:
    """One message per handler that catches everything, or that drops what it caught."""
    found = []
    for module in modules:
        for node in ast.walk(module.tree):
            if not isinstance(node, ast.ExceptHandler):
                continue
            place = f"{module.path}:{node.lineno}"
            if node.type is None:
                found.append(f"{place}: a bare except catches typing errors and Ctrl-C, too")
            elif ast.unparse(node.type) not in SIGNALS and _is_empty(node):
                found.append(f"{place}: a failure is dropped: handle it, or let it pass on")
    return found


def _is_empty(handler: ast.ExceptHandler) -> bool:
    return all(isinstance(statement, ast.Pass) for statement in handler.body)
