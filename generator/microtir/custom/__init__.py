"""Operators of the user: from tensor expressions, from TIR, or as a C function."""

from microtir.custom.c_function import from_c
from microtir.custom.check import as_model, check
from microtir.custom.tensor_program import from_te, from_tir

__all__ = ["as_model", "check", "from_c", "from_te", "from_tir"]
