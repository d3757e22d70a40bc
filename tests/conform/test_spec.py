"""A specification says how kernels are called; what is wrong in one is named by file and field."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from microtir.conform import SpecError, built_in_specs, draw_cases, load_spec
from tests.support.command import Command

GOOD = """
name = "own"
headers = ["own.h"]

[[function]]
name = "own_dense"
kind = "fully_connected"
call = "return own_dense(c);"
"""


def spec_file(folder: Path, text: str) -> str:
    """Write a specification and return its path."""
    file = folder / "own.toml"
    file.write_text(text)
    return str(file)


@pytest.mark.parametrize(
    ("old", "new", "field", "said"),
    [
        ('"own"', "7", "name", "got 7"),
        ('headers = ["own.h"]', "header = 1", "header", "unknown key 'header'"),
        ('"fully_connected"', '"dense"', "function[0].kind", "got 'dense'"),
        ("kind", "sort", "function[0].kind", "the key 'kind' is missing"),
        ('"own_dense"', '"own dense"', "function[0].name", "is not a C identifier"),
        ("call =", "alignment = 3\ncall =", "function[0].alignment", "got 3"),
        ("call =", 'weights = "oo"\ncall =', "function[0].weights", "other letters than oi"),
        ("call =", 'ranges = { batches = "x" }\ncall =', "ranges.batches", "is no range"),
        ("call =", 'ranges = { batches = "5..2" }\ncall =', "ranges.batches", "got '5..2'"),
        ("call =", 'ranges = { strides = "1" }\ncall =', "ranges.strides", "unknown key"),
        ("[[function]]", 'sources = ["../*.c"]\n[[function]]', "sources", "no such path"),
        ("call =", "call = \n", "own.toml", "is not TOML"),
    ],
)
def test_errors_name_file_and_field(
    tmp_path: Path, old: str, new: str, field: str, said: str
) -> None:
    """Each wrong field ends with a diagnostic that names it."""
    file = spec_file(tmp_path, GOOD.replace(old, new, 1))
    with pytest.raises(SpecError) as caught:
        load_spec(file)
    assert said in str(caught.value)
    assert "own.toml" in str(caught.value.where)
    assert field in str(caught.value.where)


def test_functions_have_names_of_their_own(tmp_path: Path) -> None:
    """Two functions of one name, or none at all, are refused."""
    twice = GOOD + GOOD[GOOD.index("[[function]]") :]
    for text in (twice, GOOD[: GOOD.index("[[function]]")]):
        with pytest.raises(SpecError, match=r"a function is named twice|no function is described"):
            load_spec(spec_file(tmp_path, text))


def test_built_in_specifications_are_files_of_the_same_form() -> None:
    """Those of CMSIS-NN and ESP-NN load, and cover every kind."""
    assert built_in_specs() == ("cmsis-nn", "esp-nn")
    for name in built_in_specs():
        kinds = {function.kind.value for function in load_spec(name).functions}
        assert len(kinds) == 8


def test_cases_depend_on_the_seed_alone() -> None:
    """The same seed gives the same cases, another one others."""
    function = load_spec("esp-nn").functions[0]
    one, same, other = (draw_cases(function, 5, seed) for seed in (1, 1, 2))
    assert [case.text for case in one] == [case.text for case in same]
    assert [case.text for case in one] != [case.text for case in other]
    for a, b in zip(one, same, strict=True):
        assert np.array_equal(a.expected, b.expected)


def test_wrong_arguments_are_diagnosed(microtir: Command, tmp_path: Path) -> None:
    """An unknown specification, a folder without kernels, and nothing to do are refused."""
    folder = str(tmp_path)
    unknown = microtir("conform", folder, "--spec", "cmsis_nn")
    assert unknown.status == 2
    assert "there is no specification 'cmsis_nn': did you mean 'cmsis-nn'" in unknown.diagnostic
    empty = microtir("conform", folder, "--spec", "esp-nn")
    assert empty.status == 2
    assert "there is no source of these kernels" in empty.diagnostic
    idle = microtir("conform", folder, "--spec", "esp-nn", "--no-run")
    assert "there is nothing to do" in idle.diagnostic
    none = microtir("conform", folder, "--spec", "esp-nn", "--cases", "0")
    assert "--cases is 0 and" in none.diagnostic
