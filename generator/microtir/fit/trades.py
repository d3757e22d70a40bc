"""Settles what a goal pays for memory: no step that nobody would take.

A balanced program pays at most 3 % of its instructions for 1 % of its RAM and flash, one of little
RAM at most 20 % for 1 % of its RAM.  Two things keep to that.  A byte of code costs no more than
3 % of the instructions of the fastest program for 1 % of its bytes: a price that is the same for
all would make a small network half as fast again to save a kilobyte of ten.  And what came
of it is compared with faster programs, which are compiled unless RAM alone is worth it: layers
share code, and what streams needs some, which the price of no kernel tells.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from microtir.config import CompilationConfig
from microtir.config.enums import Measure, Optimize
from microtir.module.program import Program
from microtir.plan.decisions import DeclinedTrade
from microtir.plan.ir import Plan, PlanConstraints
from microtir.plan.ranking import PRICE_PER_BYTE
from microtir.plan.work import bytes_apart, plan_work

Compile = Callable[[PlanConstraints], Program]
"""Compiles the program that keeps to constraints as far as planning can tell."""

PlanOf = Callable[[PlanConstraints], Plan]
"""Gives the plan of the program that would be compiled: what it costs, before it is there."""

_OF_ALL, _OF_RAM = 3, 20  # percent of the instructions that 1 % of the bytes may cost
_SLIGHT = 1.01  # times the instructions of a faster program: nothing worth compiling that for
_NOTABLE = 1.05  # times the instructions: what was declined is told from there on

# Bytes of code of a layer beside its kernel, and of the entry and what every program has, as
# networks of exporters have them on Armv7E-M.
_LAYER_CODE, _PROGRAM_CODE = 350, 700

# A faster program, whose layers may share kernels, had up to 27 % less code in these networks.  Of
# what planning expects of RAM placement may keep a part.
_LESS_CODE, _SURE_RAM = 0.3, 0.5


@dataclass(frozen=True, slots=True)
class _Cost:
    """The cost of a program: instructions or cycles, RAM with inputs, outputs and states, flash."""

    work: int
    ram: int
    flash: int

    def pays(self, faster: _Cost, goal: Optimize) -> bool:
        """Return whether what this saves is worth its work to a goal."""
        if goal is Optimize.RAM:
            percent, less = _OF_RAM, faster.ram / max(self.ram, 1) - 1
        else:
            percent = _OF_ALL
            less = (faster.ram + faster.flash) / max(self.ram + self.flash, 1) - 1
        return self.times(faster) - 1 <= percent * less

    def times(self, other: _Cost) -> float:
        """Return how many times the work of another this takes."""
        return self.work / max(other.work, 1)


@dataclass(frozen=True, slots=True)
class Trades:
    """The programs that a goal has to choose from where no limit plays a part.

    Args:
        compile_once: compiles a program.
        plan_of: plans it.
        goal: what counts.
        measure: what speed is counted in.
        workspace_io: whether inputs and outputs lie in the workspace.
    """

    compile_once: Compile
    plan_of: PlanOf
    goal: Optimize
    measure: Measure
    workspace_io: bool

    @staticmethod
    def of(compile_once: Compile, plan_of: PlanOf, config: CompilationConfig) -> Trades:
        workspace_io = config.pass_config.use_workspace_io
        return Trades(compile_once, plan_of, config.optimize, config.measure, workspace_io)

    def program(self) -> Program:
        """Return a program of the goal that is worth what it costs, or a faster one."""
        asked = self.asked()
        small = self.compile_once(asked)
        if not self._has_price:
            return small
        plans = (self.plan_of(other) for other in self._rivals())
        is_sure = all(self._is_surely_worth(small, plan) for plan in plans)
        chosen = small if is_sure else self._compared(small)
        return replace(chosen, declined=self._declined(chosen))

    def asked(self) -> PlanConstraints:
        """Return what is asked for first, a byte of code at the price that the network bears."""
        asked = self._unpriced(self.goal)
        return replace(asked, code_price=self._code_price()) if self._has_price else asked

    def alternatives(self) -> tuple[PlanConstraints, ...]:
        """Return what the goal may come to, from the least memory on."""
        if not self._has_price:
            return (self.asked(),)
        asked = self.asked()
        return asked, replace(asked, code_price=0)

    @property
    def _has_price(self) -> bool:
        return self.goal in (Optimize.BALANCED, Optimize.RAM)

    def _unpriced(self, goal: Optimize) -> PlanConstraints:
        return PlanConstraints(goal, self.measure)

    def _compared(self, small: Program) -> Program:
        """Return a program if it pays, else one that takes more memory."""
        if self.goal is Optimize.RAM:
            fast = replace(self, goal=Optimize.BALANCED).program()
            return small if self._pays(small, fast) else fast
        fastest, unpriced = self._unpriced(Optimize.SPEED), replace(self.asked(), code_price=0)
        is_one = self.plan_of(fastest).decides_as(self.plan_of(unpriced))
        fast = self.compile_once(unpriced if is_one else fastest)
        if self._pays(small, fast):
            return small
        if is_one:
            return fast
        # RAM may pay where code does not.
        streamed = self.compile_once(unpriced)
        return streamed if self._pays(streamed, fast) else fast

    def _pays(self, program: Program, faster: Program) -> bool:
        return self._cost(program).pays(self._cost(faster), self.goal)

    def _is_surely_worth(self, small: Program, fast: Plan) -> bool:
        """Return whether a program is worth its work, so that a faster one need not be compiled."""
        cost, expected = self._cost(small), self._estimate(small.plan)
        # Placement made so much of what planning expected, and will of another plan, nearly.
        ram = self._estimate(fast).ram * cost.ram // max(expected.ram, 1)
        ram = cost.ram + int((ram - cost.ram) * _SURE_RAM)
        flash = cost.flash - int(_LESS_CODE * small.figures.flash.code)
        known = _Cost(plan_work(fast), ram, flash)
        if cost.times(known) <= _SLIGHT:
            return True
        # Where RAM is all that counts, a byte that placement finds decides.
        return self.goal is Optimize.BALANCED and cost.pays(known, self.goal)

    def _code_price(self) -> int:
        """Return what a byte of code may cost: what 1 % of all bytes is worth in a network."""
        fast = self.plan_of(self._unpriced(Optimize.SPEED))
        cost, images = self._estimate(fast), max(n.source.images for n in fast.graph.nodes)
        bearable = _OF_ALL * cost.work // images // (cost.ram + cost.flash)
        return min(PRICE_PER_BYTE[self.goal], bearable)

    def _rivals(self) -> tuple[PlanConstraints, ...]:
        """Return what is faster and takes more memory."""
        fast = self._unpriced(Optimize.SPEED)
        if self.goal is Optimize.RAM:
            return fast, replace(self.asked(), goal=Optimize.BALANCED)
        return (fast,)

    def _cost(self, program: Program) -> _Cost:
        """Return what a program takes, its code by estimate."""
        ram = program.placement.workspace_size + self._fixed_bytes(program.plan)
        return _Cost(plan_work(program.plan), ram, program.figures.flash.bytes)

    def _estimate(self, plan: Plan) -> _Cost:
        """Return what the program of a plan will take, as far as planning knows."""
        kernels: dict[str, int] = {}
        flash = _PROGRAM_CODE
        for op in plan.operators:
            candidate = op.candidate
            kernels[candidate.kernel] = max(candidate.code_bytes, kernels.get(candidate.kernel, 0))
            flash += candidate.weight_bytes + _LAYER_CODE * (not candidate.is_view)
        flash += sum(kernels.values())
        return _Cost(plan_work(plan), plan.bytes + self._fixed_bytes(plan), flash)

    def _fixed_bytes(self, plan: Plan) -> int:
        return bytes_apart(plan.graph, workspace_io=self.workspace_io)

    def _declined(self, chosen: Program) -> DeclinedTrade | None:
        """Return what the goal would have saved at any price, if that is worth telling."""
        is_ram = self.goal is Optimize.RAM
        at_any_price = self._unpriced(Optimize.RAM_LEAST if is_ram else self.goal)
        small, taken = self._estimate(self.plan_of(at_any_price)), self._estimate(chosen.plan)
        ram, flash, times = taken.ram - small.ram, taken.flash - small.flash, small.times(taken)
        if times < _NOTABLE or (ram if is_ram else ram + flash) <= 0:
            return None
        goal = Optimize.RAM_LEAST if ram >= flash or is_ram else Optimize.FLASH
        return DeclinedTrade(ram, flash, times, self.measure, goal)
