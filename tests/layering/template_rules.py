"""What a template may do: print finished text, loop over lists, choose, include.

Every layer function's body comes from a PrimFunc, so that it can be simplified, verified, placed
and interpreted.  A template that computes would be a second, unchecked code generator.
"""

from __future__ import annotations

from collections.abc import Iterator

from jinja2 import Environment, TemplateSyntaxError, nodes

from microtir.support.encoding import ENCODERS, language_of

ARITHMETIC: tuple[type[nodes.Node], ...] = (
    nodes.Add,
    nodes.Sub,
    nodes.Mul,
    nodes.Div,
    nodes.FloorDiv,
    nodes.Mod,
    nodes.Pow,
    nodes.Neg,
    nodes.Pos,
)
FILTERS = frozenset({"indent", "join", "lower", "trim", "upper"})  # change text, compute nothing
TESTS = frozenset({"defined", "none", "undefined"})
CALLABLE = frozenset({"caller", "super"})  # besides macros


def template_violations(name: str, text: str) -> list[str]:
    """One message per place where the template computes."""
    try:
        tree = Environment(autoescape=False).parse(text, name)
    except TemplateSyntaxError as error:
        return [f"{name}:{error.lineno}: {error.message}"]
    macros = {macro.name for macro in tree.find_all(nodes.Macro)} | _imported(tree)
    return [
        f"{name}:{node.lineno}: {reason}"
        for node in _walk(tree)
        if (reason := _objection(node, macros)) is not None
    ]


def encoding_violations(name: str, text: str) -> list[str]:
    """One message per place where a template of projects prints for another language.

    What has no encoder is looked at when it is printed: it has no character that means anything.
    """
    language = language_of(name)
    if language is None:
        return [f"{name}: nobody knows in which language it is"]
    tree = Environment(autoescape=False).parse(text, name)
    return [
        f"{name}:{node.lineno}: '{node.name}' encodes for {ENCODERS[node.name].language.value}"
        for node in tree.find_all(nodes.Filter)
        if node.name in ENCODERS and ENCODERS[node.name].language is not language
    ]


def _walk(node: nodes.Node) -> Iterator[nodes.Node]:
    for child in node.iter_child_nodes():
        yield child
        yield from _walk(child)


def _imported(tree: nodes.Template) -> set[str]:
    """Names that the template imports from others, with their aliases."""
    found = {entry.target for entry in tree.find_all(nodes.Import)}
    for entry in tree.find_all(nodes.FromImport):
        found |= {name if isinstance(name, str) else name[1] for name in entry.names}
    return found


def _objection(node: nodes.Node, macros: set[str]) -> str | None:
    """Why this node has no place in a template; None if it has."""
    if isinstance(node, ARITHMETIC):
        return f"arithmetic ({type(node).__name__}) belongs into Python or TIR"
    if isinstance(node, nodes.Compare) and _compares_sizes(node):
        return "comparing sizes is shape logic"
    if isinstance(node, nodes.Getitem) and _is_position(node.arg):
        return "picking elements by position is shape logic"
    if isinstance(node, nodes.Filter) and node.name not in FILTERS | ENCODERS.keys():
        return f"filter '{node.name}' computes"
    if isinstance(node, nodes.Test) and node.name not in TESTS:
        return f"test '{node.name}' computes"
    if isinstance(node, nodes.Call) and not _is_macro(node.node, macros):
        return "only macros are called: pass the finished value"
    return None


def _compares_sizes(node: nodes.Compare) -> bool:
    """Whether the comparison orders values or has a number in it; names may be told apart."""
    ordered = any(operand.op not in ("eq", "ne", "in", "notin") for operand in node.ops)
    return ordered or any(map(_is_number, [node.expr, *(operand.expr for operand in node.ops)]))


def _is_position(index: nodes.Node) -> bool:
    return isinstance(index, nodes.Slice) or _is_number(index)


def _is_number(node: nodes.Node) -> bool:
    return isinstance(node, nodes.Const) and isinstance(node.value, int | float)


def _is_macro(callee: nodes.Expr, macros: set[str]) -> bool:
    if isinstance(callee, nodes.Getattr):
        callee = callee.node
    return isinstance(callee, nodes.Name) and callee.name in macros | CALLABLE
