from __future__ import annotations

import json
from pathlib import Path

import pytest

from microtir.boards.board import MemoryKind
from microtir.search.board_fit import BoardFit, MemoryFit
from microtir.writers import write_tflite
from tests.support.command import FLOAT, INT8, ROOT, Command
from tests.support.float_networks import chain
from tests.support.pages import shown


def test_report_prints_everything(microtir: Command) -> None:
    """Without a file: summary, map, buffers and layers."""
    result = microtir("report", "example:digits", "--target", "c")
    assert (result.status, result.err) == (0, "")
    assert result.out.startswith("model            digits_int8.tflite, ")
    for word in ("peak", "lower bound", "buffer ", "CONV_2D", "SOFTMAX", "in all"):
        assert word in result.out, word


def test_report_writes_a_page(microtir: Command, tmp_path: Path) -> None:
    """With a file: the page, the same every time, and the summary only."""
    pages = [tmp_path / name for name in ("a.html", "b.html")]
    results = [microtir("report", FLOAT, "-o", page) for page in pages]
    assert [result.status for result in results] == [0, 0]
    assert pages[0].read_bytes() == pages[1].read_bytes()
    text = pages[0].read_text("utf-8")
    assert text.startswith("<!DOCTYPE html>") and text.endswith("</html>\n")
    assert str(tmp_path) not in text and str(ROOT) not in text
    assert "in all" not in results[0].out
    assert "lower bound" in results[0].out


def test_report_as_json(microtir: Command) -> None:
    """The same facts for machines; the figures are those of `compile --json`."""
    facts = json.loads(microtir("report", INT8, "--json").out)
    assert facts["file"] == "digits_int8.tflite"
    (pool,) = facts["pools"]
    assert pool["size"] >= pool["lower_bound"] >= sum(b["at_peak"] for b in pool["buffers"])
    assert facts["weights_bytes"] == sum(c["bytes"] for c in facts["constants"])


def test_an_exceeded_budget_is_status_1(microtir: Command, tmp_path: Path) -> None:
    """What does not fit is shown with its map, and the answer is no."""
    page, model = tmp_path / "report.html", tmp_path / "dense.tflite"
    write_tflite(chain(2), model)  # few layers, since other options are tried with all of them
    result = microtir("report", model, "--ram-budget", "4", "-o", page)
    assert (result.status, result.err) == (1, "")
    assert "budget.ram" in result.out and "EXCEEDED by " in result.out
    assert "does not fit" in page.read_text("utf-8")
    assert "tried" in result.out and "exceeds" in page.read_text("utf-8")


def test_a_board_gives_target_budgets_and_limits(microtir: Command) -> None:
    """Its memories are limits, and `board` stands for what it has."""
    budgets = ("--ram-budget", "board", "--stack-budget", "board")
    result = microtir("report", INT8, "--board", "mps2_an386", *budgets, "--json")
    facts = json.loads(result.out)
    assert result.status == 0 and facts["targets"] == ["c -mcpu=cortex-m4"]
    limits = {limit["option"]: limit for limit in facts["limits"]}
    ssram = limits["mps2_an386 ssram"]
    assert ssram["used"] > facts["pools"][0]["size"] and ssram["allowed"] == 4 << 20
    allowed = limits["budget.ram"]["allowed"] + limits["budget.stack"]["allowed"]
    assert allowed + 64 + 10 == ssram["allowed"]  # input and output
    assert facts["code_is_compiled"]
    flash = limits["mps2_an386 code"]["used"]
    assert flash == facts["weights_bytes"] + facts["code_bytes"]


def test_wrong_files_are_diagnostics(microtir: Command, tmp_path: Path) -> None:
    """A profile that is none, and a page that cannot be written: status 3 and one diagnostic."""
    result = microtir("report", INT8, "--profile", INT8)
    assert result.status == 3
    assert "not a profile" in result.diagnostic
    (tmp_path / "file").touch()
    result = microtir("report", INT8, "-o", tmp_path / "file" / "report.html")
    assert result.status == 3
    assert "report.html: cannot be written" in result.diagnostic


def test_the_page_of_the_documentation(microtir: Command) -> None:
    """The output that the page shows is what the command prints."""
    result = microtir("report", "example:digits", "--target", "c", "--optimize", "ram-least")
    assert shown("report.md") == result.out.splitlines()


def test_what_does_not_fit_a_board_names_the_cause_and_a_remedy(microtir: Command) -> None:
    """The memory that lacks bytes, what takes most of it, and what comes nearest to fitting."""
    result = microtir("report", FLOAT, "--board", "uno")
    assert result.status == 1
    text = " ".join(result.out.split())
    assert "does not fit: uno sram lacks 1,252 bytes; the largest part is the workspace" in text
    assert "none of the tried options makes the model fit" in text
    assert "the nearest is --optimize ram-least --pass-config memory.use_workspace_io=1" in text


def test_the_cheapest_option_that_fits_is_named(
    microtir: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where planning finds room, the report has the option and what each memory takes then."""
    memory = MemoryFit("sram", MemoryKind.RAM, 2000, 2048)
    fit = BoardFit("uno", "atmega328p", "--optimize ram", (memory,), 1, 1, 1)
    monkeypatch.setattr("microtir.search.fit_plans.fit_boards", lambda *_: (fit,))
    out = " ".join(microtir("report", FLOAT, "--board", "uno").out.split())
    fits = "fits by the estimates of planning, with 2,000 of 2,048 bytes of sram"
    assert f"tried --optimize ram: {fits}" in out
