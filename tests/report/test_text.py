"""The report in a terminal."""

from __future__ import annotations

from dataclasses import replace

from microtir.report.data import MainCall
from microtir.report.summary import facts, headline, largest_table, layer_table, peak
from microtir.report.text import memory_map
from tests.support.golden import Golden
from tests.support.report_facts import buffer, pool, report, steady, totals


def test_the_text_is_the_golden_one(golden: Golden) -> None:
    """Sentences and map of the hand-made report are those that were looked at."""
    lines = [f"{name}: {text}" for name, text in facts(report())]
    golden.check("report.txt", "\n".join([*lines, "", *memory_map(report(), pool())]) + "\n")


def test_each_cell_shows_what_lies_there() -> None:
    """A letter over the steps and bytes of its buffer, a dot where nothing lies."""
    one = buffer("one", pool().buffers[0].kind, 50, steady(1, 2, 50, 100))
    lines = memory_map(report(), replace(pool(), buffers=(one,)))
    top, bottom = lines[0], lines[15]
    assert top == "100 |....aaaaaaaa....|"
    assert bottom == "  6 |................|"
    assert "a one" in lines[-1]


def test_rows_of_two_buffers_in_one_place() -> None:
    """Where rows of one buffer follow rows of another the map has a sign of its own."""
    lines = memory_map(report(), pool())
    assert any("#" in line for line in lines[:16])
    assert "# two buffers, row by row" in lines[-1]


def test_many_steps_share_columns() -> None:
    """A model of 500 layers keeps to the width of a terminal."""
    steps = tuple(MainCall(n, str(n), f"layer{n}", "CONV_2D", f"net/{n}") for n in range(500))
    lines = memory_map(replace(report(), steps=steps), pool())
    assert max(map(len, lines)) <= 88


def test_without_a_workspace() -> None:
    """A model without a workspace has a sentence instead of a map."""
    empty = replace(pool(), size=0, buffers=())
    assert memory_map(report(), empty) == ["the model needs no workspace"]


def test_the_peak_is_explained() -> None:
    """The sum is written out, the largest first; what is small is put together."""
    text = "at layer 1 RELU: activation_1 40 + ring_0 30 + layer1_scratch 20 = 90"
    assert peak(report(), pool()) == text
    many = tuple(replace(pool().buffers[0], name=f"b{n}", at_peak=10 - n) for n in range(6))
    text = "at layer 1 RELU: b0 10 of 30 + b1 9 of 30 + b2 8 of 30 + b3 7 of 30 + 2 smaller ones 11"
    assert peak(report(), replace(pool(), buffers=many)).startswith(text)
    above = replace(pool(), lower_bound=95)
    assert peak(report(), above).endswith("= 90; the largest buffer alone has 95")


def test_the_headline() -> None:
    """The figures that one looks for first; estimates promise three digits only."""
    found = replace(report(), weights_bytes=123456)
    assert headline(found) == [
        ("100", "bytes of RAM for the workspace"),
        ("layer 1 RELU", "where most of it is in use"),
        ("about 124,000", "bytes of flash for weights and code"),
        ("12,600", "MACs executed"),
        ("about 16,800", "instructions, an estimate"),
    ]
    measured = replace(found, profile=totals(), pools=())
    assert [text for _, text in headline(measured)][1:] == [
        "bytes of flash for weights and code", "MACs executed", "instructions on board",
    ]  # fmt: skip


def test_what_ram_as_the_goal_would_save() -> None:
    """The figure, the difference and its share; nothing where the goal is RAM already."""
    rows = dict(facts(report()))
    assert (
        rows["smaller"] == "at --optimize ram-least the workspace would be 64 bytes, 36 less (36 %)"
    )
    same = dict(facts(replace(report(), least=100)))
    assert same["smaller"] == "--optimize ram-least needs as much"
    assert "smaller" not in dict(facts(replace(report(), optimize="ram-least")))


def test_limits_say_how_much_is_missing_or_free() -> None:
    """An exceeded limit stands out."""
    assert dict(facts(report()))["budget.ram"] == (
        "EXCEEDED by 5: 100 of 95 bytes for the workspace"
    )
    (limit,) = report().limits
    met = replace(report(), limits=(replace(limit, allowed=128),))
    assert dict(facts(met))["budget.ram"] == "100 of 128 bytes for the workspace, 28 free"


def test_tables() -> None:
    """The largest arrays, and the layers with their sum."""
    assert [row[1] for row in largest_table(report()).rows] == [
        "activation_2", "activation_1", "ring_0", "weights", "table",
    ]  # fmt: skip
    table = layer_table(report())
    total = dict(zip(table.columns, table.rows[-1], strict=True))
    assert (total["MACs"], total["executed"], total["weights"]) == ("16,800", "12,600", "2,100")
    assert {len(row) for row in table.rows} == {len(table.columns)}
