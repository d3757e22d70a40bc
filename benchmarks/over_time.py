"""`python -m benchmarks over-time`: what a push of frames costs beside a run of the whole window.

MLPerf Tiny's `kws` pads along time, so that rows at either end are computed anew with every push;
the twin of `scripts.models.keyword_spotter` has the same layers without that padding.  Each is
compiled for whole windows and for pushes, measured on an emulated Cortex-M4, and run there over
some pushes, which equal the whole network on the sliding window.  `--record` writes the figures to
`over_time.json`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import microtir
from benchmarks.boards import models_folder
from benchmarks.prices import read_prices, write_prices
from microtir import driver
from microtir.artifact import Artifact
from microtir.boards import Board, load_board
from microtir.config import CompilationConfig
from microtir.module.ir_module import IRModule
from microtir.profiling import profile
from microtir.projects import run_samples
from microtir.rewrite.facts.macs import macs
from microtir.rewrite.reference import execute
from microtir.rewrite.requests.streaming import windows
from scripts.models.keyword_spotter import TimePadding, keyword_spotter

RECORDED = Path(__file__).parent / "over_time.json"
BOARD = "mps2_an386"
KWS, TWIN = "kws_int8", "kws_twin"
MODELS = (KWS, TWIN)
# The goal, and the frames of a push; rows of kws are two frames apart.
WAYS = (("speed", 1), ("speed", 2), ("balanced", 1), ("ram", 1))
PUSHES = 6

_AXIS = 1


@dataclass(frozen=True, slots=True)
class Price:
    """Instructions, multiply-accumulates and bytes of RAM without the stack, whole and per push."""

    whole: int
    push: int
    whole_macs: int
    push_macs: int
    whole_ram: int
    push_ram: int

    @property
    def share(self) -> float:
        """Return the part of a whole run's instructions that a push takes."""
        return self.push / self.whole

    @property
    def share_of_macs(self) -> float:
        """Return the part of the multiply-accumulates that a push executes."""
        return self.push_macs / self.whole_macs


def module_of(model: str) -> IRModule:
    """Return a model by its name."""
    if model == TWIN:
        return microtir.frontend.from_tflite(keyword_spotter(TimePadding.VALID))
    return microtir.frontend.from_tflite(models_folder() / f"{model}.tflite")


def compiled(module: IRModule, board: Board, goal: str, hop: int | None) -> Artifact:
    """Compile a model for pushes of some frames, or for whole windows."""
    config = CompilationConfig.from_target(board.target).with_(module_name="kws", optimize=goal)
    if hop is not None:
        config = config.with_(stream_axis=str(_AXIS), stream_hop=hop)
    return driver.build(module, config)


def price(model: str, goal: str, hop: int, board: Board) -> Price:
    """Build and measure a model both ways, and compare what pushes give on the board."""
    module = module_of(model)
    whole, push = (compiled(module, board, goal, frames) for frames in (None, hop))
    _verify(module, push, hop, board)
    of_whole, of_push = (profile(artifact, board) for artifact in (whole, push))
    return Price(
        of_whole.instructions,
        of_push.instructions,
        _macs(whole),
        _macs(push),
        of_whole.ram.of_model,
        of_push.ram.of_model,
    )


def _macs(artifact: Artifact) -> int:
    return sum(map(macs, artifact.module.require_program("over time").graph.nodes))


def _verify(module: IRModule, push: Artifact, hop: int, board: Board) -> None:
    """Run pushes on the board; every output equals the whole network's."""
    assert module.graph is not None, "a frontend gave it"
    (x,) = module.graph.arguments
    generator = np.random.default_rng(hop)
    shape = tuple(hop if axis == _AXIS else extent for axis, extent in enumerate(x.shape))
    given = [generator.integers(-128, 128, shape).astype(np.int8) for _ in range(PUSHES)]
    steps = [{x.name: frames} for frames in given]
    got = run_samples(push, board, steps, steps=PUSHES)
    for outputs, window in zip(got, windows(x, _AXIS, given), strict=True):
        for name, expected in execute(module.graph, {x.name: window}).items():
            if not np.array_equal(outputs[name], expected):
                raise AssertionError(f"a push of {hop} frames gives another '{name}'")


def measure_all(named: list[str]) -> dict[str, dict[str, Price]]:
    """Print a line for each model and way; those that are named, or all."""
    board = load_board(BOARD)
    print(
        f"{'model':<10}{'goal':>10}{'hop':>5}{'whole':>12}{'push':>12}{'share':>8}"
        f"{'of MACs':>9}{'RAM whole':>11}{'push':>9}"
    )
    found: dict[str, dict[str, Price]] = {}
    for model in named or MODELS:
        found[model] = {}
        for goal, hop in WAYS:
            p = found[model][f"{goal}, {hop}"] = price(model, goal, hop, board)
            print(
                f"{model:<10}{goal:>10}{hop:>5}{p.whole:>12,}{p.push:>12,}{p.share:>8.3f}"
                f"{p.share_of_macs:>9.3f}{p.whole_ram:>11,}{p.push_ram:>9,}",
                flush=True,
            )
    return found


def read_recorded() -> dict[str, dict[str, Price]]:
    """Read the figures of `over_time.json`."""
    return read_prices(RECORDED, Price)


def record(found: Mapping[str, Mapping[str, Price]]) -> None:
    """Write the figures; those of other models stay."""
    write_prices(RECORDED, Price, found)
