"""`microtir boards` lists the boards that microtir knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from microtir.cli.models import AsJson
from microtir.cli.output import write, write_json, write_table, write_text
from microtir.errors import ExitCode
from microtir.support.quantities import size

if TYPE_CHECKING:
    from microtir.boards import Board


def boards(as_json: AsJson = False) -> ExitCode:
    """Lists the boards, with CPU, memories, project types and how far each is tested."""
    from microtir.boards import all_boards

    known = all_boards()
    if as_json:
        write_json([_facts(board) for board in known])
        return ExitCode.DONE
    write_table(
        ("board", "CPU", "flash", "RAM", "emulator", "project types"),
        [_row(board) for board in known],
        spare=("emulator", "flash"),
    )
    write("")
    write_text(
        "executed: built, run in an emulator, and outputs compared. built: compiled and linked "
        "with the board's own tools. checked: only the formats of the files were checked. Sizes "
        "are sums over all memories; --json lists each memory. To add a board, see docs/boards.md"
    )
    return ExitCode.DONE


def _row(board: Board) -> tuple[object, ...]:
    return (
        board.name,
        board.target.mcpu or board.target.march or "any",
        _size(board, "flash"),
        _size(board, "ram"),
        board.emulator.kind.value if board.emulator else "",
        _types(board),
    )


def _types(board: Board) -> str:
    """Return the project types by how far they are tested."""
    by_label: dict[str, list[str]] = {}
    for support in board.projects:
        by_label.setdefault(support.label.value, []).append(support.type.value)
    return "; ".join(f"{label}: {', '.join(types)}" for label, types in by_label.items())


def _size(board: Board, kind: str) -> str:
    sizes = [memory.size for memory in board.memories if memory.kind.value == kind]
    return size(sum(sizes)) if sizes else ""


def _facts(board: Board) -> dict[str, object]:
    return {
        "name": board.name,
        "title": board.title,
        "target": str(board.target),
        "clock_hz": board.clock_hz,
        "memories": [
            {
                "name": memory.name,
                "kind": memory.kind.value,
                "address": memory.address,
                "bytes": memory.size,
                "enforced": memory.enforced,
            }
            for memory in board.memories
        ],
        "reserve": board.reserve,
        "projects": [
            {"type": support.type.value, "label": support.label.value} for support in board.projects
        ],
        "emulator": board.emulator.kind.value if board.emulator else None,
        "packages": sorted({r.package for r in board.toolchain.requires}),
    }
