from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from microtir.graph.ir import Array
from microtir.operators.common.tflite_schema import BuiltinOperator, Padding
from microtir.operators.pooling.tflite import Pool2DOptions
from microtir.writers.tflite import TfliteBuilder
from tests.frontend.onnx.test_quantised import Parts
from tests.support.command import FLOAT, INT8, Command


@pytest.fixture
def unsupported(tmp_path: Path) -> Path:
    """Return a model with two operators that microtir does not know."""
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
    assert result.out.startswith("odd.tflite: 2 problems, 1 cause, for cortex-m4\n\nthe custom op")
    for index, name in enumerate(("Wavelet", "Chirp")):
        assert f"  - operator {index}" in result.out
        assert name in result.out
    assert result.out.count("fix:") == 1


def test_check_as_json(microtir: Command, unsupported: Path) -> None:
    """--json has one entry per problem, and an empty list for a good model."""
    result = microtir("check", unsupported, "--json")
    facts = json.loads(result.out)
    assert result.status == 1
    assert (facts["model"], facts["ok"]) == ("odd.tflite", False)
    assert len(facts["problems"]) == 2
    assert facts["problems"][0].keys() == {"where", "what", "legal", "fix"}
    assert [cause["problems"] for cause in facts["causes"]] == [[0, 1]]
    good = json.loads(microtir("check", INT8, "--json").out)
    targets = ["c -mcpu=cortex-m4"]
    assert good == {
        "model": INT8.name, "targets": targets, "ok": True, "problems": [], "causes": [],
        "float_layers": [],
        "changed_values": [],
        "named_outputs": [],
        "as_int8": None,
    }  # fmt: skip


@pytest.mark.tools
def test_check_says_what_int8_would_make_of_floats(microtir: Command) -> None:
    """The workspace is that of the same model as another quantiser wrote it."""
    board = ("--board", "mps2_an386")
    facts = json.loads(microtir("check", FLOAT, *board, "--json").out)["as_int8"]
    assert facts["layers_in_floats"] == 0
    shown = microtir("check", INT8).out
    assert f"{facts['int8']['workspace']:,} bytes of workspace" in shown
    assert facts["int8"]["flash"] < facts["floats"]["flash"]
    assert facts["int8"]["instructions"] < facts["floats"]["instructions"]
    command = f"microtir quantise {FLOAT.name} --data samples.npz -o int8.tflite"
    said = microtir("check", FLOAT, *board).out
    assert command in said
    units = {
        "workspace": "bytes of workspace",
        "flash": "bytes of flash",
        "instructions": "instructions",
    }
    for key, unit in units.items():
        assert f"{facts['int8'][key]:,} {unit} instead of {facts['floats'][key]:,}" in said


@pytest.mark.tools
def test_check_names_layers_of_floats_between_integers(microtir: Command, tmp_path: Path) -> None:
    """Of a quantised model in ONNX: the operator, why, and what its floats take."""
    parts = Parts(np.random.default_rng(1), np.int8)
    x = np.zeros((1, 4, 5), np.float32)
    parts.constants["c"] = np.arange(5, dtype=np.float32)
    parts.nodes.append(helper.make_node("Add", [parts.quantised("input", "x"), "c"], ["y"]))
    path = tmp_path / "floats.onnx"
    path.write_bytes(parts.model(x, parts.quantised("y", "result")))
    result = microtir("check", path)
    assert result.status == 0
    assert "\n\n1 layer between integers in floats:\n  - operator 2 Add: an operand" in result.out
    assert "instructions, up to 120 more bytes of RAM" in result.out
    (layer,) = json.loads(microtir("check", path, "--json").out)["float_layers"]
    assert layer.keys() == {"where", "why", "instructions", "ram"}
    assert layer["instructions"] > 20


def odd_tensors(tmp_path: Path) -> Path:
    """Return a model with damage in two places between operators that are not supported."""
    builder = TfliteBuilder()
    x, y, z = (builder.tensor(n, (1, 4), np.float32) for n in "xyz")
    data: Array = np.full((1, 4), np.nan, np.float32)
    bad = [builder.tensor(n, (1, 4), np.float32, data) for n in ("first", "second")]
    builder.operator(BuiltinOperator.ADD, [x, bad[0]], [y])
    builder.custom_operator("Wavelet", [y], [z])
    last = builder.tensor("last", (1, 4), np.float32)
    builder.operator(BuiltinOperator.MUL, [z, bad[1]], [last])
    path = tmp_path / "damaged.tflite"
    path.write_bytes(builder.build([x], [last]))
    return path


def test_check_goes_on_behind_damage(microtir: Command, tmp_path: Path) -> None:
    """It stopped at the first damage; it comes first, and all the rest behind it; status 3."""
    result = microtir("check", odd_tensors(tmp_path))
    assert (result.status, result.err) == (3, "")
    head = "damaged.tflite: 3 problems, 2 causes, for cortex-m4\n\nits data holds NaN\n"
    assert result.out.startswith(head)
    assert "  - tensor 3 'first'\n  - tensor 4 'second'\n" in result.out
    assert result.out.index("second") < result.out.index("'Wavelet'")


def test_check_of_damage_as_json(microtir: Command, tmp_path: Path) -> None:
    """--json was no JSON for a damaged file, and nothing for one that is no model."""
    damaged, other = odd_tensors(tmp_path), tmp_path / "net.onnx"
    other.write_bytes(b"\x08\x09\x12\x07pytorch")
    for path, count in ((damaged, 3), (other, 1), (tmp_path / "none.tflite", 1)):
        result = microtir("check", path, "--json")
        facts = json.loads(result.out)
        assert (result.status, result.err) == (3, "")
        assert (facts["ok"], len(facts["problems"])) == (False, count)
    assert "Wavelet" in str(json.loads(microtir("check", damaged, "--json").out)["problems"])


def test_check_names_dynamic_shapes_as_such(microtir: Command, tmp_path: Path) -> None:
    """An input of any height is one problem, not damage behind it."""
    builder = TfliteBuilder()
    x = builder.tensor("x", (1, 1, 4, 2), np.float32, shape_signature=(-1, -1, 4, 2))
    y, z = (
        builder.tensor(n, (1, 1, 2, 2), np.float32, shape_signature=(-1, -1, 2, 2)) for n in "yz"
    )
    pool = Pool2DOptions(Padding.VALID, 2, 2, 2, 2)
    builder.operator(BuiltinOperator.MAX_POOL_2D, [x], [y], pool)
    builder.operator(BuiltinOperator.MAX_POOL_2D, [y], [z], pool)
    path = tmp_path / "dynamic.tflite"
    path.write_bytes(builder.build([x], [z]))
    result = microtir("check", path)
    assert result.status == 1
    assert result.out.startswith("dynamic.tflite: 1 problem, for cortex-m4\n")
    assert "is open: (-1, -1, 4, 2) (stored as (1, 1, 4, 2))" in result.out


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
