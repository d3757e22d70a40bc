"""Tries which options help a program that exceeds a limit.

An option is planned, and where that promises less, the program is made: what is named did help, by
as many bytes as are said.  Flags are parsed as the command line parses them, so that what is
printed can be typed.

What cannot help is not tried.  Every search for a program within limits looks at the plans of all
goals already, and at streaming; a budget of RAM counts the workspace, so that inputs in it, or fed
row by row from outside of it, only matter to a configuration that has them there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec

from microtir import driver
from microtir.artifact import Artifact
from microtir.config import Budget, CompilationConfig, Optimize, config_from_flags
from microtir.errors import ConfigError, LimitError, MicrotirError, Resource
from microtir.module.ir_module import IRModule
from microtir.tir.memory_plan import MemoryPlan

_RAM = (Resource.WORKSPACE, Resource.POOL)
_BUDGETS = {Resource.WORKSPACE: "ram", Resource.FLASH: "flash", Resource.STACK: "stack"}
_SECONDS = 6.0  # of this process, after which no other suggestion is begun
_WIDEST, _INDENT = 60, 4  # columns of flags with figures beside them, and where all are longer
_PLACED_OUTSIDE = "the application then has inputs and outputs"
_FED = "the application passes rows"

RoomOf = Callable[[CompilationConfig], "int | None"]
"""Bytes that a board has for the workspace and the state: ports outside of these take of them."""

Clock = Callable[[], float]
"""Seconds from any time on; those of the process, since a machine may have more to do."""


@dataclass(frozen=True, slots=True)
class BoardRam:
    """A RAM of a board."""

    name: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Flags that may help, by name, and what else comes with them, if anything.

    Of suggestions with one `topic` the first that helps enough is the cheapest.  Where planning
    knows what a suggestion saves, it need not be made to see that it saves nothing.
    """

    topic: str
    flags: Mapping[str, tuple[str, ...]]
    note: str = ""
    is_planned: bool = True

    @property
    def text(self) -> str:
        """Return the text that the command line takes."""
        return " ".join(
            f"{flag} {value}" for flag, values in self.flags.items() for value in values
        )


@dataclass(frozen=True, slots=True)
class SuggestionOutcome:
    """The bytes that a program takes with a suggestion of what is limited, and may take.

    `again` is what the program does a second time, if anything.
    """

    suggestion: Suggestion
    taken: int
    allowed: int
    again: str = ""

    @property
    def fits(self) -> bool:
        return self.taken <= self.allowed


@dataclass(frozen=True, slots=True)
class Advice:
    """The suggestions that helped, the cheapest first, and those that there was no time for."""

    outcomes: tuple[SuggestionOutcome, ...]
    tried: int
    left_out: tuple[Suggestion, ...]

    def lines(self) -> tuple[str, ...]:
        """Return for a diagnostic: a line for each suggestion that helped, in columns."""
        lengths = [len(o.suggestion.text) for o in self.outcomes]
        width = max((n for n in lengths if n <= _WIDEST), default=_INDENT)
        digits = max((len(f"{o.taken:,}") for o in self.outcomes), default=0)
        lines = [line for outcome in self.outcomes for line in _lines(outcome, width, digits)]
        if self.tried and not lines:
            noun = "option" if self.tried == 1 else "options"
            lines.append(f"{self.tried} other {noun}, none of them helps")
        left = [f"{suggestion.text}: not tried, for time" for suggestion in self.left_out]
        return (*lines, *left)


def _lines(outcome: SuggestionOutcome, width: int, digits: int) -> list[str]:
    """Return flags and their results side by side; below each other where flags are long."""
    excess = outcome.taken - outcome.allowed
    verdict = "fits" if outcome.fits else f"still {excess:,} too many"
    note = "".join(f"; {text}" for text in (outcome.again, outcome.suggestion.note) if text)
    text, figures = outcome.suggestion.text, f"{outcome.taken:>{digits},} bytes: {verdict}{note}"
    is_long = len(text) > max(width, _WIDEST)
    return [text, f"{'':<{width}}  {figures}"] if is_long else [f"{text:<{width}}  {figures}"]


