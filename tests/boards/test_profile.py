"""Profiles: the contract of the JSON, rows that sum to the total, bytes that are the model's."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from microtir.boards import Board, ProjectType, load_board
from microtir.boards.errors import BoardError, ModelTooLargeError
from microtir.profiling import profile as profile_on
from microtir.projects import ProjectOptions, Samples, generate
from tests.support.board_projects import digits, digits_samples, profiled
from tests.support.command import Command

RAM_KEYS = ["workspace", "scratch", "io", "state", "data", "stack", "reserve", "total"]
LAYER_KEYS = [
    *("name", "index", "operator", "macs", "macs_executed", "macs_recomputed"),
    *("instructions", "code", "causes", "varying", "time", "cycles_estimate"),
]
KEYS = [
    *("model", "targets", "board", "compiler", "instructions", "cycles_estimate", "time"),
    *("flash", "ram"),
    *("layers", "kernels"),
]


@pytest.mark.compiler_version
@pytest.mark.parametrize("name", ["mps2_an386", "mps3_an547", "riscv32", "atmega2560"])
def test_profile(name: str) -> None:
    """Every figure of the example model is there, and they agree with each other."""
    board = load_board(name)
    artifact = digits(str(board.target))
    result = profiled(name)
    data = result.to_dict()
    assert list(data) == KEYS
    assert list(data["ram"]) == RAM_KEYS
    assert all(list(row) == LAYER_KEYS for row in data["layers"])

    for key in ("instructions", "cycles_estimate"):
        assert data[key] == sum(row[key] for row in data["layers"]) > 10_000
    assert data["cycles_estimate"] > data["instructions"] / 2
    facts = artifact.metadata
    assert [row["name"] for row in data["layers"]] == [
        "digits_run",
        *(layer.name for layer in facts.layers),
    ]
    for row, layer in zip(data["layers"][1:], facts.layers, strict=True):
        assert (row["macs"], row["macs_executed"]) == (layer.macs, layer.macs_executed)

    # The rest of the code are helpers, checks, and what libraries and constants take.
    parts = sum(row["code"] for row in (*data["layers"], *data["kernels"]))
    assert all(row["code"] > 0 for row in data["layers"])
    assert data["flash"]["code"] / 2 < parts <= data["flash"]["code"]
    names = {layer.name for layer in facts.layers}
    assert all(row["layers"] and names.issuperset(row["layers"]) for row in data["kernels"])
    assert data["kernels"] or name == "atmega2560"

    ram, memory = data["ram"], facts.memory
    assert memory is not None
    assert ram["workspace"] + ram["scratch"] == memory.workspace_size
    assert ram["io"] == 64 + 10
    assert ram["total"] == sum(ram[key] for key in RAM_KEYS[:-1])
    assert abs(data["flash"]["weights"] - facts.weights_bytes) <= 64  # alignment
    assert data["flash"]["total"] == data["flash"]["code"] + data["flash"]["weights"]
    assert 1000 < data["flash"]["code"] < 20_000
    # What was touched cannot be more than what the calls can reach.
    assert 16 < ram["stack"] <= result.stack_bound.bytes <= ram["stack"] + 32
    assert result.stack_bound.unknown == ()
    # The application's function that calls the model takes a frame of its own.
    assert result.stack_bound.bytes <= facts.stack.bytes + 64


def test_application_does_not_count() -> None:
    """More samples and a larger stack change neither bytes nor instructions of the model."""
    board = load_board("mps2_an386")
    artifact = digits(str(board.target))
    more = ProjectOptions(samples={"digits": digits_samples(5)}, stack=8192)
    assert profile_on(artifact, board, options=more) == profiled("mps2_an386")


def test_board_that_counts_nothing() -> None:
    """The host and boards without an emulator are refused before anything is built."""
    for name in ("host", "nucleo_f746zg"):
        with pytest.raises(BoardError, match=f"cannot be counted on '{name}'"):
            profile_on(digits("c"), load_board(name))


def test_model_that_does_not_fit(tmp_path: Path) -> None:
    """A model too large for the board is refused with the table of what needs how much."""
    board = load_board("microbit")
    assert board.data is not None
    data = replace(board.data, size=2048)
    small: Board = replace(board, data=data, memories=(data, *board.memories[1:]))
    with pytest.raises(ModelTooLargeError, match=r"workspace +1\d\d\d(.|\n)*too many"):
        generate(digits(str(board.target)), small, ProjectType.BAREMETAL, tmp_path / "p")
    assert not (tmp_path / "p").exists()


def test_command(microtir: Command, tmp_path: Path) -> None:
    """The command prints every layer, explains the plan and writes the JSON of the contract."""
    path = tmp_path / "profile.json"
    result = microtir(
        "profile", "example:digits", "--board", "mps2_an386", "--explain", "--json", path
    )
    assert (result.status, result.err) == (0, "")
    data = json.loads(path.read_text())
    assert list(data) == KEYS
    head, layers, plan = result.out.split("\n\n", 2)
    reasons = plan[plan.index("Reason, and other candidates") :]
    assert "not conv_s8_2x4_dsp_compact" in reasons and "instructions more" in reasons
    assert f"{data['instructions']:,}" in head
    for row in data["layers"]:
        assert any(row["name"] in line for line in layers.splitlines())
    assert "kernel" in plan and "conv_s8_2x4_dsp" in plan
    only = microtir("profile", "example:digits", "--board", "mps2_an386", "--json", "-")
    assert json.loads(only.out) == data


def test_a_push_stands_beside_the_whole_window(microtir: Command, tmp_path: Path) -> None:
    """Both are measured; a report takes the figures."""
    path, options = tmp_path / "profile.json", ("--board", "mps2_an386", "--stream-axis", "1")
    result = microtir("profile", "example:digits", *options, "--json", path)
    data, alone = json.loads(path.read_text()), profiled("mps2_an386")
    assert list(data) == [*KEYS, "whole"]
    assert data["whole"]["instructions"] == alone.instructions
    share = data["instructions"] / alone.instructions
    line = f"{data['instructions']:,} of the whole window's {alone.instructions:,}, {share:.3f}"
    assert line in result.out and "padded in time" in result.out
    said = microtir("report", "example:digits", *options, "--profile", path)
    assert line in said.out


def test_samples_decide_what_runs() -> None:
    """The inference that is measured is that of the first sample."""
    board = load_board("riscv32")
    artifact = digits(str(board.target))
    flat = {"image": np.full_like(digits_samples(1).inputs["image"], -128)}
    zeros = profile_on(artifact, board, options=ProjectOptions(samples={"digits": Samples(flat)}))
    image = profiled("riscv32")
    assert zeros.instructions != image.instructions
    assert zeros.code == image.code
