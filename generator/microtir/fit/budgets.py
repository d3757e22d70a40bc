"""Searches for the fastest program that keeps to limits on RAM, flash and stack.

What a program takes is known once it is there, so whole programs are compiled and compared.  RAM is
a limit that planning knows, but for the gaps that placement leaves: where these do
not fit, planning gets as much less.  A byte of flash gets a price, in instructions, as low as the
budget allows, and kernels that go too deep are refused.  What is left of the flash then is spent
layer by layer.

How much code there is, is an estimate.  Where a compiler can be asked, it is: what it makes of the
program that was found, more or less than estimated, is expected of the others, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil

from microtir.config import CompilationConfig
from microtir.config.enums import Optimize
from microtir.fit.flash_slack import FlashSlack
from microtir.fit.trades import Trades
from microtir.graph.ir import Node
from microtir.module.limits import workspace_excess
from microtir.module.program import Program
from microtir.plan.ir import ANY_SPEED, Plan, PlanConstraints
from microtir.plan.work import plan_work

_PRECISION = 32  # a measured ratio is good enough within so many parts of it
_COMPILATIONS = 4  # programs that a compiler is asked about at most
_RAISES = 6  # programs that are made at most to spend what is left of the flash, per start
_CLOSE = 100  # such a part of the budget is left unspent
_PLACED = 1.5  # times the bytes that placement takes are what planning expects at most, or nearly
_SURELY = 4  # no compiler is asked where so many times the estimated code would fit

Compile = Callable[[PlanConstraints], Program]
"""Compiles the program that keeps to constraints as far as planning can tell."""

PlanOf = Callable[[PlanConstraints], Plan]
"""Gives the plan of the program that would be compiled: what it costs, before it is there."""

CodeOf = Callable[[Program], "int | None"]
"""Gives the bytes of code that a compiler makes of a program; None if there is none to ask."""


def search(
    compile_once: Compile,
    plan_of: PlanOf,
    config: CompilationConfig,
    code_of: CodeOf,
    state: int = 0,
) -> Program:
    """Return the fastest program that keeps to the limits of a configuration.

    Where none does, it is the one that exceeds them by the fewest bytes.

    Args:
        compile_once: compiles a program.
        plan_of: plans it; what is not worth its work is not compiled.
        config: with the limits.
        code_of: asks a compiler.
        state: bytes that the model keeps between runs, for which no plan has room.
    """
    return _Search(compile_once, plan_of, config, code_of, state).best()


@dataclass(frozen=True, slots=True, eq=False)
class Use:
    """The bytes that a program takes, by kind.

    `ram` is what it takes beyond the limits, less than 0 where there is room; `arrays` and `code`
    are of flash.  `stack` holds for each node the deepest chain of calls from the entry through
    its functions.
    """

    plan: Plan
    ram: int
    arrays: int
    code: int
    stack: Mapping[Node, int]

    @staticmethod
    def of(program: Program, config: CompilationConfig) -> Use:
        """Return what a program takes, its code by estimate."""
        flash, depth = program.figures.flash, program.figures.layer_stacks
        stack = {
            op.node: max(depth[function.name] for function in functions)
            for op, functions in program.functions_of_operators().items()
        }
        ram = workspace_excess(config, program.placement)
        return Use(program.plan, ram, flash.bytes - flash.code, flash.code, stack)


@dataclass(frozen=True, slots=True, eq=False)
class _Trial:
    """A program and what it takes."""

    program: Program
    use: Use


@dataclass(frozen=True, slots=True)
class _Search:
    """A search, by the names of the arguments of `search`."""

    compile_once: Compile
    plan_of: PlanOf
    config: CompilationConfig
    code_of: CodeOf
    state: int = 0
    _known: dict[PlanConstraints, _Trial] = field(default_factory=dict)

    def best(self) -> Program:
        """Return the program of the goal where it keeps to the limits, else the fastest that does.

        A limit that is far away changes nothing, but for the kernels that only one of flash offers.
        """
        if not self._seeks_speed and self._may_be_free():
            free = self._trades(self.config.optimize).program()
            use = Use.of(free, self.config)
            code = self.code_of(free) if self._is_uncertain(use) else None
            if self._excess(_Trial(free, use if code is None else replace(use, code=code))) == 0:
                return free
        return self._fastest_within_limits()

    def _may_be_free(self) -> bool:
        """Return whether the program of the goal may keep to the limit on RAM by placement."""
        limit = self.config.workspace_limit(self.state)
        plan = self.plan_of(self._trades(self.config.optimize).asked())
        return limit is None or plan.bytes <= _PLACED * limit

    def _fastest_within_limits(self) -> Program:
        scale = Fraction(1)
        tried: list[_Trial] = []
        for left in reversed(range(_COMPILATIONS)):
            # Where nothing has fitted, the last try is the smallest program that there is.
            is_last = left == 0 and tried and min(map(self._excess, tried)) > 0
            trial = self._searched(scale, ANY_SPEED)[-1] if is_last else self._fastest(scale)
            code = self.code_of(trial.program) if self._is_uncertain(trial.use) else None
            if code is None:
                tried.append(trial)
                break
            tried.append(_Trial(trial.program, replace(trial.use, code=code)))
            ratio = Fraction(code, trial.use.code)
            # Of what fits, only programs with less code than was expected may be faster.
            is_best = ratio >= scale or trial.use.plan.constraints.byte_price == 0
            if is_best and self._excess(tried[-1]) == 0:
                break
            # What exceeds the budget is excluded by its own ratio, and another program is found.
            if abs(ratio - scale) * _PRECISION < scale and self._excess(tried[-1]) == 0:
                break
            scale = ratio
        return min(tried, key=self._rank).program

    @property
    def _flash(self) -> int | None:
        return self.config.budget.flash

    @property
    def _stack(self) -> int | None:
        return self.config.budget.stack

    @property
    def _seeks_speed(self) -> bool:
        """Return whether a program of another goal is taken wherever it is faster."""
        return self.config.optimize is Optimize.SPEED

    def _rank(self, trial: _Trial) -> tuple[int, int, int]:
        plan = trial.use.plan
        price = 0 if self._seeks_speed else plan.constraints.byte_price
        return self._excess(trial), price, plan_work(plan)

    def _is_uncertain(self, use: Use) -> bool:
        """Return whether code alone decides if a program keeps to the limits."""
        if self._flash is None or use.code <= 0:
            return False
        room = self._flash - use.arrays
        return self._others(use) == 0 and 0 <= room < _SURELY * use.code

    def _fastest(self, scale: Fraction) -> _Trial:
        """Return the best program by estimates, which are `scale` times as much as they say.

        What planning expects of overlaps and shared bodies is less than what placement finds, so
        that a program of another goal may be faster and keep to the limits, too.
        """
        tried = self._searched(scale)
        best, is_enough = tried[-1], self._excess(tried[-1], scale) == 0
        if is_enough:
            best = self._spend_flash_slack(best, scale)
        if is_enough and not self._seeks_speed:
            return best
        rivals = {asked: plan_work(self.plan_of(asked)) for asked in self._unlimited()}
        most = plan_work(best.use.plan) if is_enough else None
        for asked in sorted(rivals, key=rivals.__getitem__):
            if most is None or rivals[asked] < most:
                tried.append(self._compiled(asked))
                if self._excess(tried[-1], scale) == 0:
                    return tried[-1]
        return best if is_enough else min(tried, key=lambda trial: self._excess(trial, scale))

    def _others(self, use: Use) -> int:
        """Return the bytes of RAM and of stack that a program takes too many."""
        deepest = max(use.stack.values(), default=0)
        return max(use.ram, 0) + max(deepest - (self._stack or deepest), 0)

    def _excess(self, trial: _Trial, scale: Fraction = Fraction(1)) -> int:
        """Return the bytes by which a program exceeds the limits, of all kinds together."""
        return self._others(trial.use) + max(self._flash_excess(trial.use, scale), 0)

    def _flash_excess(self, use: Use, scale: Fraction) -> int:
        return 0 if self._flash is None else use.arrays + ceil(use.code * scale) - self._flash

    def _searched(self, scale: Fraction, byte_price: int = 0) -> list[_Trial]:
        """Return what prices, from one on, and refusals lead to, one after another."""
        goal, ram = self._trades(self.config.optimize), self.config.workspace_limit(self.state)
        asked: PlanConstraints | None = replace(goal.asked(), ram=ram, byte_price=byte_price)
        tried = []
        while asked is not None:
            tried.append(self._within_limits(asked))
            use = tried[-1].use
            asked = self._shallower(use) or self._smaller(use, scale)
        return tried

    def _spend_flash_slack(self, best: _Trial, scale: Fraction) -> _Trial:
        """Return a program that fits with more of its layers fast, as long as flash is left.

        The smallest program of all is a place to start from, too: its layers share bodies.
        """
        price = best.use.plan.constraints.byte_price
        if price == 0:
            return best
        least = self._asked(best.use.plan, byte_price=ANY_SPEED)
        starts = [best] if price >= ANY_SPEED else [best, self._within_limits(least)]
        raised = [self._raised_from(s, scale) for s in starts if self._excess(s, scale) == 0]
        return min(raised, key=lambda trial: plan_work(trial.use.plan))

    def _raised_from(self, best: _Trial, scale: Fraction) -> _Trial:
        """Return a program with faster layers.

        What layers take is estimated, and the program has the last word.  If several steps were too
        much, the best of them is tried alone, and if that was too much, one knows by how much.
        """
        slack, is_one = FlashSlack(), False
        for _ in range(_RAISES):
            plan, room = best.use.plan, -self._flash_excess(best.use, scale)
            steps = slack.steps(plan, room)[: 1 if is_one else None]
            if not steps or room * _CLOSE < (self._flash or 0):
                break
            layers = frozenset[tuple[Node, str]]().union(*(step.layers for step in steps))
            other = self._within_limits(self._asked(plan, raised=plan.constraints.raised | layers))
            is_faster = plan_work(other.use.plan) < plan_work(plan)
            fits = is_faster and self._excess(other, scale) == 0
            if not fits and len(steps) == 1:
                slack.learn(plan, steps[0], room + self._flash_excess(other.use, scale))
            best, is_one = (other if fits else best), not fits and len(steps) > 1
        return best

    def _asked(
        self,
        plan: Plan,
        *,
        byte_price: int | None = None,
        kernel_bytes: int | None = None,
        raised: frozenset[tuple[Node, str]] | None = None,
        refused: frozenset[tuple[Node, str]] | None = None,
    ) -> PlanConstraints:
        """Return the constraints of a plan with something changed, and all RAM to spend again."""
        known = plan.constraints
        return replace(
            known,
            ram=self.config.workspace_limit(self.state),
            byte_price=known.byte_price if byte_price is None else byte_price,
            kernel_bytes=kernel_bytes,
            raised=known.raised if raised is None else raised,
            refused=known.refused if refused is None else refused,
        )

    def _within_limits(self, asked: PlanConstraints) -> _Trial:
        """Return the program whose workspace keeps to the limits if any does.

        Placement may leave gaps that planning does not count: where these do not fit any more, the
        next plan has to take as much less than this one.
        """
        trial, target = self._compiled(asked), asked.ram
        while target is not None and target > trial.use.plan.least and trial.use.ram > 0:
            target = min(target, trial.use.plan.bytes) - trial.use.ram
            trial = self._compiled(replace(trial.use.plan.constraints, ram=target))
        return trial

    def _compiled(self, asked: PlanConstraints) -> _Trial:
        if asked not in self._known:
            program = self.compile_once(asked)
            self._known[asked] = _Trial(program, Use.of(program, self.config))
        return self._known[asked]

    def _trades(self, goal: Optimize) -> Trades:
        """Return what a goal chooses from where nothing is limited."""
        config = self.config.with_(optimize=goal)
        return Trades.of(lambda asked: self._compiled(asked).program, self.plan_of, config)

    def _unlimited(self) -> Iterator[PlanConstraints]:
        """Yield the constraints that goals come to where nothing is limited."""
        for goal in Optimize:
            # Only the least flash of all has layers share bodies, whatever else is the goal.
            price = ANY_SPEED if goal is Optimize.FLASH else 0
            yield PlanConstraints(goal, self.config.measure, byte_price=price)
            yield from self._trades(goal).alternatives()

    def _shallower(self, use: Use) -> PlanConstraints | None:
        """Return constraints that refuse kernels that go too deep; None if none can be refused."""
        refused = use.plan.constraints.refused
        deep = {
            (op.node, op.candidate.kernel)
            for op in use.plan.operators
            if self._stack is not None and use.stack.get(op.node, 0) > self._stack
        }
        taken = refused | deep
        # A node keeps the last of its kernels, however deep.
        left = frozenset(
            (node, kernel)
            for node, kernel in deep
            if any((node, other) not in taken for other in _kernels(use.plan, node))
        )
        return self._asked(use.plan, refused=refused | left) if left else None

    def _smaller(self, use: Use, scale: Fraction) -> PlanConstraints | None:
        """Return constraints by which a plan takes less flash; None if it need not or can not.

        A plan counts the bytes of kernels one by one.  What they take together, shared arrays once
        and with the code around them, is as much more or less for the next plan, or nearly so.
        """
        excess = self._flash_excess(use, scale)
        if excess <= 0 or use.plan.constraints.byte_price >= ANY_SPEED:
            return None
        return self._asked(use.plan, kernel_bytes=use.plan.kernel_bytes - excess)


def _kernels(plan: Plan, node: Node) -> frozenset[str]:
    """Return the kernels that a node can have whatever its neighbours have."""
    legal = (c for c in plan.offered.get(node, ()) if c.is_plain and not c.accumulates)
    return frozenset(c.kernel for c in legal if not c.is_view)
