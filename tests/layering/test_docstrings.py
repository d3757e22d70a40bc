"""Docstrings begin with what they describe, so that a stranger understands them at once."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.layering.source import Module, package_modules, parse, report

# Words that begin half a sentence, whose subject the reader has to guess.
HALVES = frozenset((
    "Along", "Among", "As", "Before", "Between", "By", "Called", "From", "Given", "How", "In", "Of",
    "Over", "Per", "That", "They", "Those", "What", "When", "Where", "Whether", "Which", "Who",
    "Whose", "Why", "With",
))  # fmt: skip

FIX = (
    "name the thing first, as in 'Axis of the channels in weights, by layer.', or begin with a verb"
)


def _text_of(statement: ast.stmt) -> ast.Constant | None:
    """Return the string of a statement that consists of one."""
    value = statement.value if isinstance(statement, ast.Expr) else None
    return value if isinstance(value, ast.Constant) and isinstance(value.value, str) else None


def _docstrings(tree: ast.Module) -> Iterator[tuple[ast.Constant, str]]:
    """Yield the docstrings of modules, classes and functions, and those behind assignments."""
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        owner = "the module" if isinstance(node, ast.Module) else node.name
        if node.body and (text := _text_of(node.body[0])):
            yield text, owner
        for before, statement in zip(node.body, node.body[1:], strict=False):
            if isinstance(before, (ast.Assign, ast.AnnAssign)) and (text := _text_of(statement)):
                target = before.targets[-1] if isinstance(before, ast.Assign) else before.target
                yield text, ast.unparse(target)


def _half_sentences(module: Module) -> list[str]:
    """Return a message for each docstring that begins with half a sentence."""
    found = []
    for text, owner in _docstrings(module.tree):
        first = next(iter(str(text.value).split()), "")
        if first.rstrip(",:;.") in HALVES:
            where = f"{module.path}:{text.lineno}: the docstring of {owner}"
            found.append(f"{where} begins with '{first}': {FIX}")
    return found


def test_docstrings_begin_with_what_they_describe() -> None:
    """No docstring of a module, class, function, constant or field begins with half a sentence."""
    found = [line for module in package_modules() for line in _half_sentences(module)]
    assert not found, report(found)


@pytest.mark.parametrize(
    ("source", "owner"),
    [
        ('"""What a program takes."""', "the module"),
        ('class Use:\n    """What a program takes."""', "Use"),
        ('def use() -> int:\n    """Of bytes."""', "use"),
        ('AXIS = 3\n"""Of weights."""', "AXIS"),
        ('class Use:\n    ram: int = 0\n    """As `flash`."""', "ram"),
        ('class Use:\n    """How rows are computed."""', "Use"),
    ],
)
def test_half_sentence_is_found(source: str, owner: str) -> None:
    """The message names the place and the owner of a docstring, and says what to write."""
    (message,) = _half_sentences(parse("plan/ir.py", source))
    assert message.startswith("plan/ir.py:")
    assert f"the docstring of {owner} begins" in message
    assert message.endswith(FIX)


@pytest.mark.parametrize(
    "source",
    [
        '"""Costs of a plan."""\nAXIS = 3\n"""Axis of the channels of weights."""',
        'def use() -> str:\n    """Return the bytes."""\n    text = 1\n    return "Of bytes."',
        "Whatever = 3",
    ],
)
def test_whole_sentences_pass(source: str) -> None:
    """Noun phrases and sentences pass, as do strings that are no docstrings."""
    assert not _half_sentences(parse("plan/ir.py", source))
