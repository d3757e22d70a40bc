"""Write tensors: their types, quantisation, sparsity, and the bytes of constants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import flatbuffers
import numpy as np
import numpy.typing as npt

from microtir.errors import UsageError
from microtir.frontend.tflite_sparsity import FileSparsity
from microtir.operators.common.tflite_schema import TfliteType
from microtir.writers.tflite.flatbuffer import Wire, offset_vector, table, vector
from microtir.writers.tflite.versions import Operand

_BUFFER_ALIGNMENT = 16


@dataclass(frozen=True, slots=True)
class WrittenTensor:
    """A tensor of a subgraph; `buffer` numbers the bytes of a constant, 0 stands for none."""

    name: str
    shape: tuple[int, ...]
    type: TfliteType
    buffer: int
    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int
    shape_signature: tuple[int, ...]
    is_variable: bool
    sparsity: FileSparsity | None = None

    def operand(self) -> Operand:
        """Return what versions of operators depend on."""
        return Operand(self.type, len(self.shape), self.scales)


def tensor_type(dtype: npt.DTypeLike | Literal["resource", "int4"], where: str) -> TfliteType:
    """Return the type of the format.

    Raises:
        UsageError: it has none.
    """
    name = str(dtype) if dtype in ("resource", "int4") else np.dtype(dtype).name
    try:
        return TfliteType[name.upper()]
    except KeyError:
        legal = ", ".join(member.name.lower() for member in TfliteType)
        raise UsageError(f"type {name} cannot be stored", where=where, legal=legal) from None


def quantization(
    scales: npt.ArrayLike | None,
    zero_points: npt.ArrayLike | None,
    axis: int | None,
    shape: tuple[int, ...],
    where: str,
) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """Check scales, zero points and axis against the shape, and make them tuples.

    Raises:
        UsageError: they contradict each other.
    """
    if scales is None:
        if zero_points is not None or axis is not None:
            raise UsageError("zero points or an axis without scales", where=where)
        return (), ()
    scale_values = tuple(float(scale) for scale in np.atleast_1d(np.asarray(scales)))
    if zero_points is None:
        zero_values = (0,) * len(scale_values)
    else:
        zero_values = tuple(int(zero) for zero in np.atleast_1d(np.asarray(zero_points)))
    if len(zero_values) != len(scale_values):
        raise UsageError(
            f"{len(zero_values)} zero points for {len(scale_values)} scales", where=where
        )
    if axis is None and len(scale_values) != 1:
        raise UsageError(
            f"{len(scale_values)} scales without an axis", where=where, fix="pass axis"
        )
    if axis is not None and not (0 <= axis < len(shape) and len(scale_values) in (1, shape[axis])):
        raise UsageError(
            f"{len(scale_values)} scales along axis {axis} of shape {shape}",
            where=where,
            legal="one scale, or one per slice along an axis of the tensor",
        )
    return scale_values, zero_values


def stored_bytes(
    data: npt.ArrayLike, dtype: npt.DTypeLike, shape: tuple[int, ...], where: str
) -> bytes:
    """Return the bytes of a constant, little endian; two values of "int4" share one.

    Raises:
        UsageError: the data have another shape, or values that the type does not hold.
    """
    values, kind = np.asarray(data), np.dtype(np.int8 if dtype == "int4" else dtype)
    if values.shape != shape:
        raise UsageError(
            f"data has shape {values.shape}", where=where, legal=f"the tensor's shape {shape}"
        )
    stored = values.astype(kind.newbyteorder("<"))
    if kind.kind != "f" and not np.array_equal(stored, values):
        raise UsageError(f"data does not fit {kind}", where=where)
    if dtype == "int4":
        pairs = np.pad(values.reshape(-1), (0, values.size % 2)).reshape(-1, 2) & 15
        stored = (pairs[:, 0] | pairs[:, 1] << 4).astype(np.uint8)
    return stored.tobytes()


def write_buffer(fb: flatbuffers.Builder, data: bytes) -> int:
    """Write the bytes of a constant; none for tensors that have no data."""
    if not data:
        return table(fb)
    # Interpreters use weights in place through typed pointers, so the bytes must lie aligned.
    # CreateByteVector aligns to four only, but keeps what a wider Prep set up for its length.
    fb.Prep(_BUFFER_ALIGNMENT, len(data))
    vector = int(fb.CreateByteVector(data))
    return table(fb, (0, Wire.OFFSET, vector))


def write_tensor(fb: flatbuffers.Builder, tensor: WrittenTensor) -> int:
    """Write a tensor; its bytes are another table."""
    name = fb.CreateString(tensor.name)
    shape = vector(fb, tensor.shape, np.int32)
    signature = vector(fb, tensor.shape_signature, np.int32) if tensor.shape_signature else 0
    quantization = 0
    if tensor.scales:
        scales = vector(fb, tensor.scales, np.float32)
        zero_points = vector(fb, tensor.zero_points, np.int64)
        quantization = table(
            fb,
            (2, Wire.OFFSET, scales),
            (3, Wire.OFFSET, zero_points),
            (6, Wire.INT32, tensor.axis),
        )
    sparsity = 0 if tensor.sparsity is None else _write_sparsity(fb, tensor.sparsity)
    return table(
        fb,
        (0, Wire.OFFSET, shape),
        (1, Wire.INT8, tensor.type),
        (2, Wire.UINT32, tensor.buffer),
        (3, Wire.OFFSET, name),
        (4, Wire.OFFSET, quantization),
        (5, Wire.BOOL, tensor.is_variable),
        *([(6, Wire.OFFSET, sparsity)] if sparsity else []),
        (7, Wire.OFFSET, signature),
        (8, Wire.BOOL, True),
    )


def _write_sparsity(fb: flatbuffers.Builder, sparsity: FileSparsity) -> int:
    axes = []
    for axis in sparsity.axes:
        if axis.is_dense:
            axes.append(table(fb, (1, Wire.INT32, axis.size)))
            continue
        vectors = [
            table(fb, (0, Wire.OFFSET, vector(fb, numbers, np.int32)))
            for numbers in (axis.begins, axis.places)
        ]
        axes.append(
            table(
                fb,
                (0, Wire.INT8, 1),
                (2, Wire.UINT8, 1),
                (3, Wire.OFFSET, vectors[0]),
                (4, Wire.UINT8, 1),
                (5, Wire.OFFSET, vectors[1]),
            )
        )
    dimensions = offset_vector(fb, axes)
    order = vector(fb, sparsity.order, np.int32)
    blocked = vector(fb, sparsity.blocked, np.int32)
    return table(
        fb, (0, Wire.OFFSET, order), (1, Wire.OFFSET, blocked), (2, Wire.OFFSET, dimensions)
    )
