"""`python -m benchmarks results`: networks of many shapes on boards, as a page.

The networks are those of `scripts.models.shapes`, the figures those of `microtir fit`: RAM with
inputs, outputs and the stack that is usual there, flash with code by estimate, and the estimated
time of a run at the clock of the board, without wait states.  `--record` writes them to
`results.json` and makes `docs/results.md` of it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.prices import read_prices, write_prices
from microtir import frontend
from microtir.boards import Board, load_board
from microtir.boards.board import MemoryKind
from microtir.config import CompilationConfig
from microtir.graph.ir import Graph
from microtir.search.board_fit import BoardFit
from microtir.search.fit_plans import fit_boards
from scripts.models.shapes import SHAPES

RECORDED = Path(__file__).parent / "results.json"
PAGE = Path(__file__).parent.parent / "docs" / "results.md"

BOARDS = (
    "atmega2560", "microbit", "rpi_pico", "due", "nrf52840dk", "nrf5340dk", "nucleo_h743zi",
    "mps3_an547", "esp32c3_devkitm",
)  # fmt: skip

_HEAD = """---
hide:
  - navigation
  - toc
---

# Results: networks on boards

This page shows the memory and time of many networks, as [`microtir fit`](search.md) computes them.
The networks are compiled with `--optimize balanced` for the CPU of each board, and planned for the
memories of the board. All networks are int8 with random weights. `python -m scripts.models.shapes
FOLDER` makes the networks, and `python -m benchmarks results --record` makes this page.

Times are **estimates**: the cycles that planning estimates for a CPU, at the clock of the
[board](#boards) and without the wait states of its memories. The times are not measured on
silicon. The page of [figures](figures.md) has instructions that were measured on an emulator.

Flash is the exact size of the weights plus the [estimated](kernels.md) size of the code.

The first three tables have only figures for the default options. A cell without a figure says why:

- **10 KB short**: the network does not fit. Even the options that need the least memory exceed the
  memory of the board by 10 KB.
- **other options**: the network fits only with the options of a [separate
  table](#with-other-options).
- **not compiled**: the compiler [refuses](#not-compiled) the network for this CPU.
"""

_WORDS = frozenset({"network", "what for", "board", "options", "CPU"})  # other columns are figures
_RAM = "RAM includes inputs, outputs and the stack that is usual on the board."
_OTHERS = (
    "Some networks do not fit with the default options. This table lists options with which they "
    "fit.\n`microtir fit` found these options."
)
_REFUSED = "The compiler refuses these networks for these boards, with this message:"


@dataclass(frozen=True, slots=True)
class Price:
    """Bytes of a network on a board and its estimated work; `missing` bytes are not there.

    `flags` were added so that it fits; `refusal` says why it could not be compiled.
    """

    ram: int
    flash: int
    missing: int
    instructions: int
    cycles: int
    flags: str
    refusal: str


def measure_all(named: list[str]) -> dict[str, dict[str, Price]]:
    """Fit the networks of these names, or all, and print a line for each board."""
    found: dict[str, dict[str, Price]] = {}
    for name, (_, make) in SHAPES.items():
        if named and name not in named:
            continue
        graph = _graph(name, make())
        found[name] = {board.name: _price(graph, board) for board in map(load_board, BOARDS)}
        for board, p in found[name].items():
            print(f"{name:<24}{board:<18}{p.ram:>10,}{p.flash:>12,}{p.cycles:>14,}", flush=True)
    return found


def record(found: Mapping[str, Mapping[str, Price]]) -> None:
    """Write the figures, and the page of all that are known."""
    write_prices(RECORDED, Price, found)
    PAGE.write_text(page(read_prices(RECORDED, Price)), encoding="utf-8")


def _graph(name: str, file: bytes) -> Graph:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.tflite"
        path.write_bytes(file)
        graph = frontend.from_tflite(path).graph
    assert graph is not None
    return graph


def _price(graph: Graph, board: Board) -> Price:
    config = CompilationConfig.from_target(board.target)
    (fit,) = fit_boards(graph, config, [board])
    ram, flash = (_taken(fit, kind) for kind in (MemoryKind.RAM, MemoryKind.FLASH))
    return Price(
        ram, flash, fit.missing, fit.instructions, fit.cycles, fit.flags, fit.refusal
    )  # fmt: skip


def _taken(fit: BoardFit, kind: MemoryKind) -> int:
    return sum(memory.taken for memory in fit.memories if memory.kind is kind)


def page(found: Mapping[str, Mapping[str, Price]]) -> str:
    """Return the page: times, RAM and flash on all boards, other options, and what is refused."""
    boards = {name: load_board(name) for name in BOARDS}
    shapes = [name for name in SHAPES if name in found]

    def by_board(column: Callable[[Price, Board], str]) -> str:
        """Return a table of all networks, with a column for each board."""
        heads = ["network", "what for", *(f"`{name}`" for name in boards)]
        rows = (
            [f"`{n}`", SHAPES[n][0], *(_cell(found[n][b.name], b, column) for b in boards.values())]
            for n in shapes
        )
        return _in_table(heads, rows)

    pairs = [(name, board, found[name][board.name]) for name in shapes for board in boards.values()]
    others = (
        [f"`{n}`", f"`{b.name}`", f"`{p.flags}`", _time(p, b), _ram(p, b), _flash(p, b)]
        for n, b, p in pairs
        if p.flags and not p.missing
    )
    refused = "".join(f"- `{n}` on `{b.name}`: {p.refusal}\n" for n, b, p in pairs if p.refusal)
    clocks = (
        [f"`{b.name}`", b.target.mcpu or "", f"{b.clock_hz / 1e6:g}"] for b in boards.values()
    )
    kilobytes = "A kilobyte has 1,024 bytes."
    return (
        f"{_HEAD}\n## Estimated milliseconds of a run\n\n{by_board(_time)}\n"
        f"## RAM\n\n{kilobytes} {_RAM}\n\n{by_board(_ram)}\n"
        f"## Flash\n\n{kilobytes} The size of the code is an estimate.\n\n{by_board(_flash)}\n"
        f"## With other options\n\n{_OTHERS}\n\n"
        f"{_in_table(['network', 'board', 'options', 'ms', 'RAM, KB', 'flash, KB'], others)}\n"
        f"## Not compiled\n\n{_REFUSED}\n\n{refused}\n"
        f"## Boards\n\n{_table(['board', 'CPU', 'clock, MHz'], clocks)}"
    )


def _cell(price: Price, board: Board, column: Callable[[Price, Board], str]) -> str:
    """Return a figure of the default options, or why there is none."""
    if price.refusal:
        return "[not compiled](#not-compiled)"
    if price.missing:
        return f"{_kilobytes(price.missing)} KB short"
    return "[other options](#with-other-options)" if price.flags else column(price, board)


def _time(price: Price, board: Board) -> str:
    milliseconds = price.cycles / board.clock_hz * 1000
    return f"{milliseconds:,.0f}" if milliseconds >= 100 else f"{milliseconds:.3g}"


def _ram(price: Price, _: Board) -> str:
    return _kilobytes(price.ram)


def _flash(price: Price, _: Board) -> str:
    return _kilobytes(price.flash)


def _kilobytes(count: int) -> str:
    kilobytes = count / 1024
    return f"{kilobytes:,.0f}" if kilobytes >= 9.95 else f"{kilobytes:.1f}"


def _in_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table that the site lets its reader sort, and reduce to a board."""
    return f'<div class="sorts" markdown>\n\n{_table(head, rows)}\n</div>\n'


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    rule = ["---" if name in _WORDS else "---:" for name in head]
    lines = [head, rule, *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
