"""Hand a reader one operator of a TFLite file with its tensors, and check what it asks for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from microtir.dtype import DType
from microtir.errors import ModelFileError, UnsupportedModelError
from microtir.graph import names, operator
from microtir.graph.ir import Array, Tensor, TensorType
from microtir.operators.common import attributes, tflite_written, unlike_scales
from microtir.operators.common.tflite_schema import BuiltinOperator, Options, TfliteType
from microtir.operators.common.tflite_schema import TfliteActivation as FileActivation

OptionsT = TypeVar("OptionsT", bound=Options)

_MAX_ATTRIBUTE = 64  # numbers in an input that is an attribute; a few per dimension

_ACTIVATIONS = {
    FileActivation.NONE: attributes.Activation.NONE,
    FileActivation.RELU: attributes.Activation.RELU,
    FileActivation.RELU6: attributes.Activation.RELU6,
    FileActivation.RELU_N1_TO_1: attributes.Activation.RELU_N1_TO_1,
}


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """A value that an operator of the file keeps from run to run without a tensor for it.

    Its old value becomes one more input of the node, and its new value one more output.
    """

    label: str  # part of its name
    type: TensorType
    initial: Array


@dataclass(frozen=True, slots=True)
class Converted:
    """The node that a reader makes of an operator.

    Of variable tensors among the inputs the new values become more outputs of the node, in their
    order; of those among the outputs the old values become more inputs. `memory` comes last.

    `shape` is what the output must have by inputs that are no inputs of the node any more; None
    where the shape follows from the node, and `graph.rules` checks it.  `free` is what it has where
    the stored shape depends on the batch; None where it is `shape`, or follows from the node.

    An operator with a `kept_output` makes its first output of what that held before, input 0 of
    the node, even if the file does not call it a variable tensor.  With a `period` all operators
    of the file behind it run in every run of that number only.
    """

    op: operator.Operator
    inputs: tuple[Tensor, ...]
    shape: tuple[int, ...] | None = None
    free: tuple[int, ...] | None = None
    memory: tuple[Memory, ...] = ()
    kept_output: bool = False
    period: int = 1


@dataclass(frozen=True, slots=True)
class Operands:
    """An operator of the file. `where` names file, operator and its output."""

    where: str
    code: BuiltinOperator | str  # the name of a custom operator
    options: Options
    inputs: tuple[Tensor | None, ...]
    outputs: tuple[Tensor, ...]
    is_computable: Callable[[Tensor], bool]  # true for constants and what is made of them alone
    custom_options: bytes = b""  # of a custom operator
    variables: frozenset[int] = frozenset()  # positions of inputs that keep their values
    offsets: tuple[int, ...] = ()  # where the file places inputs, then outputs, in memory; or -1
    is_free: bool = False  # whether the stored extents of outputs depend on the batch

    def table(self, kind: type[OptionsT]) -> OptionsT:
        """Return the options, known to be of this kind by the table of readers."""
        assert isinstance(self.options, kind)
        return self.options

    def input(self, index: int) -> Tensor:
        tensor = self.inputs[index]
        if tensor is None:
            raise self.malformed(f"input {index} is left out", "only a bias may be left out")
        return tensor

    def variable(self, index: int) -> Tensor:
        """Return an input that keeps its value from one run to the next."""
        tensor = self.input(index)
        if index not in self.variables:
            raise self.malformed(
                f"input {index} {names.brief(tensor.name)!r} does not keep its value",
                "a variable tensor that no caller gives",
            )
        return tensor

    def optional(self, index: int) -> Tensor | None:
        """Return an input that may be left out, at the end of the list or by an index of -1."""
        return self.inputs[index] if index < len(self.inputs) else None

    @property
    def present(self) -> tuple[Tensor, ...]:
        """Return all inputs, none of which may be left out."""
        return tuple(self.input(index) for index in range(len(self.inputs)))

    @property
    def output(self) -> Tensor:
        return self.outputs[0]

    @property
    def stored_zero(self) -> float:
        """Return the real number 0 as the first output stores it; refuse one for each channel."""
        quantization = self.output.type.quantization
        if quantization is None or not any(quantization.zero_points):
            return 0.0
        if quantization.is_per_channel:
            raise self.unsupported(
                f"{names.brief(self.output.name)!r} has a zero point for each channel",
                "0 for all, or one scale and zero point",
                "convert the model again",
            )
        return float(quantization.zero_point)

    def malformed(self, what: str, legal: str | None = None) -> ModelFileError:
        """Return the error for an operator that contradicts itself or its tensors."""
        return ModelFileError(what, where=self.where, legal=legal, fix="export the model again")

    def unsupported(self, what: str, legal: str, fix: str) -> UnsupportedModelError:
        """Return the error for an operator that is legal but not done here."""
        return UnsupportedModelError(what, where=self.where, legal=legal, fix=fix)

    def activation(self, value: FileActivation) -> attributes.Activation:
        """Return a fused activation of the graph."""
        try:
            return _ACTIVATIONS[value]
        except KeyError:
            raise self.unsupported(
                f"its fused activation is {value.name}",
                ", ".join(a.name for a in _ACTIVATIONS),
                "use a separate activation layer",
            ) from None

    def no_activation(self, value: FileActivation) -> None:
        """Refuse a fused activation where the operator has none."""
        if value is not FileActivation.NONE:
            raise self.unsupported(
                f"its fused activation is {value.name}", "NONE", "use a separate activation layer"
            )

    def image(self, index: int) -> tuple[int, int, int, int]:
        """Return the shape (N, H, W, C) of an input of four dimensions."""
        tensor = self.input(index)
        if len(tensor.shape) != 4:
            raise self.malformed(
                f"input {index} {names.brief(tensor.name)!r} has the shape {tensor.shape}",
                "four dimensions",
            )
        first, second, third, fourth = tensor.shape
        return first, second, third, fourth

    def integers(self, index: int, what: str) -> tuple[int, ...]:
        """Return the numbers of an input that microtir needs to know while it compiles.

        Raises:
            UnsupportedModelError: the input is not a constant.
            ModelFileError: it is not a short list of int32 or int64.
        """
        tensor, data = self._known(index, what)
        self._check_attribute(tensor, f"{what} (input {index} {names.brief(tensor.name)!r})")
        return tuple(int(number) for number in data.reshape(-1).tolist())

    def _known(self, index: int, what: str) -> tuple[Tensor, Array]:
        """Return an input and its values, which microtir needs to know while it compiles."""
        tensor = self.input(index)
        if tensor.data is None:
            raise self.unsupported(
                f"the model computes {what} (input {index} {names.brief(tensor.name)!r})",
                "a constant",
                "convert the model with fixed input shapes, including a batch of 1",
            )
        return tensor, tensor.data

    def _check_attribute(self, tensor: Tensor, what: str) -> None:
        if tensor.dtype not in (DType.INT32, DType.INT64):
            raise self.malformed(f"{what} has the type {tensor.dtype.value}", "int32 or int64")
        if tensor.type.elements > _MAX_ATTRIBUTE:
            raise self.malformed(f"{what} has {tensor.type.elements} numbers")

    def integer(self, index: int, what: str) -> int:
        """Return the only number of an input, as `integers`."""
        numbers = self.integers(index, what)
        if len(numbers) != 1:
            raise self.malformed(f"{what} has {len(numbers)} numbers", "1")
        return numbers[0]

    def number(self, index: int, what: str) -> float:
        """Return the only number of an input, an integer or a float.

        Raises:
            UnsupportedModelError: the input is not a constant.
            ModelFileError: it is not one number.
        """
        tensor, data = self._known(index, what)
        if tensor.type.elements != 1:
            raise self.malformed(f"{what} has {tensor.type.elements} numbers", "1")
        number: float = data.reshape(()).item()
        return number

    def paddings(self, index: int, rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return how many elements an input adds before and after each of `rank` axes."""
        paddings = self.integers(index, "the paddings")
        if len(paddings) != 2 * rank:
            raise self.malformed(f"the paddings are {paddings}", f"{rank} pairs of numbers")
        return paddings[0::2], paddings[1::2]

    def axis(self, axis: int, rank: int) -> int:
        """Return a dimension counted from the front; negative ones count from the end."""
        if not -rank <= axis < rank:
            legal = f"{-rank} to {rank - 1}" if rank else "none: the tensor is a scalar"
            raise self.malformed(f"axis {axis} of a tensor with {rank} dimensions", legal)
        return axis % rank

    def require_computable(self, index: int, what: str) -> Tensor:
        """Return an input that is a constant, or will be one after constant folding."""
        tensor = self.input(index)
        if not self.is_computable(tensor):
            raise self.unsupported(
                f"the model computes {what} (input {index} {names.brief(tensor.name)!r})",
                "a constant",
                "use a layer with trained weights instead of a product of two activations",
            )
        return tensor

    def with_weights(self, bias_type: TfliteType = TfliteType.FLOAT32) -> tuple[Tensor, ...]:
        """Return data, weights and, if there is one, the bias.

        Args:
            bias_type: the option of that name.  It counts where there is no bias: sums of int16
                products are 32 bits wide with a bias of int32, of zeros then.
        """
        inputs = (self.input(0), self.require_computable(1, "the weights"))
        if self.optional(2) is None:
            if inputs[0].dtype is DType.INT16 and bias_type is TfliteType.INT32:
                return (*inputs, self._no_bias())
            return inputs
        return (*inputs, self.require_computable(2, "the bias"))

    def _no_bias(self) -> Tensor:
        shape = self.output.shape[-1:]
        data = np.zeros(shape, np.int32)
        return Tensor(f"{self.output.name}/bias", TensorType(shape, DType.INT32), data)


