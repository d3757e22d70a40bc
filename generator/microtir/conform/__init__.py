"""Tests kernels of anybody: C programs with random cases, and what the numpy meaning expects."""

from __future__ import annotations

from microtir.conform.case import Case, draw_cases
from microtir.conform.programs import defined_functions, program_files
from microtir.conform.run import build_programs, run_programs
from microtir.conform.spec import Function, SpecError, built_in_specs, load_spec

__all__ = [
    "Case",
    "Function",
    "SpecError",
    "build_programs",
    "built_in_specs",
    "defined_functions",
    "draw_cases",
    "load_spec",
    "program_files",
    "run_programs",
]
