"""L2_NORMALIZATION of int8: sums of squares by vectors, and the factors of four rows at once."""

from __future__ import annotations

from microtir import te
from microtir.config import Feature
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.arm_mve.linear import BYTES, lanes_of, steps_of
from microtir.kernels.arm_mve.requantise import LANES
from microtir.kernels.common.float_edges import halves
from microtir.kernels.common.kernel import Kernel
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.made_once import made_once
from microtir.kernels.common.micro_kernel import call, describe
from microtir.kernels.common.statements import at
from microtir.measure.printed import Printed, printed
from microtir.operators.common import fixed_point
from microtir.operators.common.arithmetic import centred
from microtir.operators.normalization.definition import OUTPUT_BITS, L2Normalize
from microtir.operators.normalization.formula import normalised
from microtir.plan.ir import Calls, Refusal
from microtir.schedule import KernelDescription
from microtir.tir import ir

_TEMPLATE = "kernels/mve/normalise.j2"
_LARGEST = 0xFFFF  # rows: what MOVW loads
_LONGEST = 4095  # elements of a row: sums of their squares are below 2^29
_SHIFTED = 1 << 21  # sums from here on are shifted to the right
_VECTOR = lanes_of(DType.INT16)
_DIRECT = 1600  # bytes of the direct kernel, which are none here
_AROUND = 2  # instructions around the call


class NormaliseVectors(Kernel):
    """Rows of any length, eight outputs at a time."""

    name = "l2norm_s8_1x8_mve"
    operators = (L2Normalize,)
    needs = Feature.MVE
    cycles = 145

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it: another type, many or long rows."""
        x = node.inputs[0].type
        if x.dtype is not DType.INT8:
            return Refusal.TYPES
        fits = x.shape[-1] <= _LONGEST and x.elements // x.shape[-1] <= _LARGEST
        return None if fits else Refusal.SIZES

    def window(self, _node: Node) -> None:
        """Return None: factors are those of all rows."""
        return

    def instructions(self, node: Node, _calls: Calls) -> int:
        rows, width, _ = _extents(node)
        return _AROUND + _printed(*_extents(node)).instructions({
            "bgt 1b": steps_of(rows, LANES), "bne 2b": rows, "bne 5b": rows,
            "letp lr, 3b": rows * steps_of(width), "le lr, 6b": width // _VECTOR * rows,
        })  # fmt: skip

    def code_bytes(self, node: Node) -> int:
        """Return bytes beyond those of the direct kernel, which has a root in C."""
        return max(_printed(*_extents(node)).bytes - _DIRECT, 1)

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Return the layer function: one call."""
        rows, width, _ = extents = _extents(layer.node)
        x = layer.whole(0, (rows, width)).buffer
        y = layer.output_buffer((rows, width))
        return layer.function(name, None, call(_normalise(*extents), at(x, 0, 0), at(y, 0, 0)))


def _extents(node: Node) -> tuple[int, int, int]:
    """Return rows, their length, and the zero point of inputs."""
    x = node.inputs[0].type
    return x.elements // x.shape[-1], x.shape[-1], x.quant.zero_point


def _printed(rows: int, width: int, zero_point: int) -> Printed:
    return printed(_TEMPLATE, _values(rows, width, zero_point))


def _values(rows: int, width: int, zero_point: int) -> dict[str, object]:
    whole, tail = divmod(width, _VECTOR)
    farthest = max(DType.INT8.max - zero_point, zero_point - DType.INT8.min)
    behind = -width % BYTES
    return {
        "rows": str(rows),
        "width": str(width),
        "zero_point": str(zero_point) if zero_point else "",
        "start": halves(width * zero_point**2),
        "behind": str(behind) if behind else "",
        "half_three": halves(fixed_point.INVERSE_ROOT_HALF_THREE),
        "half_root_two": halves(fixed_point.INVERSE_ROOT_HALF_ROOT_TWO),
        "output_bits": str(OUTPUT_BITS),
        "shifts_right": width * farthest**2 >= _SHIFTED,
        "whole": str(whole) if whole else "",
        "tail": str(tail) if tail else "",
    }


@made_once
def _normalise(rows: int, width: int, zero_point: int) -> KernelDescription:
    """Normalise rows; parameters: inputs and outputs."""
    x = te.placeholder((rows, width), DType.INT8, "x")

    def element(row: te.Expr, i: te.Expr) -> te.Expr:
        k = te.reduce_axis(0, width, "k")
        value = centred(x[row, k], zero_point)
        own = centred(x[row, i], zero_point)
        return normalised(own, te.sum(value * value, k), DType.INT8)

    y = te.compute((rows, width), element, "y")
    return describe(
        f"normalise_{rows}x{width}_{zero_point % 256}", (f"{rows} rows of length 1",),
        (x.buffer, y.buffer), (y.buffer,), te.create_schedule(y).primfunc(name="rows").body,
        _TEMPLATE, _values(rows, width, zero_point), stack_bytes=68, needs=Feature.MVE,
    )  # fmt: skip
