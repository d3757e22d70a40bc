"""`python -m benchmarks arena`: RAM beside tflite-micro's arena, of what has a state or int16.

Recurrent layers of every type are the models of `scripts.models.recurrent`; networks of int16 with
weights of int8 are the exporters' among the reference models; those over time are streamed by
pushes of frames as well as run whole, and the audio front end and the wake word have states of
their own.  Each is compiled for an emulated Cortex-M4 and measured there.  The arena is what
tflite-micro's own recorder says, on a machine of 64 bits: its structures are nearly half as large
on 32 bits, tensors are the same.  `--record` writes the figures to `arena.json`.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType

import microtir
from benchmarks.boards import models_folder
from benchmarks.prices import read_prices, write_prices
from microtir import driver
from microtir.boards import Board, load_board
from microtir.config import CompilationConfig
from microtir.profiling import profile
from scripts.models.audio import spotter
from scripts.models.keyword_spotter import TimePadding, keyword_spotter
from scripts.models.recurrent import Kind, lstm, stacked_lstms, svdf
from scripts.models.wake_word import Order, Shape, wake_word

RECORDED = Path(__file__).parent / "arena.json"
BOARD = "mps2_an386"
GOALS = ("speed", "balanced")

_ARENA = re.compile(r"Arena allocation total (\d+) bytes")
_PRINT_ALLOCATIONS = """
import sys
from tflite_micro import runtime
interpreter = runtime.Interpreter.from_file(sys.argv[1], arena_size=1 << 24)
interpreter.invoke()
interpreter.print_allocations()
"""


@dataclass(frozen=True, slots=True)
class Price:
    """Instructions of a run, bytes of RAM and of them the state, and tflite-micro's arena.

    RAM has workspace, state, inputs, outputs and other variables, without the stack.  The arena is
    0 where tflite-micro does not take the model.
    """

    instructions: int
    ram: int
    state: int
    stack: int
    arena: int


@dataclass(frozen=True, slots=True)
class Way:
    """A model and how it is run: whole, or by pushes of so many frames."""

    make: Callable[[], bytes]
    hop: int = 0


def _reference(name: str) -> bytes:
    return (models_folder() / f"{name}.tflite").read_bytes()


def _recurrent() -> dict[str, Way]:
    """Return the recurrent layers: 20 steps of 16 inputs by 32 units, 64 filters over 10 frames."""
    ways = {f"LSTM, {kind.value}": Way(partial(lstm, kind, 20, 16, 32)) for kind in Kind}
    stacked = (Kind.FLOAT32, Kind.INT8, Kind.INT16)
    ways |= {
        f"two LSTMs, {kind.value}": Way(partial(stacked_lstms, kind, 20, 16, 32))
        for kind in stacked
    }
    kinds = (Kind.FLOAT32, Kind.HYBRID, Kind.INT8)
    return ways | {f"SVDF, {kind.value}": Way(partial(svdf, kind, 40, 64, 10)) for kind in kinds}


_LONG = (
    "mobilenet_16x8", "squeeze_excite_16x8", "tcn_causal_dilated_16x8", "unet_resize_16x8",
    "autoencoder_transpose_16x8", "conv1d_global_max_16x8", "lstm_unrolled_16x8",
)  # fmt: skip

WAYS: Mapping[str, Way] = MappingProxyType(
    {
        **_recurrent(),
        **{name: Way(partial(_reference, f"exported/{name}")) for name in _LONG},
        "wake word": Way(partial(wake_word, Order.APPEND_DROP, Shape())),
        "audio, samples to decisions": Way(spotter),
        "kws, whole": Way(partial(_reference, "kws_int8")),
        "kws, pushes of 2 frames": Way(partial(_reference, "kws_int8"), hop=2),
        "kws without padding, whole": Way(partial(keyword_spotter, TimePadding.VALID)),
        "kws without padding, pushes of 2 frames": Way(
            partial(keyword_spotter, TimePadding.VALID), hop=2
        ),
    }
)


def price(way: Way, goal: str, board: Board) -> Price:
    """Build and measure a model, and ask tflite-micro for its arena."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.tflite"
        file.write_bytes(way.make())
        module, arena = microtir.frontend.from_tflite(file), _arena(file)
    config = CompilationConfig.from_target(board.target).with_(module_name="model", optimize=goal)
    if way.hop:
        config = config.with_(stream_axis="1", stream_hop=way.hop)
    measured = profile(driver.build(module, config), board)
    ram = measured.ram
    return Price(measured.instructions, ram.of_model, ram.state, ram.stack, arena)


def _arena(file: Path) -> int:
    """Return the bytes of the arena that tflite-micro's recorder names; 0 if it refuses to run."""
    command = [sys.executable, "-c", _PRINT_ALLOCATIONS, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    named = _ARENA.search(done.stdout + done.stderr)
    return int(named[1]) if named and done.returncode == 0 else 0


def measure_all(named: list[str]) -> dict[str, dict[str, Price]]:
    """Print a line for each model and goal; those whose names begin so, or all."""
    board = load_board(BOARD)
    print(f"{'model':<42}{'goal':>10}{'instructions':>14}{'RAM':>9}{'state':>8}{'arena':>9}")
    found: dict[str, dict[str, Price]] = {}
    for name, way in WAYS.items():
        if named and not name.startswith(tuple(named)):
            continue
        found[name] = {}
        for goal in GOALS:
            p = found[name][goal] = price(way, goal, board)
            print(
                f"{name:<42}{goal:>10}{p.instructions:>14,}{p.ram:>9,}{p.state:>8,}{p.arena:>9,}",
                flush=True,
            )
    return found


def read_recorded() -> dict[str, dict[str, Price]]:
    """Read the figures of `arena.json`."""
    return read_prices(RECORDED, Price)


def record(found: Mapping[str, Mapping[str, Price]]) -> None:
    """Write the figures; those of other models stay."""
    write_prices(RECORDED, Price, found)