MANY = 1 << 16
"""Number of inputs or outputs that stands for any number."""


@dataclass(frozen=True, slots=True)
class TfliteReader:
    """The reader that turns an operator of the format into one of the graph, and back.

    Args:
        op: what it becomes.
        code: of the schema, or the name of a custom operator.
        read: makes the attributes and picks the inputs.
        options: the table that the file has for it.
        inputs: the fewest and the most.
        outputs: the most, from one on.
        updates: whether it writes its variable tensors.
        moved: what references do where its scales differ and the operator has one; by default
            they refuse it, or the operator has its own.
        fixed: what they do where the output has another quantisation than its results.
        write: the way back, from a node; None for an operator that is read and not written.
    """

    op: type[operator.Operator]
    code: BuiltinOperator | str
    read: Callable[[Operands], Converted]
    options: type[Options] = Options
    inputs: tuple[int, int] = (1, 1)
    outputs: int = 1
    updates: bool = False
    moved: unlike_scales.Moved | None = None
    fixed: tuple[unlike_scales.FixedResult, ...] = ()
    write: tflite_written.Write | None = None


def without_attributes(op: operator.Operator) -> Callable[[Operands], Converted]:
    """Return what reads an operator that the file has no attributes for: its inputs are all."""
    return lambda operands: Converted(op, operands.present)


def check_arity(operands: Operands, reader: TfliteReader) -> None:
    """Check the numbers of inputs and outputs.

    Raises:
        ModelFileError: there are too many or too few.
    """
    low, high = reader.inputs
    if not low <= len(operands.inputs) <= high:
        legal = f"{low} or more" if high == MANY else " or ".join(map(str, sorted({low, high})))
        raise operands.malformed(f"it has {len(operands.inputs)} inputs", legal)
    if not operands.outputs or len(operands.outputs) > reader.outputs:
        most = reader.outputs
        legal = "1" if most == 1 else "1 or more" if most == MANY else f"1 to {most}"
        raise operands.malformed(f"it has {len(operands.outputs)} outputs", legal)
