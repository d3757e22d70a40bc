"""Searches the frontier of a model on a board: what less RAM costs in instructions and flash.

Every trial is a configuration that a user can ask for: a goal, a budget of RAM between the
workspace of the fastest plan and that of the smallest, or a budget of flash between what those
take.  All of them are built and measured; those that another one beats in one figure and equals or
beats in the others are not on the frontier.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from microtir import driver
from microtir.artifact import Artifact
from microtir.config import Budget, CompilationConfig, Measure, Optimize, PassConfig
from microtir.errors import LimitError
from microtir.module.ir_module import IRModule
from microtir.rewrite.requests.requested import completed
from microtir.support.dominance import beats

_RECOMPUTE = "memory.recompute"

# Percent of the multiply-accumulates that may be done twice, where the user has set no limit.
_TRIED = (10, 50)


@dataclass(frozen=True, slots=True)
class ProgramCost:
    """The cost of one inference: bytes of RAM without the stack, instructions, code and weights.

    `cycles` are estimated unless they are exact; `macs_recomputed` multiply-accumulates are done a
    second time. `compiler` made the program that was measured.
    """

    ram: int
    instructions: int
    flash: int
    macs_recomputed: int = 0
    cycles: int = 0
    cycles_are_exact: bool = False
    compiler: str = ""

    def work(self, measure: Measure) -> int:
        return self.cycles if measure is Measure.CYCLES else self.instructions

    def beats(self, other: ProgramCost, measure: Measure) -> bool:
        """Return whether it is nowhere worse in RAM, flash and measure, and better in one."""
        mine = (self.ram, self.work(measure), self.flash)
        its = (other.ram, other.work(measure), other.flash)
        return beats(mine, its)


@dataclass(frozen=True, slots=True)
class Trial:
    """A configuration that was tried, and what its program costs.

    `limits_flash` where its budget of flash is its own, and not that of all trials.
    """

    config: CompilationConfig
    cost: ProgramCost
    limits_flash: bool = False

    @property
    def flags(self) -> str:
        """Return what to add to the command line to get this program."""
        limits, recompute = self.config.budget, self.config.pass_config.recompute
        budget = "" if limits.ram is None else f" --ram-budget {limits.ram}"
        budget += "" if not self.limits_flash else f" --flash-budget {limits.flash}"
        again = "" if not recompute else f" --pass-config {_RECOMPUTE}={recompute}"
        return f"--optimize {self.config.optimize.value}{budget}{again}"


@dataclass(frozen=True, slots=True)
class Frontier:
    """All trials that made different programs, the largest RAM first.

    Trials are compared by instructions or by cycles, as `measure` says.
    """

    trials: tuple[Trial, ...]
    measure: Measure = Measure.INSTRUCTIONS

    @property
    def best(self) -> tuple[Trial, ...]:
        """Return the trials that no other one beats."""
        return tuple(t for t in self.trials if self.is_best(t))

    def is_best(self, trial: Trial) -> bool:
        """Return whether no other trial beats this one."""
        return not any(other.cost.beats(trial.cost, self.measure) for other in self.trials)


CostOf = Callable[[Artifact], ProgramCost]
Tell = Callable[[str], None]


def pareto(
    module: IRModule,
    config: CompilationConfig,
    cost_of: CostOf,
    points: int,
    tell: Tell,
    compiler: driver.Compiler | None = None,
) -> Frontier:
    """Return the measured frontier of a model.

    Args:
        module: a model as a frontend made it.
        config: what all trials have in common; its goal and its budget of RAM are replaced,
            and a budget of flash is tried where it has none.
        cost_of: gives the cost of a program; called once for each program that differs.
        points: budgets of RAM to try between the largest workspace and the smallest, and as many
            of flash.
        tell: called with what is done next.
        compiler: as for `driver.build`: it decides where the configuration has a budget of flash.

    Raises:
        LimitError: no trial keeps to the other budgets of the configuration.
        MicrotirError: any other diagnostic of building or measuring.
    """
    trials = _Trials(module, cost_of, tell, compiler)
    for asked in _configurations(module, config, points, compiler):
        trials.add(asked)
    for asked in _flash_budgets(config, trials.programs.values(), points):
        trials.add(asked, limits_flash=True)
    if not trials.programs:
        raise trials.refusals[0]
    measure = completed(config, module.graph).measure
    order = sorted(trials.programs.values(), key=lambda t: (-t.cost.ram, t.cost.work(measure)))
    return Frontier(tuple(order), measure)


class _Trials:
    """Programs that differ, each built and measured once."""

    def __init__(
        self, module: IRModule, cost_of: CostOf, tell: Tell, compiler: driver.Compiler | None
    ) -> None:
        self._module, self._cost_of, self._tell = module, cost_of, tell
        self._compiler = compiler
        self.programs: dict[str, Trial] = {}
        self.refusals: list[LimitError] = []

    def add(self, config: CompilationConfig, *, limits_flash: bool = False) -> None:
        """Build and measure a program, unless it exceeds a budget or is known."""
        goal, budget = config.optimize.value, config.budget
        said = "" if budget.ram is None else f", {budget.ram} bytes of RAM"
        said += f", {budget.flash} bytes of flash" if limits_flash else ""
        self._tell(f"trial {len(self.programs) + 1}: {goal}{said}")
        try:
            artifact = driver.build(self._module, config, compiler=self._compiler)
        except LimitError as refusal:  # the next one may fit: other goals take less
            self.refusals.append(refusal)
            return
        program = _program(artifact)
        if program not in self.programs:
            self.programs[program] = Trial(config, self._cost_of(artifact), limits_flash)


def budgeted_ram(
    module: IRModule, config: CompilationConfig, compiler: driver.Compiler | None
) -> int:
    """Return what a budget of RAM counts of a program, also of one that exceeds other budgets."""
    configured = module.with_configuration(config)
    lowered = driver.lower(configured, compiler=compiler, best_effort=True)
    return lowered.require_program("pareto").placement.budgeted


def _configurations(
    module: IRModule, config: CompilationConfig, points: int, compiler: driver.Compiler | None
) -> Iterator[CompilationConfig]:
    """Yield goals, budgets in geometric steps from the fastest plan down, and bands."""
    budget = config.budget
    free = config.with_(budget=Budget(flash=budget.flash, stack=budget.stack))
    for goal in Optimize:
        yield free.with_(optimize=goal)
    most, least = (
        budgeted_ram(module, free.with_(optimize=goal), compiler)
        for goal in (Optimize.SPEED, Optimize.RAM_LEAST)
    )
    for ram in _steps(least, most, points):
        limits = Budget(ram=ram, flash=budget.flash, stack=budget.stack)
        yield free.with_(optimize=Optimize.SPEED, budget=limits)
    if not config.pass_config.recompute:
        for percent in _TRIED:
            options = PassConfig({**config.pass_config.changed(), _RECOMPUTE: percent})
            yield free.with_(optimize=Optimize.RAM_LEAST, pass_config=options)


def _flash_budgets(
    config: CompilationConfig, trials: Collection[Trial], points: int
) -> Iterator[CompilationConfig]:
    """Yield budgets in geometric steps from the flash of the fastest plan down.

    Kernels that keep weights as the model has them are offered only where flash is limited.  With
    a budget of flash in the configuration all trials have it already.
    """
    sizes = [t.cost.flash for t in trials if t.config.optimize is Optimize.SPEED]
    if config.budget.flash is not None or not sizes:
        return
    least = min(t.cost.flash for t in trials if t.config.optimize is not Optimize.FLASH)
    for flash in _steps(least, max(sizes), points):
        limits = Budget(flash=flash, stack=config.budget.stack)
        yield config.with_(optimize=Optimize.SPEED, budget=limits)


def _steps(least: int, most: int, count: int) -> Sequence[int]:
    """Return sizes from `least` to below `most`, each the same share above the last."""
    if least <= 0 or most <= least:
        return []
    ratio = most / least
    return sorted({int(least * ratio ** (n / count)) for n in range(count)}, reverse=True)


def _program(artifact: Artifact) -> str:
    """Return a program's C, without the lines that tell its configuration from another."""
    files = (file.text for file in artifact.sources if file.path.endswith(".c"))
    return "\n".join(
        line for text in files for line in text.splitlines() if "FINGERPRINT" not in line
    )
