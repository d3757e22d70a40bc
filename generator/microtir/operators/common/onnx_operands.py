"""Hand a reader one node of an ONNX file, and let it emit nodes of the graph.

An operator of ONNX often stands for several of the graph's: a convolution of planes for a
transpose, a convolution of channels last, and a transpose back.  A reader emits them one by one and
returns tensors; what is computed from constants alone is a constant at once, so that weights are
laid out anew, and shapes that a model computes are known, without a rule of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeAlias

import numpy as np

from microtir.dtype import DType
from microtir.errors import ExportProblem, ModelFileError, UnsupportedModelError
from microtir.graph.ir import Array, Tensor, TensorType
from microtir.graph.names import brief
from microtir.graph.operator import Operator
from microtir.operators.common import onnx_few_bits, onnx_loops, shapes
from microtir.operators.common.onnx_values import Distance, RowCount, TensorSequence, Value

MANY = 1 << 16
"""Number of inputs or outputs that stands for any number."""

MOST_RANK = 16
"""Most dimensions of a tensor, with those that are split on the way."""

MOST_MADE = 1 << 24
"""Most elements of an array that a few numbers of the file may ask for."""

MICROSOFT = "com.microsoft"
"""The domain of the operators that onnxruntime adds."""

AttributeValue: TypeAlias = (
    "int | float | str | tuple[int, ...] | tuple[float, ...] | tuple[str, ...] | Array | object"
)
"""Value of an attribute in the file; a graph of the file is an object only the frontend opens."""


class Emitter(Protocol):
    """Makes nodes of the graph for one node of the file."""

    def emit(
        self, op: Operator, inputs: Sequence[Tensor], outputs: Sequence[TensorType | None]
    ) -> tuple[Tensor, ...]:
        """Return the results; None stands for the type of the first input and the inferred shape.

        Raises:
            ModelFileError: the operands contradict each other.
            UnsupportedModelError: the operator does not take their types.
        """
        ...

    def constant(self, data: Array) -> Tensor:
        """Return a constant of this node's own."""
        ...

    def run(self, body: object, inputs: Sequence[Value]) -> tuple[Value, ...]:
        """Return the results of a graph that an attribute holds."""
        ...

    def reserve(self, count: int) -> None:
        """Count bytes that are made on the way to constants; refuse what is too much."""
        ...

    def define(self) -> tuple[Value, ...]:
        """Return the results of the function by which ONNX defines the operator."""
        ...

    def repeat(self, loop: onnx_loops.Loop) -> onnx_loops.Repeated | None:
        """Return the results of a loop whose turns are code once; None if they have to be many.

        They have where a turn needs to know its number, changes the shapes of values, or is one of
        few.
        """
        ...

    def is_place(self, tensor: Tensor) -> bool:
        """Return whether a tensor counts turns, or places from the front, and is never below 0."""
        ...

    def span(self, tensor: Tensor) -> tuple[int, int] | None:
        """Return between which numbers integers lie, where they are picked from constants."""
        ...

    def changes_by_turn(self, tensor: Tensor) -> bool:
        """Return whether a value follows from what a loop hands from turn to turn."""
        ...

    def names(self, tensor: Tensor) -> tuple[str, ...]:
        """Return the strings that values are places in; none if they are numbers."""
        ...

    def name_values(self, tensor: Tensor, names: tuple[str, ...]) -> None:
        """Note that values are places in a list of strings."""
        ...

    def distances(self, tensor: Tensor) -> tuple[Distance, ...]:
        """Return what each integer of a tensor is beside others that the model computes."""
        ...

    def count_rows(self, rows: Tensor, count: RowCount) -> None:
        """Note that some rows of a result are in use, as many as data say."""
        ...


