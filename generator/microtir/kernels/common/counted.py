"""Kernels whose cost is counted: printed instructions, and what was measured around them.

A template says how many instructions a call of a micro-kernel takes.  What it cannot say is what a
compiler makes of the loops around the calls; that is measured on an emulated CPU, by one command
(`python -m benchmarks calibrate`), and kept in one file for each CPU, `measured/CPU.json`.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from microtir.graph.ir import Node
from microtir.kernels.common.kernel import Kernel
from microtir.plan.ir import Calls
from microtir.support.sums import sum_in_order

_MEASURED = Path(__file__).parent.parent / "measured"


def measured_file(cpu: str) -> Path:
    """Return the file of what was measured on a CPU."""
    return _MEASURED / f"{cpu}.json"


@cache
def figures_of(cpu: str) -> Mapping[str, Mapping[str, float]]:
    """Return the instructions of each kind of code around calls, by family."""
    figures: Mapping[str, Mapping[str, float]] = json.loads(measured_file(cpu).read_text("utf-8"))
    return figures


class Counted(Kernel):
    """A kernel that counts its instructions.

    Attributes:
        measured_on: CPU whose measured figures it takes.
        family: name of these figures; kernels around which the same loops are have the same.
    """

    measured_on: str
    family: str

    @abstractmethod
    def printed(self, node: Node, calls: Calls) -> int:
        """Return the instructions of all calls of micro-kernels."""

    @abstractmethod
    def around(self, node: Node, calls: Calls) -> Mapping[str, int]:
        """Return how often the code around these runs, by the names of its kinds."""

    def instructions(self, node: Node, calls: Calls) -> int:
        """Return the instructions that are printed, and those around them."""
        figures = figures_of(self.measured_on)[self.family]
        around = sum_in_order(
            figures[kind] * times for kind, times in self.around(node, calls).items()
        )
        return self.printed(node, calls) + round(around)
