"""The recorded figures of boards: all there, all equal, and none of them dearer now."""

from __future__ import annotations

import sys

import pytest

from benchmarks import boards
from benchmarks.boards import EXAMPLE, INT8_MODELS, LARGE_BOARDS, BoardFigures, dearer
from microtir.boards import load_board
from microtir.search.estimates import estimated_cost

RECORDED = boards.read_recorded()
NAMES = [board.name for board in boards.counting_boards()]
# It has the core of the AN505.
TWIN = "mps2_an521"
# On the others the large models do not fit.
CERTAIN = ("mps2_an386", "mps2_an500", "mps2_an505", "mps3_an547")
REMEASURED = [
    *(pytest.param(name, EXAMPLE, id=name) for name in NAMES if name != TWIN),
    pytest.param(TWIN, EXAMPLE, id=TWIN, marks=pytest.mark.soak_only),
    pytest.param(
        "mps2_an386", "kws_int8", id="mps2_an386-kws", marks=pytest.mark.model("kws_int8")
    ),
]


def recorded(board: str, model: str) -> list[BoardFigures]:
    """The figures of a pair, with each compiler that they were recorded with."""
    compilers = RECORDED.get(board, {})
    return [models[model] for models in compilers.values() if model in models]


@pytest.mark.parametrize("name", ["atmega2560", "microbit", "mps2_an385", "mps2_an500", "riscv32"])
def test_estimates_are_those_of_the_cpu(name: str) -> None:
    """Kernels in plain C count as on a Cortex-M3; what is told is near what the board takes."""
    cost = estimated_cost(boards.compiled(EXAMPLE, load_board(name)))
    for row in recorded(name, EXAMPLE):
        assert cost.instructions == pytest.approx(row.instructions, rel=0.15)
        assert cost.cycles == pytest.approx(row.cycles_estimate, rel=0.25)


@pytest.mark.parametrize("model", [EXAMPLE, *INT8_MODELS])
def test_matrix_is_complete(model: str) -> None:
    """Every promised pair of board and model was run, and its outputs were equal to golden."""
    names = NAMES if model == EXAMPLE else CERTAIN
    for name in names:
        rows = recorded(name, model)
        assert rows, f"{name} with {model}: run `python -m benchmarks boards --record`"
        assert all(row.equal and row.samples > 0 for row in rows)
    fitting = {name for name in LARGE_BOARDS if recorded(name, model)}
    assert all(row.equal for name in fitting for row in recorded(name, model))


@pytest.mark.parametrize(("name", "model"), REMEASURED)
def test_figures_did_not_grow(name: str, model: str) -> None:
    """Outputs are equal on the board; with the recorded compiler nothing costs over 1 % more."""
    board = load_board(name)
    compiler, now = boards.figures_of(model, board)
    assert now.equal
    before = RECORDED.get(name, {}).get(compiler, {}).get(model)
    if before is None:
        sys.stdout.write(f"{name}, {model}: {now}; nothing is recorded for {compiler}\n")
        return
    assert dearer(before, now) == {}, (
        "if this is what the change is worth, record it: "
        f"python -m benchmarks boards {name} --record"
    )


def test_what_counts_as_dearer() -> None:
    """One percent is allowed, more is not; less is never wrong."""
    row = BoardFigures(True, 1, 1000, 2000, 50, 50, 100, 0, 0, 0, 100, 120)
    assert dearer(row, row) == {}
    more = BoardFigures(True, 1, 1010, 2021, 51, 50, 100, 0, 0, 0, 90, 130)
    assert dearer(row, more) == {"cycles_estimate": (2000, 2021)}
    flash = BoardFigures(True, 1, 500, 1000, 52, 50, 100, 2, 0, 0, 100, 120)
    assert dearer(row, flash) == {"flash": (100, 102), "ram": (100, 102)}
