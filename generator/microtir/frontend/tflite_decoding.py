"""TFLM_DECODE of tflite-micro: constants that a file stores compressed, unpacked while it is read.

Inputs are pairs: packed bits, and a header of 16 bytes with tables behind it.  The first byte of a
header is the form: indices into tables of values (LUT), codewords (Huffman), or a bitmap of what is
not zero (prune).  Bits go from the most significant one of each byte to the least.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from microtir.dtype import DType
from microtir.errors import ModelFileError, UnsupportedModelError
from microtir.frontend.tflite_file import FileGraph, FileOperator, FileTensor
from microtir.graph.ir import Array, TensorType
from microtir.graph.names import brief

CODE = "TFLM_DECODE"

_HEADER = 16
_FORM, _VERSION, _FORM_VERSION, _PARAMETER, _STRIDE = 0, 1, 4, 5, 6
_KNOWN_VERSION = 1
_WIDTH = 0x07
_WIDE_TABLE, _FIRST_BITS = 0x01, 4

_TABULATED = frozenset(
    {DType.BOOL, DType.FLOAT32, DType.INT8, DType.INT16, DType.INT32, DType.INT64}
)
_CODED = frozenset({DType.INT8, DType.INT16})


class _Form(IntEnum):
    """The form in which a constant is stored."""

    LUT = 0
    HUFFMAN = 1
    PRUNE = 2


@dataclass(frozen=True, slots=True)
class _Packed:
    """A compressed constant: bits, header with tables, and what they become."""

    bits: npt.NDArray[np.uint8]
    header: bytes
    stored: FileTensor
    type: TensorType
    where: str

    @property
    def tables(self) -> bytes:
        return self.header[_HEADER:]

    def damaged(self, what: str, legal: str) -> ModelFileError:
        return ModelFileError(what, where=self.where, legal=legal, fix="compress the model again")

    def unsupported(self, what: str, legal: str) -> UnsupportedModelError:
        return UnsupportedModelError(
            what, where=self.where, legal=legal, fix="compress the model in another form"
        )


def decoded(
    graph: FileGraph, operator: FileOperator, types: Sequence[TensorType], where: str
) -> list[Array]:
    """Return the values of the outputs of a TFLM_DECODE.

    Args:
        graph: in which it stands.
        operator: of the file.
        types: of its outputs.
        where: the words for it in diagnostics.

    Raises:
        ModelFileError: bits, tables or tensors do not fit together.
        UnsupportedModelError: a form that is not known, or that does not go with a type.
    """
    if len(operator.inputs) != 2 * len(types):
        raise ModelFileError(
            f"it has {len(operator.inputs)} inputs and {len(types)} outputs",
            where=where,
            legal="two inputs for each output",
            fix="compress the model again",
        )
    values = []
    for number, type_ in enumerate(types):
        pair = operator.inputs[2 * number : 2 * number + 2]
        stored = graph.tensors[operator.outputs[number]]
        place = f"{where}, {brief(stored.name)!r}"
        bits, header = (_bytes_of(graph, index, place) for index in pair)
        unpacked = np.unpackbits(np.frombuffer(bits, np.uint8))
        value = _decode(_Packed(unpacked, header, stored, type_, place))
        value.setflags(write=False)
        values.append(value)
    return values


def _bytes_of(graph: FileGraph, index: int, where: str) -> bytes:
    data = graph.tensors[index].data if index >= 0 else None
    if data is None:
        raise UnsupportedModelError(
            "its encoded input is missing, or is not a constant",
            where=where,
            legal="an encoded input that is a constant",
            fix="compress the model again",
        )
    return bytes(data)


def _decode(packed: _Packed) -> Array:
    header = packed.header
    if len(header) < _HEADER:
        raise packed.damaged(f"its header has {len(header)} bytes", f"{_HEADER} or more")
    try:
        form = _Form(header[_FORM])
    except ValueError:
        known = ", ".join(f"{form.value} ({form.name})" for form in _Form)
        raise packed.unsupported(f"it is compressed in the form {header[_FORM]}", known) from None
    versions = header[_VERSION], header[_FORM_VERSION]
    if versions != (_KNOWN_VERSION, _KNOWN_VERSION):
        what = f"its header has the versions {versions[0]} and {versions[1]}"
        raise packed.unsupported(what, f"{_KNOWN_VERSION} and {_KNOWN_VERSION}")
    legal = _CODED if form is _Form.HUFFMAN else _TABULATED
    if packed.type.dtype not in legal:
        names = ", ".join(sorted(dtype.value for dtype in legal))
        what = f"the form {form.name} cannot contain {packed.type.dtype.value}"
        raise packed.unsupported(what, names)
    decoders = {_Form.LUT: _looked_up, _Form.HUFFMAN: _coded, _Form.PRUNE: _pruned}
    return decoders[form](packed).reshape(packed.type.shape)


def _channels(packed: _Packed) -> npt.NDArray[np.int64]:
    """Return the channel of each element: along the first axis, or the last one."""
    quantization, shape = packed.stored.quantization, packed.type.shape
    count, axis = max(len(quantization.scales), 1), quantization.axis
    if count > 1 and axis == len(shape) - 1:
        per_channel = 1
    elif axis == 0 or not quantization.scales:
        per_channel = packed.type.elements // count
    else:
        raise packed.unsupported(f"scales along axis {axis}", "the first axis, or the last one")
    if not per_channel or packed.type.elements % count:
        raise packed.damaged(f"{count} scales for the shape {shape}", "one, or one for a channel")
    return np.arange(packed.type.elements) // per_channel % count


def _table(packed: _Packed) -> Array:
    """Return what stands behind the header as values of the constant's type."""
    kind = np.dtype(packed.type.dtype.value).newbyteorder("<")
    whole = len(packed.tables) // kind.itemsize * kind.itemsize
    return np.frombuffer(packed.tables[:whole], kind).astype(packed.type.dtype.value)


