"""Decisions of planning about each layer, with reasons: for metadata, reports and `--explain`."""

from __future__ import annotations

from dataclasses import dataclass

from microtir.config.enums import Measure, Optimize
from microtir.graph.ir import SumRange


@dataclass(frozen=True, slots=True)
class Alternative:
    """A kernel that a layer does not have, and why; no figures of one that cannot compute it."""

    kernel: str
    reason: str
    instructions: int | None = None
    cycles: int | None = None
    scratch_bytes: int | None = None
    code_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class DeclinedTrade:
    """Bytes that a program could save, and does not, since they would cost too much speed.

    Args:
        ram: bytes of RAM less, about.
        flash: bytes of flash less, about.
        times: of the work of the program.
        measure: what work is counted in.
        goal: that takes it.
    """

    ram: int
    flash: int
    times: float
    measure: Measure
    goal: Optimize

    @property
    def text(self) -> str:
        """Return how to save the bytes, and what that costs."""
        memories = {"RAM": self.ram, "flash": self.flash}
        saved = " and ".join(f"{n:,} bytes of {name}" for name, n in memories.items() if n > 0)
        more = " and ".join(f"{-n:,} more of {name}" for name, n in memories.items() if n < 0)
        return (
            f"--optimize {self.goal} saves about {saved}, and takes{f' {more} and' if more else ''}"
            f" {self.times:.2f} times the {self.measure}"
        )


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision about a layer, with its reason and what was proven of the layer.

    `layer` is the operator's name in the model and `index` its position; `instructions` and
    `cycles` are those of all its calls, as estimated or measured before; `group` numbers what runs
    together, in the order of execution; `sums` bounds what accumulators hold.
    """

    layer: str
    index: int
    kernel: str
    reason: str
    instructions: int
    cycles: int
    scratch_bytes: int
    code_bytes: int
    is_measured: bool
    group: int
    by_rows: bool
    alternatives: tuple[Alternative, ...]
    sums: SumRange | None
