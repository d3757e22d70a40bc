"""What the page asks for: each answer is what the command line says of the same."""

from __future__ import annotations

import base64
import io
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest

from microtir import driver
from microtir.boards import load_board
from microtir.report.collect import describe
from microtir.report.html import Part, to_html, to_part
from microtir.report.listing import listing
from microtir.studio.events import Event, Job
from microtir.studio.jobs import boards as boards_job
from microtir.studio.jobs import frontier as frontier_job
from microtir.studio.jobs.boards import Boards
from microtir.studio.jobs.code import Code
from microtir.studio.jobs.comparison import Comparison
from microtir.studio.jobs.download import Download, DownloadKind
from microtir.studio.jobs.frontier import FrontierSearch
from microtir.studio.jobs.planning import Planning
from microtir.studio.models import ModelFile
from microtir.studio.plan import Plan
from scripts.models.shapes import conv_1d
from tests.support import shared_programs
from tests.support.studio_server import EXAMPLE, PLAN, Page

BALANCED = Plan(EXAMPLE, None, "cortex-m4", "balanced", None)
SMALL = Plan(EXAMPLE, "uno", None, "ram", None)


@pytest.fixture(autouse=True)
def compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile the example for a configuration once."""
    monkeypatch.setattr(driver, "build", shared_programs.build)


def told(job: Job) -> list[Event]:
    """Run a job in this process; returns what it told but what is being done."""
    events: list[Event] = []
    job.run(events.append)
    json.dumps(events, allow_nan=False)
    return [event for event in events if event["event"] != "progress"]


def test_a_plan_is_shown_as_the_report_shows_it() -> None:
    """The parts are those of the page of `microtir report`, and stand in it as they are."""
    shown, span = told(Planning(BALANCED, None))
    report = describe(BALANCED.module())
    page = to_html(report)
    parts: Any = shown["parts"]
    assert parts == {part.value: to_part(report, part) for part in Part}
    assert all(text.strip() in page for text in parts.values())
    assert (shown["fits"], shown["has_limits"], shown["ram"]) == (True, False, 1216)
    assert span == {"event": "range", "workspace": 736, "least": 736, "most": 2760}


@pytest.mark.parametrize(("plan", "rate"), [(BALANCED, "100 MHz"), (SMALL, "16 MHz")])
def test_time_and_ram_come_first(plan: Plan, rate: str) -> None:
    """The sum has every part of the RAM, the stack among them, and the time has its clock."""
    shown, *_ = told(Planning(plan, 736))
    figures: Any = shown["figures"]
    (time, words), (ram, in_all) = figures
    assert time.startswith("about ") and f"a run at {rate}" in words
    note = str(shown["ram_note"])
    parts = [int(count.replace(",", "")) for count in re.findall(r"([\d,]+) bytes for", note)]
    assert in_all == "bytes of RAM in all" and int(ram.replace(",", "")) == sum(parts)
    stack = driver.build(plan.module()).metadata.stack.bytes
    assert f"{stack:,} bytes for the stack of one run" in note and len(parts) == 3


def test_a_budget_plans_anew() -> None:
    """Within the range it is kept; the smallest workspace is not looked for again."""
    (shown,) = told(Planning(Plan(EXAMPLE, None, "cortex-m4", "balanced", 900), 736))
    assert shown["fits"] and isinstance(shown["ram"], int) and 736 <= shown["ram"] <= 900
    assert shown["command"] == (
        "microtir compile example:digits --target cortex-m4 --optimize balanced"
        " --ram-budget 900 -o out"
    )


def test_a_budget_that_is_too_small_says_by_how_much() -> None:
    """And what was tried; the plan that exceeds it least is shown."""
    shown, tried = told(Planning(Plan(EXAMPLE, "uno", None, "balanced", 300), 736))
    assert not shown["fits"]
    said: Any = shown["exceeded"]
    (exceeded,) = said
    assert exceeded.startswith(
        "budget.ram: workspace takes 686 bytes, 386 more than the limit of 300"
    )
    assert tried["event"] == "tried" and tried["lines"]


def test_rows_of_boards_come_as_they_are_known(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The last table is that of `microtir fit`."""
    few = tuple(map(load_board, ("mps2_an386", "nano33ble")))
    monkeypatch.setattr(boards_job, "all_boards", lambda: few)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    tables = told(Boards(EXAMPLE, "balanced"))
    assert tables[0]["rows"] == [] and tables[0]["title"] == "0 of 2 boards"
    assert tables[-1]["title"] == "example:digits: fits 2 of 2 boards at --optimize balanced"
    rows: Any = tables[-1]["rows"]
    assert [(row["board"], row["fits"]) for row in rows] == [
        ("nano33ble", True),
        ("mps2_an386", True),
    ]


@pytest.mark.parametrize("optimize", ["balanced", "flash"])
def test_c_and_tir_of_each_layer(optimize: str) -> None:
    """Each layer's C has its comment and its function, whose name the TIR has, too."""
    plan = Plan(EXAMPLE, None, "cortex-m4", optimize, None)
    (code,) = told(Code(plan))
    artifact = driver.build(plan.module())
    functions: Any = code["functions"]
    assert len(functions) == len(artifact.metadata.layers) == len(listing(artifact))
    source = artifact.source("digits_int8.c")
    for one, layer in zip(functions, artifact.metadata.layers, strict=True):
        assert f"/* {layer.operator} '{layer.name}'" in one["c"]
        assert f"void {layer.function}(" in one["c"]
        assert all(part in source for part in one["c"].split("\n\n/*")[-1:])
        assert layer.function.removeprefix("digits_int8_") in one["tir"]


