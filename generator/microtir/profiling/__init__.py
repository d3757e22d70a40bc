"""Measures what a program takes on a board: instructions, cycles, flash, RAM and stack."""

from __future__ import annotations

from microtir.profiling.code_size import BoardCompiler
from microtir.profiling.measure import Measurement, counts_instructions, measure
from microtir.profiling.profile import Profile, profile
from microtir.profiling.timing import board_program, extreme_instructions

__all__ = [
    "BoardCompiler",
    "Measurement",
    "Profile",
    "board_program",
    "counts_instructions",
    "extreme_instructions",
    "measure",
    "profile",
]
