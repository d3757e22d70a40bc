"""Describes and checks tensors on the host side, and gives them aligned memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from microtir.artifact import MemoryData, Metadata, PoolData
from microtir.errors import RunError, nearest
from microtir.module.ir_module import PortKind

Array: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """An input or output of a model.

    `scale` and `zero_point` are None unless the tensor is quantised as a whole; then the real
    value is scale * (stored value - zero point). `member` is its name in the C struct, `offset`
    its place in the workspace pool `pool`, in bytes, if it has one there. `aliases` are other names
    by which inputs may be given.
    """

    name: str
    member: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    scale: float | None
    zero_point: int | None
    offset: int | None = None
    pool: str | None = None
    aliases: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Return all names by which users know the tensor."""
        return self.name, self.member, *self.aliases

    def quantise(self, real: npt.ArrayLike) -> Array:
        """Return real values as the tensor stores them, as TFLite's QUANTIZE gives them.

        Quotients by the scale are rounded, halves away from zero, and saturate; NaN is the least
        value.  A tensor without a scale has real values, which get its type.

        Raises:
            RunError: the values do not become the tensor's type, such as texts.
        """
        try:
            real_values = np.asarray(real)
            if real_values.dtype.kind not in "biuf":
                raise RunError(
                    f"values of {real_values.dtype} are not numbers", where=f"'{self.name}'"
                )
            values = np.asarray(real_values, np.float32 if self.scale is not None else self.dtype)
        except (TypeError, ValueError) as error:
            raise RunError(f"values are not numbers: {error}", where=f"'{self.name}'") from None
        if self.scale is None:
            return values
        assert self.zero_point is not None, "a scale comes with a zero point"
        quotient = (values / np.float32(self.scale)).astype(np.float64)
        limits = np.iinfo(self.dtype)
        rounded = np.copysign(np.floor(np.abs(quotient) + 0.5), quotient) + self.zero_point
        finite = np.nan_to_num(rounded, nan=limits.min)
        return np.asarray(np.clip(finite, limits.min, limits.max), self.dtype)

    def dequantise(self, stored: npt.ArrayLike) -> Array:
        """Return the real values of stored ones as float32; without a scale they are the same.

        Raises:
            RunError: the tensor cannot have stored them: no integers, or outside of its type.
        """
        values = np.asarray(stored)
        if self.scale is None:
            return values
        assert self.zero_point is not None, "a scale comes with a zero point"
        limits = np.iinfo(self.dtype)
        are_integers = values.dtype.kind in "iu"
        if not are_integers or (values.size and not _is_within(values, limits.min, limits.max)):
            what = "outside of its type" if are_integers else f"of {values.dtype}"
            raise RunError(
                f"values {what}, which it does not store",
                where=f"'{self.name}'",
                legal=f"{self.dtype}, {limits.min} to {limits.max}",
            )
        centred = (values.astype(np.int64) - self.zero_point).astype(np.float32)
        return np.asarray(centred * np.float32(self.scale), np.float32)

    def within(self, workspace: Mapping[str, Array]) -> Array:
        """Return the tensor's place in one of the pools as an array; `offset` must be known."""
        assert self.offset is not None and self.pool is not None
        count = int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize
        part = workspace[self.pool][self.offset : self.offset + count]
        return part.view(self.dtype).reshape(self.shape)


def _is_within(values: Array, least: int, most: int) -> bool:
    return bool(least <= int(values.min()) and int(values.max()) <= most)


def ports(metadata: Metadata, kind: PortKind) -> tuple[TensorInfo, ...]:
    """Return the inputs or the outputs of a model, in the order of the header."""
    return tuple(
        TensorInfo(
            port.name,
            port.member,
            tuple(port.shape),
            np.dtype(port.dtype),
            port.quantization.scale if port.quantization else None,
            port.quantization.zero_point if port.quantization else None,
            port.offset,
            port.pool,
            port.aliases,
        )
        for port in metadata.ports
        if port.kind == kind.value
    )


def passed_pools(memory: MemoryData) -> list[PoolData]:
    """Return the workspace pools that a run is given, in the order of its arguments."""
    return [pool for pool in memory.pools if not pool.is_internal]


def matched(expected: Sequence[TensorInfo], stated: Mapping[str, Array] | Array) -> list[Array]:
    """Return the given arrays in the order of the model's inputs, contiguous.

    What is no mapping is the only input.

    Raises:
        RunError: a name, shape or type does not fit; says what is legal.
    """
    names = {name: info for info in expected for name in reversed(info.names)}
    legal = ", ".join(_described(info) for info in expected)
    arrays: dict[str, Array] = {}
    if not isinstance(stated, Mapping):
        if len(expected) != 1:
            what = f"the model has {len(expected)} inputs, but only one array was given"
            raise RunError(what, where="run(inputs)", legal=f"an array by name: {legal}")
        return [_checked(expected[0], stated)]
    for name, array in stated.items():
        if name not in names:
            hint = nearest(name, names)
            raise RunError(f"no input '{name}'", where="run(inputs)", legal=legal, fix=hint or None)
        if names[name].name in arrays:
            raise RunError(f"input '{names[name].name}' is given twice", where="run(inputs)")
        arrays[names[name].name] = _checked(names[name], array)
    missing = [info.name for info in expected if info.name not in arrays]
    if missing:
        raise RunError(f"input '{missing[0]}' is missing", where="run(inputs)", legal=legal)
    return [arrays[info.name] for info in expected]


def _described(info: TensorInfo) -> str:
    return f"'{info.name}' {info.dtype}{list(info.shape)}"


def _checked(info: TensorInfo, array: Array) -> Array:
    values = np.asarray(array)
    if values.dtype != info.dtype or values.shape != info.shape:
        raise RunError(
            f"input '{info.name}' got {values.dtype}{list(values.shape)}",
            where="run(inputs)",
            legal=_described(info),
            fix=_real_values(info, values),
        )
    # numpy makes one dimension of none.
    return np.ascontiguousarray(values).reshape(info.shape)


def _real_values(info: TensorInfo, values: Array) -> str | None:
    """Return what to do with real values for a quantised input."""
    is_real = info.scale is not None and values.dtype.kind == "f"
    return f"model.inputs has quantise(array) for '{info.name}'" if is_real else None


def aligned(count: int, alignment: int, fill: int) -> npt.NDArray[np.uint8]:
    """Return `count` bytes of value `fill` at an address that is a multiple of `alignment`."""
    block = np.full(count + alignment, fill, dtype=np.uint8)
    start = -block.ctypes.data % alignment
    return block[start : start + count]


def empty_output(info: TensorInfo, fill: int) -> Array:
    """Return memory for an output; what the model does not write keeps the bytes `fill`."""
    count = int(np.prod(info.shape, dtype=np.int64)) * info.dtype.itemsize
    return aligned(count, max(info.dtype.itemsize, 16), fill).view(info.dtype).reshape(info.shape)