@dataclass(frozen=True, slots=True)
class OnnxNode:
    """A node of the file: where it stands, what it says, and what it is given.

    `version` is that of the operator set which the file names for the node's domain, and
    `few_bits` are the types of inputs of fewer than 8 bits, by their places.
    """

    where: str
    operator: str
    version: int
    attributes: Mapping[str, AttributeValue]
    inputs: tuple[Value | None, ...]
    outputs: int
    emitter: Emitter
    few_bits: Mapping[int, onnx_few_bits.FewBits] = field(default_factory=dict)
    domain: str = ""

    # --- operands ---------------------------------------------------------------------------------

    def input(self, index: int) -> Tensor:
        tensor = self.optional(index)
        if tensor is None:
            raise self.malformed(f"input {index} is left out")
        return tensor

    def optional(self, index: int) -> Tensor | None:
        """Return an input that may be left out, at the end of the list or by an empty name."""
        value = self.inputs[index] if index < len(self.inputs) else None
        return None if value is None else self.tensors((value,))[0]

    def value(self, index: int) -> Value:
        """Return an input that must be there, a tensor or a sequence."""
        value = self.inputs[index] if index < len(self.inputs) else None
        return self.input(index) if value is None else value

    def sequence(self, index: int) -> TensorSequence:
        value = self.value(index)
        if not isinstance(value, TensorSequence):
            raise self.malformed(f"input {index} is a tensor", "a sequence of tensors")
        return value

    def tensors(self, values: Sequence[Value]) -> tuple[Tensor, ...]:
        """Return values none of which may be a sequence."""
        only_tensors = tuple(value for value in values if not isinstance(value, TensorSequence))
        if len(only_tensors) < len(values):
            raise self.malformed("it has a sequence instead of a tensor", "a tensor")
        return only_tensors

    def inputs_at(self, first: int, second: int) -> tuple[Tensor, Tensor | None]:
        """Return an input that must be there, a scale, and one that may be left out."""
        return self.input(first), self.optional(second)

    def with_inputs(self, *inputs: Value | None) -> OnnxNode:
        """Return the same node with other operands."""
        return replace(self, inputs=inputs)

    @property
    def present(self) -> tuple[Tensor, ...]:
        """Return all inputs, none of which may be left out."""
        return tuple(self.input(index) for index in range(len(self.inputs)))

    @property
    def values(self) -> tuple[Value, ...]:
        """Return all inputs, tensors and sequences, none of which may be left out."""
        return tuple(self.value(index) for index in range(len(self.inputs)))

    def names(self, tensor: Tensor) -> tuple[str, ...]:
        """Return the strings that values are places in; none if they are numbers."""
        return self.emitter.names(tensor)

    def known(self, index: int, what: str) -> Array:
        """Return the values of an input that microtir needs to know while it compiles."""
        tensor = self.input(index)
        if tensor.data is None:
            raise self.unsupported(
                f"the model computes {what} (input {index} {brief(tensor.name)!r}) from its inputs",
                "a constant, or a value that follows from constants and shapes",
                "export the model with fixed shapes, and simplify it (onnxsim, or onnxruntime's"
                " basic graph optimisations)",
                ExportProblem.COMPUTED_SHAPE,
            )
        return tensor.data

    def known_number(self, index: int, what: str) -> Array:
        """Return the only value of an input that must be known, as a scalar."""
        values = self.known(index, what)
        if values.size != 1:
            raise self.malformed(f"{what} is {values.size} numbers", "1")
        return values.reshape(())

    def integers(self, index: int, what: str) -> tuple[int, ...]:
        """Return the numbers of an input that must be known."""
        values = self.known(index, what)
        if values.dtype.kind not in "iu":
            raise self.malformed(f"{what} has the type {values.dtype}", "int32 or int64")
        return tuple(int(value) for value in values.reshape(-1).tolist())

    def whole_number(self, index: int, what: str) -> int:
        """Return the only number of an input that must be known."""
        numbers = self.integers(index, what)
        if len(numbers) != 1:
            raise self.malformed(f"{what} is {len(numbers)} numbers", "1")
        return numbers[0]

    # --- attributes -------------------------------------------------------------------------------

    def integer(self, name: str, default: int | None = None) -> int:
        """Return an attribute; without a default it must be there."""
        value = self._attribute(name, default)
        if not isinstance(value, int):
            raise self._wrong(name, "an integer")
        return value

    def number(self, name: str, default: float | None = None) -> float:
        value = self._attribute(name, default)
        if not isinstance(value, float):
            raise self._wrong(name, "a float")
        return value

    def word(self, name: str, default: str | None = None) -> str:
        value = self._attribute(name, default)
        if not isinstance(value, str):
            raise self._wrong(name, "a string")
        return value

    def list_of_integers(
        self, name: str, default: tuple[int, ...] | None = None
    ) -> tuple[int, ...]:
        value = self._attribute(name, default)
        if not isinstance(value, tuple) or not all(isinstance(item, int) for item in value):
            raise self._wrong(name, "a list of integers")
        return tuple(item for item in value if isinstance(item, int))

    def list_of_numbers(self, name: str) -> tuple[float, ...]:
        value = self._attribute(name, None)
        if not isinstance(value, tuple) or not all(isinstance(item, float) for item in value):
            raise self._wrong(name, "a list of floats")
        return tuple(item for item in value if isinstance(item, float))

    def list_of_words(self, name: str) -> tuple[str, ...]:
        value = self._attribute(name, None)
        if not isinstance(value, tuple) or not all(isinstance(item, str) for item in value):
            raise self._wrong(name, "a list of strings")
        return tuple(item for item in value if isinstance(item, str))

    def tensor(self, name: str) -> Array:
        """Return an attribute that is a tensor, of which doubles become float32."""
        value = self.wide_tensor(name)
        with np.errstate(over="ignore"):
            return value.astype(np.float32) if value.dtype == np.float64 else value

    def wide_tensor(self, name: str) -> Array:
        """Return an attribute that is a tensor of numbers, with doubles as they are."""
        value = self.tensor_of_any(name)
        if value.dtype == np.object_:
            raise self._wrong(name, "a tensor of numbers")
        return value

    def tensor_of_any(self, name: str) -> Array:
        """Return an attribute that is a tensor of numbers or strings."""
        value = self._attribute(name, None)
        if not isinstance(value, np.ndarray):
            raise self._wrong(name, "a tensor")
        return value

    def axis(self, axis: int, rank: int) -> int:
        """Return an axis counted from the front; negative ones count from the end."""
        if not -rank <= axis < rank:
            legal = f"{-rank} to {rank - 1}" if rank else "none: the tensor is a scalar"
            raise self.malformed(f"axis {axis} of a tensor with {rank} dimensions", legal)
        return axis % rank

    def axes(self, axes: Sequence[int], rank: int) -> tuple[int, ...]:
        """Return axes counted from the front, in rising order."""
        if len(axes) > MOST_RANK:
            raise self.malformed(f"{len(axes)} axes", f"at most {MOST_RANK}")
        counted = sorted(self.axis(axis, rank) for axis in axes)
        if len(set(counted)) < len(counted):
            raise self.malformed(
                f"axes {tuple(axes)} of a tensor with {rank} dimensions", "each once"
            )
        return tuple(counted)

    def check_room(self, *extents: int) -> None:
        """Refuse an array that numbers of the file ask for, before it is made.

        Raises:
            ModelFileError: it has more than `MOST_MADE` elements, or an extent below 0.
        """
        elements = math.prod(extents)
        if len(extents) > MOST_RANK or min(extents, default=0) < 0 or elements > MOST_MADE:
            raise self.malformed(
                f"the shape {brief(str(extents))}",
                f"at most {MOST_MADE} elements in {MOST_RANK} dimensions",
            )
        self.emitter.reserve(elements * DType.FLOAT32.bytes)

    def has(self, name: str) -> bool:
        """Return whether the file gives an attribute."""
        return name in self.attributes

    def _attribute(self, name: str, default: AttributeValue | None) -> AttributeValue:
        value = self.attributes.get(name, default)
        if value is None:
            raise self.malformed(f"the attribute '{name}' is missing")
        return value

    def _wrong(self, name: str, legal: str) -> ModelFileError:
        return self.malformed(f"the attribute '{name}' is {self.attributes.get(name)!r}", legal)

    # --- results ----------------------------------------------------------------------------------

    def emit(
        self,
        op: Operator,
        *inputs: Tensor,
        shape: shapes.Shape | None = None,
        dtype: DType | None = None,
    ) -> Tensor:
        """Return the result of an operator of the graph.

        Args:
            op: with its attributes.
            inputs: its operands.
            shape: of the result, where the operator can give several.
            dtype: of the result, where it is not that of the first input.
        """
        type_ = None
        if shape is not None or dtype is not None:
            type_ = TensorType(shape or (), dtype or inputs[0].dtype)
        (result,) = self.emitter.emit(op, inputs, (type_,))
        return result

    def emit_parts(self, op: Operator, x: Tensor, count: int) -> tuple[Tensor, ...]:
        """Return the results of an operator that gives several, all of its input's type."""
        return self.emitter.emit(op, (x,), (None,) * count)

    def run(self, name: str, *inputs: Value) -> tuple[Value, ...]:
        """Return the results of the graph that an attribute holds."""
        return self.emitter.run(self._attribute(name, None), inputs)

    def constant(self, data: Array) -> Tensor:
        return self.emitter.constant(data)

    def scalar_like(self, value: float, other: Tensor) -> Tensor:
        """Return one number of another tensor's type."""
        return self.constant(np.array(value, other.dtype.value))

    # --- errors -----------------------------------------------------------------------------------

    def malformed(self, what: str, legal: str | None = None) -> ModelFileError:
        """Return the error for a node that contradicts itself or its tensors."""
        return ModelFileError(what, where=self.where, legal=legal, fix="export the model again")

    def unsupported(
        self, what: str, legal: str, fix: str, export: ExportProblem | None = None
    ) -> UnsupportedModelError:
        """Return the error for a node that is legal but not done here."""
        return UnsupportedModelError(what, where=self.where, legal=legal, fix=fix, export=export)


@dataclass(frozen=True, slots=True)
class OnnxReader:
    """The reader that turns one operator of ONNX into operators of the graph.

    Args:
        name: of the operator.
        read: emits the nodes.
        inputs: the fewest and the most.
        attributes: the names that it looks at, and those that change nothing here.
        outputs: the most, from one on.
        domain: empty for ONNX's own.
        since: the first version of the operator set whose rules it follows.
        ranks: the fewest dimensions of the first inputs, where it looks at them by their places.
    """

    name: str
    read: Callable[[OnnxNode], Value | tuple[Value, ...]]
    inputs: tuple[int, int] = (1, 1)
    attributes: tuple[str, ...] = ()
    outputs: int = 1
    domain: str = ""
    since: int = 1
    ranks: tuple[int, ...] = ()


def by_definition(node: OnnxNode) -> tuple[Value, ...]:
    """Read an operator as the function by which ONNX defines it."""
    return node.emitter.define()


def plain(op: Operator) -> Callable[[OnnxNode], Tensor]:
    """Return what reads an operator whose inputs are those of one operator of the graph."""
    return lambda node: node.emit(op, *node.present)
