"""Tensors of a TFLite file into tensors of the graph, made when an operator first uses them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from microtir.dtype import DType
from microtir.errors import MicrotirError, ModelFileError, UnsupportedModelError
from microtir.frontend.quantization import read_quantization
from microtir.frontend.tflite_file import (
    MAX_TENSOR_BYTES,
    OPTIONAL,
    FileTensor,
    ModelFile,
)
from microtir.frontend.tflite_refusals import type_advice, type_title
from microtir.frontend.tflite_shapes import is_free
from microtir.graph.ir import Array, Tensor, TensorType
from microtir.operators.common.tflite_schema import TfliteType as FileType

_DTYPES: Mapping[int, DType] = MappingProxyType(
    {
        FileType.FLOAT32: DType.FLOAT32,
        FileType.INT8: DType.INT8,
        FileType.UINT8: DType.UINT8,
        FileType.INT16: DType.INT16,
        FileType.INT32: DType.INT32,
        FileType.INT64: DType.INT64,
        FileType.BOOL: DType.BOOL,
    }
)


def unique_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return the same names in order; a later one that is taken already gets a number."""
    taken: set[str] = set()
    last: dict[str, int] = {}
    result = []
    for name in names:
        unique = name
        while unique in taken:
            last[name] = last.get(name, 1) + 1
            unique = f"{name}_{last[name]}"
        taken.add(unique)
        result.append(unique)
    return tuple(result)


