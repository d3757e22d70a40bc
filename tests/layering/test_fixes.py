"""The words of fixes: Python's where Python called, flags and verbs on a command line."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.layering.source import package_modules

# Calls, keyword arguments, Python's truth values, and what a checkout is not installed by.
PYTHON = re.compile(
    r"\w\([^)]*\)|\b\w+='|\b[a-z_]+=\[|\b(True|False)\b|\bwith force\b"
    r"|pip install [\"']?microtir"
)
# What only Python calls: a command line has no words for it.
ONLY_PYTHON = (
    "artifact/mlf/metadata.py",  # the time that a caller gives
    "codegen/emit.py",
    "custom/",
    "driver.py",
    "rewrite/extra_passes.py",
    "host/backend.py",
    "host/functions.py",
    "host/samples.py",  # how a file is written with numpy
    "host/session.py",
    "host/tensors.py",
    "lowering/inputs.py",
    "module/ir_module.py",
    "projects/options.py",
    "schedule/",
    "te/",
    "tir/",
)
# A flag, but not in a command that is quoted whole, which anybody can type.
FLAG = re.compile(r"(?<![\w-])--[a-z]")
COMMAND = re.compile(r"`microtir [^`]*`")
# What only a command line calls.
ONLY_COMMANDS = ("cli/", "config/tvmc_flags.py", "config/flags.py", "host/oracle.py")
# A function of C, of the tool that exported the model, of a model that was loaded by Python.
NO_CALLS_OF_OURS = (
    "TVMGraphExecutor_Create()",
    "Input(batch_shape=(1, ...))",
    "debug=True)",
    "clone()",
    "forward()",
    "(register_buffer)",
    "model.eval()",
    "model.float()",
    "run_decompositions()",
    "torch.",
)


def _fixes(tree: ast.AST) -> Iterator[ast.expr]:
    """Expressions that are fixes of diagnostics."""
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "fix":
            yield node.value
        elif isinstance(node, ast.Assign):
            names = [n.id for t in node.targets for n in ast.walk(t) if isinstance(n, ast.Name)]
            if "fix" in names:
                yield node.value


def _texts(fix: ast.expr, form: int = 1) -> Iterator[str]:
    """What a command line prints of a fix: of one with two forms, the second; Python has form 0."""
    if isinstance(fix, ast.Call) and isinstance(fix.func, ast.Name):
        if fix.func.id == "Fix":
            yield from _texts(fix.args[form], form)
        return
    if isinstance(fix, ast.JoinedStr):
        parts = [v.value if isinstance(v, ast.Constant) else "X" for v in fix.values]
        yield "".join(map(str, parts))
        return
    if isinstance(fix, ast.Constant) and isinstance(fix.value, str):
        yield fix.value
        return
    for child in ast.iter_child_nodes(fix):
        if isinstance(child, ast.expr):
            yield from _texts(child, form)


def test_a_command_line_is_told_what_can_be_typed() -> None:
    """No fix that a command prints is in Python's words: "build() it", "with force"."""
    found = []
    for module in package_modules():
        for fix in () if module.path.startswith(ONLY_PYTHON) else _fixes(module.tree):
            texts = [text for text in _texts(fix) if PYTHON.search(text)]
            texts = [text for text in texts if not any(call in text for call in NO_CALLS_OF_OURS)]
            found += [f"{module.path}:{fix.lineno}: {text}" for text in texts]
    assert not found, "give both forms, errors.Fix:\n" + "\n".join(found)


def test_python_is_told_what_can_be_called() -> None:
    """No fix that Python's callers read is in a command line's words: "add --force"."""
    found = []
    for module in package_modules():
        for fix in () if module.path.startswith(ONLY_COMMANDS) else _fixes(module.tree):
            texts = [COMMAND.sub("", text) for text in _texts(fix, 0)]
            found += [f"{module.path}:{fix.lineno}: {t}" for t in texts if FLAG.search(t)]
    assert not found, "give both forms, errors.Fix:\n" + "\n".join(found)


def test_the_rule_finds_what_it_is_for() -> None:
    """The words that command lines were told are found, and those in their place are not."""
    given = 'E(fix="build() it"); E(fix=Fix("with force", "--force")); E(fix=f"use {x} True")'
    fixes = [list(_texts(fix)) for fix in _fixes(ast.parse(given))]
    assert fixes == [["build() it"], ["--force"], ["use X True"]]
    assert [bool(PYTHON.search(text)) for [text] in fixes] == [True, False, True]
    told = [list(_texts(fix, 0)) for fix in _fixes(ast.parse(given))]
    assert told == [["build() it"], ["with force"], ["use X True"]]
    assert FLAG.search("add --force") and not FLAG.search(COMMAND.sub("", "by `microtir a --b`"))
