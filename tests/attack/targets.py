"""The CPU and the goal that a random graph is compiled for."""

from __future__ import annotations

from microtir import CompilationConfig, Target
from microtir.config.enums import Optimize

TARGETS = tuple(
    Target(f"c{cpu and f' -mcpu={cpu}'}")
    for cpu in ("", "cortex-m0", "cortex-m3", "cortex-m4", "cortex-m55", "esp32c3", "x86-64")
)
"""Kernels for a CPU have twins in C, which compute the same on this machine."""


def config_of(seed: int) -> CompilationConfig:
    """Return the configuration of a seed: each CPU with each goal comes up in turn."""
    config = CompilationConfig.from_target(TARGETS[seed % len(TARGETS)])
    return config.with_(optimize=list(Optimize)[seed % len(Optimize)])
