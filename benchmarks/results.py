"""`python -m benchmarks results`: networks of many shapes on boards, as a page.

The networks are those of `scripts.models.shapes`, the figures those of `microtir fit`: RAM with
inputs, outputs and the stack that is usual there, flash with code by estimate, and the estimated
time of a run at the clock of the board, without wait states.  `--record` writes them to
`results.json` and makes `docs/results.md` of it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
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

_HEAD = """# Results: networks on boards

What networks of many shapes take, as [`microtir fit`](search.md) says it: compiled with
`--optimize balanced` for the CPU of each board, and planned for its memories. All are int8 with
random weights, made by `python -m scripts.models.shapes FOLDER`; this page is made by
`python -m benchmarks results --record`.

Times are **estimates**: cycles as planning estimates them for a CPU, at the clock of the board and
without the wait states of its memories. They are not measured on silicon. What was measured,
instructions on an emulator, is on the page of [figures](figures.md).
"""


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
    """Return the page: times on all boards, then memory by CPU."""
    boards = [load_board(name) for name in BOARDS]
    shapes = [name for name in SHAPES if name in found]
    times = _table(
        ["network", "what for", *(_clock(board) for board in boards)],
        (
            [f"`{name}`", SHAPES[name][0], *(_time(found[name][b.name], b) for b in boards)]
            for name in shapes
        ),
    )
    memory = _table(
        ["network", *(f"`{board.name}`" for board in boards)],
        ([f"`{n}`", *(_memory(found[n][b.name]) for b in boards)] for n in shapes),
    )
    return (
        f"{_HEAD}\n## Estimated milliseconds of a run\n\nWhere a network does not fit, the bytes "
        f"that are missing. A star: it fits with options that `fit` names.\n\n{times}\n"
        f"## RAM and flash\n\nKilobytes of 1,024 bytes, RAM / flash.\n\n{memory}"
    )


def _clock(board: Board) -> str:
    return f"`{board.name}`, {board.target.mcpu}, {board.clock_hz / 1e6:g} MHz"


def _time(price: Price, board: Board) -> str:
    if price.refusal:
        return "not compiled"
    if price.missing:
        return f"{_kilobytes(price.missing)} KB short"
    star, milliseconds = "*" if price.flags else "", price.cycles / board.clock_hz * 1000
    return f"{milliseconds:,.0f}{star}" if milliseconds >= 100 else f"{milliseconds:.3g}{star}"


def _memory(price: Price) -> str:
    return "" if price.refusal else f"{_kilobytes(price.ram)} / {_kilobytes(price.flash)}"


def _kilobytes(count: int) -> str:
    kilobytes = count / 1024
    return f"{kilobytes:,.0f}" if kilobytes >= 10 else f"{kilobytes:.1f}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