class Tensors:
    """Tensors by their index in the file.

    Args:
        model: the file.
        note: called with the problem of each tensor that cannot be made, once.
    """

    def __init__(self, model: ModelFile, note: Callable[[MicrotirError], None]) -> None:
        self._model = model
        self._note = note
        self._converted: dict[int, Tensor | None] = {}
        self._completed: dict[int, tuple[int, ...]] = {}
        self._checked: set[tuple[int, DType]] = set()
        self._names = self._unique_names()
        self._copies: list[str] = []

    def get(self, index: int) -> Tensor | None:
        """Return the tensor; None for an input that is left out, and for one with a problem."""
        if index == OPTIONAL:
            return None
        if index not in self._converted and not self._model.tensors[index].is_readable:
            return None
        if index not in self._converted:
            try:
                self._converted[index] = self._make(self._model.tensors[index])
            except MicrotirError as error:
                self._note(error)
                self._converted[index] = None
        return self._converted[index]

    def shape_of(self, index: int) -> tuple[int, ...] | None:
        """Return the shape of a tensor; None while it depends on a batch that is not resolved."""
        stored = self._model.tensors[index]
        if index in self._completed:
            return self._completed[index]
        is_known = has_fixed_shape(stored) if index in self._model.inputs else not is_free(stored)
        return stored.shape if is_known else None

    def complete(self, index: int, shape: tuple[int, ...]) -> Tensor:
        """Return the tensor that an operator makes, with the extents that depend on the batch.

        Nobody has used it yet: operators come in the order of the dataflow.
        """
        tensor = self._converted[index]
        assert tensor is not None
        self._completed[index] = shape
        if tensor.shape != shape:
            tensor = replace(tensor, type=replace(tensor.type, shape=shape))
            self._converted[index] = tensor
        return tensor

    def know(self, index: int, value: Array) -> None:
        """Make a constant of a tensor that an operator computes."""
        tensor = self.get(index)
        if tensor is not None:
            self._converted[index] = replace(tensor, data=value)

    def copied(self, tensor: Tensor) -> Tensor:
        """Return a tensor for a copy of one, with a name of its own."""
        names = (*self._names.values(), *self._copies, tensor.name)
        self._copies.append(unique_names(names)[-1])
        return Tensor(self._copies[-1], tensor.type)

    def model_inputs(self) -> tuple[Tensor, ...]:
        """Return the model's inputs, checked for a fixed shape."""
        inputs = []
        for index in self._model.inputs:
            stored = self._model.tensors[index]
            if not has_fixed_shape(stored):
                self._note(self._dynamic(stored))
            tensor = self.get(index)
            if tensor is not None and tensor.type.elements == 0:
                self._note(self._broken(stored, f"the shape {stored.shape} holds nothing"))
            elif tensor is not None:
                inputs.append(tensor)
        return tuple(inputs)

    def _unique_names(self) -> dict[int, str]:
        """Return names by index: inputs and outputs go first, so that they keep theirs."""
        model = self._model
        order = dict.fromkeys((*model.inputs, *model.outputs, *range(len(model.tensors))))
        names = unique_names(model.tensors[i].name or f"tensor_{i}" for i in order)
        return dict(zip(order, names, strict=True))

    def _make(self, stored: FileTensor) -> Tensor:
        dtype = self._dtype(stored)
        if stored.is_variable or stored.is_sparse:
            kind = "a variable" if stored.is_variable else "stored in a sparse form"
            raise UnsupportedModelError(
                f"it is {kind}",
                where=self._where(stored),
                legal="activations, and constants stored in full",
                fix="convert a model without state"
                if stored.is_variable
                else "convert the model without the sparsity optimisation",
            )
        quantization = read_quantization(stored, dtype, self._model.file)
        tensor_type = TensorType(stored.shape, dtype, quantization)
        if tensor_type.bytes > MAX_TENSOR_BYTES:
            raise self._broken(stored, f"{tensor_type.bytes} bytes are too many")
        data = self._data(stored, tensor_type)
        return Tensor(self._names[stored.index], tensor_type, data)

    def _dtype(self, stored: FileTensor) -> DType:
        dtype = _DTYPES.get(stored.type)
        if dtype is not None:
            return dtype
        raise UnsupportedModelError(
            f"its type is {type_title(stored.type)}",
            where=self._where(stored),
            legal=", ".join(dtype.value for dtype in _DTYPES.values()),
            fix=type_advice(stored.type),
        )

    def _data(self, stored: FileTensor, tensor_type: TensorType) -> Array | None:
        view = stored.data
        if view is None and 0 not in stored.shape:
            return None
        view = memoryview(b"") if view is None else view
        if len(view) != tensor_type.bytes:
            raise self._broken(
                stored,
                f"{len(view)} bytes of data for {tensor_type.dtype.value} of shape {stored.shape}",
                f"{tensor_type.bytes} bytes",
            )
        dtype = np.dtype(tensor_type.dtype.value).newbyteorder("<")
        data = np.frombuffer(view, dtype=dtype).reshape(stored.shape)
        self._check_values(stored, data, tensor_type.dtype)
        return data

    def _check_values(self, stored: FileTensor, data: Array, dtype: DType) -> None:
        """Report values that no converter writes, as signs of damage; each buffer once."""
        key = (stored.buffer, dtype)
        if key in self._checked:
            return
        self._checked.add(key)
        if dtype.is_float and bool(np.isnan(data).any()):
            raise self._broken(stored, "its data holds NaN", "numbers")
        if dtype is DType.BOOL and bool((data.view(np.uint8) > 1).any()):
            raise self._broken(stored, "its data holds bytes above 1", "0 and 1")

    def _dynamic(self, stored: FileTensor) -> UnsupportedModelError:
        return UnsupportedModelError(
            f"the input has the dynamic shape {stored.signature}, stored as {stored.shape}",
            where=self._where(stored),
            legal="fixed extents; -1 for the batch (dimension 0) where the stored extent is 1",
            fix="convert the model with fixed input shapes, such as Input(batch_shape=(1, ...))",
        )

    def _where(self, stored: FileTensor) -> str:
        return f"{self._model.file}: {stored.label}"

    def _broken(self, stored: FileTensor, what: str, legal: str | None = None) -> ModelFileError:
        return ModelFileError(
            what, where=self._where(stored), legal=legal, fix="export or download the model again"
        )


def has_fixed_shape(stored: FileTensor) -> bool:
    """Return whether the shape is fixed but for a batch that is stored as 1."""
    if not stored.signature:
        return True
    if len(stored.signature) != len(stored.shape):
        return False
    pairs = enumerate(zip(stored.signature, stored.shape, strict=True))
    return all(
        wanted == extent or (wanted == -1 and axis == 0 and extent == 1)
        for axis, (wanted, extent) in pairs
    )
