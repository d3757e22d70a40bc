"""`microtir fit`: all boards at once, each with the figures that the other verbs give."""

from __future__ import annotations

import json
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest

import microtir as package
from microtir import frontend
from microtir.boards import Board, load_board
from microtir.boards.board import MemoryKind
from microtir.config import CompilationConfig, microcontroller
from microtir.graph.ir import Graph
from microtir.search.board_fit import BoardFit, MemoryFit
from microtir.search.fit_all import by_cpu, fit_all
from microtir.search.fit_plans import fit_boards
from tests.support.command import INT8, Command
from tests.support.small_models import quantised_graph

FEW = ("uno", "mps2_an386", "nano33ble", "mps2_an385")
_TOO_LITTLE = 512
"""Bytes of RAM that the Uno is left: the model asks for more, whatever is done."""


def _graph() -> Graph:
    graph = frontend.read_model(INT8).graph
    assert graph is not None
    return graph


def _with_ram(board: Board, size: int) -> Board:
    """Return a board whose variables have room for so many bytes."""
    assert board.data is not None
    data = replace(board.data, size=size)
    memories = tuple(data if m == board.data else m for m in board.memories)
    return replace(board, data=data, memories=memories)


def _ram(fit: BoardFit) -> MemoryFit:
    memory = fit.memory(MemoryKind.RAM)
    assert memory is not None
    return memory


