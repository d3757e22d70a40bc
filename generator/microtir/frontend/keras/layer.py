"""Hand a reader one call of a Keras layer, and let it emit nodes of the graph.

Most layers are operators of ONNX with another layout or order of weights: `onnx` has the reader of
such an operator emit them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

import numpy as np

from microtir.dtype import DType
from microtir.errors import ModelFileError, UnsupportedModelError
from microtir.frontend.keras.archive import Json
from microtir.frontend.keras.config import LayerRecord
from microtir.frontend.keras.hdf5 import SAVE_AGAIN
from microtir.frontend.keras.weights import Weights
from microtir.frontend.onnx.readers import READERS
from microtir.graph.ir import Array, Tensor
from microtir.graph.names import brief
from microtir.graph.operator import Operator
from microtir.operators.common.onnx_operands import AttributeValue, OnnxNode

Operand: TypeAlias = (
    "Tensor | bool | int | float | str | tuple[Operand, ...] | Mapping[str, Operand] | None"
)
"""An argument of a call: tensors and constants, nested."""

VERSION = 21
"""Version of ONNX's operator set whose rules the readers follow here."""

_MOST_EXTENT = 1 << 24


class Inner(Protocol):
    """Reads layers that stand inside of one, and knows masks and states."""

    def call(
        self, record: LayerRecord, weights: Weights, positional: Sequence[Operand],
        named: Mapping[str, Operand],
    ) -> tuple[Tensor, ...]:  # fmt: skip
        """Return the results of a layer that another one holds."""
        ...

    def mask(self, x: Tensor) -> Tensor | None:
        """Return which steps of a tensor count, if a layer has said so."""
        ...

    def set_mask(self, x: Tensor, mask: Tensor) -> None:
        """Say which steps of a tensor count."""
        ...

    def state(self, name: str, initial: Array) -> Tensor:
        """Return a value that lives from run to run, as a run finds it."""
        ...

    def set_state(self, before: Tensor, after: Tensor) -> None:
        """Say what a run leaves of a value that lives from run to run."""
        ...


