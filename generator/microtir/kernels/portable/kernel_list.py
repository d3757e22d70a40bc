"""The kernels that any target has: formulas as naive loop nests, copies, operators of the user.

What follows from the record of an operator is not listed: its formula is a kernel, and so is the
table of a function that has one.
"""

from __future__ import annotations

from dataclasses import replace

from microtir import te
from microtir.graph.ir import Node
from microtir.graph.operator import Operator
from microtir.kernels.common.kernel import Kernel, work
from microtir.kernels.common.layer import Layer
from microtir.kernels.portable import accumulate, custom, lookup
from microtir.operators import OPERATORS, OperatorRecord
from microtir.operators.common.formula import Formula
from microtir.operators.common.rows import RowWindow
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.operators.definition import Trait
from microtir.operators.movement.definition import Reshape
from microtir.operators.pooling.definition import AveragePool2D
from microtir.operators.reduction.definition import Mean
from microtir.operators.streaming.definition import JoinColumns
from microtir.operators.tables import has_table
from microtir.plan.ir import Calls, Refusal
from microtir.tir.ir import PrimFunc


class Direct(Kernel):
    """The formula of an operator as a naive loop nest.

    Args:
        op: the class of the operator's attributes.
        formula: of its outputs.
    """

    name = "direct"
    has_wide_sums = True

    def __init__(self, op: type[Operator], formula: Formula) -> None:
        self.operators = (op,)
        self._formula = formula

    def window(self, node: Node) -> RowWindow | None:
        return self._formula.rows(node)

    def instructions(self, node: Node, _calls: Calls) -> int:
        cost = self._formula.cost
        return cost * work(node) if isinstance(cost, int) else cost(node)

    def emit(self, layer: Layer, name: str) -> PrimFunc:
        self._formula.compute(layer)
        schedule = te.create_schedule(layer.outputs)
        function = schedule.primfunc(args=layer.parameters(), name=name)
        return replace(function, row_range=layer.row_range)


class LookUp(Direct):
    """A table of 256 entries."""

    name = "table"
    has_wide_sums = False

    def __init__(self, op: type[Operator]) -> None:
        super().__init__(op, Formula(lookup.table, 4))

    def reject(self, node: Node) -> Refusal | None:
        return None if _is_table(node) else Refusal.NO_TABLE


class Untabled(Direct):
    """A formula that is used where no table holds the function."""

    def reject(self, node: Node) -> Refusal | None:
        return Refusal.TABLE if _is_table(node) else None


def _is_table(node: Node) -> bool:
    return has_table(node.op, node.inputs[0].type, node.output.type)


class Copy(Direct):
    """Elements move, nothing is computed."""

    name = "copy"
    has_wide_sums = False


class View(Kernel):
    """No code: the output is the memory of the input."""

    name = "view"
    operators = (Reshape, JoinColumns)
    is_view = True

    def window(self, _node: Node) -> RowWindow | None:
        return None

    def instructions(self, _node: Node, _calls: Calls) -> int:
        return 0

    def emit(self, layer: Layer, name: str) -> PrimFunc:
        raise AssertionError(f"{name} of {layer.node.name} is a view, which has no function")


class Accumulate(Kernel):
    """Input rows go into accumulators; a second function finishes."""

    name = "accumulate"
    operators = (Conv2D, DepthwiseConv2D, AveragePool2D, Mean)

    def reject(self, node: Node) -> Refusal | None:
        return accumulate.refusal(node)

    def instructions(self, node: Node, _calls: Calls) -> int:
        return accumulate.cost(node)

    def accumulator_bytes(self, node: Node) -> int:
        return accumulate.accumulator_bytes(node)

    def emit(self, layer: Layer, name: str) -> PrimFunc:
        return accumulate.emit(layer, name)

    def finish(self, layer: Layer, name: str) -> PrimFunc:
        return accumulate.emit_finish(layer, name)


class UserFunction(Kernel):
    """An operator of the user, computed by a function of the user; its record says so."""

    name = "custom"
    operators = ()

    def window(self, _node: Node) -> RowWindow | None:
        return None

    def instructions(self, node: Node, _calls: Calls) -> int:
        return 20 * work(node)

    def scratch_bytes(self, node: Node, _calls: Calls) -> int:
        return custom.scratch_bytes(node)

    def emit(self, layer: Layer, name: str) -> PrimFunc:
        return custom.emit(layer, name)


USER_FUNCTION = UserFunction()


def kernels_of_record(record: OperatorRecord) -> tuple[Kernel, ...]:
    """Return the kernels that follow from what an operator is, of the package or of the user."""
    if record.function is not None:
        return (USER_FUNCTION,)
    has_tables = record.has(Trait.TABULATED)
    tables = (LookUp(record.op),) if has_tables else ()
    if record.formula is None:
        return tables
    if record.has(Trait.MOVES_DATA):
        return (*tables, Copy(record.op, record.formula))
    return (*tables, (Untabled if has_tables else Direct)(record.op, record.formula))


DERIVED: tuple[Kernel, ...] = tuple(
    kernel for record in OPERATORS for kernel in kernels_of_record(record)
)
KERNELS: tuple[Kernel, ...] = (*DERIVED, View(), Accumulate(), USER_FUNCTION)
