from __future__ import annotations

import copy
import inspect
import pickle

import pytest

from microtir import errors
from microtir.config.option import UnknownOptionError
from microtir.errors import Fix, MicrotirError, UnsupportedModelError, UsageError

KINDS = [
    kind
    for kind in vars(errors).values()
    if inspect.isclass(kind) and issubclass(kind, MicrotirError)
]


@pytest.mark.parametrize("kind", [*KINDS, UnknownOptionError], ids=lambda kind: kind.__name__)
def test_diagnostics_pass_between_processes(kind: type[MicrotirError]) -> None:
    """A diagnostic that was pickled, or copied, is of the same kind and says the same."""
    error = kind("it is wrong", where="here", legal="right", fix="correct it")
    for again in (pickle.loads(pickle.dumps(error)), copy.deepcopy(error)):
        assert type(again) is kind
        assert (str(again), again.args) == (str(error), error.args)
        assert vars(again) == vars(error)


def test_all_problems_of_a_model_pass_between_processes() -> None:
    """A diagnostic that holds others keeps them."""
    problems = [MicrotirError("one", where="node 1"), MicrotirError("two", fix="drop it")]
    error = UnsupportedModelError("two problems", problems=problems)
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) == "two problems\n- node 1: one\n- two\n  fix:      drop it"


def test_a_fix_has_two_forms() -> None:
    """From Python a fix names arguments, on a command line flags; other processes keep both."""
    error = UsageError("wrong", fix=Fix("force=True", "--force"))
    many = UnsupportedModelError("two", problems=[error, UsageError("odd", fix="drop it")])
    for one in (error, pickle.loads(pickle.dumps(error))):
        assert "fix:      force=True" in str(one)
        assert "fix:      --force" in str(one.for_command_line())
    assert "fix:      --force" in str(many.for_command_line())
    assert "fix:      drop it" in str(many.for_command_line())
    assert "fix:      force=True" in str(many)
    joined = Fix.of("either ", Fix("force=True", "--force"), "; or not")
    assert (joined, joined.command) == ("either force=True; or not", "either --force; or not")


@pytest.mark.parametrize(
    ("name", "choices", "hint"),
    [
        ("ABS", ["CAST", "ADD", "PAD"], ""),
        ("SELECT", ["SPLIT", "RELU"], ""),
        ("name", ["pool_name", "size"], "did you mean 'pool_name'?"),
        ("host", ["host_driven", "zephyr"], "did you mean 'host_driven'?"),
        ("cortex-m44", ["cortex-m4", "cortex-m55"], "did you mean 'cortex-m4'?"),
    ],
)
def test_only_near_names_are_suggested(name: str, choices: list[str], hint: str) -> None:
    """A word that shares letters is no misspelling: CAST was suggested for ABS."""
    assert errors.nearest(name, choices) == hint
