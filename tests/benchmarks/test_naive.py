"""What an operator of a model should take follows from the row that is nearest to it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from benchmarks import naive
from benchmarks.nearest_rows import CPU, goal, nearest
from benchmarks.operator_models import Kind
from benchmarks.operator_rows import ROWS, Case, Row
from microtir import frontend
from microtir.operators.movement.definition import Reshape
from scripts.models.shapes import SHAPES

# Rows whose operator is nearer to another row: by one image, or without the sums' length.
_UNLIKE = ("frames", "SVDF", "2x2", "1x1")


@pytest.mark.parametrize("row", [r for r in ROWS if Kind.INT8 in r.goals], ids=lambda r: r.name)
def test_an_operator_of_a_row_has_its_goal(row: Row) -> None:
    """Or that of a row like it, which differs by at most half."""
    made, wanted = row.make(Kind.INT8, row.channels), Case(row, Kind.INT8, row.channels).goal(CPU)
    graph = frontend.from_tflite(made.file).graph
    assert graph is not None
    nodes = [n for n in graph.nodes if made.counts(n.source.index) and type(n.op) is not Reshape]
    assert all(nearest(node).unit is row.unit for node in nodes[:1])
    if wanted and not any(word in row.name for word in _UNLIKE):
        assert sum(map(goal, nodes)) == pytest.approx(made.units * wanted, rel=0.5)


def test_every_operator_of_networks_has_a_goal() -> None:
    """Also those that no row names, which move or compute something."""
    known = Counter[str]()
    for name in ("yolo-96", "lstm-28"):
        graph = frontend.from_tflite(SHAPES[name][1]()).graph
        assert graph is not None
        for node in graph.nodes:
            known[nearest(node).name] += goal(node) > 0
    assert len(known) > 3


@pytest.mark.tools
def test_naive_is_what_takes_more_than_its_goal(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a model whose operator has a hundredth of its goal, everything but the run function."""
    file = tmp_path / "row.tflite"
    file.write_bytes(next(r for r in ROWS if r.name == "tanh, 16x16x32").make(Kind.INT8, 4).file)
    monkeypatch.setattr(naive, "goal", lambda _: 10.0)
    (found,) = naive.measure_all([str(file)]).values()
    assert 0.98 < found.share < 1
    assert "tanh" in capsys.readouterr().out
    monkeypatch.setattr(naive, "goal", lambda _: 1e9)
    assert naive.measure(file).share == 0
