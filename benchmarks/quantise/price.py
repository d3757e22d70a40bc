"""What a quantised network takes on an emulated Cortex-M4."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.quantise.rivals import Answer
from microtir import driver, frontend
from microtir.boards import load_board
from microtir.config import CompilationConfig
from microtir.profiling import profile

_BOARD = "mps2_an386"


@dataclass(frozen=True, slots=True)
class Price:
    """Instructions of a run, and bytes of code and constants; instructions are 0 if unknown."""

    instructions: int = 0
    flash: int = 0


def price_of(answer: Answer) -> Price:
    """Compile a file for the board, and run it there."""
    if answer.file is None:
        return Price(0, answer.flash)
    module = frontend.read_model(answer.file, name="net")
    board = load_board(_BOARD)
    result = profile(driver.build(module, CompilationConfig.from_target(board.target)), board)
    return Price(result.instructions, result.code + result.weights)