def advice(
    module: IRModule,
    error: LimitError,
    *,
    compiler: driver.Compiler | None = None,
    memories: Sequence[BoardRam] = (),
    room_of: RoomOf | None = None,
    seconds: float = _SECONDS,
    clock: Clock = time.process_time,
) -> Advice:
    """Try what may help a model that was refused.

    Args:
        module: a graph with the configuration that is too tight.
        error: how it was refused.
        compiler: as for `driver.build`.
        memories: of the board, for pools that there could be.
        room_of: where the budget of RAM is what a board has: for another configuration it is that.
        seconds: after so many no other suggestion is begun; one is tried in any case.
        clock: what measures them.
    """
    trials = _Trials(module, module.require_config("suggestions"), error, compiler, room_of)
    end, tried = clock() + seconds, 0
    outcomes: list[SuggestionOutcome] = []
    left_out: list[Suggestion] = []
    others = trials.without_others() if trials.has_other_budgets else []
    for suggestion, config in _legal(trials, memories):
        if any(o.fits and o.suggestion.topic == suggestion.topic for o in outcomes):
            continue
        if tried and clock() >= end:
            left_out.append(suggestion)
            continue
        tried += 1
        outcomes += trials.outcome(suggestion, config)
    if not any(o.fits for o in outcomes) and clock() < end:
        outcomes += _all_of(trials, outcomes)
    tried += trials.has_other_budgets
    return Advice((*outcomes, *others), tried, tuple(left_out))


def _legal(
    trials: _Trials, memories: Sequence[BoardRam]
) -> Iterator[tuple[Suggestion, CompilationConfig]]:
    """Yield the suggestions that change the configuration to another legal one."""
    for suggestion in _suggestions(trials.config, trials.error, memories):
        config = trials.with_suggestion(suggestion)
        if config is not None and config != trials.config:
            yield suggestion, config


def _suggestions(
    config: CompilationConfig, error: LimitError, memories: Sequence[BoardRam]
) -> Iterator[Suggestion]:
    """Yield what may help with a resource, the cheapest first."""
    if error.resource is Resource.FLASH:
        yield Suggestion(
            "link", {"--executor-aot-link-params": ("0",)}, "weights are then in a file"
        )
    if error.resource not in _RAM:
        return
    yield _of_pass("memory.reorder", "1")
    placements = ("exact", *(["optimal"] if find_spec("ortools") else []))
    for placement in placements if error.least < error.taken else ():
        yield replace(_of_pass("memory.placement", placement), is_planned=False)
    for percent in (10, 50):
        if percent > config.pass_config.recompute:
            yield _of_pass("memory.recompute", str(percent))
    if error.resource is Resource.POOL:
        yield from _with_pools(config, memories)
    if config.pass_config.use_workspace_io:
        outside = _of_pass("memory.use_workspace_io", "0")
        fed = {"--executor-aot-row-fed-inputs": ("1",), **outside.flags}
        yield Suggestion("ports", fed, _FED)
        yield replace(outside, note=_PLACED_OUTSIDE)


def _of_pass(key: str, value: str) -> Suggestion:
    return Suggestion(key, {"--pass-config": (f"{key}={value}",)})


