"""`python -m benchmarks tokens`: what a token of the sentences model takes on a Cortex-M4.

The language model of `examples/sentences`, with weights of 8 and of 4 bits, runs a token a run and
keeps its cache as a state.  Attention goes over what is in the cache: the first token sees itself
alone, the last one a full cache.  `--record` writes the figures to `tokens.json`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.prices import read_prices, write_prices
from examples.sentences.demo import compile_model
from examples.sentences.export import BITS
from examples.sentences.network import SHAPE
from microtir.artifact import Artifact
from microtir.boards import Board, load_board
from microtir.config import Optimize
from microtir.profiling import profile
from microtir.projects import ProjectOptions, Samples

RECORDED = Path(__file__).parent / "tokens.json"
BOARD = "mps2_an386"
LAST = SHAPE.length - 1
INT8 = "graph.block_activations"
BOTH = (INT8, "graph.attention_cache")
WAYS: Mapping[str, tuple[int, Optimize, tuple[str, ...]]] = {
    "first token": (0, Optimize.BALANCED, ()),
    "last token": (LAST, Optimize.BALANCED, ()),
    "last token, flash": (LAST, Optimize.FLASH, ()),
    "first token, int8": (0, Optimize.BALANCED, (INT8,)),
    "last token, int8": (LAST, Optimize.BALANCED, (INT8,)),
    "last token, speed, int8": (LAST, Optimize.SPEED, (INT8,)),
    "first token, int8 and cache": (0, Optimize.BALANCED, BOTH),
    "last token, int8 and cache": (LAST, Optimize.BALANCED, BOTH),
}
"""The place of the token that is measured, the goal, and which options are int8.

Equal layers share code for `flash`.
"""


@dataclass(frozen=True, slots=True)
class Price:
    """Instructions of a run; bytes of the state, of the workspace, of all RAM, and of flash."""

    instructions: int
    state: int
    workspace: int
    ram: int
    weights: int
    code: int


def price(artifact: Artifact, place: int, board: Board) -> Price:
    """Measure a run at a place, which the program takes for the number of tokens in the cache."""
    given = Samples(
        {"token": np.full((1, 1, 1), 5, np.int64), "place": np.full((1, 1), place, np.int32)}
    )
    samples = {"sentences": given}
    found = profile(artifact, board, options=ProjectOptions(samples=samples))
    memory, state = artifact.metadata.memory, artifact.metadata.state
    assert memory is not None
    assert state is not None
    return Price(
        found.instructions,
        state.size,
        memory.workspace_size,
        found.ram.of_model,
        artifact.metadata.weights_bytes,
        found.code,
    )


def compiled(bits: int, board: Board, goal: Optimize, options: tuple[str, ...]) -> Artifact:
    """Compile a model for a board; some options are int8."""
    in_int8 = dict.fromkeys(options, "int8")
    return compile_model(bits, str(board.target), optimize=goal, pass_config=in_int8)


def prices(bits: int) -> dict[str, Price]:
    """Build and measure a model at the first and the last place."""
    board = load_board(BOARD)
    built = {
        made: compiled(bits, board, *made)
        for made in dict.fromkeys((goal, options) for _, goal, options in WAYS.values())
    }
    return {
        way: price(built[goal, options], place, board)
        for way, (place, goal, options) in WAYS.items()
    }


def measure_all(named: list[str]) -> dict[str, dict[str, Price]]:
    """Print the figures of the models that are named, or of all."""
    found: dict[str, dict[str, Price]] = {}
    print(f"{'weights':<10}{'':<20}{'instructions':>14}{'RAM':>9}{'state':>9}{'flash':>18}")
    for bits in BITS:
        name = f"int{bits}"
        if named and name not in named:
            continue
        found[name] = prices(bits)
        for way, p in found[name].items():
            print(f"{name:<10}{way:<20}{p.instructions:>14,}{p.ram:>9,}{p.state:>9,}"
                  f"{p.code:>9,} +{p.weights:>7,}", flush=True)  # fmt: skip
    return found


def read_recorded() -> dict[str, dict[str, Price]]:
    """Read the figures of `tokens.json`."""
    return read_prices(RECORDED, Price)


def record(found: Mapping[str, Mapping[str, Price]]) -> None:
    """Write the figures; those of other models stay."""
    write_prices(RECORDED, Price, found)
