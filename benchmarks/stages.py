"""Wall time of each stage of one compilation."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import microtir

STAGES = ("frontend", "graph", "plan", "lowering", "tir", "executor", "memory", "codegen")


@dataclass(frozen=True, slots=True)
class StageTimes:
    """Milliseconds by stage."""

    milliseconds: dict[str, float]

    @property
    def total(self) -> float:
        return sum(self.milliseconds.values())


def time_stages(model: Path) -> StageTimes:
    """Compile a model file for a Cortex-M4 and take the time between the stages."""
    config = microtir.CompilationConfig.from_target(microtir.Target("c -mcpu=cortex-m4"))
    milliseconds: dict[str, float] = {}
    last = time.perf_counter()

    def stop(stage: str, _result: object = None) -> None:
        nonlocal last
        now = time.perf_counter()
        milliseconds[stage] = milliseconds.get(stage, 0.0) + (now - last) * 1e3
        last = now

    module = microtir.frontend.from_tflite(model)
    stop("frontend")
    microtir.build(module, config, observe=stop)
    return StageTimes(milliseconds)
