"""Tables and facts on terminals of some width: numbers stay whole, and nothing vanishes unsaid."""

from __future__ import annotations

import io
import re

import pytest

from microtir.cli.output import facts, write_table
from microtir.report.summary import layer_table
from tests.support.command import INT8, Command
from tests.support.report_facts import report

_STYLE = re.compile(r"\x1b\[[0-9;]*m")


class Terminal(io.StringIO):
    """Standard output that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def on_terminal(monkeypatch: pytest.MonkeyPatch, width: int) -> Terminal:
    """Print from now on as on a terminal so wide."""
    found = Terminal()
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr("sys.stdout", found)
    return found


def lines(terminal: Terminal) -> list[str]:
    """Return what a person sees."""
    return [line.rstrip() for line in _STYLE.sub("", terminal.getvalue()).splitlines()]


@pytest.mark.parametrize("width", [60, 80, 100, 120])
def test_a_table_fits_its_terminal(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    """One line for each layer, its numbers whole; what has no room is named below."""
    terminal = on_terminal(monkeypatch, width)
    table = layer_table(report())
    write_table(table.columns, table.rows, right=tuple(table.right), spare=table.spare)
    found = lines(terminal)
    assert max(map(len, found)) <= width
    notes = [n for n, line in enumerate(found) if line.startswith("not shown in ")]
    end = notes[0] if notes else len(found)
    note = " ".join(found[end:]).removeprefix(f"not shown in {width} columns: ")
    shown = [column for column in table.columns if column not in note.split(", ")]
    assert shown == re.split(r"\s{2,}", found[0].strip())
    assert len(found[2:end]) == len(table.rows)
    assert any("16,800" in row for row in found[2:end])


def test_text_in_the_last_column_folds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is room for some of it, the last column is not left out."""
    terminal = on_terminal(monkeypatch, 40)
    write_table(("n", "text"), [(1234567, "word " * 12)], right=("n",), spare=("text",))
    found = lines(terminal)
    assert max(map(len, found)) <= 40
    assert sum(line.count("word") for line in found) == 12
    assert found[2].startswith("1,234,567   word")


def test_long_facts_go_on_below_their_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    """The names stay alone in their column; what has no spaces is not cut."""
    terminal = on_terminal(monkeypatch, 40)
    facts([("name", "word " * 12), ("sum", "f" * 64)])
    found = lines(terminal)
    assert found[0].startswith("name  word")
    assert found[1].startswith("      word")
    assert found[-1] == f"sum   {'f' * 64}"


def test_in_a_pipe_nothing_is_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every row is one line where nobody says how wide it may be."""
    monkeypatch.delenv("COLUMNS", raising=False)
    table = layer_table(report())
    write_table(table.columns, table.rows, right=tuple(table.right), spare=table.spare)
    found = capsys.readouterr().out.splitlines()
    assert len(found) == 2 + len(table.rows)
    assert all(column in found[0] for column in table.columns)


def test_a_pipe_is_as_wide_as_it_is_said_to_be(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Shells keep COLUMNS to themselves: who exports it wants that width."""
    monkeypatch.setenv("COLUMNS", "60")
    table = layer_table(report())
    write_table(table.columns, table.rows, right=tuple(table.right), spare=table.spare)
    facts([("name", "word " * 20)])
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 60


@pytest.mark.parametrize(
    "arguments",
    [("doctor",), ("boards",), ("operators",), ("package", "--list"),
     ("report", INT8, "--board", "mps2_an386")],
    ids=lambda arguments: arguments[0],
)  # fmt: skip
def test_verbs_keep_to_the_columns_of_a_pipe(
    microtir: Command, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    """Where COLUMNS is set, no line is longer, tables, notes, commands and the map of memory."""
    monkeypatch.setenv("COLUMNS", "80")
    result = microtir(*arguments)
    assert result.status == 0
    assert max(map(len, result.out.splitlines())) <= 80


def test_a_chain_of_commands_folds_where_a_shell_goes_on(
    microtir: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line ends in && or is the last one: the lines can be pasted."""
    monkeypatch.setenv("COLUMNS", "80")
    for variable in ("ZEPHYR_BASE", "Zephyr_DIR", "CMAKE_PREFIX_PATH", "CMAKE_MODULE_PATH"):
        monkeypatch.delenv(variable, raising=False)
    out = microtir("doctor").out.splitlines()
    first = next(n for n, line in enumerate(out) if "pip install west" in line)
    assert [line.endswith("&&") for line in out[first : first + 3]] == [True, True, False]
    assert out[first + 2].strip() == "west sdk install"
