"""Measures what a program takes on a board: instructions, cycles, flash, RAM and stack."""

from __future__ import annotations

from microtir.profiling.code_size import BoardCompiler
from microtir.profiling.measure import Measurement, measure
from microtir.profiling.profile import Profile, profile

__all__ = [
    "BoardCompiler",
    "Measurement",
    "Profile",
    "measure",
    "profile",
]
