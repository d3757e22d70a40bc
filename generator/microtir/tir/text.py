"""The text form of TIR: `to_text` writes it, `parse` reads it, nothing is lost between them."""

from __future__ import annotations

from microtir.tir.parser import parse, parse_function
from microtir.tir.printer import access_text, expr_text, stmt_text, to_text

__all__ = ["access_text", "expr_text", "parse", "parse_function", "stmt_text", "to_text"]