def _with_pools(config: CompilationConfig, memories: Sequence[BoardRam]) -> Iterator[Suggestion]:
    """Yield one more pool for each memory of the board that no pool is in."""
    there = {pool.pool_name for pool in config.workspace_pools}
    sections = {p.pool_info_properties.section.strip(".") for p in config.workspace_pools}
    for memory in memories:
        if memory.name in there | sections:
            continue
        flags = {"--workspace-pools": (*(p.pool_name for p in config.workspace_pools), memory.name)}
        for pool in config.workspace_pools:
            for name, value in pool.pool_info_properties.changed().items():
                flag = f"--workspace-pools-{name.replace('_', '-')}"
                text = str(int(value)) if isinstance(value, bool) else str(value)
                flags[flag] = (*flags.get(flag, ()), f"{pool.pool_name}:{text}")
        size, section = "--workspace-pools-size-hint-bytes", "--workspace-pools-section"
        flags[size] = (*flags.get(size, ()), f"{memory.name}:{memory.bytes}")
        flags[section] = (*flags.get(section, ()), f"{memory.name}:.{memory.name}")
        yield Suggestion("pools", flags, is_planned=False)


def _all_of(trials: _Trials, outcomes: Sequence[SuggestionOutcome]) -> list[SuggestionOutcome]:
    """Return the best of each topic together, where one is not enough."""
    best: dict[str, SuggestionOutcome] = {}
    for outcome in sorted(outcomes, key=lambda o: -o.taken):
        best[outcome.suggestion.topic] = outcome
    if len(best) < 2:
        return []
    flags: dict[str, tuple[str, ...]] = {}
    for outcome in outcomes:
        if outcome in best.values():
            for flag, values in outcome.suggestion.flags.items():
                flags[flag] = tuple(dict.fromkeys((*flags.get(flag, ()), *values)))
    notes = dict.fromkeys(o.suggestion.note for o in best.values() if o.suggestion.note)
    suggestion = Suggestion("all", flags, "; ".join(notes), is_planned=False)
    config = trials.with_suggestion(suggestion)
    return [] if config is None else trials.outcome(suggestion, config)


