"""What messages advise can be typed: options and verbs that are there, values that are legal."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import typer

import microtir
from microtir.cli.app import APP
from tests.support.command import INT8, Command

PACKAGE = Path(microtir.__file__).parent
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*[a-z0-9]")
_WITH_VALUE = re.compile(r"(?<![\w-])(--[a-z][a-z0-9-]*[a-z0-9])[ =]([a-z0-9][\w.=-]*)")
_LEFT_OUT = re.compile(r"leave (out )?[^;,]*")
_VERB = re.compile(r"`microtir ([a-z][a-z-]*)((?: --[a-z-]+)*)")

# Options of exporters, compilers and of tvmc, which messages name with the program they belong to.
_OF_OTHERS = (
    "boards/toolchain.py",
    "config/tvmc_flags.py",
    "cli/completion.py",
    "cli/tvmc_refused.py",
    "evidence/misra.py",
    "frontend/onnx/exporters.py",
    "host/build.py",
    "host/coverage.py",
    "operators/npu/",
    "profiling/",
)
# Words behind an option in a sentence, where it has no value.
_PROSE = frozenset({
    "and", "or", "is", "it", "its", "of", "one", "out", "the", "are", "for", "has", "goes", "makes",
    "names", "says", "chooses", "runs", "adds", "does", "does.", "typed", "found", "single",
    "micro.",
})  # fmt: skip
# What a value needs beside it to be legal.
_BESIDE: Mapping[str, tuple[str, ...]] = {
    "--executor-aot-link-params": ("--executor", "aot", "--executor-aot-interface-api", "c"),
    "--executor-aot-unpacked-api": ("--executor", "aot", "--executor-aot-interface-api", "c"),
}


@cache
def texts() -> tuple[tuple[str, str], ...]:
    """Return the place and the text of each string of the package that is no docstring."""
    return tuple(
        found
        for path in sorted(PACKAGE.rglob("*.py"))
        if _OPTION.search(text := path.read_text("utf-8")) or "`microtir " in text
        for found in _texts_of(path, text)
    )


def _texts_of(path: Path, text: str) -> Iterator[tuple[str, str]]:
    tree = ast.parse(text)
    described = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docs = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, described) and node.body and isinstance(node.body[0], ast.Expr)
    }
    name = path.relative_to(PACKAGE).as_posix()
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and id(node) not in docs:
            yield f"{name}:{node.lineno}", str(node.value)  # type: ignore[attr-defined]


def options_of(command: Any, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], set[str]]:
    """Return the options of each verb."""
    found = {
        path: {
            option for param in command.params for option in (*param.opts, *param.secondary_opts)
        }
    }
    for name, inner in getattr(command, "commands", {}).items():
        found |= options_of(inner, (*path, name))
    return found


VERBS = options_of(typer.main.get_command(APP))
OPTIONS = {option for options in VERBS.values() for option in options} | {"--help"}


def test_options_in_messages_are_there() -> None:
    """Whoever types what a message says gets no answer that there is no such option."""
    prefixes = tuple(option for option in OPTIONS if option.count("-") > 3)
    found = [
        f"{place}: {option}"
        for place, text in texts()
        if not place.startswith(_OF_OTHERS)
        for option in _OPTION.findall(text)
        if option not in OPTIONS and not any(known.startswith(option) for known in prefixes)
    ]
    assert not found, "\n".join(found)


def test_verbs_in_messages_are_there() -> None:
    """And have the options that stand behind them."""
    seen = 0
    for place, text in texts():
        for verb, options in _VERB.findall(text):
            assert (verb,) in VERBS, f"{place}: microtir {verb}"
            assert set(options.split()) <= VERBS[verb,] | {"--debug", "--help"}, (place, options)
            seen += 1
    assert seen > 10


def advised() -> list[tuple[str, str]]:
    """Return options with values that messages of the package name."""
    pairs = {
        pair
        for place, text in texts()
        if not place.startswith(_OF_OTHERS)
        for pair in _WITH_VALUE.findall(_LEFT_OUT.sub("", text))
        if pair[1] not in _PROSE
    }
    return sorted(pair for pair in pairs if pair[0] in VERBS["verify",])


def test_values_in_messages_are_legal(microtir: Command) -> None:
    """The command line takes them: nothing is compiled, what would be asked for is printed."""
    pairs = advised()
    assert len(pairs) > 10
    for option, value in pairs:
        beside = _BESIDE.get(option, ())
        shown = microtir("verify", INT8, *beside, option, value, "--dump-config")
        assert shown.status == 0, f"{option} {value}: {shown.err}"
