"""Tells the C and the TIR of each layer, which stand side by side on the page."""

from __future__ import annotations

from dataclasses import dataclass

from microtir import driver
from microtir.report.listing import listing
from microtir.studio.events import Emit, progress
from microtir.studio.plan import Plan


@dataclass(frozen=True, slots=True)
class Code:
    """The code of a plan."""

    plan: Plan

    def run(self, emit: Emit) -> None:
        """Tell all layers, then the function that calls them."""
        emit(progress("generating C"))
        artifact = driver.build(self.plan.module(), best_effort=True)
        functions = [
            {"title": one.title, "function": one.function, "c": one.c, "tir": one.tir}
            for one in listing(artifact)
        ]
        emit({"event": "code", "functions": functions})
