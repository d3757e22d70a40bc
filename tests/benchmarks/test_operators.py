"""Operators by themselves: all recorded with their goals, shown on a page, and no dearer now."""

from __future__ import annotations

import pytest

from benchmarks import operators
from benchmarks.layers import for_speed
from benchmarks.operator_models import Made
from benchmarks.operator_page import PAGE, renewed
from benchmarks.operator_rows import Case, cases
from microtir import driver, frontend
from microtir.boards import load_board
from tests.support.golden import Golden

TOLERANCE = 0.02
# A few rows of several kinds of kernels: what is measured for all of them takes minutes.
SAMPLE = (
    ("cortex-m4", "int8: batch matmul 4x16x32x16"),
    ("cortex-m4", "int8: depthwise 3x3, multiplier 2, 16x16x16, 5 channels"),
    ("cortex-m4", "int8: softmax, 32 rows of 32"),
    ("cortex-m4", "int8: add, 16x16x32"),
    ("cortex-m4", "int8: concat of channels, 10 and 10"),
    ("cortex-m55", "int8: grouped convolution 3x3, 4 groups, 16x16x16 to 32, 3 channels"),
    ("cortex-m55", "int8: tanh, 16x16x32"),
)
STATED = (
    "int16: grouped convolution 1x1, 2 groups, 16x16x16 to 32",
    "int16: depthwise 1x3, 16x16x16",
    "int16: depthwise 9x1, 64x1x16",
)


def test_every_row_is_recorded_beside_its_goal() -> None:
    """A row that is new, or a goal that was changed, asks for `--record`."""
    recorded = operators.read_recorded()
    for cpu in operators.WITH_GOALS:
        wanted = {case.full_name: (case.row.unit.value, case.goal(cpu)) for case in cases()}
        assert {name: (p.unit, p.goal) for name, p in recorded[cpu].items()} == wanted


def test_the_page_shows_what_is_recorded(golden: Golden) -> None:
    """`--record` writes it, and `make golden`."""
    docs = Golden(PAGE.parent, golden.update)
    docs.check(PAGE.name, renewed(PAGE.read_text("utf-8"), operators.read_recorded()))


@pytest.mark.tools
@pytest.mark.compiler_version
@pytest.mark.parametrize(("cpu", "name"), SAMPLE)
def test_an_operator_did_not_grow_dearer(cpu: str, name: str) -> None:
    """What takes less is recorded by `python -m benchmarks operators --record --only NAME`."""
    case = next(case for case in cases() if case.full_name == name)
    before, now = operators.read_recorded()[cpu][name], operators.price(case, cpu)
    assert now.units == before.units
    assert now.instructions <= before.instructions * (1 + TOLERANCE)


@pytest.mark.parametrize("name", STATED)
def test_a_statement_is_near_what_was_measured(name: str) -> None:
    """Kernels of int16 count what their templates print, and copies of rows; nothing is built."""
    case = next(case for case in cases() if case.full_name == name)
    recorded = operators.read_recorded()["cortex-m4"][name]
    module = frontend.from_tflite(case.row.make(case.kind, case.channels).file, name="row")
    config = for_speed(load_board(operators.BOARDS["cortex-m4"]), "row")
    program = driver.lower(module.with_configuration(config)).require_program("row")
    (decision,) = [d for d in program.decisions.values() if d.index >= 0]
    assert decision.kernel == recorded.kernels
    assert decision.instructions == pytest.approx(recorded.instructions, rel=0.03)


def test_what_a_move_takes_is_counted_without_what_is_around_it() -> None:
    """Of models that show whether it is done in place; what a file does not have never counts."""
    whole, move = Made(b"", 1), Made(b"", 1, counted=2)
    assert [whole.counts(n) for n in (None, -1, 0, 2)] == [False, False, True, True]
    assert [move.counts(n) for n in (None, -1, 0, 2)] == [False, False, False, True]


def test_only_what_is_asked_for_is_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rows by a part of their names, and one CPU; the others keep their figures."""
    asked: list[str] = []

    def price(case: Case, cpu: str) -> operators.Price:
        asked.append(case.full_name)
        return operators.Price("MAC", 10, 2.0, 30, 27 + len(asked), "direct")

    monkeypatch.setattr(operators, "price", price)
    found = operators.measure_all(["--only", "16: SVDF", "8: SVDF", "--cpu", "cortex-m4"])
    assert asked == [f"int8: SVDF, 40 inputs, 10 places, 64 filters{e}" for e in (
        "", ", 17 filters", ", 30 filters",
    )]  # fmt: skip
    assert set(found) == {"cortex-m4"}
    said = capsys.readouterr().out
    assert "within 5 % of the measurement for 2 of 3 models (67%). The worst estimate" in said
    assert "is 0.93 times the measurement, for `int8: SVDF, 40" in said
