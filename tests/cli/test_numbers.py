"""Layers have one number and one name, whoever speaks of them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support.command import INT8, Command

OPTIONS = ("--target", "c -mcpu=cortex-m4", "--optimize", "speed")


@pytest.fixture
def of_the_file(microtir: Command) -> dict[int, str]:
    """Numbers and names of the operators, from the model itself."""
    layers = json.loads(microtir("inspect", INT8, "--json").out)["layers"]
    return {layer["index"]: layer["name"] for layer in layers}


def test_a_report(microtir: Command, of_the_file: dict[int, str]) -> None:
    """Every layer, the one that needs no code included."""
    report = json.loads(microtir("report", INT8, *OPTIONS, "--json").out)
    assert {int(layer["number"]): layer["name"] for layer in report["layers"]} == of_the_file
    assert {int(s["label"].rstrip("f")): s["layer"] for s in report["steps"]}.items() <= (
        of_the_file.items()
    )
    assert not all(layer["has_code"] for layer in report["layers"])


def test_metadata_and_functions(
    microtir: Command, tmp_path: Path, of_the_file: dict[int, str]
) -> None:
    """The names of the C functions begin with the number."""
    folder = tmp_path / "digits"
    assert microtir("compile", INT8, *OPTIONS, "-o", folder).status == 0
    layers = json.loads((folder / "metadata.json").read_text())["layers"]
    assert {layer["index"]: layer["name"] for layer in layers}.items() <= of_the_file.items()
    for layer in layers:
        (number,) = re.findall(r"_layer0*(\d+)_", layer["function"])
        assert int(number) == layer["index"]


def test_a_profile(microtir: Command, tmp_path: Path, of_the_file: dict[int, str]) -> None:
    """The table, the explanations and the JSON; the run function has no number."""
    file = tmp_path / "p.json"
    found = microtir("profile", INT8, "--board", "mps2_an386", "--explain", "--json", file).out
    rows = json.loads(file.read_text())["layers"]
    assert rows[0]["index"] is None
    assert {row["index"]: row["name"] for row in rows[1:]}.items() <= of_the_file.items()
    for number, name in re.findall(r"^ *(\d+) +(\S+) ", found, re.MULTILINE):
        assert of_the_file[int(number)] == name
