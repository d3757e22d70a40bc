"""Errors: one family, always with a text, never swallowed."""

from __future__ import annotations

import pytest

from tests.layering.error_rules import handler_violations, raise_violations
from tests.layering.source import package_modules, parse, report

ERRORS = parse(
    "errors.py",
    """
class MicrotirError(Exception): ...
class ConfigError(MicrotirError): ...
class FieldError(ConfigError): ...
def problem(name: str) -> ConfigError: ...
def other(name: str) -> str: ...
""",
)


def test_package_raises_diagnostics_only() -> None:
    """Every raise of the package is a MicrotirError with a message, or part of a protocol."""
    found = raise_violations(package_modules())
    assert not found, report(found)


def test_package_swallows_nothing() -> None:
    """No handler of the package is bare or empty."""
    found = handler_violations(package_modules())
    assert not found, report(found)


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("raise ValueError('x')", "ValueError is not of the MicrotirError family"),
        ("raise NotImplementedError", "NotImplementedError is not of the MicrotirError family"),
        ("raise KeyError(name)", "KeyError is not of the MicrotirError family"),
        ("raise Surprise('x')", "Surprise is not of the MicrotirError family"),
        ("raise FieldError", "FieldError is raised without a message"),
        ("raise FieldError(where='x')", "FieldError is raised without a message"),
        ("raise errors.ConfigError('')", "ConfigError is raised without a message"),
        ("raise AssertionError", "AssertionError is raised without a message"),
        ("raise other('x')", "other() is raised, but is not declared"),
        ("raise UndefinedError", "UndefinedError is raised without a message"),
        ("raise SystemExit(1)", "only the command line raises SystemExit"),
    ],
)
def test_wrong_raise_is_found(statement: str, reason: str) -> None:
    """An exception that is no diagnostic, or one without a text, is found."""
    module = parse("plan/cost.py", f"def f(name):\n    {statement}\n")
    found = raise_violations([ERRORS, module])
    assert len(found) == 1
    assert found[0].startswith("plan/cost.py:2: ")
    assert reason in found[0]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("plan/cost.py", "def f():\n    raise FieldError('text', where='x')"),
        ("plan/cost.py", "def f():\n    raise ConfigError(what='text') from None"),
        ("plan/cost.py", "def f():\n    raise problem('x')"),
        ("plan/cost.py", "try:\n    pass\nexcept OSError as error:\n    raise"),
        ("plan/cost.py", "def f(problems):\n    raise problems[0]"),
        ("tir/arithmetic.py", "def f():\n    raise UndefinedError('text')"),
        ("tir/text.py", "raise AssertionError(f'unhandled node {node}')"),
        ("__init__.py", "def __getattr__(name):\n    raise AttributeError(name)"),
        ("cli/main.py", "def main():\n    raise typer.Exit(2)"),
    ],
)
def test_right_raise_passes(path: str, text: str) -> None:
    """Diagnostics with a text, re-raises, and what Python's protocols ask for pass."""
    assert raise_violations([ERRORS, parse(path, text)]) == []


@pytest.mark.parametrize(
    ("handler", "reason"),
    [("except:\n    x = 1", "bare except"), ("except OSError:\n    pass", "dropped")],
)
def test_wrong_handler_is_found(handler: str, reason: str) -> None:
    """A bare handler and an empty one are found."""
    found = handler_violations([parse("a.py", f"try:\n    x = 0\n{handler}\n")])
    assert len(found) == 1
    assert reason in found[0]


def test_signal_may_be_dropped() -> None:
    """Where folding is undefined the expression stays: nothing else is to be done."""
    text = "try:\n    x = fold()\nexcept UndefinedError:\n    pass\n"
    assert handler_violations([parse("tir/build.py", text)]) == []
