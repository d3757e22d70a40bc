"""Reasons for each layer's kernel, in words: for metadata and `profile --explain`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from microtir.config.enums import Measure, Optimize
from microtir.graph.ir import Node, Tensor
from microtir.instruction_sets.costs import WorkPercent
from microtir.operators import record_of
from microtir.plan.decisions import Alternative, Decision
from microtir.plan.ir import Candidate, Group, LayoutKind, Plan, PlannedOperator, Refusal
from microtir.plan.ranking import (
    MOST_TIMES,
    PRICE_BEYOND,
    PRICE_PER_BYTE,
    PRICE_PER_CONSTANT,
    constant_bytes,
    price_of,
    price_of_code,
)
from microtir.plan.work import work

RefusalsOf = Callable[[Node], Sequence[tuple[str, Refusal]]]

_MERITS: Mapping[Optimize, str] = MappingProxyType(
    {
        Optimize.SPEED: "the fastest of {}",
        **dict.fromkeys(PRICE_PER_BYTE, "the best of {} at {} {} for a byte of code"),
        Optimize.FLASH: "the smallest of {} in code and weights",
    }
)


def decisions(
    plan: Plan, goal: Optimize, refusals_of: RefusalsOf, percent: WorkPercent
) -> Mapping[Node, Decision]:
    """Return what was decided about every operator of a plan.

    Args:
        plan: as `plan` made it for this goal.
        goal: what candidates were ranked by.
        refusals_of: gives the kernels that cannot compute a node.
        percent: of the estimates of a plan that the CPU takes: work is told as it takes it.
    """
    ranking = plan.constraints.ranking_of(goal)
    return MappingProxyType(
        {
            operator.node: _Choice(operator, group, plan, ranking, percent).decision(
                number, refusals_of(operator.node)
            )
            for number, group in enumerate(plan.groups)
            for operator in group.operators
        }
    )


@dataclass(frozen=True, slots=True)
class _Choice:
    """The kernel of one operator, among those that were offered."""

    operator: PlannedOperator
    group: Group
    plan: Plan
    goal: Optimize
    percent: WorkPercent

    @property
    def chosen(self) -> Candidate:
        return self.operator.candidate

    @property
    def by_rows(self) -> bool:
        return self.group.nest is not None

    @property
    def _speed_counts(self) -> bool:
        return self.goal is Optimize.SPEED

    @property
    def rows_per_call(self) -> int:
        return self.group.nest.rows_per_call if self.group.nest is not None else 0

    def decision(self, number: int, refused: Sequence[tuple[str, Refusal]]) -> Decision:
        """Return what was decided, the operator's group having this number."""
        node, chosen = self.operator.node, self.chosen
        offered = self.plan.offered.get(node, ())
        if len(self.group.operators) == 1:
            offered = tuple(c.running_alone(self.rows_per_call) for c in offered)
        others = [c for c in offered if c.name != chosen.name]
        return Decision(
            layer=node.name,
            index=node.source.index,
            kernel=chosen.kernel,
            reason="; ".join(
                filter(None, (self._merit(others), self._lie(), self._run(), self._again()))
            ),
            instructions=self._told_work(chosen, Measure.INSTRUCTIONS),
            cycles=self._told_work(chosen, Measure.CYCLES),
            scratch_bytes=chosen.scratch_bytes,
            code_bytes=chosen.code_bytes,
            is_measured=chosen.is_measured,
            group=number,
            by_rows=self.by_rows,
            alternatives=(
                *(self._alternative(c) for c in others),
                *(Alternative(kernel, reason.value) for kernel, reason in refused),
            ),
            sums=node.sums,
        )

    def _work(self, c: Candidate, measure: Measure | None = None) -> int:
        """Return what a candidate costs; by rows if the layer runs so and the candidate can."""
        rows = self.rows_per_call if c.takes_row_range or c.accumulates else 0
        by = measure or self.plan.constraints.measure
        return work(self.operator.node, c, by, rows_per_call=rows)

    def _told_work(self, c: Candidate, measure: Measure | None = None) -> int:
        """Return what a candidate costs on the CPU: the same, if it was measured there."""
        worked = round(self._work(c, measure) * c.cost().told / 100)
        return worked if c.is_measured else self._told(worked, measure)

    def _told(self, count: int, measure: Measure | None = None) -> int:
        is_cycles = (measure or self.plan.constraints.measure) is Measure.CYCLES
        return count * (self.percent.cycles if is_cycles else self.percent.instructions) // 100

    def _alternative(self, c: Candidate) -> Alternative:
        reason = self._mismatch(c)
        if reason is None and self._is_better(c):
            reason = "the plan within the budgets was made for another goal"
            if self.plan.size is not None:
                reason = (
                    f"its {c.scratch_bytes:,} bytes of scratch do not fit into the "
                    f"{self.plan.size:,} bytes of the plan's limit"
                )
        return Alternative(
            c.name,
            reason or self._difference(c),
            self._told_work(c, Measure.INSTRUCTIONS),
            self._told_work(c, Measure.CYCLES),
            c.scratch_bytes,
            c.code_bytes,
        )

    def _mismatch(self, c: Candidate) -> str | None:
        """Return why a candidate cannot make the calls that the plan wants, if it cannot."""
        if (self.operator.node, c.kernel) in self.plan.constraints.refused:
            return "exceeds the stack budget"
        if c.input_layouts != self.chosen.input_layouts:
            return f"its input is {self._kind(self.operator.inputs[0])}"
        if c.output_layouts != self.chosen.output_layouts:
            return f"its output is {self._kind(self.operator.node.output)}"
        if c.accumulates and not self.chosen.accumulates:
            return "only ends a stream of rows"
        if self.by_rows and not c.takes_row_range:
            return "computes its output in one call, and the layer runs row by row"
        if self.by_rows and c.windows != self.chosen.windows:
            return "reads other rows of its input"
        return None

    def _is_better(self, c: Candidate) -> bool:
        """Return whether a candidate would have been chosen if there were room for its scratch."""
        price = price_of(self.plan.constraints, self.operator.node, self.goal)
        images = self.operator.node.source.images
        mine, other = self._work(self.chosen) // images, self._work(c) // images
        return price(other, c) < price(mine, self.chosen)

    def _difference(self, c: Candidate) -> str:
        """Return what a candidate costs more than the chosen one, and what less."""
        size = 0
        limited = self.goal is Optimize.FLASH or self.plan.constraints.byte_price > 0
        if not self._speed_counts or limited:
            size = c.flash_bytes - self.chosen.flash_bytes
        unit = str(self.plan.constraints.measure).removesuffix("s")
        amounts = (self._told_work(c) - self._told_work(self.chosen), unit), (size, "byte")
        more = [_amount(n, unit) for n, unit in amounts if n > 0]
        less = [_amount(n, unit) for n, unit in amounts if n < 0]
        if not more:
            return "no better"
        return f"{' and '.join(more)} more" + (f", {less[0]} less" if less else "")

    def _merit(self, others: Sequence[Candidate]) -> str:
        """Return why the chosen candidate was chosen."""
        if record_of(self.operator.node.op).function is not None:
            return "computed by a custom function"
        rivals = [c for c in others if self._mismatch(c) is None]
        if not rivals:
            so = " row by row" if others and self.by_rows else ""
            return f"the only one that can compute it{so}"
        room = ""
        if any(map(self._is_better, rivals)):
            rivals = [c for c in rivals if not self._is_better(c)]
            room = " in a plan within the budgets"
            if self.plan.size is not None:
                room = f" whose scratch fits into {self.plan.size:,} bytes"
        flash, unit = "", str(self.plan.constraints.measure)
        sources = ["cycles"] * (
            self._speed_counts and self.plan.constraints.measure is Measure.CYCLES
        )
        sources += ["tuning records"] * self.chosen.is_measured
        by = f", by {' of '.join(sources)}" if sources else ""
        if self.plan.constraints.byte_price and self.goal is not Optimize.FLASH:
            price = self._told(self.plan.constraints.byte_price)
            flash = f", {price:,} {unit} a byte of flash"
        if (self.operator.node, self.chosen.kernel) in self.plan.constraints.raised:
            return f"fast, of {len(rivals) + 1}{room}: the budget of flash has room for it{by}"
        goal = Optimize.SPEED if self._speed_counts else self.goal
        price = price_of_code(self.plan.constraints, goal) if goal in PRICE_PER_BYTE else 0
        merit = _MERITS[goal].format(f"{len(rivals) + 1}{room}", self._told(price), unit)
        return merit + self._price_of_weights(goal, others) + flash + by

    def _price_of_weights(self, goal: Optimize, others: Sequence[Candidate]) -> str:
        """Return what weights beyond the node's own are charged, where a kernel has any."""
        own = constant_bytes(self.operator.node)
        if goal not in PRICE_PER_BYTE or all(c.weight_bytes <= own for c in (self.chosen, *others)):
            return ""
        charged = f"{self._told(PRICE_PER_CONSTANT)} for a byte of weights beyond the model's own"
        return f" and {charged}, {self._told(PRICE_BEYOND)} beyond {MOST_TIMES} times those"

    def _kind(self, tensor: Tensor) -> str:
        return self.plan.layouts[tensor].kind.value

    def _lie(self) -> str:
        """Return which of its tensors are planes, and for whom."""
        kinds = [
            f"{way} {kind.value}{whose}"
            for way, names, whose in (
                ("reads", self.chosen.input_layouts, " of its producer"),
                ("writes", self.chosen.output_layouts, " for its reader"),
            )
            for kind in names
            if kind is not LayoutKind.NHWC
        ]
        return " and ".join(kinds)

    def _run(self) -> str:
        """Return why the operators of the group run as they do."""
        others = len(self.group.operators) - 1
        if not self.by_rows:
            return ""
        how = "row by row" if self.rows_per_call == 1 else "two rows at a time"
        if not others:
            return f"{how}, so that its output may overwrite its input"
        layers = "layer" if others == 1 else "layers"
        return f"{how} with {others} other {layers}, to stay within {self.plan.size:,} bytes"

    def _again(self) -> str:
        """Return what the operator does that another one does, too."""
        twice = self.operator.node.source.macs_recomputed
        if not twice:
            return ""
        return f"{twice:,} multiply-accumulates a second time, so that rings are as wide as a band"


def _amount(number: int, unit: str) -> str:
    return f"{abs(number):,} {unit}{'s' * (abs(number) != 1)}"