@dataclass(frozen=True, slots=True)
class KerasLayer:
    """One call of a layer.

    Args:
        record: of the layer.
        weights: of the layer.
        positional: arguments.
        named: arguments.
        node: emits nodes of the graph, and names the layer in errors.
        inner: reads layers inside of it.
    """

    record: LayerRecord
    weights: Weights
    positional: tuple[Operand, ...]
    named: Mapping[str, Operand]
    node: OnnxNode
    inner: Inner

    # --- operands ---------------------------------------------------------------------------------

    def argument(self, place: int, name: str = "") -> Operand:
        """Return an argument by its place or name; None if it is left out."""
        if place < len(self.positional):
            return self.positional[place]
        return self.named.get(name)

    def tensor(self, place: int, name: str = "") -> Tensor | None:
        """Return an argument that is a tensor or a constant; None if it is left out."""
        return self.as_tensor(self.argument(place, name))

    def as_tensor(self, value: Operand) -> Tensor | None:
        """Return an argument as a tensor; None if it is left out."""
        if value is None or isinstance(value, Tensor):
            return value
        items = tensors_of(value)
        if isinstance(value, tuple) and len(items) == 1:
            return items[0]
        if isinstance(value, bool | int | float):
            return self.node.constant(np.array(value, np.float32))
        if isinstance(value, Mapping) and value.get("class_name") in ("__numpy__", "__tensor__"):
            return self._stored(value.get("config"))
        raise self.malformed(
            f"an argument has the type {brief(str(type(value).__name__))}", "a tensor"
        )

    def _stored(self, config: Operand) -> Tensor:
        """Return an array that the configuration holds; integers are int32."""
        value = config.get("value") if isinstance(config, Mapping) else None
        try:
            array = np.asarray(value)
        except ValueError:
            array = np.zeros(0, np.object_)
        if array.dtype.kind not in "fiub":
            raise self.malformed("an argument is not an array of numbers")
        return self.node.constant(array.astype(np.int32 if array.dtype.kind in "iu" else
                                               np.bool_ if array.dtype.kind == "b" else
                                               np.float32))  # fmt: skip

    @property
    def x(self) -> Tensor:
        """Return the first argument, a tensor."""
        x = self.tensor(0, "inputs")
        if x is None:
            raise self.malformed("it is called without an input")
        return x

    @property
    def mask(self) -> Tensor | None:
        """Return which steps of the first argument count: an argument, or what a layer has said."""
        return self.mask_of(self.x)

    def mask_of(self, x: Tensor) -> Tensor | None:
        """Return which steps of a tensor count: an argument, or what a layer has said so."""
        mask = self.as_tensor(self.named.get("mask"))
        return self.inner.mask(x) if mask is None else mask

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """Return the tensors of the first argument, which may be a list."""
        return tensors_of(self.argument(0, "inputs"))

    def arrays(self, *names: str) -> tuple[Tensor, ...]:
        """Return the layer's own variables as constants of float32, one for each name.

        Raises:
            ModelFileError: the file has more or fewer of them.
        """
        arrays = self.weights.variables()
        if len(arrays) != len(names):
            raise self.malformed(
                f"the file has {len(arrays)} arrays for it",
                f"{len(names)}: {', '.join(names)}" if names else "none",
            )
        return tuple(map(self.constant, arrays))

    def constant(self, array: Array) -> Tensor:
        """Return numbers as a constant; floats of any width are float32."""
        with np.errstate(over="ignore"):
            return self.node.constant(array.astype(np.float32))

    def as_layer(self, kind: str, config: Mapping[str, Json], *arguments: Operand) -> KerasLayer:
        """Return a layer without weights in the place of this one."""
        record = replace(self.record, kind=kind, config=config)
        return replace(self, record=record, positional=arguments, named={})

    # --- settings ---------------------------------------------------------------------------------

    def setting(self, name: str, default: Json = None) -> Json:
        """Return a field of the configuration."""
        return self.record.config.get(name, default)

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Return a field that is true or false."""
        value = self.setting(name, default)
        if not isinstance(value, bool | int):
            raise self._wrong(name, "true or false")
        return bool(value)

    def integer(self, name: str, default: int | None = None) -> int:
        """Return a field that is a whole number."""
        value = self.setting(name, default)
        if isinstance(value, float) and value == int(value):
            value = int(value)
        if not isinstance(value, int) or abs(value) > _MOST_EXTENT:
            raise self._wrong(name, "a whole number")
        return value

    def number(self, name: str, default: float | None = None) -> float:
        """Return a field that is a number, as float32 has it."""
        value = self.setting(name, default)
        if isinstance(value, dict):  # an array of Keras, as some versions write one
            config = value.get("config")
            value = config.get("value") if isinstance(config, dict) else None
        if not isinstance(value, int | float):
            raise self._wrong(name, "a number")
        with np.errstate(over="ignore"):
            return float(np.float32(value))

    def word(self, name: str, *legal: str, default: str | None = None) -> str:
        """Return a field that is one of some words."""
        value = self.setting(name, default)
        if not isinstance(value, str) or (legal and value not in legal):
            raise self._wrong(name, ", ".join(legal) or "a word")
        return value

    def integers(self, name: str) -> tuple[int, ...]:
        """Return a field that is a list of whole numbers, or one."""
        value = self.setting(name)
        items = value if isinstance(value, list) else [value]
        if not all(isinstance(n, int) and abs(n) <= _MOST_EXTENT for n in items):
            raise self._wrong(name, "whole numbers")
        return tuple(item for item in items if isinstance(item, int))

    def extents(self, name: str, rank: int, default: int = 1) -> tuple[int, ...]:
        """Return a field with a number from 1 on for each axis, or one for all."""
        if self.setting(name) is None:
            return (default,) * rank
        values = self.integers(name)
        values = values * rank if len(values) == 1 else values
        if len(values) != rank or min(values) < 1:
            raise self._wrong(name, f"{rank} integers of 1 or more")
        return values

    # --- results ----------------------------------------------------------------------------------

    def emit(self, op: Operator, *inputs: Tensor, dtype: DType | None = None) -> Tensor:
        """Return the result of an operator of the graph."""
        return self.node.emit(op, *inputs, dtype=dtype)

    def onnx(
        self, operator: str, *inputs: Tensor | None, domain: str = "", **attributes: AttributeValue
    ) -> Tensor:
        """Return the first result of an operator of ONNX."""
        return self.onnx_results(operator, inputs, 1, attributes, domain)[0]

    def onnx_results(
        self, operator: str, inputs: Sequence[Tensor | None], outputs: int,
        attributes: Mapping[str, AttributeValue], domain: str = "",
    ) -> tuple[Tensor, ...]:  # fmt: skip
        """Return the results of an operator of ONNX."""
        node = replace(
            self.node, operator=operator, attributes=attributes, inputs=tuple(inputs),
            outputs=outputs,
        )  # fmt: skip
        results = READERS[domain, operator].read(node)
        return node.tensors(results if isinstance(results, tuple) else (results,))

    # --- errors -----------------------------------------------------------------------------------

    def malformed(self, what: str, legal: str | None = None) -> ModelFileError:
        """Return the error for a layer that contradicts itself or what it is called with."""
        return ModelFileError(what, where=self.node.where, legal=legal, fix=SAVE_AGAIN)

    def unsupported(self, what: str, legal: str, fix: str) -> UnsupportedModelError:
        """Return the error for a layer that is legal but not done here."""
        return UnsupportedModelError(what, where=self.node.where, legal=legal, fix=fix)

    def _wrong(self, name: str, legal: str) -> ModelFileError:
        value = brief(repr(self.record.config.get(name)))
        return self.malformed(f"its field {name!r} is {value}", legal)


def tensors_of(value: Operand) -> tuple[Tensor, ...]:
    """Return the tensors of an argument, in order."""
    if isinstance(value, Tensor):
        return (value,)
    if isinstance(value, Mapping):
        return tuple(tensor for item in value.values() for tensor in tensors_of(item))
    if isinstance(value, tuple):
        return tuple(tensor for item in value for tensor in tensors_of(item))
    return ()


@dataclass(frozen=True, slots=True)
class KerasReader:
    """The reader that turns one class of layers into operators of the graph.

    Args:
        name: of the class.
        read: emits the nodes.
        fields: of the configuration that change what is computed; None if no field does.
        keeps_mask: whether its result has the mask of its input.
    """

    name: str
    read: Callable[[KerasLayer], Tensor | tuple[Tensor, ...]]
    fields: tuple[str, ...] | None = ()
    keeps_mask: bool = False
