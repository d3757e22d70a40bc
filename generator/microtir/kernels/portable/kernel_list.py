"""The kernels that any target has: formulas as naive loop nests, copies, operators of the user.

What follows from the record of an operator is not listed: its formula is a kernel, and so is the
table of a function that has one.
"""

from __future__ import annotations

from dataclasses import replace

from microtir import te
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.graph.operator import Operator
from microtir.kernels.common.kernel import Kernel
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.moves import Moves
from microtir.kernels.common.nest import Nest
from microtir.kernels.common.packed_weights import fits_four_bits, saved_bytes
from microtir.kernels.common.packing import bytes_of
from microtir.kernels.portable import (
    accumulate,
    bilinear,
    branches,
    custom,
    interleave,
    lookup,
    recurrent,
)
from microtir.operators import OPERATORS, OperatorRecord, UserOperator
from microtir.operators.arithmetic import tabled_formula
from microtir.operators.arithmetic.definition import Add, SquaredDifference, Sub
from microtir.operators.common.formula import Formula
from microtir.operators.common.rows import RowWindow
from microtir.operators.control import definition as control
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.operators.definition import Trait
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.movement.definition import Relabel, Reshape
from microtir.operators.state.definition import JoinRows, TakeRows
from microtir.operators.streaming.definition import JoinColumns
from microtir.operators.tables import has_table
from microtir.plan.ir import Calls, Refusal
from microtir.te.program import constants_of
from microtir.tir.ir import PrimFunc


class Direct(Nest):
    """The formula of an operator as a naive loop nest.

    Args:
        op: the class of the operator's attributes.
        formula: of its outputs.
        in_place: whether it reads each element before its output may overwrite it.
    """

    name = "direct"
    has_wide_sums = True
    has_wide_weights = True
    rescales_in_float = True

    def __init__(self, op: type[Operator], formula: Formula, *, in_place: bool = False) -> None:
        self.operators = (op,)
        self.in_place = in_place
        self._formula = formula

    def window(self, node: Node) -> RowWindow | None:
        return self._formula.rows(node)

    def packed_bytes(self, node: Node) -> int:
        return bytes_of(*constants_of(self.computed(Layer.alone(node))))

    def computed(self, layer: Layer) -> tuple[te.Tensor, ...]:
        self._formula.compute(layer)
        return layer.outputs

    def emit(self, layer: Layer, name: str) -> PrimFunc:
        schedule = te.create_schedule(self.computed(layer))
        function = schedule.primfunc(args=layer.parameters(), name=name)
        return replace(function, row_range=layer.row_range)


class Nibbles(Direct):
    """The formula of an operator on weights of four bits: less flash, more instructions."""

    name = "direct_s4"
    has_wide_weights = False

    def reject(self, node: Node) -> Refusal | None:
        weights = node.inputs[1]
        if node.inputs[0].dtype.is_float or weights.dtype is not DType.INT8:
            return Refusal.TYPES
        if weights.data is None:
            return Refusal.WEIGHTS
        return None if fits_four_bits(weights.data) else Refusal.FORM

    def code_bytes(self, _node: Node) -> int:
        return _UNPACKING_CODE

    def weight_bytes(self, node: Node) -> int:
        return super().weight_bytes(node) - saved_bytes(node.inputs[1].type.elements)

    def computed(self, layer: Layer) -> tuple[te.Tensor, ...]:
        layer.packs_weights = True
        return super().computed(layer)


_UNPACKING_CODE = 24
"""Bytes of code beside those of the formula."""


class LookUp(Direct):
    """A table of 256 entries."""

    name = "table"
    has_wide_sums = False

    def __init__(self, op: type[Operator]) -> None:
        super().__init__(op, Formula(lookup.table), in_place=True)

    def reject(self, node: Node) -> Refusal | None:
        return None if _is_table(node) else Refusal.NO_TABLE


class WithTable(Direct):
    """A formula with a table of one operand, widened and rescaled: 1 KB of flash."""

    name = "direct_s8_table"
    has_wide_sums = False
    rescales_in_float = False

    def __init__(self, op: type[Operator]) -> None:
        super().__init__(op, tabled_formula.FORMULA)

    def reject(self, node: Node) -> Refusal | None:
        return None if tabled_formula.table_of(node) is not None else Refusal.FORM

    def weight_bytes(self, node: Node) -> int:
        return super().weight_bytes(node) + 256 * DType.INT32.bytes


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
    """The kernel without code: its output is memory of the inputs, or a part of it."""

    name = "view"
    operators = (
        Reshape,
        Relabel,
        JoinColumns,
        TakeRows,
        JoinRows,
        control.Repeat,
        control.Guard,
        control.EndRepeat,
        control.Then,
        control.Otherwise,
        control.EndIf,
    )
    is_view = True

    def instructions(self, _node: Node, _calls: Calls) -> int:
        return 0

    def emit(self, layer: Layer, name: str) -> PrimFunc:
        raise AssertionError(f"{name} of {layer.node.name} is a view, which has no function")


USER_FUNCTION = custom.WholeFunction("custom")


def kernels_of_record(record: OperatorRecord) -> tuple[Kernel, ...]:
    """Return the kernels that follow from what an operator is, of the package or of the user."""
    if record.function is not None:
        is_own = issubclass(record.op, UserOperator)
        written = custom.WholeFunction("written", record.op, in_place=record.is_in_place)
        return (USER_FUNCTION if is_own else written,)
    has_tables = record.has(Trait.TABULATED)
    tables = (LookUp(record.op),) if has_tables else ()
    if record.formula is None:
        return tables
    if record.has(Trait.MOVES_DATA):
        return (*tables, Copy(record.op, record.formula, in_place=record.is_in_place))
    direct = Untabled if has_tables else Direct
    return (*tables, direct(record.op, record.formula, in_place=record.is_in_place))


DERIVED: tuple[Kernel, ...] = tuple(
    kernel for record in OPERATORS for kernel in kernels_of_record(record)
)
_NIBBLES = tuple(
    Nibbles(record.op, record.formula)
    for record in OPERATORS
    if record.op in (Conv2D, DepthwiseConv2D, FullyConnected)
    if isinstance(record.formula, Formula)
)
KERNELS: tuple[Kernel, ...] = (
    *DERIVED,
    *_NIBBLES,
    *map(WithTable, (Add, Sub, SquaredDifference)),
    View(),
    Moves(),
    bilinear.Bilinear(),
    interleave.Interleave(),
    accumulate.Accumulate(),
    recurrent.Steps(),
    branches.Branches(),
    USER_FUNCTION,
)