def _looked_up(packed: _Packed) -> Array:
    """Decode a LUT: an index for each element, in a table for each channel."""
    width, stride = packed.header[_PARAMETER] & _WIDTH, packed.header[_STRIDE]
    needed = packed.type.elements * width
    if not width:
        raise packed.damaged("its indices have 0 bits", "1 to 7")
    if len(packed.bits) < needed:
        raise packed.damaged(f"{len(packed.bits)} bits of indices", f"{needed} or more")
    powers = 1 << np.arange(width)[::-1]
    indices = packed.bits[:needed].reshape(-1, width) @ powers
    places = indices + _channels(packed) * stride
    table = _table(packed)
    if places.max() >= len(table):
        what = f"an index names value {places.max()} of {len(table)}"
        raise packed.damaged(what, f"0 to {len(table) - 1}")
    return table[places]


def _pruned(packed: _Packed) -> Array:
    """Decode a bitmap: the next value of the table, or the zero point of the channel."""
    count = packed.type.elements
    if len(packed.bits) < count:
        raise packed.damaged(f"{len(packed.bits)} bits", f"{count} or more")
    zero_points = np.array(packed.stored.quantization.zero_points or (0,), np.int64)
    if packed.type.dtype is not DType.INT8 and zero_points.any():
        raise packed.unsupported("zero points of a type other than int8", "0")
    channels = _channels(packed) if packed.type.dtype is DType.INT8 else np.zeros(count, np.int64)
    values = zero_points[channels % len(zero_points)].astype(packed.type.dtype.value)
    is_kept, table = packed.bits[:count] == 1, _table(packed)
    if is_kept.sum() > len(table):
        raise packed.damaged(f"{len(table)} values", f"{is_kept.sum()}, as many as bits that are 1")
    values[is_kept] = table[: is_kept.sum()]
    return values


def _coded(packed: _Packed) -> Array:
    """Decode codewords: tables say how many bits the next index has, until one gives a symbol."""
    parameter = packed.header[_PARAMETER]
    is_wide = bool(parameter & _WIDE_TABLE)
    if not is_wide and packed.type.dtype is not DType.INT8:
        raise packed.unsupported("tables of 16 bits for another type than int8", "int8")
    entry = np.dtype("<u4" if is_wide else "<u2")
    whole = len(packed.tables) // entry.itemsize * entry.itemsize
    table = np.frombuffer(packed.tables[:whole], entry).tolist()
    reader = _Codewords(packed, table, 27 if is_wide else 11, (parameter >> _FIRST_BITS) + 1)
    symbols = np.array([reader.next() for _ in range(packed.type.elements)], np.uint32)
    return symbols.astype(np.uint8 if packed.type.dtype is DType.INT8 else np.uint16).view(
        packed.type.dtype.value
    )


class _Codewords:
    """Reads codewords one after the other.

    An entry of a table has a number, above it four bits, and the highest bit.  If that is set, the
    number is a symbol, and of the bits that the last index had, so many belong to the codeword.
    Otherwise it is the distance of another table, whose index has one bit more than the four say.
    """

    def __init__(self, packed: _Packed, table: Sequence[int], shift: int, first_bits: int) -> None:
        self._packed = packed
        self._table = table
        self._shift = shift
        self._first_bits = first_bits
        self._at = 0
        # An index may reach behind the last codeword.
        self._bits = [*packed.bits.tolist(), *([0] * 32)]

    def next(self) -> int:
        width, place = self._first_bits, 0
        while True:
            place += self._index(width)
            if place >= len(self._table):
                what = f"a codeword leads to entry {place} of {len(self._table)}"
                raise self._packed.damaged(what, f"0 to {len(self._table) - 1}")
            entry = self._table[place]
            bits = entry >> self._shift & 15
            if entry >> self._shift >> 4:
                break
            width = bits + 1
            place += entry & ((1 << self._shift) - 1)
        self._at -= max(width - bits, 0)
        if self._at > len(self._packed.bits):
            raise self._packed.damaged("its codewords end early", "one for each element")
        return entry & ((1 << self._shift) - 1)

    def _index(self, width: int) -> int:
        if self._at + width > len(self._bits):
            raise self._packed.damaged("its codewords end early", "one for each element")
        index = 0
        for bit in self._bits[self._at : self._at + width]:
            index = 2 * index + bit
        self._at += width
        return index
