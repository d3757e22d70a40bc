"""Variables of a TFLite model: what each holds at every point of the program.

The format has two kinds: resources, which operators name, read and assign, and variable tensors,
which an operator reads and writes at once.  Both become values here: the one that a run begins
with, the one that each write leaves, and the last, which is the state after the run.  A loop hands
the resources that its turns assign from turn to turn, and a branch gives those that it assigns.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from microtir.errors import ModelFileError, UnsupportedModelError
from microtir.frontend.tflite_file import OPTIONAL, FileGraph, FileOperator
from microtir.frontend.tflite_options import read_options
from microtir.frontend.tflite_tensors import Tensors
from microtir.graph.ir import Array, Tensor, TensorType
from microtir.graph.names import brief, short_name
from microtir.operators.common.quantization import quantization_text
from microtir.operators.common.tflite_operands import Memory
from microtir.operators.common.tflite_schema import BuiltinOperator, Options


@dataclass(frozen=True, slots=True)
class VarHandleOptions(Options):
    container: str = ""
    shared_name: str = ""


@dataclass(frozen=True, slots=True)
class CallOnceOptions(Options):
    init_subgraph_index: int = 0


VARIABLE_OPTIONS: Mapping[BuiltinOperator, type[Options]] = MappingProxyType(
    {
        BuiltinOperator.VAR_HANDLE: VarHandleOptions,
        BuiltinOperator.READ_VARIABLE: Options,
        BuiltinOperator.ASSIGN_VARIABLE: Options,
        BuiltinOperator.CALL_ONCE: CallOnceOptions,
    }
)
"""Operators of resources: they become states of the graph, and no nodes."""

Resource: TypeAlias = "tuple[str, str]"
"""Container and name of a resource."""

NewTensor: TypeAlias = Callable[[str, TensorType], Tensor]
"""Makes a tensor with a name like this of its own."""

Relabelled: TypeAlias = "tuple[Tensor, Tensor] | None"
"""A tensor, and the one that its integers are in another scale; None if none changes scales."""

Initial: TypeAlias = Callable[[int], Mapping[Resource, Array]]
"""Runs a subgraph by its number: the values that it leaves in resources."""


@dataclass(slots=True)
class Cell:
    """A variable: what a run begins with, and what it holds so far."""

    before: Tensor
    current: Tensor
    initial: Array
    where: str


class Scope:
    """The values of variables at one place of the program: in the model, in a loop, in a branch.

    Args:
        assigned: the resources that something assigns here.
        outer: where this loop or branch stands; None for the model.
        is_loop: whether a turn begins with what the one before has left, which is known when the
            turn was read; a branch begins with what the variables hold before it.
    """

    def __init__(
        self, assigned: Collection[Resource], outer: Scope | None = None, *, is_loop: bool = False
    ) -> None:
        self.assigned = assigned
        self.outer = outer
        self.cells: list[Cell] = []
        self.given: dict[Resource, Array] = {}
        self.resources: dict[Resource, Cell] = {}
        self._is_loop = is_loop

    def is_stated(self, resource: Resource) -> bool:
        """Return whether CALL_ONCE gave a resource its first value."""
        return resource in self.given if self.outer is None else self.outer.is_stated(resource)

    def cell(self, resource: Resource, type_: TensorType, where: str, new: NewTensor) -> Cell:
        """Return a resource; one that nothing assigns is a constant.

        Args:
            resource: the variable.
            type_: what is read or written here.
            where: which operator asks.
            new: makes a tensor.
        """
        if resource in self.resources:
            return self.resources[resource]
        if self.outer is None:
            return self._first(resource, type_, where, new)
        before = self.outer.cell(resource, type_, where, new)
        if resource not in self.assigned:
            return before
        held = before.current
        if self._is_loop:
            held = new(f"{before.before.name}_turn", before.before.type)
        self.resources[resource] = Cell(held, held, before.initial, before.where)
        return self.resources[resource]

    def _first(self, resource: Resource, type_: TensorType, where: str, new: NewTensor) -> Cell:
        initial = self._initial_value(resource, type_, where)
        before = new(short_name(resource[1]) or "variable", type_)
        if resource not in self.assigned:
            before = replace(before, data=initial)
        self.resources[resource] = Cell(before, before, initial, where)
        self.cells.append(self.resources[resource])
        return self.resources[resource]

    def _initial_value(self, resource: Resource, type_: TensorType, where: str) -> Array:
        """Return what CALL_ONCE gave it; else what tflite-micro fills variables with."""
        stated = self.given.get(resource)
        if stated is None:
            return _filled(type_)
        if stated.shape != type_.shape or stated.dtype != type_.dtype.value:
            raise ModelFileError(
                f"the variable '{brief(resource[1])}' is {type_.dtype.value} {type_.shape} here",
                where=where,
                legal=f"{stated.dtype} {stated.shape}, as where the variable is initialised",
                fix="export the model again",
            )
        return stated


class Variables:
    """The variables of one subgraph.

    Args:
        graph: of the file.
        tensors: of the subgraph.
        initial: runs a subgraph that CALL_ONCE names.
        scope: where the subgraph is run.
    """

    def __init__(self, graph: FileGraph, tensors: Tensors, initial: Initial, scope: Scope) -> None:
        self._graph = graph
        self._tensors = tensors
        self._initial = initial
        self._scope = scope
        self._handles: dict[int, Resource] = {}
        self._of_tensors: dict[int, Cell] = {}

    @property
    def scope(self) -> Scope:
        """Return where the subgraph is run."""
        return self._scope

    @property
    def cells(self) -> Sequence[Cell]:
        """Return all variables that a run may change, in the order of their first use."""
        return tuple(cell for cell in self._scope.cells if not cell.before.is_constant)

    @property
    def all_cells(self) -> Sequence[Cell]:
        """Return all variables so far, constant ones among them."""
        return self._scope.cells

    @property
    def resources(self) -> Mapping[Resource, Tensor]:
        return {resource: cell.current for resource, cell in self._scope.resources.items()}

    @property
    def handles(self) -> Mapping[int, Resource]:
        """Return the resources that tensors of the subgraph are handles of."""
        return self._handles

    def bind(self, index: int, resource: Resource) -> None:
        """Let a tensor be the handle of a resource, as the caller of the subgraph says."""
        self._handles[index] = resource

    def visit(self, operator: FileOperator, where: str) -> Relabelled:
        """Take the next operator of resources; references copy integers whatever their scales.

        Raises:
            ModelFileError: it has not the tensors that it needs, or they differ from others.
            UnsupportedModelError: it sets variables to what is not known at compile time.
        """
        self._check_arity(operator, where)
        match operator.code:
            case BuiltinOperator.VAR_HANDLE:
                self._handles[operator.outputs[0]] = resource_of(operator, where)
            case BuiltinOperator.READ_VARIABLE:
                return self._read(operator, where)
            case BuiltinOperator.ASSIGN_VARIABLE:
                return self._assign(operator, where)
            case _:
                self._call_once(operator, where)
        return None

    def read(self, index: int, where: str) -> Cell:
        stored = self._tensors.get(index)
        assert stored is not None, "tensors of the operator were read"
        if index not in self._of_tensors:
            cell = self._new(Cell(stored, stored, _zero(stored.type), where))
            self._of_tensors[index] = cell
        return self._of_tensors[index]

    def begin(self, index: int, value: Array, where: str) -> None:
        """Let a variable tensor begin with a value.

        Raises:
            UnsupportedModelError: an operator has used it before.
        """
        self.check_unused(index, where)
        stored = self._tensors.get(index)
        assert stored is not None, "tensors of the operator were read"
        self._of_tensors[index] = self._new(Cell(stored, stored, value, where))

    def check_unused(self, index: int, where: str) -> None:
        """Check that no operator has used a variable tensor that one gives its first value.

        Raises:
            UnsupportedModelError: one has.
        """
        if index in self._of_tensors:
            name = self._of_tensors[index].before.name
            raise UnsupportedModelError(
                f"it initialises {brief(name)!r} after other operators have used this variable",
                where=where,
                legal="variables that are initialised before all reads and writes",
                fix="export the model again",
            )

    def updated(self, index: int, where: str) -> Tensor:
        """Return a tensor for the new value of a variable tensor, which it holds from here on."""
        cell = self.read(index, where)
        stored = cell.before
        cell.current = self._tensors.new(f"{cell.before.name}_next", stored.type)
        self._tensors.replace(index, cell.current)
        return cell.current

    def written(self, index: int, where: str) -> Tensor:
        """Return what a variable tensor held before the operator that now writes it.

        Raises:
            UnsupportedModelError: another operator has used it before.
        """
        stored = self._tensors.get(index)
        assert stored is not None, "tensors of the operator were read"
        if index in self._of_tensors:
            raise UnsupportedModelError(
                f"it writes {brief(stored.name)!r} after other operators have used this tensor",
                where=where,
                legal="a variable tensor that one operator writes before all others read it",
                fix="export the model again",
            )
        before = self._tensors.new(f"{stored.name}_before", stored.type)
        cell = self._new(Cell(before, stored, _zero(stored.type), where))
        self._of_tensors[index] = cell
        return before

    def remembered(self, memory: Memory, name: str) -> tuple[Tensor, Tensor]:
        """Return old and new value of what the operator of this name remembers by itself."""
        before = self._tensors.new(f"{short_name(name)}_{memory.label}", memory.type)
        after = self._tensors.new(f"{before.name}_next", memory.type)
        self._new(Cell(before, after, memory.initial, name))
        return before, after

    def held(self, name: str, value: Tensor) -> Cell:
        """Return a variable that holds a value until the model computes it again."""
        before = self._tensors.new(name, value.type)
        return self._new(Cell(before, value, _zero(value.type), name))

    def _new(self, cell: Cell) -> Cell:
        if self._scope.outer is not None:
            raise UnsupportedModelError(
                f"{brief(cell.before.name)!r} is a variable tensor inside a loop or a branch",
                where=cell.where,
                legal="variable tensors outside of loops and branches; resource variables anywhere",
                fix="export the model again, with resource variables for its state",
            )
        self._scope.cells.append(cell)
        return cell

    def _check_arity(self, operator: FileOperator, where: str) -> None:
        inputs, outputs = _ARITY[BuiltinOperator(operator.code)]
        if (len(operator.inputs), len(operator.outputs)) != (inputs, outputs):
            raise ModelFileError(
                f"it has {len(operator.inputs)} inputs and {len(operator.outputs)} outputs",
                where=where,
                legal=f"{inputs} inputs and {outputs} outputs",
                fix="export the model again",
            )
        if OPTIONAL in operator.inputs:
            raise ModelFileError(
                "an input is missing", where=where, legal="a file that has all inputs",
                fix="export the model again",
            )  # fmt: skip

    def _resource_of(self, operator: FileOperator, where: str) -> Resource:
        resource = self._handles.get(operator.inputs[0])
        if resource is None:
            raise UnsupportedModelError(
                "at compile time it is not known which variable it uses",
                where=where,
                legal="a handle that a VAR_HANDLE creates and that nothing changes",
                fix="convert the model so that each handle always refers to the same variable",
            )
        return resource

    def _read(self, operator: FileOperator, where: str) -> Relabelled:
        resource = self._resource_of(operator, where)
        read = self._tensors.get(operator.outputs[0])
        if read is None:
            return None
        cell = self._cell(resource, read.type, where)
        self._check_type(cell, read.type, where)
        if cell.before.type != read.type:
            return cell.current, read
        self._tensors.replace(operator.outputs[0], cell.current)
        return None

    def _assign(self, operator: FileOperator, where: str) -> Relabelled:
        resource = self._resource_of(operator, where)
        value = self._tensors.get(operator.inputs[1])
        if value is None:
            return None
        cell = self._cell(resource, value.type, where)
        is_first = cell.current is cell.before and not self._scope.is_stated(resource)
        self._check_type(cell, value.type, where, fills=is_first)
        cell.current = value
        if cell.before.type == value.type:
            return None
        cell.current = self._tensors.new(f"{value.name}_held", cell.before.type)
        return value, cell.current

    def _cell(self, resource: Resource, type_: TensorType, where: str) -> Cell:
        return self._scope.cell(resource, type_, where, self._tensors.new)

    def _check_type(
        self, cell: Cell, type_: TensorType, where: str, *, fills: bool = False
    ) -> None:
        """Check the type of what is read or assigned; its scale may be another.

        tflite-micro fills a variable with the zero point of what is first assigned (`fills`).
        """
        held = cell.before.type
        is_same = (held.shape, held.dtype) == (type_.shape, type_.dtype)
        if not is_same or (fills and (_filled(held) != _filled(type_)).any()):
            raise UnsupportedModelError(
                f"the variable {brief(cell.before.name)!r} has the type {_title(type_)} here",
                where=where,
                legal=f"{_title(cell.before.type)}, as in {cell.where}",
                fix="convert the model so that all reads and writes of a variable agree",
            )

    def _call_once(self, operator: FileOperator, where: str) -> None:
        options = read_options(operator, CallOnceOptions, where)
        if self._scope.cells:
            raise UnsupportedModelError(
                "it initialises variables after other variables were used",
                where=where,
                legal="a CALL_ONCE before all reads and writes of variables",
                fix="export the model again",
            )
        self._scope.given.update(self._initial(options.init_subgraph_index))


_ARITY: Mapping[BuiltinOperator, tuple[int, int]] = MappingProxyType(
    {
        BuiltinOperator.VAR_HANDLE: (0, 1),
        BuiltinOperator.READ_VARIABLE: (1, 1),
        BuiltinOperator.ASSIGN_VARIABLE: (2, 0),
        BuiltinOperator.CALL_ONCE: (0, 0),
    }
)


def resource_of(operator: FileOperator, where: str) -> Resource:
    """Return the resource that a VAR_HANDLE names."""
    options = read_options(operator, VarHandleOptions, where)
    return options.container, options.shared_name


def _title(type_: TensorType) -> str:
    quant = type_.quantization
    scale = "" if quant is None else f" of {quantization_text(quant)}"
    return f"{type_.dtype.value} {type_.shape}{scale}"


def _zero(type_: TensorType) -> Array:
    """Return what variable tensors hold at first: zero, of int8 the zero point."""
    quant = type_.quantization
    is_byte = type_.dtype.bytes == 1 and quant is not None and not quant.is_per_channel
    value = quant.zero_point if is_byte and quant is not None else 0
    return np.full(type_.shape, value, type_.dtype.value)


def _filled(type_: TensorType) -> Array:
    """Return what a resource holds before anything is assigned: bytes of the zero point's low 8.

    For types wider than a byte that is no zero point, but it is what tflite-micro does.
    """
    quant = type_.quantization
    low = 0 if quant is None or quant.is_per_channel else quant.zero_point & 0xFF
    return np.frombuffer(bytes([low]) * type_.bytes, type_.dtype.value).reshape(type_.shape)
