"""`python -m benchmarks operators`: one operator at a time, beside its goal and what planning said.

Every row of `operator_rows` is a model of its own, compiled for speed and run on emulated CPUs.
Its instructions are those of the functions of the file's operators: neither those of the run
function that calls them, nor what turns inputs and outputs of uint8 into int8 once in a model.
`--only ROW...` measures rows whose names contain one of the texts, `--cpu CPU,...` the CPUs of
`BOARDS` that are named.  `--record` writes the figures to `operators.json`; those of other rows and
CPUs stay. It writes the tables of docs/figures.md, too.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from benchmarks.layers import for_speed
from benchmarks.operator_models import Kind
from benchmarks.operator_rows import Case, cases
from benchmarks.prices import read_prices, write_prices
from microtir import driver, frontend
from microtir.boards import load_board
from microtir.boards.errors import BuildError, ModelTooLargeError
from microtir.profiling import profile

RECORDED = Path(__file__).parent / "operators.json"
BOARDS: Mapping[str, str] = MappingProxyType({
    "cortex-m4": "mps2_an386", "cortex-m55": "mps3_an547", "cortex-m0": "microbit",
    "rv32imc": "riscv32",
})  # fmt: skip
"""Emulated boards by CPU; the first two have goals, and are measured unless others are named."""
WITH_GOALS = ("cortex-m4", "cortex-m55")
NEAR = 0.05  # of what is measured, that a statement may be away


@dataclass(frozen=True, slots=True)
class Price:
    """What one operator takes, and what was aimed at.

    Args:
        unit: what work is counted in.
        units: of it.
        goal: instructions for a unit; None if there is none.
        instructions: measured, on an emulator.
        stated: those of planning.
        kernels: that were chosen.
    """

    unit: str
    units: int
    goal: float | None
    instructions: int
    stated: int
    kernels: str

    @property
    def per_unit(self) -> float:
        return self.instructions / self.units

    @property
    def said(self) -> float:
        """Return how much of what is measured planning states."""
        return self.stated / self.instructions if self.instructions else 1.0


Prices = Mapping[str, Mapping[str, Price]]
"""By CPU, and full name of a case."""


def is_measured(case: Case, cpu: str) -> bool:
    """Return whether a CPU has figures of a case: one without goals has those of int8 alone."""
    return cpu in WITH_GOALS or (case.kind is Kind.INT8 and case.channels == case.row.channels)


def price(case: Case, cpu: str) -> Price:
    """Build and measure a case."""
    board = load_board(BOARDS[cpu])
    config = for_speed(board, "row")
    made = case.row.make(case.kind, case.channels)
    artifact = driver.build(frontend.from_tflite(made.file, name="row"), config)
    program = artifact.module.require_program("operators")
    measured, stated = profile(artifact, board).layers, program.decisions.values()
    return Price(
        case.row.unit.value,
        made.units,
        case.goal(cpu),
        sum(layer.instructions for layer in measured if made.counts(layer.index)),
        sum(decision.instructions for decision in stated if made.counts(decision.index)),
        ", ".join(decision.kernel for decision in stated if made.counts(decision.index)),
    )


def stated(case: Case, cpu: str) -> tuple[str, int]:
    """Return the kernels that are chosen for a case, and what planning states of them."""
    made = case.row.make(case.kind, case.channels)
    module = frontend.from_tflite(made.file, name="row")
    config = for_speed(load_board(BOARDS[cpu]), "row")
    program = driver.lower(module.with_configuration(config)).require_program("operators")
    chosen = [d for d in program.decisions.values() if made.counts(d.index)]
    return ", ".join(d.kernel for d in chosen), sum(d.instructions for d in chosen)


def _fitting(case: Case, cpu: str) -> Price | None:
    """Measure a case, or say that it does not fit the board."""
    try:
        return price(case, cpu)
    except (ModelTooLargeError, BuildError) as error:
        print(f"{case.full_name:<64} {str(error).splitlines()[0]}")
        return None


def measure_all(arguments: Sequence[str]) -> dict[str, dict[str, Price]]:
    """Print a line for each case that is asked for, and how near statements are."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks operators", description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="ROW", default=[""])
    parser.add_argument("--cpu", default=",".join(WITH_GOALS))
    args = parser.parse_args(arguments)
    named = [case for case in cases() if any(text in case.full_name for text in args.only)]
    found: dict[str, dict[str, Price]] = {}
    for cpu in args.cpu.split(","):
        print(f"\n{cpu:<64}{'unit':>14}{'now':>8}{'goal':>8}{'stated':>8}  kernels")
        found[cpu] = {}
        for case in (case for case in named if is_measured(case, cpu)):
            p = _fitting(case, cpu)
            if p is None:
                continue
            found[cpu][case.full_name] = p
            goal = "" if p.goal is None else f"{p.goal:.2f}"
            print(
                f"{case.full_name:<64}{p.unit:>14}{p.per_unit:>8.2f}{goal:>8}{p.said:>8.2f}  "
                f"{p.kernels}",
                flush=True,
            )
        print(nearness(found[cpu]))
    return found


def nearness(prices: Mapping[str, Price]) -> str:
    """Return how many statements of planning are near what was measured, and the worst."""
    if not prices:
        return "nothing was measured"
    near = sum(abs(p.said - 1) <= NEAR for p in prices.values())
    name, worst = max(prices.items(), key=lambda item: abs(item[1].said - 1))
    return (
        f"planning's estimate is within 5 % of the measurement for {near} of {len(prices)} models "
        f"({near / len(prices):.0%}). The worst estimate is {worst.said:.2f} times the "
        f"measurement, for `{name}`"
    )


def read_recorded() -> dict[str, dict[str, Price]]:
    """Read the figures of `operators.json`."""
    return read_prices(RECORDED, Price)


def record(found: Prices) -> None:
    """Write the figures, in the order of the table; those of other rows stay."""
    known = read_recorded()
    order = [case.full_name for case in cases()]
    merged = {cpu: {**known.get(cpu, {}), **prices} for cpu, prices in found.items()}
    write_prices(
        RECORDED, Price,
        {cpu: {name: prices[name] for name in order if name in prices}
         for cpu, prices in merged.items()},
    )  # fmt: skip
