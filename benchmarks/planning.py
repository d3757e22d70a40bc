"""`python -m benchmarks planning`: CPU time of plan and memory, and of all that `lower` does.

The largest reference model for every goal that planning differs in, with both placements, and a
model of 500 operators.  It is processor time, so that what else the machine does matters little;
the figures are those of one machine, and compare stages and goals.  `--record` writes them to
`planning.json`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import microtir
from benchmarks.boards import models_folder
from benchmarks.long_model import OPERATORS, long_model
from microtir import driver
from microtir.config import CompilationConfig, Optimize, Target
from microtir.module.ir_module import IRModule

RECORDED = Path(__file__).parent / "planning.json"
MODEL = "vww_int8"
LONG = f"{OPERATORS} operators"
SHORT = 68  # operators of a model that is not measured
GOALS = (Optimize.SPEED, Optimize.BALANCED, Optimize.RAM_LEAST)
PLACEMENTS = ("greedy", "optimal")


@dataclass(frozen=True, slots=True)
class Seconds:
    """Of processor time: for the plan, for the placement with its checker, and for all."""

    plan: float
    memory: float
    all: float

    @property
    def planning(self) -> float:
        return self.plan + self.memory


def measure(module: IRModule, goal: Optimize, placement: str) -> Seconds:
    """Lower a model for a Cortex-M4."""
    config = CompilationConfig.from_target(Target("c -mcpu=cortex-m4"))
    config = config.with_(optimize=goal, pass_config={"memory.placement": placement})
    taken: dict[str, float] = {}
    first = last = time.process_time()

    def stop(stage: str, _made: object) -> None:
        nonlocal last
        now = time.process_time()
        taken[stage] = taken.get(stage, 0.0) + now - last
        last = now

    driver.lower(module.with_configuration(config), observe=stop)
    everything = time.process_time() - first
    return Seconds(*(round(s, 2) for s in (taken["plan"], taken["memory"], everything)))


def ways() -> Iterator[tuple[str, Optimize, str]]:
    """Yield model, goal and placement of each measurement; a long model is not solved."""
    for goal in GOALS:
        for placement in PLACEMENTS:
            yield MODEL, goal, placement
        yield LONG, goal, PLACEMENTS[0]


def measure_all() -> dict[str, Seconds]:
    """Print a line for each measurement."""
    modules = {
        MODEL: microtir.frontend.from_tflite(models_folder() / f"{MODEL}.tflite"),
        LONG: long_model(),
    }
    # What is loaded and made once for all models is no part of the first one.
    measure(long_model(SHORT), Optimize.BALANCED, PLACEMENTS[0])
    print(f"{'seconds of processor time':<34}{'plan':>8}{'memory':>8}{'both':>8}{'all':>8}")
    found: dict[str, Seconds] = {}
    for model, goal, placement in sorted(ways(), key=lambda way: way[0], reverse=True):
        name = f"{model} {goal.value} {placement}"
        s = found[name] = measure(modules[model], goal, placement)
        print(
            f"{name:<34}{s.plan:>8.2f}{s.memory:>8.2f}{s.planning:>8.2f}{s.all:>8.2f}", flush=True
        )
    return found


def read_recorded() -> dict[str, Seconds]:
    """Read the figures of `planning.json`."""
    data = json.loads(RECORDED.read_text(encoding="utf-8")) if RECORDED.is_file() else {}
    return {name: Seconds(**figures) for name, figures in data.items()}


def record(found: Mapping[str, Seconds]) -> None:
    """Write the figures."""
    data = {name: asdict(seconds) for name, seconds in found.items()}
    RECORDED.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