def test_trades_by_estimates(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each row of the table stands for a goal and a budget that the page can show."""
    monkeypatch.setattr(frontier_job, "_POINTS", 1)
    file = tmp_path / "small.tflite"  # a search compiles it for each point
    file.write_bytes(conv_1d(64, 8))
    plan = Plan(ModelFile(file.name, file), None, "cortex-m4", "balanced", None)
    (found,) = told(FrontierSearch(plan))
    trials: Any = found["trials"]
    chart, table = str(found["chart"]), str(found["table"])
    assert chart.count("<circle") == table.count("<tr>") - 1 == len(trials)
    assert {trial["optimize"] for trial in trials} >= {"speed", "ram", "flash", "balanced"}
    assert "--optimize balanced" in table and "by estimates of planning" in chart


def test_two_plans_side_by_side() -> None:
    """Figures, layers and options; the same plan twice has no layer that differs."""
    (found,) = told(Comparison(BALANCED, SMALL))
    tables: Any = found["tables"]
    assert set(tables) == {"figures", "layers", "options"}
    assert "<span>1,216</span>" in tables["figures"]
    (same,) = told(Comparison(BALANCED, BALANCED))
    tables = same["tables"]
    assert set(tables) == {"figures"}


def content(plan: Plan, kind: DownloadKind, project_type: str | None = None) -> tuple[str, bytes]:
    """Return the name and the bytes of a download, which are the same every time."""
    (file,) = told(Download(plan, kind, project_type))
    return str(file["name"]), base64.b64decode(str(file["content"]))


def test_sources_and_report_to_take() -> None:
    """They are what `compile` and `report` write."""
    name, zipped = content(BALANCED, DownloadKind.SOURCES)
    artifact = driver.build(BALANCED.module())
    with zipfile.ZipFile(io.BytesIO(zipped)) as archive:
        files = {path: archive.read(path) for path in archive.namelist()}
    assert (name, files) == ("digits_int8.zip", {f.path: f.content for f in artifact.files})
    assert content(BALANCED, DownloadKind.SOURCES)[1] == zipped
    name, page = content(BALANCED, DownloadKind.REPORT)
    assert (name, page) == ("digits_int8.html", to_html(describe(BALANCED.module())).encode())


def test_project_and_archive_to_take() -> None:
    """A project of a type that the board has, and an archive that `run` would take."""
    name, zipped = content(SMALL, DownloadKind.PROJECT, "arduino")
    assert name == "digits_int8_uno.zip"
    with zipfile.ZipFile(io.BytesIO(zipped)) as archive:
        assert any(path.endswith(".ino") for path in archive.namelist())
    (file,) = told(Download(BALANCED, DownloadKind.PACKAGE, None, "arduino"))
    with zipfile.ZipFile(io.BytesIO(base64.b64decode(str(file["content"])))) as archive:
        assert "library.properties" in archive.namelist()
    assert file["name"] == "digits_int8_arduino.zip"
    name, archived = content(BALANCED, DownloadKind.ARCHIVE)
    assert name == "digits_int8.tar" and b"metadata.json" in archived


@pytest.mark.parametrize(
    ("name", "values", "what"),
    [
        ("nonsense", {}, "'nonsense' is not a request"),
        ("plan", {}, "'plan' is missing"),
        ("plan", {"plan": [1]}, "'plan' is [1]"),
        ("plan", {"plan": {**PLAN, "model": 99}}, "the studio no longer has this model"),
        ("plan", {"plan": {**PLAN, "path": "/etc/passwd"}}, "'path' in 'plan' is unknown"),
        ("plan", {"plan": {**PLAN, "ram_budget": "x"}}, "'plan.ram_budget' is 'x'"),
        ("plan", {"plan": {**PLAN, "optimize": "sped"}}, "did you mean 'speed'?"),
        ("plan", {"plan": {**PLAN, "board": "../x", "target": None}}, "there is no board '../x'"),
        ("download", {"plan": PLAN, "kind": "project"}, "a project needs a board"),
        ("download", {"plan": PLAN, "kind": "all"}, "'kind' is 'all'"),
        ("download", {"plan": PLAN, "kind": "package"}, "the format of the package is missing"),
        ("download", {"plan": PLAN, "kind": "package", "package_format": "../x"}, "'../x'"),
    ],
)
def test_wrong_questions_are_answered(
    page: Page, name: str, values: dict[str, object], what: str
) -> None:
    """With a sentence, and the server goes on."""
    (error,) = page.ask(name, **values)
    assert error["event"] == "error" and what in error["what"]


def test_a_question_has_a_largest_size(page: Page) -> None:
    """What a page asks is short."""
    (error,) = page.ask("plan", plan="x" * 70_000)
    assert "more than 65,536 bytes" in error["what"]


def test_the_page_is_told_what_there_is(page: Page) -> None:
    """Boards with their projects, CPUs, goals, and the models of the command line."""
    start = json.loads(page.get("/api/start").body)
    assert {"name": "uno", "title": load_board("uno").title}.items() <= next(
        board for board in start["boards"] if board["name"] == "uno"
    ).items()
    assert "cortex-m4" in start["cpus"] and start["cpu"] == "cortex-m4"
    assert start["goals"] == ["speed", "ram", "ram-least", "flash", "balanced"]
    assert start["models"] == [{"number": 0, "label": "example:digits", "origin": None}]