@dataclass(frozen=True, slots=True)
class _Trials:
    """A model that is too large for its configuration, and how it is made with another one."""

    module: IRModule
    config: CompilationConfig
    error: LimitError
    compiler: driver.Compiler | None
    room_of: RoomOf | None = None
    _smallest: dict[CompilationConfig, IRModule] = field(default_factory=dict)

    def with_suggestion(self, suggestion: Suggestion) -> CompilationConfig | None:
        """Return the configuration with a suggestion; None if it contradicts the rest."""
        try:
            config = config_from_flags(dict(suggestion.flags), self.config)
        except ConfigError:
            return None
        room = self.room_of(config) if self.room_of else None
        if room is None:
            return config
        # A budget of nothing is none to be had; `outcome` sees that what there is fits nowhere.
        return config.with_(budget={**config.budget.known(), "ram": max(room, 1)})

    def outcome(self, suggestion: Suggestion, config: CompilationConfig) -> list[SuggestionOutcome]:
        """Return what a suggestion comes to; empty if it does not help."""
        try:
            if suggestion.is_planned and self._is_ram and not self.promises(config):
                return []
            taken, again = self.bytes_taken(config)
        except MicrotirError:
            return []  # something else is exceeded, or the model does not allow it
        allowed = self.error.allowed
        room = self.room_of(config) if self.room_of and self._budget == "ram" else None
        allowed = allowed if room is None else room
        if taken - allowed >= self.error.taken - self.error.allowed:
            return []
        return [SuggestionOutcome(suggestion, taken, allowed, again)]

    def without_others(self) -> list[SuggestionOutcome]:
        """Return what other budgets would have to be for the exceeded one; or nothing.

        The plan of the goal that takes least says so, which no search within limits would refuse.
        """
        goal = {Resource.WORKSPACE: Optimize.RAM_LEAST, Resource.FLASH: Optimize.FLASH}
        free = self.config.without_limits().with_(
            optimize=goal.get(self.error.resource, self.config.optimize),
            budget=Budget(stack=self.config.budget.stack if self._is_stack else None),
        )
        artifact = driver.build(
            self.module.with_configuration(free), compiler=self.compiler, best_effort=True
        )
        figures = _Figures.of(artifact, self.compiler)
        flags = {
            f"--{name}-budget": (str(figures.of_budget(name)),)
            for name, limit in self.config.budget.known().items()
            if figures.of_budget(name) > limit and name != self._budget
        }
        room = self.config.workspace_room()
        is_small = room is None or figures.workspace <= room
        taken = figures.of_resource(self.error)
        if not flags or not is_small or taken >= self.error.taken:
            return []
        return [SuggestionOutcome(Suggestion("budgets", flags), taken, self.error.allowed)]

    @property
    def has_other_budgets(self) -> bool:
        """Return whether something else is limited by a budget."""
        return any(name != self._budget for name in self.config.budget.known())

    @property
    def _budget(self) -> str:
        """Return the budget that is exceeded; empty if the size of a pool is."""
        return _BUDGETS.get(self.error.resource, "")

    @property
    def _is_stack(self) -> bool:
        return self.error.resource is Resource.STACK

    def promises(self, config: CompilationConfig) -> bool:
        """Return whether planning knows a smaller workspace."""
        least, without = (
            self.smallest(known).require_program("suggestions").plan.least
            for known in (config, self.config)
        )
        return least < without

    def smallest(self, config: CompilationConfig) -> IRModule:
        """Return the program that takes the least RAM with the options of a configuration."""
        free = config.without_limits().with_(optimize=Optimize.RAM_LEAST)
        if free not in self._smallest:
            self._smallest[free] = driver.lower(self.module.with_configuration(free))
        return self._smallest[free]

    @property
    def _is_ram(self) -> bool:
        return self.error.resource in _RAM

    def bytes_taken(self, config: CompilationConfig) -> tuple[int, str]:
        """Return the bytes of what is limited, and what the program does twice.

        Raises:
            LimitError: something else is exceeded.
            MicrotirError: the program cannot be made.
        """
        if self._is_ram and len(config.workspace_pools) < 2 and not self.has_other_budgets:
            # What the smallest program takes decides; no search is needed to know that.
            smallest = self.smallest(config)
            placement = _workspace(smallest)
            is_budget = self.error.resource is Resource.WORKSPACE
            taken = placement.budgeted if is_budget else placement.workspace_size
            return taken, _again(smallest)
        module = self.module.with_configuration(config)
        try:
            artifact = driver.build(module, compiler=self.compiler)
        except LimitError as error:
            if (error.resource, error.where) != (self.error.resource, self.error.where):
                raise
            return error.taken, ""
        figures = _Figures.of(artifact, self.compiler)
        return figures.of_resource(self.error), _again(artifact.module)


def _workspace(module: IRModule) -> MemoryPlan:
    return module.require_program("suggestions").placement


def _again(module: IRModule) -> str:
    """Return what a program does a second time, if anything."""
    origins = [function.origin for function in module.functions if function.origin]
    twice = sum(origin.macs_recomputed for origin in origins)
    once = sum(origin.macs_executed for origin in origins) - twice
    return f"{twice / max(once, 1):.1%} more multiply-accumulates" if twice else ""


@dataclass(frozen=True, slots=True)
class _Figures:
    """The bytes that a program takes of everything that may be limited."""

    workspace: int
    ram: int  # that a budget counts
    pools: tuple[int, ...]
    flash: int
    stack: int

    @staticmethod
    def of(artifact: Artifact, compiler: driver.Compiler | None) -> _Figures:
        memory = _workspace(artifact.module)
        return _Figures(
            memory.workspace_size,
            memory.budgeted,
            tuple(pool.size for pool in memory.pools),
            artifact.flash(compiler(artifact) if compiler else None).bytes,
            artifact.metadata.stack.bytes,
        )

    def of_budget(self, name: str) -> int:
        return {"ram": self.ram, "flash": self.flash, "stack": self.stack}[name]

    def of_resource(self, error: LimitError) -> int:
        match error.resource:
            case Resource.WORKSPACE:
                return self.ram
            case Resource.POOL:
                return self.pools[error.pool]
            case Resource.FLASH:
                return self.flash
            case Resource.STACK:
                return self.stack