@pytest.fixture
def few_boards(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Leave four boards, one of them too small, and nothing that is known of them."""
    uno, *others = map(load_board, FEW)
    few = (_with_ram(uno, _TOO_LITTLE), *others)
    monkeypatch.setattr(package.boards, "all_boards", lambda: few)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.usefixtures("few_boards")
def test_table_of_boards(microtir: Command) -> None:
    """Boards that the model fits come first, the fastest of them at the top; an Uno is last."""
    result = microtir("fit", "example:digits", "--jobs", 1)
    head, _, _columns, _rule, *rows = result.out.splitlines()
    assert result.status == 0
    assert head == "digits_int8.tflite: fits 3 of 4 boards at --optimize balanced"
    names = [row.split()[0] for row in rows[:4]]
    assert names == ["nano33ble", "mps2_an386", "mps2_an385", "uno"]
    assert rows[0].endswith(" fits") and "misses" in rows[3]


@pytest.mark.usefixtures("few_boards")
def test_agrees_with_compile_and_report(microtir: Command) -> None:
    """RAM of a board is what `report --board` says, cycles what `explain` of the plan does."""
    fits = json.loads(microtir("fit", "example:digits", "--json", "--jobs", 1).out)
    found = next(fit for fit in fits if fit["board"] == "mps2_an386")
    report = json.loads(microtir("report", "example:digits", "--board", "mps2_an386", "--json").out)
    used = {limit["option"]: limit["used"] for limit in report["limits"]}
    ram = next(memory for memory in found["memories"] if memory["kind"] == "ram")
    assert ram["taken"] == used[f"mps2_an386 {ram['name']}"]
    layers = [layer["choice"] for layer in report["layers"] if layer["choice"]]
    assert found["cycles_estimate"] == sum(choice["cycles"] for choice in layers)
    assert found["instructions_estimate"] == sum(choice["instructions"] for choice in layers)


def test_names_what_makes_it_fit() -> None:
    """A board with too little RAM gets the cheapest flags that help, or those that come nearest."""
    board, config, graph = load_board("mps2_an386"), microcontroller(), _graph()
    [plain] = fit_boards(graph, config, [board])
    assert plain.fits and not plain.flags
    tight, tiny = _with_ram(board, _ram(plain).taken - 1), _with_ram(board, 1024)
    helped, missing = fit_boards(graph, config, [tight, tiny])
    assert helped.fits and helped.flags.startswith("--optimize ram")
    assert _ram(helped).taken < _ram(plain).taken
    assert not missing.fits and _ram(missing).missing == _ram(missing).taken - 1024
    assert missing.flags.startswith("--optimize ram-least "), "no goal takes less"
    assert missing.rank > helped.rank > plain.rank


def test_says_why_a_board_has_no_program() -> None:
    """What a CPU cannot be compiled for is one row of the table, not the end of it."""
    config = microcontroller().with_(budget={"stack": 1})
    [refused] = fit_boards(quantised_graph(), config, [load_board("mps2_an386")])
    assert not refused.fits and "stack" in refused.refusal and refused.seconds is None


def test_plans_once_for_a_cpu() -> None:
    """Two boards whose targets differ in the name of the part share every plan."""
    groups = by_cpu([load_board(name) for name in FEW])
    assert [[board.name for board in group] for group in groups] == [
        ["uno"], ["mps2_an386", "nano33ble"], ["mps2_an385"],
    ]  # fmt: skip


class _Refusing(Executor):
    """Runs nothing."""

    def submit(self, *_: Any, **__: Any) -> NoReturn:
        raise AssertionError("this was known")


class _Counting(ThreadPoolExecutor):
    """Counts what it runs."""

    count = 0

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.count += 1
        return super().submit(fn, *args, **kwargs)


def _fits(config: CompilationConfig, executor: Executor) -> tuple[BoardFit, ...]:
    boards = [load_board(name) for name in FEW[1:]]
    return fit_all(_graph(), config, boards, executor, lambda _known: None)


@pytest.mark.usefixtures("few_boards")
def test_knows_what_it_has_seen(tmp_path: Path) -> None:
    """The second time nothing is planned; another configuration is, and so is a damaged file."""
    config = microcontroller()
    with _Counting(1) as executor:
        first = _fits(config, executor)
        assert executor.count == 2
        assert _fits(config, _Refusing()) == first
        _fits(config.with_(optimize="speed"), executor)
        assert executor.count == 4
        for file in sorted((tmp_path / "cache/microtir/fit").iterdir()):
            file.write_text('[{"board": 3}]')
        assert _fits(config, executor) == first
        assert executor.count == 6


@pytest.mark.usefixtures("few_boards")
def test_target_is_refused(microtir: Command) -> None:
    """Every board has its own target."""
    result = microtir("fit", "example:digits", "--target", "cortex-m55")
    assert result.status == 2
    assert "each board defines its target" in result.diagnostic


@pytest.mark.usefixtures("few_boards")
def test_status_says_whether_any_board_has_room(
    microtir: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit status 1 is the answer no."""
    monkeypatch.setattr(
        package.boards, "all_boards", lambda: (_with_ram(load_board("uno"), _TOO_LITTLE),)
    )
    assert microtir("fit", "example:digits", "--jobs", 1).status == 1


@pytest.mark.usefixtures("few_boards")
def test_page_escapes_names(microtir: Command, tmp_path: Path) -> None:
    """The page holds the table, and a file's name is text in it."""
    model = tmp_path / "<b>&.tflite"
    model.write_bytes(INT8.read_bytes())
    page = tmp_path / "fits.html"
    assert microtir("fit", model, "-o", page, "--jobs", 1).status == 0
    text = page.read_text()
    assert "&lt;b&gt;&amp;.tflite: fits 3 of 4 boards" in text and "<b>" not in text
    assert text.count("<tr>") == 5 and "http" not in text
    assert text.count('data-name="RAM"') == 4  # on a phone, where the heading is not shown


def test_check_asks_a_board(microtir: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """A board without room is a problem, which names the flags that help, or what is missing."""
    board = load_board("mps2_an386")
    result = microtir("check", "example:digits", "--board", board.name)
    assert result.status == 0 and result.out.endswith("for cortex-m4, fits mps2_an386\n")
    [plain] = fit_boards(_graph(), microcontroller(), [board])
    tight, tiny = _with_ram(board, _ram(plain).taken - 1), _with_ram(board, 1024)

    monkeypatch.setattr(package.boards, "load_board", lambda _name: tight)
    result = microtir("check", "example:digits", "--board", board.name)
    assert result.status == 1 and " to make it fit" in result.out
    flags = result.out.split("add ")[1].split(" to make it fit")[0].split()
    assert microtir("check", "example:digits", "--board", board.name, *flags).status == 0

    monkeypatch.setattr(package.boards, "load_board", lambda _name: tiny)
    result = microtir("check", "example:digits", "--board", board.name)
    assert result.status == 1
    assert "ssram would need " in result.out and " bytes and has 1,024" in result.out
