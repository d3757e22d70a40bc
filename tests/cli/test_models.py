from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from microtir.frontend.tflite_writer import TfliteBuilder
from tests.support.command import FLOAT, INT8, Command


@pytest.fixture
def unsupported(tmp_path: Path) -> Path:
    """A model with two operators that microtir does not know."""
    builder = TfliteBuilder()
    tensors = [builder.tensor(f"t{i}", (1, 4), np.float32) for i in range(3)]
    builder.custom_operator("Wavelet", [tensors[0]], [tensors[1]])
    builder.custom_operator("Chirp", [tensors[1]], [tensors[2]])
    path = tmp_path / "odd.tflite"
    path.write_bytes(builder.build(tensors[:1], tensors[2:]))
    return path


@pytest.mark.parametrize("model", [INT8, FLOAT])
def test_check_of_a_good_model(microtir: Command, model: Path) -> None:
    """A model without problems: status 0, its layers and workspace."""
    result = microtir("check", model)
    assert (result.status, result.err) == (0, "")
    assert result.out.startswith(f"{model.name}: no problems, 10 layers, ")
    assert "bytes of workspace" in result.out


def test_check_lists_all_problems(microtir: Command, unsupported: Path) -> None:
    """Every problem is on stdout with its place and a fix; status 1."""
    result = microtir("check", unsupported)
    assert (result.status, result.err) == (1, "")
    assert result.out.startswith("odd.tflite: 2 problems, for cortex-m4\n")
    for index, name in enumerate(("Wavelet", "Chirp")):
        assert f"operator {index}" in result.out
        assert name in result.out
    assert result.out.count("fix:") == 2


def test_check_as_json(microtir: Command, unsupported: Path) -> None:
    """--json has one entry per problem, and an empty list for a good model."""
    result = microtir("check", unsupported, "--json")
    facts = json.loads(result.out)
    assert result.status == 1
    assert (facts["model"], facts["ok"]) == ("odd.tflite", False)
    assert len(facts["problems"]) == 2
    assert facts["problems"][0].keys() == {"where", "what", "legal", "fix"}
    good = json.loads(microtir("check", INT8, "--json").out)
    targets = ["c -mcpu=cortex-m4"]
    assert good == {"model": INT8.name, "targets": targets, "ok": True, "problems": []}


def test_compile_of_an_unsupported_model(microtir: Command, unsupported: Path) -> None:
    """`compile` reports the same problems as one diagnostic, with status 1."""
    result = microtir("compile", unsupported, "-o", unsupported.parent / "out")
    assert result.status == 1
    assert "2 problems" in result.diagnostic
    assert "Wavelet" in result.diagnostic and "Chirp" in result.diagnostic


def test_check_finds_an_exceeded_budget(microtir: Command) -> None:
    """A model that does not fit the budget has a problem."""
    result = microtir("check", INT8, "--ram-budget", "64")
    assert result.status == 1
    assert "budget.ram" in result.out


def test_inspect(microtir: Command) -> None:
    """The table has each layer with shape, quantisation, parameters and work."""
    result = microtir("inspect", "example:digits")
    rows = [line.split() for line in result.out.splitlines()]
    assert result.status == 0
    assert [
        "0",
        "conv1",
        "CONV_2D",
        "1x8x8x16",
        "int8",
        "0.0187385",
        "-128",
        "160",
        "9,216",
    ] in rows
    assert ["MACs", "42,048"] in rows
    assert "input       image: int8 1x8x8x1, scale 0.00392157, zero point -128" in result.out


def test_inspect_as_json(microtir: Command) -> None:
    """--json has the same facts, unrounded."""
    facts = json.loads(microtir("inspect", FLOAT, "--json").out)
    assert facts["macs"] == 42048
    assert [layer["source_operator"] for layer in facts["layers"]][:2] == [
        "CONV_2D",
        "DEPTHWISE_CONV_2D",
    ]
    assert facts["layers"][0]["outputs"][0]["shape"] == [1, 8, 8, 16]
