"""Outputs of products as their kernels write them: pixels of NHWC, or columns of planes.

What lies between the images of two neighbouring planes is one run of bytes: the border behind the
one and that before the other.
"""

from __future__ import annotations

from dataclasses import dataclass

from microtir import te
from microtir.dtype import DType
from microtir.kernels.common import macro_kernel, micro_kernel
from microtir.kernels.common.layer import Layer, Rows
from microtir.kernels.common.made_once import made_once
from microtir.kernels.common.statements import loop, seq, store
from microtir.operators.common.rows import Extents
from microtir.plan.ir import LayoutKind, Planes, Refusal
from microtir.schedule import KernelDescription
from microtir.tir import ir

_TURN = 4  # planes
_STORES = ((4, "str"), (2, "strh"), (1, "strb"))
LONGEST = 4095 // (_TURN + 1)  # bytes of a plane: what stores reach
COLUMNS = 1 << 12  # the most of a plane that a kernel is given
_BORDER = 8  # columns; more than windows of 3 need beside an image, and rounding


@dataclass(frozen=True, slots=True)
class PlaneRow:
    """An output row that is planes of so many columns."""

    dtype: DType
    columns: int

    @property
    def bytes(self) -> int:
        return self.columns * self.dtype.bytes

    @property
    def name(self) -> str:
        """Tell kernels for planes of one width from others."""
        return f"_planes{self.dtype.bits}of{self.columns}"

    def values(self) -> dict[str, str]:
        is_wide = self.dtype is DType.INT16
        return {
            "store": "strh" if is_wide else "strb",
            "scaled": ", lsl #1" if is_wide else "",
            "twice": f", lsl #{self.dtype.bytes}",
            "pixel": str(self.dtype.bytes),
            "pair": str(2 * self.dtype.bytes),
        }


def planes_refusal(output: Extents) -> Refusal | None:
    """Return what speaks against writing planes, whatever the product and whoever reads them."""
    if output.images != 1:
        return Refusal.IMAGES
    longest = (output.width + _BORDER) * DType.INT16.bytes
    return None if longest <= LONGEST else Refusal.SIZES


def borders_cost(output: Extents, writes: LayoutKind) -> int:
    """Return the instructions that set the borders of all rows, if they are planes."""
    return 0 if writes is LayoutKind.NHWC else output.height * (3 * output.channels // 2 + 40)


def sink_of(layer: Layer) -> tuple[macro_kernel.Sink, PlaneRow | None]:
    """Return where the outputs of a layer go, and how rows lie, if they are planes."""
    rows = layer.output_rows()
    planes = rows.layout.planes
    if planes is None:
        return macro_kernel.Nhwc(rows), None
    return _Planes(rows, planes), PlaneRow(rows.buffer.dtype, planes.columns)


class _Planes(macro_kernel.Sink):
    """Columns of planes, with what whoever reads them finds beside the image: the zero point."""

    def __init__(self, rows: Rows, planes: Planes) -> None:
        self._rows, self._planes = rows, planes
        output, zero = Extents.of(rows.type), rows.type.quant.zero_point
        self._borders = borders(planes, output.channels, output.width, zero, rows.buffer.dtype)

    def at(self, pixel: macro_kernel.Pixel, channel: te.ExprLike) -> macro_kernel.Arguments:
        assert channel == 0, "kernels are given whole rows"
        return self._rows.row(pixel.row), self._planes.before + pixel.column

    def row(self, row: te.Expr) -> ir.Stmt:
        return micro_kernel.call(self._borders, self._rows.row(row))


@made_once
def borders(
    planes: Planes, channels: int, width: int, value: int, dtype: DType
) -> KernelDescription:
    """Set all columns of a row (channels, columns) but those of the image, `width` of them.

    Its planes are LONGEST bytes or less.
    """
    row = ir.Buffer("row", (channels, planes.columns), dtype)
    behind = planes.before + width

    def plane(channel: te.Expr) -> ir.Stmt:
        def column(n: te.Expr) -> ir.Stmt:
            return store(row, (channel, n), value)

        return seq(
            loop("col", 0, planes.before, column), loop("col", behind, planes.columns, column)
        )

    name = f"{channels}x{width}in{planes.columns}at{planes.before}"
    return micro_kernel.describe(
        f"borders{dtype.bits}_{name}_{value}".replace("-", "m"),
        (f"Sets the borders of {channels} planes of {width} columns to {value}",),
        (row,),
        (row,),
        loop("channel", 0, channels, plane),
        "kernels/borders.j2",
        _values(PlaneRow(dtype, planes.columns), planes.before, behind, channels, value),
        stack_bytes=0,
    )


def _values(
    row: PlaneRow, before: int, behind: int, channels: int, value: int
) -> dict[str, object]:
    size = row.dtype.bytes
    pattern = value & 0xFFFF if size == 2 else (value & 0xFF) * 0x0101
    last = (row.columns - behind) * size
    between = last + before * size
    turns, rest = divmod(channels - 1, _TURN)

    def gaps(count: int) -> list[dict[str, str]]:
        places = (plane * row.bytes + behind * size for plane in range(count))
        return [piece for place in places for piece in _pieces(place, between)]

    return {
        "value": str(pattern),
        "first": _pieces(0, before * size),
        "turns": str(turns) if turns else "",
        "turn_bytes": str(_TURN * row.bytes),
        "some": gaps(_TURN),
        "last": gaps(rest) + _pieces(rest * row.bytes + behind * size, last),
    }


def _pieces(place: int, count: int) -> list[dict[str, str]]:
    """Return stores of `count` bytes from `place` on; STR and STRH need no alignment."""
    pieces = []
    for size, name in _STORES:
        for _ in range(count // size):
            pieces.append({"store": name, "offset": str(place)})
            place += size
        count %= size
    return pieces
