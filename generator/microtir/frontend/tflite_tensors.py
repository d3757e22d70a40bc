"""Tensors of a TFLite file into tensors of the graph, made when an operator first uses them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from microtir.dtype import DType
from microtir.errors import MicrotirError, ModelFileError, UnsupportedModelError
from microtir.frontend import int4, tflite_file
from microtir.frontend.quantization import read_quantization
from microtir.frontend.tflite_refusals import type_advice, type_title
from microtir.frontend.tflite_shapes import is_free
from microtir.frontend.tflite_sparsity import written_out
from microtir.graph.ir import Array, Tensor, TensorType
from microtir.operators.common.tflite_schema import TfliteType as FileType
from microtir.support.unique_names import UniqueNames

_DTYPES: Mapping[int, DType] = MappingProxyType(
    {
        FileType.FLOAT32: DType.FLOAT32,
        FileType.INT8: DType.INT8,
        FileType.UINT8: DType.UINT8,
        FileType.INT16: DType.INT16,
        FileType.INT32: DType.INT32,
        FileType.UINT32: DType.UINT32,
        FileType.INT64: DType.INT64,
        FileType.UINT64: DType.UINT64,
        FileType.BOOL: DType.BOOL,
    }
)

_WIDENED: Mapping[int, DType] = MappingProxyType(
    {FileType.INT4: DType.INT8, FileType.FLOAT16: DType.FLOAT32}
)
"""Wider types of constants in types that no operator computes in; their values stay the same."""


class Tensors:
    """Tensors by their index in the file.

    Args:
        graph: of the file.
        note: called with the problem of each tensor that cannot be made, once.
        names: of all tensors of the model.
        scope: what the names of the subgraph's tensors begin with.
    """

    def __init__(
        self,
        graph: tflite_file.FileGraph,
        note: Callable[[MicrotirError], None],
        names: UniqueNames,
        scope: str = "",
    ) -> None:
        self._graph = graph
        self._note = note
        self._unique = names
        self._converted: dict[int, Tensor | None] = {}
        self._completed: dict[int, tuple[int, ...]] = {}
        self._checked: set[tuple[int, DType]] = set()
        self._names = self._unique_names(scope)

    def get(self, index: int) -> Tensor | None:
        """Return the tensor; None for an input that is left out, and for one with a problem."""
        if index == tflite_file.OPTIONAL:
            return None
        if index not in self._converted and not self._graph.tensors[index].is_readable:
            return None
        if index not in self._converted:
            try:
                self._converted[index] = self._make(self._graph.tensors[index])
            except MicrotirError as error:
                self._note(error)
                self._converted[index] = None
        return self._converted[index]

    def shape_of(self, index: int) -> tuple[int, ...] | None:
        """Return the shape of a tensor; None while it depends on a batch that is not resolved."""
        stored = self._graph.tensors[index]
        if index in self._completed:
            return self._completed[index]
        is_known = has_fixed_shape(stored) if index in self._graph.inputs else not is_free(stored)
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
        return self.new(tensor.name, tensor.type)

    def new(self, name: str, type_: TensorType) -> Tensor:
        """Return a tensor that the file does not have, with a name like this of its own."""
        return Tensor(self._unique.take(name), type_)

    def replace(self, index: int, tensor: Tensor) -> None:
        """Let an index stand for another tensor: what a variable holds from here on."""
        self._converted[index] = tensor
        self._completed[index] = tensor.shape

    def model_inputs(self) -> tuple[Tensor, ...]:
        """Return the model's inputs, checked for a fixed shape."""
        inputs = []
        for index in self._graph.inputs:
            stored = self._graph.tensors[index]
            if not has_fixed_shape(stored):
                self._note(self._dynamic(stored))
            tensor = self.get(index)
            if tensor is not None and tensor.type.elements == 0:
                self._note(self._broken(stored, f"the shape {stored.shape} has no elements"))
            elif tensor is not None:
                inputs.append(tensor)
        return tuple(inputs)

    def _unique_names(self, scope: str) -> dict[int, str]:
        """Return names by index: inputs and outputs go first, so that they keep theirs."""
        graph = self._graph
        # A resource is known by its own name, and not by those of its handles.
        tensors = [t.index for t in graph.tensors if t.type != FileType.RESOURCE]
        order = dict.fromkeys((*graph.inputs, *graph.outputs, *tensors))
        names = {index: graph.tensors[index].name or f"tensor_{index}" for index in order}
        return {index: self._unique.take(f"{scope}{name}") for index, name in names.items()}

    def _make(self, stored: tflite_file.FileTensor) -> Tensor:
        dtype = self._dtype(stored)
        quantization = read_quantization(stored, dtype, self._graph.file)
        tensor_type = TensorType(stored.shape, dtype, quantization)
        if tensor_type.bytes > tflite_file.MAX_TENSOR_BYTES:
            raise self._broken(stored, f"{tensor_type.bytes} bytes are too many")
        data = self._data(stored, tensor_type)
        return Tensor(self._names[stored.index], tensor_type, data)

    def _dtype(self, stored: tflite_file.FileTensor) -> DType:
        dtype = _DTYPES.get(stored.type)
        if dtype is not None:
            return dtype
        if stored.type in _WIDENED and stored.data is not None:
            return _WIDENED[stored.type]
        raise UnsupportedModelError(
            f"its type is {type_title(stored.type)}",
            where=self._where(stored),
            legal=", ".join(dtype.value for dtype in _DTYPES.values()),
            fix=type_advice(stored.type),
        )

    def _data(self, stored: tflite_file.FileTensor, tensor_type: TensorType) -> Array | None:
        view = stored.data
        if view is None and 0 not in stored.shape:
            return None
        view = memoryview(b"") if view is None else view
        is_int4 = stored.type == FileType.INT4
        is_half = stored.type == FileType.FLOAT16
        kind = np.dtype(np.float16 if is_half else tensor_type.dtype.value).newbyteorder("<")
        elements = tensor_type.elements
        if stored.sparsity is not None:
            return self._sparse_data(stored, view, kind, tensor_type.dtype)
        expected = int4.packed_bytes(elements) if is_int4 else elements * kind.itemsize
        if len(view) != expected:
            raise self._broken(
                stored,
                f"{len(view)} bytes of data for {'int4' if is_int4 else kind.name} of shape"
                f" {stored.shape}",
                f"{expected} bytes",
            )
        if is_int4:
            return int4.unpacked(view, elements).reshape(stored.shape)
        data = np.frombuffer(view, dtype=kind).reshape(stored.shape)
        if is_half:
            data = data.astype(np.float32)
            data.setflags(write=False)
        self._check_values(stored, data, tensor_type.dtype)
        return data

    def _sparse_data(
        self, stored: tflite_file.FileTensor, view: memoryview, kind: np.dtype[Any], dtype: DType
    ) -> Array:
        """Return a constant of which elements that are not zero are stored."""
        assert stored.sparsity is not None
        if stored.type == FileType.INT4:
            raise UnsupportedModelError(
                "it is a sparse tensor of 4-bit integers",
                where=self._where(stored),
                legal="sparse tensors of float32, float16, or integers with 8 bits or more",
                fix="convert the model without the sparsity optimisation",
            )
        data = None
        if len(view) % kind.itemsize == 0:
            data = written_out(stored.sparsity, stored.shape, np.frombuffer(view, dtype=kind))
        if data is None:
            raise self._broken(
                stored,
                f"it is sparse, and {len(view)} bytes of {kind.name} do not fit its places and its"
                f" shape {stored.shape}",
            )
        data = np.asarray(data.astype(dtype.value))
        data.setflags(write=False)
        self._check_values(stored, data, dtype)
        return data

    def _check_values(self, stored: tflite_file.FileTensor, data: Array, dtype: DType) -> None:
        """Report values that no converter writes, as signs of damage; each buffer once."""
        key = (stored.buffer, dtype)
        if key in self._checked:
            return
        self._checked.add(key)
        if dtype.is_float and bool(np.isnan(data).any()):
            raise self._broken(stored, "its data holds NaN", "numbers")
        if dtype is DType.BOOL and bool((data.view(np.uint8) > 1).any()):
            raise self._broken(stored, "its data holds bytes above 1", "0 and 1")

    def _dynamic(self, stored: tflite_file.FileTensor) -> UnsupportedModelError:
        return UnsupportedModelError(
            f"the shape of the input is open: {stored.signature} (stored as {stored.shape})",
            where=self._where(stored),
            legal="fixed extents; but dimension 0, the batch, may be -1 if its stored extent is 1",
            fix="convert the model with fixed input shapes, such as Input(batch_shape=(1, ...))",
        )

    def _where(self, stored: tflite_file.FileTensor) -> str:
        return f"{self._graph.file}: {stored.label}"

    def _broken(
        self, stored: tflite_file.FileTensor, what: str, legal: str | None = None
    ) -> ModelFileError:
        return ModelFileError(
            what, where=self._where(stored), legal=legal, fix="export or download the model again"
        )


def has_fixed_shape(stored: tflite_file.FileTensor) -> bool:
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
