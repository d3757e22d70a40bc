"""Profiles: what is read, whom each row belongs to, and every way in which a file is wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from microtir.errors import DataFileError
from microtir.report.data import ReportedPushes, WholeRun
from microtir.report.profile import MeasuredProfile, read_profile, with_profile
from microtir.report.summary import facts, layer_table, profile_facts
from tests.support.report_facts import report, totals

ROWS = (
    ("net_run", "main", 10, 12),
    ("net/conv_2d", "CONV_2D", 700, 900),
    ("net/relu", "RELU", 90, 95),
    ("net/mean", "MEAN", 150, 200),
    ("net/mean", "MEAN", 50, 60),
)


def measured(**changes: Any) -> MeasuredProfile:
    """Return a profile of the hand-made report, with changes."""
    return replace(MeasuredProfile("p.json", "net.tflite", ("c",), totals(), ROWS), **changes)


def written(path: Path, **changes: Any) -> Path:
    """Return the same as a file."""
    keys = ("name", "operator", "instructions", "cycles_estimate")
    known = {
        "model": "net.tflite", "targets": ["c"], "board": "board", "compiler": "cc 1",
        "instructions": 1000,
        "cycles_estimate": 1500, "flash": {"code": 300, "weights": 2100},
        "ram": {"workspace": 80, "scratch": 20},
        "layers": [dict(zip(keys, row, strict=True)) for row in ROWS],
    }  # fmt: skip
    path.write_text(json.dumps({**known, **changes}), encoding="utf-8")
    return path


def test_a_file_is_read(tmp_path: Path) -> None:
    """What the contract of `profile --json` lists is there."""
    assert read_profile(written(tmp_path / "p.json")) == measured()


def test_rows_find_their_layers() -> None:
    """A layer of two functions has the sum of their rows; main's own row stands by itself."""
    found = with_profile(report(), measured())
    counts = {layer.number: (layer.instructions, layer.cycles) for layer in found.layers}
    assert counts == {"0": (700, 900), "1": (90, 95), "2": (None, None), "3": (200, 260)}
    assert found.profile is not None
    assert found.profile.elsewhere == (("net_run", 10, 12),)


def test_the_rows_add_up() -> None:
    """The column of instructions adds up to the sum below it."""
    table = layer_table(with_profile(report(), measured()))
    at = table.columns.index("instructions")
    values = [int(row[at].replace(",", "")) for row in table.rows if row[at]]
    assert sum(values[:-1]) == values[-1] == 1000


def test_figures_are_called_what_they_are() -> None:
    """Instructions say on what they were counted, cycles that they are estimated."""
    said = dict(profile_facts(with_profile(report(), measured())))
    assert said["instructions"].startswith("1,000 on QEMU")
    assert said["estimated cycles"] == "1,500"
    assert profile_facts(report()) == []


def test_a_whole_window_beside_pushes_is_read(tmp_path: Path) -> None:
    """Its instructions, and its RAM without the stack, replace what planning expects."""
    whole = {"instructions": 9000, "ram": {"workspace": 300, "stack": 40, "total": 340}}
    found = read_profile(written(tmp_path / "p.json", whole=whole)).totals.whole
    assert found == WholeRun(9000, 300, is_measured=True)
    pushes = ReportedPushes("x", 1, 9, (), WholeRun(1, 1))
    profile = measured(totals=replace(totals(), whole=found))
    said = dict(facts(replace(with_profile(report(), profile), pushes=pushes)))
    assert said["of instructions"] == "1,000 of the whole window's 9,000, 0.111"
    with pytest.raises(DataFileError, match="it lacks 'total'"):
        read_profile(written(tmp_path / "p.json", whole={"instructions": 1, "ram": {}}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": "other.tflite"}, "for 'other.tflite', but the report is for 'net.tflite'"),
        ({"targets": ("c -mcpu=esp32",)}, "for 'c -mcpu=esp32', but the report is for 'c'"),
        ({"rows": ROWS[:2]}, "no row for the layer 'net/relu'"),
        (
            {"totals": replace(totals(), ram=(("workspace", 80),))},
            "a workspace of 80 bytes, but the report is for 100",
        ),
    ],
)
def test_a_profile_of_something_else(changes: dict[str, Any], message: str) -> None:
    """Another model or another plan: figures are never put beside what they are not of."""
    with pytest.raises(DataFileError, match=message) as caught:
        with_profile(report(), measured(**changes))
    assert caught.value.where == "p.json"
    assert (
        caught.value.fix == "run `microtir profile` for this model, with the options of the report"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "it is not JSON"),
        ("{}", "it lacks 'board'"),
        ("[]", "a value is of the wrong type"),
        ("\xff", "it is not JSON"),
        ("[" * 100_000, "nested too deep"),
        ('{"board": ' + "9" * 5000 + "}", "5000 digits"),
    ],
)
def test_a_file_that_is_no_profile(tmp_path: Path, text: str, message: str) -> None:
    """A diagnostic says what is missing."""
    path = tmp_path / "p.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(DataFileError, match=message):
        read_profile(path)


def test_a_file_with_a_wrong_value(tmp_path: Path) -> None:
    """A number that is none, and a file that is not there."""
    for value in ("many", 1.5, True, -1, None):
        with pytest.raises(DataFileError, match="'instructions' is "):
            read_profile(written(tmp_path / "p.json", instructions=value))
    with pytest.raises(DataFileError, match="cannot be read"):
        read_profile(tmp_path / "none.json")
