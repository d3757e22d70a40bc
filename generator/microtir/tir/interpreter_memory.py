"""The memory of interpreted functions: typed views of it, and the places of possible errors.

Memory is bytes with one mask byte for each: a BufferView may see the bytes of another buffer as a
different type, and an element of which a byte was never written is known as such.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NoReturn

import numpy as np

from microtir.dtype import DType
from microtir.errors import InterpreterError
from microtir.tir import arithmetic, ir
from microtir.tir.arithmetic import Number, UndefinedError
from microtir.tir.intrinsics import SIGNATURES
from microtir.tir.printer import access_text, expr_text

# Format characters of memoryview; Any because its type knows them only as literals.
_FORMATS: Mapping[DType, Any] = MappingProxyType({
    DType.BOOL: "?", DType.INT8: "b", DType.UINT8: "B", DType.INT16: "h", DType.UINT16: "H",
    DType.INT32: "i", DType.UINT32: "I", DType.INT64: "q", DType.UINT64: "Q",
    DType.FLOAT32: "f", DType.FLOAT64: "d",
})  # fmt: skip
_MASK_FORMATS: Mapping[int, Any] = MappingProxyType({1: "B", 2: "H", 4: "I", 8: "Q"})


@dataclass(frozen=True, slots=True)
class MemoryView:
    """Elements of one type in some memory.

    `address` is the distance in bytes from a base that is aligned to everything.
    `mask` has the element size of `elements`; a written element has 1 in each of its bytes.
    """

    bytes: memoryview[Any]
    mask_bytes: memoryview[Any]
    elements: memoryview[Any]
    mask: memoryview[Any]
    dtype: DType
    count: int
    address: int

    @staticmethod
    def over(
        data: memoryview[Any], mask: memoryview[Any], dtype: DType, address: int = 0
    ) -> MemoryView:
        """Return all of `data`, whose size is a multiple of the element size."""
        return MemoryView(
            data,
            mask,
            data.cast(_FORMATS[dtype]),
            mask.cast(_MASK_FORMATS[dtype.bytes]),
            dtype,
            len(data) // dtype.bytes,
            address,
        )

    @staticmethod
    def empty_memory(dtype: DType, count: int) -> MemoryView:
        """Make new memory, uninitialised."""
        size = count * dtype.bytes
        return MemoryView.over(memoryview(bytearray(size)), memoryview(bytearray(size)), dtype)

    @staticmethod
    def of_array(array: ir.Array, *, initialised: bool = True) -> MemoryView:
        """Return the memory of a contiguous array itself: stores change it."""
        data = memoryview(array.reshape(-1).view(np.uint8).data)
        mask = bytearray(b"\x01" * len(data)) if initialised else bytearray(len(data))
        return MemoryView.over(data, memoryview(mask), DType(array.dtype.name))

    def part(self, offset: int, count: int, dtype: DType) -> MemoryView:
        """Return `count` elements of `dtype` from byte `offset` on; UndefinedError if wrong."""
        end = offset + count * dtype.bytes
        if offset < 0 or end > len(self.bytes):
            raise UndefinedError(f"bytes [{offset}, {end}) lie outside [0, {len(self.bytes)})")
        address = self.address + offset
        if address % dtype.bytes:
            raise UndefinedError(f"byte address {address} is misaligned for {dtype.value}")
        return MemoryView.over(self.bytes[offset:end], self.mask_bytes[offset:end], dtype, address)


class Sites:
    """The places of one function where something can go wrong, and the errors for them."""

    def __init__(self, func: ir.PrimFunc) -> None:
        self._func = func
        self._places: list[ir.Expr | ir.Store | ir.BufferArgument | ir.BufferView] = []

    def add(self, place: ir.Expr | ir.Store | ir.BufferArgument | ir.BufferView) -> int:
        self._places.append(place)
        return len(self._places) - 1

    def error(self, site: int, what: str) -> NoReturn:
        place = self._places[site]
        if isinstance(place, ir.Store | ir.BufferArgument):
            text = access_text(place.buffer, place.indices)
        elif isinstance(place, ir.BufferView):
            text = f"view of '{place.buffer.name}'"
        else:
            text = expr_text(place)
        raise InterpreterError(f"{what}: {text}", where=f"function '{self._func.name}'")

    def overflow(self, site: int, value: int, dtype: DType) -> NoReturn:
        self.error(site, f"{value} does not fit {dtype.value}")

    def bounds(self, site: int, axis: int, value: int, extent: int) -> NoReturn:
        self.error(site, f"index {value} of axis {axis} is outside [0, {extent})")

    def uninitialised(self, site: int) -> NoReturn:
        self.error(site, "read before it is written")

    def convert(self, site: int, value: Number, source: DType, target: DType) -> Number:
        try:
            return arithmetic.convert(value, source, target)
        except UndefinedError as error:
            self.error(site, str(error))

    def call(self, site: int, intrinsic: ir.Intrinsic, *args: Number) -> Number:
        try:
            return SIGNATURES[intrinsic].meaning(*args)
        except UndefinedError as error:
            self.error(site, str(error))

    def part(
        self, site: int, view: MemoryView, offset: int, count: int, dtype: DType
    ) -> MemoryView:
        try:
            return view.part(offset, count, dtype)
        except UndefinedError as error:
            self.error(site, str(error))
