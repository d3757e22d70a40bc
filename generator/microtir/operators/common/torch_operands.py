"""Hand a reader one node of an exported PyTorch program, and let it emit nodes of the graph.

ATen's operators are near to ONNX's: channels come first, and a reader that knows an operator of
ONNX does most of the work.  A reader of ATen therefore takes arguments by the names of the schema,
and calls readers of ONNX on values (`TorchNode.onnx`), or emits operators of the graph itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

import numpy as np

from microtir.dtype import DType
from microtir.errors import ExportProblem, ModelFileError, UnsupportedModelError
from microtir.graph.ir import Array, Tensor
from microtir.graph.operator import Operator
from microtir.operators.common.onnx_operands import AttributeValue, OnnxNode
from microtir.operators.common.onnx_values import TensorSequence, Value
from microtir.operators.common.shapes import Shape

ONNX_VERSION = 22
"""The operator set by whose rules readers of ONNX read what readers of ATen hand them."""

Number: TypeAlias = "bool | int | float"
"""A number that is known: ATen's Scalar, and the sizes that a program computes."""

TorchValue: TypeAlias = (
    "Tensor | Number | str | DType | Subgraph | OtherType | tuple[TorchValue, ...] | None"
)
"""Value of an argument or result."""


@dataclass(frozen=True, slots=True)
class OtherType:
    """A scalar type that no tensor of the graph has; `name` is torch's, as in "complex64"."""

    name: str


@dataclass(frozen=True, slots=True)
class Subgraph:
    """A graph that an argument holds; only the frontend opens `body`."""

    body: object


@dataclass(frozen=True, slots=True)
class TorchType:
    """The type of a tensor as the file states it, with all symbols replaced by numbers.

    `is_dense` says that its elements lie one after the other, in rows.
    """

    dtype: DType | OtherType
    shape: Shape
    is_dense: bool

    @property
    def is_complex(self) -> bool:
        """Return whether it holds complex numbers: the graph has (..., 2), real and imaginary."""
        return isinstance(self.dtype, OtherType) and self.dtype.name.startswith("complex")


class Alias(Enum):
    """The memory of the results of an operator."""

    NONE = "none"  # their own
    VIEW = "view"  # that of the first argument
    MAYBE = "maybe"  # one of both: strides decide


ONE: tuple[TorchType | None, ...] = (None,)

RunOnnx: TypeAlias = Callable[[OnnxNode], "Value | tuple[Value, ...]"]

RunGraph: TypeAlias = Callable[[Subgraph, Sequence[Tensor]], tuple[Tensor, ...]]


@dataclass(frozen=True, slots=True)
class TorchNode:
    """A node of the program: where it stands, what it says, and what it is given.

    Args:
        where: the node in words, for errors.
        target: the operator and its overload, as in "aten.add.Tensor".
        arguments: their values by the names of the schema; what has its default is left out.
        types: what the file says of arguments that are tensors, by the same names.
        results: what the file says of results; None of what is no tensor.
        first: the template of what `onnx` runs, with the emitter.
        run_onnx: runs the reader of ONNX that is registered for a node.
        run_graph: reads a graph that an argument holds.
    """

    where: str
    target: str
    arguments: Mapping[str, TorchValue]
    first: OnnxNode
    run_onnx: RunOnnx
    run_graph: RunGraph
    types: Mapping[str, TorchType] = field(default_factory=dict)
    results: tuple[TorchType | None, ...] = ONE

    # --- arguments --------------------------------------------------------------------------------

    def has(self, name: str) -> bool:
        """Return whether an argument is there and is not None."""
        return self.arguments.get(name) is not None

    def tensor(self, name: str, rank: int = 0) -> Tensor:
        """Return a tensor that must be there, with at least so many dimensions."""
        value = self.arguments.get(name)
        if not isinstance(value, Tensor):
            raise self._wrong(name, "a tensor")
        if len(value.shape) < rank:
            what = f"the argument '{name}' has {len(value.shape)} dimensions"
            raise self.malformed(what, f"at least {rank}")
        return value

    def optional_tensor(self, name: str) -> Tensor | None:
        """Return a tensor that may be left out."""
        return self.tensor(name) if self.has(name) else None

    def tensors(self, name: str, least: int = 0) -> tuple[Tensor, ...]:
        """Return a list of at least so many tensors."""
        value = self.arguments.get(name)
        items = value if isinstance(value, tuple) else ()
        tensors = tuple(item for item in items if isinstance(item, Tensor))
        if not isinstance(value, tuple) or len(tensors) < len(items):
            raise self._wrong(name, "a list of tensors")
        if len(tensors) < least:
            raise self.malformed(f"the argument '{name}' has {len(tensors)} tensors", f"{least}")
        return tensors

    def integer(self, name: str, default: int | None = None) -> int:
        """Return an integer; without a default it must be there."""
        value = self.arguments.get(name)
        value = default if value is None else value
        if not isinstance(value, int) or isinstance(value, bool):
            raise self._wrong(name, "an integer")
        return value

    def optional_integer(self, name: str) -> int | None:
        """Return an integer that may be left out."""
        return self.integer(name) if self.has(name) else None

    def number(self, name: str, default: Number | None = None) -> Number:
        """Return a number of any kind; without a default it must be there."""
        value = self.arguments.get(name)
        value = default if value is None else value
        if not isinstance(value, bool | int | float):
            raise self._wrong(name, "a number")
        return value

    def optional_number(self, name: str) -> Number | None:
        """Return a number of any kind that may be left out."""
        return self.number(name) if self.has(name) else None

    def flag(self, name: str, default: bool | None = None) -> bool:
        """Return a boolean; without a default it must be there."""
        value = self.arguments.get(name)
        value = default if value is None else value
        if not isinstance(value, bool):
            raise self._wrong(name, "a boolean")
        return value

    def text(self, name: str, default: str | None = None) -> str:
        """Return a string; without a default it must be there."""
        value = self.arguments.get(name)
        value = default if value is None else value
        if not isinstance(value, str):
            raise self._wrong(name, "a string")
        return value

    def integers(
        self, name: str, default: tuple[int, ...] | None = None, count: int | None = None
    ) -> tuple[int, ...]:
        """Return a list of integers.

        Args:
            name: of the argument.
            default: of one that is left out or empty; without one it must be there.
            count: how many there are; one stands for all.
        """
        value = self.arguments.get(name)
        if value is None or (value == () and default is not None):
            value = default
        if isinstance(value, int) and not isinstance(value, bool):
            value = (value,)
        if not isinstance(value, tuple):
            raise self._wrong(name, "a list of integers")
        numbers = tuple(x for x in value if isinstance(x, int) and not isinstance(x, bool))
        if len(numbers) < len(value):
            raise self._wrong(name, "a list of integers")
        if count is not None and len(numbers) == 1:
            numbers *= count
        if count is not None and len(numbers) != count:
            raise self._wrong(name, f"{count} integers")
        return numbers

    def numbers(self, name: str) -> tuple[float, ...]:
        """Return a list of numbers."""
        value = self.arguments.get(name)
        if not isinstance(value, tuple):
            raise self._wrong(name, "a list of numbers")
        numbers = tuple(float(x) for x in value if isinstance(x, int | float))
        if len(numbers) < len(value):
            raise self._wrong(name, "a list of numbers")
        return numbers

    def dtype(self, name: str, default: DType | None = None) -> DType | None:
        """Return a scalar type; the default, where it is left out.

        Raises:
            UnsupportedModelError: no tensor of the graph has it.
        """
        value = self.arguments.get(name)
        if value is None:
            return default
        if isinstance(value, OtherType):
            raise self.unsupported(
                f"its {name} is {value.name}",
                "float16, bfloat16, float32, float64 (all computed in float32), integers, bool",
                "convert the model to float32 before it is exported: model.float()",
            )
        if not isinstance(value, DType):
            raise self._wrong(name, "a scalar type")
        return value

    def graph(self, name: str) -> Subgraph:
        """Return a graph that an argument holds."""
        value = self.arguments.get(name)
        if not isinstance(value, Subgraph):
            raise self._wrong(name, "a graph")
        return value

    def is_complex(self, name: str) -> bool:
        """Return whether an argument holds complex numbers; in the graph they have an axis of 2."""
        type_ = self.types.get(name)
        return type_ is not None and type_.is_complex

    @property
    def result_dtype(self) -> DType:
        """Return the type of the first result as the file states it.

        Raises:
            UnsupportedModelError: no tensor of the graph has it.
        """
        type_ = self.results[0] if self.results else None
        if type_ is None:
            raise self.malformed("the type of its result is not stated")
        if isinstance(type_.dtype, OtherType):
            raise self.unsupported(
                f"its result is {type_.dtype.name}",
                "results that are floats, integers or booleans",
                "convert the model to float32 before it is exported: model.float()",
            )
        return type_.dtype

    def axis(self, axis: int, rank: int) -> int:
        """Return an axis counted from the front; of a scalar 0 and -1 are axes, too."""
        if rank == 0 and axis in (0, -1):
            return 0
        return self.first.axis(axis, rank)

    def extent(self, x: Tensor, axis: int) -> int:
        """Return the extent of an axis that a tensor must have."""
        if not 0 <= axis < len(x.shape):
            raise self.malformed(f"axis {axis} of a tensor with {len(x.shape)} dimensions")
        return x.shape[axis]

    # --- results ----------------------------------------------------------------------------------

    def emit(
        self,
        op: Operator,
        *inputs: Tensor,
        shape: Shape | None = None,
        dtype: DType | None = None,
    ) -> Tensor:
        """Return the result of an operator of the graph; see `OnnxNode.emit`."""
        return self.first.emit(op, *inputs, shape=shape, dtype=dtype)

    def constant(self, data: Array) -> Tensor:
        """Return a constant."""
        return self.first.constant(data)

    def scalar(self, value: Number, dtype: DType = DType.FLOAT32) -> Tensor:
        """Return a number as a constant without dimensions.

        Raises:
            ModelFileError: the type does not hold it.
        """
        if dtype.is_int and not dtype.min <= value <= dtype.max:
            raise self.malformed(f"the number {value} does not fit the type {dtype.value}")
        with np.errstate(over="ignore"):
            return self.constant(np.array(value, dtype.value))

    def onnx(self, operator: str, *inputs: Value | None, **attributes: AttributeValue) -> Tensor:
        """Return the only result of an operator of ONNX, read as in an ONNX file.

        Args:
            operator: its name.
            inputs: tensors; None of what is left out.
            attributes: integers, floats, strings, tuples of them.
        """
        (result,) = self._run_onnx(operator, inputs, 1, attributes)
        return result

    def onnx_tensors(
        self,
        operator: str,
        *inputs: Value | None,
        outputs: int = 1,
        **attributes: AttributeValue,
    ) -> tuple[Tensor, ...]:
        """Return the results of an operator of ONNX; those of a sequence one by one."""
        return self._run_onnx(operator, inputs, outputs, attributes)

    def _run_onnx(
        self,
        operator: str,
        inputs: tuple[Value | None, ...],
        outputs: int,
        attributes: Mapping[str, AttributeValue],
    ) -> tuple[Tensor, ...]:
        emitter = self.first.emitter
        node = OnnxNode(self.where, operator, ONNX_VERSION, attributes, inputs, outputs, emitter)
        values = self.run_onnx(node)
        results = values if isinstance(values, tuple) else (values,)
        if len(results) == 1 and isinstance(results[0], TensorSequence):
            return results[0].items
        return node.tensors(results)

    def run(self, name: str, *inputs: Tensor) -> tuple[Tensor, ...]:
        """Return the results of a graph that an argument holds."""
        return self.run_graph(self.graph(name), inputs)

    def ints(self, *values: int) -> Tensor:
        """Return a constant of int64, as ONNX has shapes, axes and places."""
        return self.constant(np.array(values, np.int64))

    def reshaped(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        """Return the same elements in another shape; an extent of -1 follows from the others."""
        if x.shape == tuple(shape):
            return x
        return self.onnx("Reshape", x, self.ints(*shape), allowzero=1)

    def cast(self, x: Tensor, dtype: DType) -> Tensor:
        """Return a tensor as another type."""
        return x if x.dtype is dtype else self.onnx("Cast", x, to=_ONNX_TYPES[dtype])

    # --- errors -----------------------------------------------------------------------------------

    def malformed(self, what: str, legal: str | None = None) -> ModelFileError:
        """Return the error for a node that contradicts itself or its tensors."""
        return ModelFileError(what, where=self.where, legal=legal, fix="export the model again")

    def unsupported(
        self, what: str, legal: str, fix: str, export: ExportProblem | None = None
    ) -> UnsupportedModelError:
        """Return the error for a node that is legal but not done here."""
        return UnsupportedModelError(what, where=self.where, legal=legal, fix=fix, export=export)

    def _wrong(self, name: str, legal: str) -> ModelFileError:
        value = self.arguments.get(name)
        what = "missing" if value is None else f"{_shown(value)}"
        return self.malformed(f"the argument '{name}' is {what}", legal)


def _shown(value: TorchValue) -> str:
    if isinstance(value, Tensor):
        return "a tensor"
    return "a list" if isinstance(value, tuple) else repr(value)[:80]


_ONNX_TYPES: Mapping[DType, int] = {
    DType.FLOAT32: 1, DType.UINT8: 2, DType.INT8: 3, DType.UINT16: 4, DType.INT16: 5,
    DType.INT32: 6, DType.INT64: 7, DType.BOOL: 9, DType.UINT32: 12, DType.UINT64: 13,
}  # fmt: skip
"""The numbers by which ONNX names scalar types, in the attribute of Cast."""


@dataclass(frozen=True, slots=True)
class TorchReader:
    """The reader that turns one operator of a PyTorch program into operators of the graph.

    Args:
        name: of the operator, as in "aten.add.Tensor"; "aten.add_.Tensor", which writes in place,
            is read by the same reader, and needs none of its own.
        read: emits the nodes; returns one value for each result.
        arguments: the names that it looks at, and those that change nothing here.
        alias: whether results share memory with the first argument, which matters where the program
            writes to either.
        takes_complex: whether it is made for complex numbers, whose two parts are a last axis.
    """

    name: str
    read: Callable[[TorchNode], TorchValue]
    arguments: tuple[str, ...]
    alias: Alias = Alias.NONE
    takes_complex: bool = False
